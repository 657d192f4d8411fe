"""Edits made one after the other, whatever their effect, for tests."""

from __future__ import annotations

from private_gsd.kernels.cells import atom_of
from private_gsd.kernels.compiling import kernel
from private_gsd.kernels.edits import apply_edit, load_row


@kernel
def make_edits(problem, state, rows, columns, values, workspace):  # type: ignore[no-untyped-def]
    """Make edits one after the other, whatever their effect; returns the change of the loss."""
    change = 0.0
    for place in range(rows.size):
        atom = atom_of(problem.columns, columns[place], values[place])
        load_row(problem, state, rows[place], columns[place], workspace)
        change += apply_edit(
            problem, state, rows[place], columns[place], values[place], atom, workspace
        )
    return change
