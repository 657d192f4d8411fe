"""Algorithm 1 of the paper, on edits instead of copies of tables.

The best table is stored in full. The other elites are stored as edits of the best table, and a
candidate is one edit of it, or a few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.cells import atom_of, draw_any
from private_gsd.kernels.compiling import inlined, kernel
from private_gsd.kernels.edits import apply_edit, delta_edit, is_allowed, load_row
from private_gsd.kernels.streams import below


class Elites(NamedTuple):
    """The elites, in order of their losses; the first is the best table."""

    losses: Any
    """The loss of each elite."""
    slots: Any
    """For each elite, the number of its list of edits; that of the first elite is empty."""
    sizes: Any
    """For each list, its number of edits."""
    cells: Any
    """For each list and edit, the cell: row times columns plus column."""
    values: Any
    """For each list and edit, the value."""
    places: Any
    """For each list and cell, the place of its edit in the list, or -1."""


class Offspring(NamedTuple):
    """The candidates of a generation, and a workspace for their selection."""

    rates: Any
    """The number of edits of each candidate: mutations first, then crossovers."""
    rows: Any
    """The row of each edit of each candidate."""
    columns: Any
    """The column of each edit of each candidate."""
    values: Any
    """The value of each edit of each candidate."""
    losses: Any
    """The loss of each candidate."""
    old: Any
    """For each edit of one candidate, the value that it replaced."""
    chosen: Any
    """Three rows: for each place among the next elites, the one selected and the number of its list
    of edits; for each list, whether it is in use."""
    kept: Any
    """The losses of the next elites."""
    history: Any
    """The losses of the best table over the window of generations, as a ring."""


@inlined
def _same(one, other):  # type: ignore[no-untyped-def]
    return one == other or (one != one and other != other)


@inlined
def set_edit(elites, slot, cell, value, best):  # type: ignore[no-untyped-def]
    """Set the value of an elite in a cell, where the best table has the value ``best``."""
    place = elites.places[slot, cell]
    if _same(value, best):
        if place >= 0:
            last = elites.sizes[slot] - 1
            moved = elites.cells[slot, last]
            elites.cells[slot, place] = moved
            elites.values[slot, place] = elites.values[slot, last]
            elites.places[slot, moved] = place
            elites.places[slot, cell] = -1
            elites.sizes[slot] = last
        return
    if place < 0:
        place = elites.sizes[slot]
        elites.sizes[slot] = place + 1
        elites.cells[slot, place] = cell
        elites.places[slot, cell] = place
    elites.values[slot, place] = value


@inlined
def _clear(elites, slot):  # type: ignore[no-untyped-def]
    for place in range(elites.sizes[slot]):
        elites.places[slot, elites.cells[slot, place]] = -1
    elites.sizes[slot] = 0


@kernel
def set_elite(elites, slot, values, best):  # type: ignore[no-untyped-def]
    """Set an elite to a table, at the beginning."""
    rows, columns = values.shape
    for row in range(rows):
        for column in range(columns):
            set_edit(elites, slot, row * columns + column, values[row, column], best[row, column])


@inlined
def _value_of(elites, slot, state, row, column):  # type: ignore[no-untyped-def]
    """The value of an elite in a cell."""
    place = elites.places[slot, row * state.values.shape[1] + column]
    if place >= 0:
        return elites.values[slot, place]
    return state.values[row, column]


@inlined
def _propose(problem, state, elites, offspring, mutations, stream):  # type: ignore[no-untyped-def]
    """Draw the candidates: mutations first, then crossovers."""
    rows, columns = state.values.shape
    for number in range(offspring.losses.size):
        slot = 0
        if number >= mutations:
            slot = elites.slots[below(stream, elites.slots.size)]
        for edit in range(offspring.rates[number]):
            row = below(stream, rows)
            offspring.rows[number, edit] = row
            if number < mutations:
                column = below(stream, columns)
                value = draw_any(problem.columns, column, stream)
            else:
                other = below(stream, rows)
                column = below(stream, columns)
                value = _value_of(elites, slot, state, other, column)
            offspring.columns[number, edit] = column
            offspring.values[number, edit] = value


@inlined
def _make(problem, state, offspring, number, workspace):  # type: ignore[no-untyped-def]
    """Turn the best table into a candidate; returns the change of the loss.

    An edit that breaks a rule is not made; the change of the loss is then infinite.
    """
    delta = 0.0
    for edit in range(offspring.rates[number]):
        where = offspring.rows[number, edit]
        column = offspring.columns[number, edit]
        value = offspring.values[number, edit]
        offspring.old[edit] = state.values[where, column]
        load_row(problem, state, where, -1, workspace)
        atom = atom_of(problem.columns, column, value)
        if is_allowed(problem, state, where, column, value, atom, workspace):
            delta += apply_edit(problem, state, where, column, value, atom, workspace)
        else:
            delta = np.inf
    return delta


@inlined
def _unmake(problem, state, offspring, number, workspace):  # type: ignore[no-untyped-def]
    """Reverse the edits of a candidate, the last edit first."""
    for edit in range(offspring.rates[number] - 1, -1, -1):
        where = offspring.rows[number, edit]
        column = offspring.columns[number, edit]
        value = offspring.old[edit]
        load_row(problem, state, where, -1, workspace)
        atom = atom_of(problem.columns, column, value)
        apply_edit(problem, state, where, column, value, atom, workspace)


@inlined
def _evaluate(problem, state, elites, offspring, workspace):  # type: ignore[no-untyped-def]
    """The loss of every candidate."""
    for number in range(offspring.losses.size):
        if offspring.rates[number] == 1:
            where = offspring.rows[number, 0]
            column = offspring.columns[number, 0]
            value = offspring.values[number, 0]
            load_row(problem, state, where, -1, workspace)
            atom = atom_of(problem.columns, column, value)
            delta = np.inf
            if is_allowed(problem, state, where, column, value, atom, workspace):
                delta = delta_edit(problem, state, where, column, value, atom, workspace)
        else:
            delta = _make(problem, state, offspring, number, workspace)
            _unmake(problem, state, offspring, number, workspace)
        offspring.losses[number] = elites.losses[0] + delta


@inlined
def _select(elites, offspring):  # type: ignore[no-untyped-def]
    """Select the next elites, best first.

    An elite is denoted by its number, a candidate by its number plus the number of elites. Among
    equal losses, elites come before candidates, and earlier ones before later ones.
    """
    size = elites.losses.size
    chosen = offspring.chosen[0]
    for place in range(size):
        chosen[place] = place
    for number in range(offspring.losses.size):
        loss = offspring.losses[number]
        place = size
        while place > 0:
            rival = chosen[place - 1]
            worse = elites.losses[rival] if rival < size else offspring.losses[rival - size]
            if not loss < worse:
                break
            place -= 1
        if place < size:
            for behind in range(size - 1, place, -1):
                chosen[behind] = chosen[behind - 1]
            chosen[place] = size + number


@inlined
def _edit_list(elites, slot, offspring, number, state):  # type: ignore[no-untyped-def]
    """Add the edits of a candidate to a list."""
    columns = state.values.shape[1]
    for edit in range(offspring.rates[number]):
        where, column = offspring.rows[number, edit], offspring.columns[number, edit]
        best = state.values[where, column]
        set_edit(elites, slot, where * columns + column, offspring.values[number, edit], best)


@inlined
def _update(problem, state, elites, offspring, workspace):  # type: ignore[no-untyped-def]
    """Replace the elites by the selected ones, as edits of the new best table."""
    size = elites.losses.size
    chosen, slots, taken = offspring.chosen[0], offspring.chosen[1], offspring.chosen[2]
    # Elites that stay keep their lists; candidates that become elites get the other lists.
    for place in range(size):
        taken[place] = 0
    for place in range(size):
        if chosen[place] < size:
            slots[place] = elites.slots[chosen[place]]
            taken[slots[place]] = 1
    free = 0
    for place in range(size):
        if chosen[place] < size:
            continue
        while taken[free]:
            free += 1
        taken[free] = 1
        slots[place] = free
        _clear(elites, free)
        _edit_list(elites, free, offspring, chosen[place] - size, state)
    # All lists are edits of the old best table. Make the new one, and adapt the other lists.
    first = chosen[0] - size
    if first >= 0:
        columns = state.values.shape[1]
        _make(problem, state, offspring, first, workspace)
        for edit in range(offspring.rates[first]):
            where, column = offspring.rows[first, edit], offspring.columns[first, edit]
            again = False  # only the first edit of a cell replaced the value of the old best table
            for before in range(edit):
                again |= (
                    offspring.rows[first, before] == where
                    and offspring.columns[first, before] == column
                )
            if again:
                continue
            cell = where * columns + column
            best = state.values[where, column]
            for slot in range(size):
                place = elites.places[slot, cell]
                value = elites.values[slot, place] if place >= 0 else offspring.old[edit]
                set_edit(elites, slot, cell, value, best)
    for place in range(size):
        number = chosen[place]
        if number < size:
            offspring.kept[place] = elites.losses[number]
        else:
            offspring.kept[place] = offspring.losses[number - size]
    for place in range(size):
        elites.slots[place] = slots[place]
        elites.losses[place] = offspring.kept[place]


@kernel
def generations(  # type: ignore[no-untyped-def]
    problem, state, elites, offspring, mutations, first, last, tolerance, workspace
):
    """Run some generations; returns the number of the next one, and whether the loss converged.

    The loss, which is a norm in the paper, converged if its relative change over the window of the
    history is at most the tolerance.
    """
    window = offspring.history.size
    for generation in range(first, last):
        place = generation % window
        loss = np.sqrt(max(elites.losses[0], 0.0))
        if generation >= window and offspring.history[place] - loss <= (
            tolerance * offspring.history[place]
        ):
            return generation, True
        offspring.history[place] = loss
        _propose(problem, state, elites, offspring, mutations, workspace.stream)
        _evaluate(problem, state, elites, offspring, workspace)
        _select(elites, offspring)
        _update(problem, state, elites, offspring, workspace)
    return last, False
