"""Cut marginals: what is checked before a column is measured holds for any cut points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    AIM,
    MST,
    Adaptive,
    Categorical,
    Integer,
    Layered,
    Mechanism,
    NumbersFirst,
    OneShot,
    Real,
    Schema,
    workloads,
)
from private_gsd.errors import expect_type
from private_gsd.mechanisms.cut_marginals import (
    CELLS,
    JOINT_CELLS,
    cut,
    even_cells,
    most_atoms,
    without_single_numbers,
)
from private_gsd.mechanisms.numbers_first import num_fine
from private_gsd.projection.atoms import Atoms
from private_gsd.schema import Numeric
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.histograms import histogram_feature, numeric_positions
from private_gsd.workloads.layout import marginal_tables
from private_gsd.workloads.marginals import Marginal
from private_gsd.workloads.specs import workload_of


def atoms_of(workload: Workload) -> list[int]:
    """The number of atoms of each column."""
    return Atoms.of(workload.schema, marginal_tables(workload)).sizes


def even(workload: Workload) -> Workload:
    """The workload with even cells, as a mechanism plans it."""
    return cut(workload, {1: even_cells(workload.schema, 1)})


# Ranges often begin where even cells do: at a half or a quarter of the bounds.
PLACES = st.integers(0, CELLS[-1] - 1).map(lambda cell: cell / CELLS[-1])


@given(
    upper=st.integers(1, 10**9),
    shares=st.lists(st.floats(0, 0.999), min_size=1, max_size=CELLS[-1] - 1),
    named=st.lists(PLACES, max_size=4),
    external=st.lists(PLACES, max_size=4),
)
def test_no_cut_points_make_more_atoms_than_those_that_are_checked(
    upper: int, shares: list[float], named: list[float], external: list[float]
) -> None:
    """Also beside ranges that the user has named, and those of external measurements."""
    schema = Schema([Categorical("a", values=["x", "y"]), Integer("n", lower=0, upper=upper)])

    def ranges(places: list[float]) -> Workload:
        found = sorted({int(place * (upper + 1)) for place in places} | {0})
        return workloads.range_marginals(schema, {"n": [(each, upper) for each in found]})

    target = even(ranges(named) + workload_of(schema, ["tree:2"]))
    other = ranges(external) if external else None
    starts = np.unique([0, *(int(share * (upper + 1)) for share in shares)]).astype(np.int64)
    measured = cut(target, {1: (histogram_feature(schema, 1, starts),) * len(CELLS)})
    checked = most_atoms(target, other)
    if other is not None:
        measured, checked = measured + other, checked + other
    assert atoms_of(measured)[1] <= atoms_of(checked)[1] <= upper + 1


def test_a_group_has_as_many_atoms_as_steps_where_named_ranges_leave_no_room() -> None:
    """A model of that group alone knows nothing of the ranges."""
    trees = workload_of(MIXED, ["tree:2"])
    named = workloads.range_marginals(MIXED, {"few": [(0, 4), (4, 7)], "a": ...}, k=2)
    for workload in (trees, trees + named):
        alone = most_atoms(workload, None).select([0])
        assert atoms_of(alone)[:2] == [2, 8]


MIXED = Schema(
    [
        Categorical("a", values=["x", "y"]),
        Integer("few", lower=0, upper=7),
        Integer("some", lower=-3, upper=20, nullable=True),
        Real("many", lower=0, upper=1000),
    ]
)
THEN = (OneShot(), Layered(), MST(), AIM(), Adaptive())


@given(
    data=st.data(),
    then=st.sampled_from(THEN),
    target=st.sampled_from([["tree:2"], ["categorical:1", "tree:2"], ["numeric:2"]]),
    named=st.sampled_from([None, "few", "some", "many"]),
)
def test_what_is_checked_has_as_many_atoms_as_any_measured_cells(
    data: Any, then: Mechanism, target: list[str], named: str | None
) -> None:
    """Of all mechanisms, for columns of few and of many steps, with ranges beside them."""
    workload = workload_of(MIXED, target)
    if named is not None:  # from where an even cell begins
        low, high = MIXED.columns[MIXED.names.index(named)].bounds
        half = (low + high + 1) // 2 if named != "many" else 500
        workload += workloads.range_marginals(
            MIXED, {named: [(low, half), (half, high)], "a": ...}, k=2
        )
    candidates = NumbersFirst(then).candidates(workload)
    rest = candidates.select(range(num_fine(candidates), candidates.num_groups))
    features = {}
    for place in numeric_positions(MIXED):
        column = expect_type(Numeric, MIXED.columns[place])
        grid = Grid.of(column)
        steps = st.integers(grid.first + 1, grid.last)
        finest = sorted({grid.first, *data.draw(st.lists(steps, max_size=CELLS[-1] - 1))})
        levels = [finest]
        for most in CELLS[-2::-1]:
            kept = st.lists(st.sampled_from(levels[0]), max_size=most - 1)
            levels.insert(0, sorted({grid.first, *data.draw(kept)}))
        features[place] = tuple(
            histogram_feature(MIXED, place, np.array(level)) for level in levels
        )
    measured = atoms_of(cut(rest, features))
    checked = atoms_of(most_atoms(rest, None))
    assert all(one <= other for one, other in zip(measured, checked, strict=True))
    # Group by group too, since a model may be of some groups only.
    group = data.draw(st.integers(0, rest.num_groups - 1))
    measured = atoms_of(cut(rest, features).select([group]))
    checked = atoms_of(most_atoms(rest, None).select([group]))
    assert all(one <= other for one, other in zip(measured, checked, strict=True))


@pytest.mark.parametrize("then", THEN, ids=lambda each: each.name)
def test_candidates_have_the_tables_that_are_measured(then: Mechanism) -> None:
    """So that noise is planned as it will be drawn."""
    candidates = NumbersFirst(then).candidates(workload_of(MIXED, ["categorical:1", "tree:2"]))
    rest = candidates.select(range(num_fine(candidates), candidates.num_groups))
    again = cut(rest, {place: even_cells(MIXED, place) for place in numeric_positions(MIXED)})
    assert again.max_contributions.tolist() == rest.max_contributions.tolist()
    assert again.size == rest.size


def test_ranges_stay_beside_a_column_that_is_cut() -> None:
    """In a table of both."""
    schema = Schema([Integer("n", lower=0, upper=99), Integer("m", lower=0, upper=99)])
    ranges = workloads.range_marginals(schema, {"n": [(0, 17), (18, 99)]})
    [named] = ranges.families[0].marginals[0].tables[0]
    trees = workload_of(schema, ["tree:1"])
    pair = Marginal(((named, trees.families[0].marginals[1].tables[2][0]),))
    starts = np.array([0, 7, 50])
    mine = (histogram_feature(schema, 1, starts),) * len(CELLS)
    workload = Workload(schema, (Marginals(schema, [pair]),)) + trees
    found = cut(workload, {0: even_cells(schema, 0), 1: mine}).families[0].marginals[0]
    assert found.tables == ((named, mine[0]),)


def test_a_column_of_many_values_has_the_most_atoms_at_once() -> None:
    """Steps are looked at one by one, and not all in advance: there are more than fit in memory."""
    schema = Schema(
        [Categorical("a", values=["x", "y"]), Integer("n", lower=-(2**52), upper=2**52)]
    )
    assert atoms_of(most_atoms(even(workload_of(schema, ["tree:2"])), None)) == [2, CELLS[-1]]
    schema = Schema([Categorical("a", values=["x", "y"]), Real("n", lower=-1e300, upper=1e300)])
    assert atoms_of(most_atoms(even(workload_of(schema, ["tree:2"])), None)) == [2, CELLS[-1]]


def test_cells_that_are_checked_are_nested() -> None:
    schema = Schema([Categorical("a", values=["x", "y"]), Integer("n", lower=0, upper=40)])
    target = even(
        workloads.range_marginals(schema, {"n": [(10, 40)]}) + workload_of(schema, "tree:2")
    )
    [family] = most_atoms(target, None).families
    coarse, fine = (set(table[1].breaks) for table in family.marginals[1].tables)
    assert len(coarse) == CELLS[0] - 1
    assert len(fine) == CELLS[2] - 1
    assert coarse < fine
    assert 10 not in fine  # it is a cut point already


def test_histograms_of_another_run_are_no_marginals_of_this_one() -> None:
    """A workload may be that of an earlier release; its histograms are measured anew."""
    schema = Schema([Categorical("a", values=["x", "y"]), Integer("n", lower=0, upper=40)])
    candidates = NumbersFirst().candidates(workload_of(schema, ["categorical:1", "tree:2"]))
    again = NumbersFirst().candidates(candidates)
    names = [again.describe(group) for group in range(again.num_groups)]
    assert names == [candidates.describe(group) for group in range(candidates.num_groups)]
    alone = candidates.select([0])
    assert without_single_numbers(alone) is None


@pytest.mark.parametrize("number", JOINT_CELLS)
def test_a_joint_table_keeps_its_number_of_cells(number: int) -> None:
    """And every other marginal has a coarse and a fine table, as before."""
    schema = Schema([Integer(name, lower=0, upper=999, nullable=name == "b") for name in "abc"])
    joint = tuple(
        even_cells(schema, place)[len(CELLS) :][JOINT_CELLS.index(number)] for place in range(3)
    )
    pairs = workload_of(schema, ["numeric:2"])
    target = pairs + Workload(schema, (Marginals(schema, [Marginal((joint,))]),))
    starts = [np.arange(cells) * 7 for cells in (*CELLS, *JOINT_CELLS)]
    features = {
        place: tuple(histogram_feature(schema, place, each) for each in starts)
        for place in range(3)
    }
    (*others, last) = (m for family in cut(target, features).families for m in family.marginals)
    assert [len(marginal.tables) for marginal in others] == [2, 2, 2]
    (table,) = last.tables
    assert [feature.size for feature in table] == [number, number + 1, number]
    assert table[0].breaks == tuple(7.0 * cell for cell in range(1, number))
    # Cut again, it stays as it is; so does a workload of even cells.
    assert cut(cut(target, features), features).families[-1].marginals[-1] == last
    even = {place: even_cells(schema, place) for place in range(3)}
    assert cut(target, even).families[-1].marginals[-1].tables == (joint,)
