"""Cut marginals: what is checked before a column is measured holds for any cut points."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Categorical, Integer, NumbersFirst, Real, Schema, workloads
from private_gsd.mechanisms.cut_marginals import (
    CELLS,
    cut,
    even_cells,
    most_atoms,
    without_single_numbers,
)
from private_gsd.projection.atoms import Atoms
from private_gsd.workloads import Workload
from private_gsd.workloads.histograms import histogram_feature
from private_gsd.workloads.layout import marginal_tables
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
