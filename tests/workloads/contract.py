"""The contract of a family: what the program takes for granted of every one.

``FamilyContract`` is inherited by the tests of each family. A family of its own says how a row is
counted by definition, in ``contributions``, and everything else is held against that.
"""

from __future__ import annotations

import json
import pickle
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from private_gsd import Measurements, Schema, Unit
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.projection.objective import Objective
from private_gsd.schema.unit import Weighting
from private_gsd.workloads import Family, Workload
from private_gsd.workloads.layout import QueryLayout
from private_gsd.workloads.serialisation import dump_workload, load_workload

Row = list[float]
Counts = NDArray[np.int64]
NEIGHBOURS: tuple[Literal["replace-one", "add-remove"], ...] = ("replace-one", "add-remove")
ROWS = 60


def random_rows(schema: Schema, rows: int, seed: int = 0) -> NDArray[np.float64]:
    """Random rows of a schema's domain."""
    return random_table(columns_of(schema, [np.empty(0)] * len(schema)), rows, seed)


class FamilyContract(ABC):
    """Everything that is true of every family.

    Attributes:
        name: The name of the family in the registry.
        saved: Whether its queries can be saved and pickled.
    """

    name: ClassVar[str]
    saved: ClassVar[bool] = True

    @abstractmethod
    def make(self) -> Workload:
        """Some queries of this family alone, in several groups."""

    @abstractmethod
    def contributions(self, family: Family, row: Row) -> list[int]:
        """What one row adds to the count of each query, by definition, in plain Python."""

    @pytest.fixture
    def workload(self) -> Workload:
        return self.make()

    @pytest.fixture
    def matrix(self, workload: Workload) -> NDArray[np.float64]:
        return random_rows(workload.schema, ROWS)

    @pytest.fixture
    def single(self, workload: Workload, matrix: NDArray[np.float64]) -> Counts:
        """The counts of tables of one row each."""
        return np.array([count(workload, row[None], threads=1) for row in matrix])

    def test_it_is_one_family_in_several_groups(self, workload: Workload) -> None:
        [family] = workload.families
        assert family.name == type(family).name == self.name
        assert workload.num_groups > 1
        assert family.group_sizes.dtype == np.int64
        assert (family.group_sizes > 0).all()
        assert family.size == workload.size == family.group_sizes.sum()
        assert family.max_contributions.shape == family.group_sizes.shape

    def test_counts_are_those_of_the_definition(
        self, workload: Workload, matrix: NDArray[np.float64], single: Counts
    ) -> None:
        [family] = workload.families
        expected = np.array([self.contributions(family, row) for row in matrix.tolist()])
        np.testing.assert_array_equal(single, expected)
        for table in (matrix, np.asfortranarray(matrix)):
            np.testing.assert_array_equal(count(workload, table), expected.sum(axis=0))

    def test_states_are_whole_numbers_that_add_up(
        self, workload: Workload, matrix: NDArray[np.float64]
    ) -> None:
        [family] = workload.families
        states = [family.start() for _ in range(2)]
        for state, part in zip(states, (matrix[:20], matrix[20:]), strict=True):
            assert state.dtype == np.int64
            assert not state.any()
            family.count(part, state)
        np.testing.assert_array_equal(family.finish(sum(states)), count(workload, matrix))  # type: ignore[arg-type]

    @pytest.mark.parametrize("neighbours", NEIGHBOURS)
    def test_no_neighbours_differ_by_more_than_the_sensitivity(
        self, workload: Workload, single: Counts, neighbours: Literal["replace-one", "add-remove"]
    ) -> None:
        """Counts add up over rows, so that single rows show all differences."""
        changes = single[:, None] - (single if neighbours == "replace-one" else 0 * single[:1])
        squares = np.add.reduceat(changes**2, workload.offsets[:-1], axis=-1).max(axis=(0, 1))
        claims = workload.squared_sensitivities(neighbours)
        assert claims.shape == (workload.num_groups,)
        assert (squares <= claims).all()
        largest = np.maximum.reduceat(np.abs(changes), workload.offsets[:-1], axis=-1)
        assert (largest.max(axis=(0, 1)) <= workload.max_contributions).all()

    @pytest.mark.parametrize("neighbours", NEIGHBOURS)
    @pytest.mark.parametrize("weighting", ["units", "rows"])
    @pytest.mark.parametrize("at_most", [2, 5, 20])
    def test_no_neighbouring_units_differ_by_more_than_the_sensitivity(
        self,
        workload: Workload,
        single: Counts,
        at_most: int,
        weighting: Weighting,
        neighbours: Literal["replace-one", "add-remove"],
    ) -> None:
        """Random units of at most K rows, and the worst that units of equal rows can do."""
        unit = Unit("id", at_most, weighting)
        try:
            workload = replace(workload, schema=workload.schema.with_unit(unit))
        except WorkloadError as error:
            assert "would not fit into 64 bits" in str(error)
            return
        rng = np.random.default_rng(at_most)

        def contribution(rows: list[int]) -> Counts:
            weights = np.array(unit.weights(len(rows)))
            total: Counts = (weights[:, None] * single[rows]).sum(axis=0)
            return total

        def random_unit() -> list[int]:
            few = rng.integers(len(single), size=rng.integers(1, 4))
            found: list[int] = rng.choice(few, rng.integers(1, at_most + 1)).tolist()
            return found

        def sums(values: Counts) -> Counts:
            found: Counts = np.add.reduceat(values, workload.offsets[:-1], axis=-1)
            return found

        nobody = np.zeros(workload.size, dtype=np.int64)
        changes = [contribution(random_unit()) for _ in range(60)]
        others = [
            contribution(random_unit()) if neighbours == "replace-one" else nobody for _ in changes
        ]
        # Units of equal rows, of the most rows or of one: nothing differs by more.
        numbers = range(0, len(single), 3)
        changes += [contribution([number] * at_most) for number in numbers for _ in numbers]
        others += [
            contribution([number] * at_most) if neighbours == "replace-one" else nobody
            for _ in numbers
            for number in numbers
        ]
        differences = np.array(changes) - np.array(others)
        squares = sums(differences**2).max(axis=0) / unit.weight**2
        claims = workload.squared_sensitivities(neighbours)
        assert (squares <= claims).all()
        absolute = sums(np.abs(differences)).max(axis=0) / unit.weight
        assert (absolute <= workload.absolute_sensitivities(neighbours)).all()
        largest = np.maximum.reduceat(np.abs(differences), workload.offsets[:-1], axis=-1)
        bounds = unit.most * unit.weight * workload.max_contributions
        assert (largest.max(axis=0) <= bounds).all()
        # The claims are attained: K times that of the rows, or once.
        of_rows = single[::3, None] - (
            single[None, ::3] if neighbours == "replace-one" else 0 * single[:1]
        )
        attained = sums(of_rows**2).max(axis=(0, 1)) * unit.most**2
        np.testing.assert_array_less(attained, squares + 0.5)

    def test_descriptions_are_lines_of_text(self, workload: Workload) -> None:
        words = [workload.describe(group) for group in range(workload.num_groups)]
        words += [workload.query(query) for query in range(workload.size)]
        words.append(workload.families[0].title)
        assert all(isinstance(each, str) and each for each in words)
        assert not any("\n" in each or "\r" in each for each in words)

    def test_selected_groups_keep_their_counts(
        self, workload: Workload, matrix: NDArray[np.float64]
    ) -> None:
        counts = np.split(count(workload, matrix), workload.offsets[1:-1])
        chosen = [1, workload.num_groups - 1] if workload.num_groups > 2 else [1]
        part = workload.select(chosen)
        expected = np.concatenate([counts[group] for group in chosen])
        np.testing.assert_array_equal(count(part, matrix), expected)
        assert [part.describe(g) for g in range(len(chosen))] == [
            workload.describe(group) for group in chosen
        ]
        for neighbours in NEIGHBOURS:
            np.testing.assert_array_equal(
                part.squared_sensitivities(neighbours),
                workload.squared_sensitivities(neighbours)[chosen],
            )

    def test_joined_families_keep_their_order(
        self, workload: Workload, matrix: NDArray[np.float64]
    ) -> None:
        both = workload.select([1]) + workload
        expected = np.concatenate([count(workload.select([1]), matrix), count(workload, matrix)])
        np.testing.assert_array_equal(count(both, matrix), expected)

    def test_a_saved_workload_is_the_same(
        self, workload: Workload, matrix: NDArray[np.float64]
    ) -> None:
        if not self.saved:
            with pytest.raises(WorkloadError, match="cannot be saved"):
                dump_workload(workload)
            return
        families, arrays = dump_workload(workload)
        assert set(arrays) == {f"family0_{name}" for name in workload.families[0].array_names}
        loaded = load_workload(workload.schema, json.loads(json.dumps(families)), arrays)
        for again in (loaded, pickle.loads(pickle.dumps(workload))):
            assert type(again.families[0]) is type(workload.families[0])
            np.testing.assert_array_equal(count(again, matrix), count(workload, matrix))
            for neighbours in NEIGHBOURS:
                np.testing.assert_array_equal(
                    again.squared_sensitivities(neighbours),
                    workload.squared_sensitivities(neighbours),
                )
            assert [again.query(i) for i in range(again.size)] == [
                workload.query(i) for i in range(workload.size)
            ]
        assert dump_workload(loaded)[0] == families

    def test_a_file_with_other_arrays_is_refused(self, workload: Workload) -> None:
        if self.saved:
            families, arrays = dump_workload(workload)
            with pytest.raises(WorkloadError, match="the arrays of the"):
                load_workload(workload.schema, families, {**arrays, "family0_more": np.zeros(1)})

    def test_the_layout_counts_the_same(
        self, workload: Workload, matrix: NDArray[np.float64]
    ) -> None:
        """As the search counts a table: by the kernels, or without one."""
        layout = QueryLayout.of(workload.families)
        assert layout.size == workload.size
        assert layout.forms
        groups = workload.num_groups
        measured = Measurements(
            workload, np.zeros(workload.size), np.ones(groups), ROWS, ("",) * groups, private=False
        )
        state = Objective(measured, "equal").state(np.ascontiguousarray(matrix))
        np.testing.assert_array_equal(state.counts, count(workload, matrix))

    def test_marginals_are_all_groups_or_none(self, workload: Workload) -> None:
        [family] = workload.families
        assert len(family.marginals) in (0, workload.num_groups)
        tables = QueryLayout.of([family]).tables
        assert bool(tables) == bool(family.marginals or family.histograms)
        if family.marginals:
            assert family.group_sizes.tolist() == [each.size for each in family.marginals]
            assert [each.group for each in tables] == [
                group for group, each in enumerate(family.marginals) for _ in each.tables
            ]

    def test_the_search_costs_something(self, workload: Workload) -> None:
        [family] = workload.families
        assert isinstance(family.search_cost, float)
        assert 0 < family.search_cost < np.inf
