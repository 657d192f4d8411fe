"""Steps: gains of ranges of atoms, added to the scores of the atoms in one pass.

A range of atoms adds its gain at its first atom and takes the gain off after its last one. The
running sum of the steps is the gain of each atom.
"""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.compiling import inlined


@inlined
def clear_steps(size, steps):  # type: ignore[no-untyped-def]
    """Set the steps of a column with so many atoms to 0."""
    for atom in range(size + 1):
        steps[atom] = 0


@inlined
def add_steps(size, steps, scores):  # type: ignore[no-untyped-def]
    """Add the running sum of the steps to the scores of the atoms."""
    total = 0.0
    for atom in range(np.uint64(size)):
        total += steps[atom]
        scores[atom] += total
