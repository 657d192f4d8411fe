"""Gains of ranges of atoms, added to the scores of the atoms in one pass.

Each range has one gain for all of its atoms. The gain is added to the step of the first atom of the
range, and subtracted from the step after the last atom. The running sum of the steps is then the
total gain of each atom.
"""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.compiling import inlined


@inlined
def clear_steps(size, steps):  # type: ignore[no-untyped-def]
    """Set the steps of a column with ``size`` atoms to 0."""
    for atom in range(size + 1):
        steps[atom] = 0


@inlined
def add_steps(size, steps, scores):  # type: ignore[no-untyped-def]
    """Add the running sum of the steps to the scores of the atoms."""
    total = 0.0
    for atom in range(np.uint64(size)):
        total += steps[atom]
        scores[atom] += total
