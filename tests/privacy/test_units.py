"""Units of protection at the door: noise, charges and selections are calibrated to a whole unit."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from private_gsd import (
    BudgetError,
    Categorical,
    Ledger,
    LedgerError,
    LocalAccountant,
    RhoBudget,
    Schema,
    Unit,
    exact_counts,
    workloads,
)
from private_gsd.counting.exact import ExactCounts
from private_gsd.data.units.choosing import UnitKey
from private_gsd.errors import MeasurementError
from private_gsd.measurements.measurements import measure
from private_gsd.privacy.accountant import LedgerAccountant
from private_gsd.privacy.measuring import release_counts, release_n_records
from private_gsd.privacy.noise import InsecureSeededNoise, gaussian_scale, selection_scale
from private_gsd.privacy.record import unit_in_words
from private_gsd.privacy.selection import select_by_distance, select_farthest, select_groups
from private_gsd.schema.neighbours import relation_of
from tests.counting.visits import schema, visits

Relation = Literal["replace-one", "add-remove"]
RELATIONS: list[Relation] = ["replace-one", "add-remove"]
BUDGET = RhoBudget.from_rho(1.0, delta=1e-9, conversion="zcdp")
KEY = UnitKey("44" * 32)
TABLE = visits()


class Seen:
    """A source of noise that adds none, and notes what it is given."""

    private = False

    def __init__(self) -> None:
        self.values: list[int] = []
        self.scales: list[float] = []

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        assert counts.dtype == np.int64
        self.values += counts.tolist()
        self.scales.append(scale)
        return counts

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        assert scores.dtype == np.int64
        self.values += scores.tolist()
        self.scales.append(scale)
        return list(range(k))


def exact_of(weighting: Any, at_most: int = 4, specs: int = 1) -> ExactCounts:
    known = schema(at_most, weighting)
    return exact_counts(workloads.categorical_marginals(known, specs), TABLE, unit_key=KEY)


def accountant(neighbours: Relation, unit: str | None = "patient") -> LocalAccountant:
    return LocalAccountant(BUDGET, relation_of(neighbours, unit))


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("weighting", "times"), [("units", 12), ("rows", 4)])
def test_noise_is_drawn_for_a_whole_unit(weighting: str, times: int, neighbours: Relation) -> None:
    """12 is W of at most 4 rows: whole counts are in 12ths. Of 4 rows that count one each, 4."""
    exact, noise = exact_of(weighting), Seen()
    found = release_counts(
        exact, [0], [10**12], accountant=accountant(neighbours), noise=noise, neighbours=neighbours
    )
    assert noise.values == exact.counts.tolist()
    square = 2.0 if neighbours == "replace-one" else 1.0
    assert noise.scales == [gaussian_scale(square * times**2, 10**12, "zcdp")]
    weight = 12 if weighting == "units" else 1
    np.testing.assert_array_equal(found.counts, exact.counts / weight)
    np.testing.assert_array_equal(found.scales, np.array(noise.scales) / weight)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("weighting", "most"), [("units", 1), ("rows", 4)])
def test_the_number_of_records_is_measured(weighting: str, most: int, neighbours: Relation) -> None:
    exact, noise = exact_of(weighting), Seen()
    paid = accountant(neighbours)
    found = release_n_records(exact, 10**12, accountant=paid, noise=noise, neighbours=neighbours)
    assert noise.values == [exact.n_records] == [found.n_records]
    assert noise.scales == [gaussian_scale(float(most**2), 10**12, "zcdp")]
    assert paid.spent == 10**12


def test_where_each_row_counts_their_number_is_private() -> None:
    exact, noise = exact_of("rows"), InsecureSeededNoise(1)
    with pytest.raises(MeasurementError, match="the number of records is private: measure it"):
        measure(exact, [0], [10**12], accountant=accountant("replace-one"), noise=noise)
    found = measure(
        exact_of("units"), [0], [10**12], accountant=accountant("replace-one"), noise=noise
    )
    assert found.n_records == 60


@pytest.mark.parametrize("unit", [None, "person"])
def test_another_unit_pays_for_nothing(unit: str | None) -> None:
    exact, noise = exact_of("units"), Seen()
    everything = range(exact.workload.num_groups)
    answers = np.zeros(exact.workload.size)
    for draw in (
        lambda paid: release_counts(exact, [0], [9], accountant=paid, noise=noise),
        lambda paid: release_n_records(
            exact, 9, accountant=paid, noise=noise, neighbours="replace-one"
        ),
        lambda paid: select_groups(
            exact, answers, 60, everything, 1, 9, accountant=paid, noise=noise
        ),
        lambda paid: select_by_distance(
            exact, answers, 60, everything, 1, 9, accountant=paid, noise=noise
        ),
        lambda paid: select_farthest(
            [(exact, answers, answers)], None, 1, 9, accountant=paid, noise=noise
        ),
    ):
        with pytest.raises(BudgetError, match="its noise would not keep the promise"):
            draw(accountant("replace-one", unit))
    assert noise.values == []


def scores(exact: ExactCounts, neighbours: Relation) -> list[Seen]:
    """The scores of all groups by each kind of selection, and the scale of its noise."""
    asked = exact.workload
    answers, floors = np.random.default_rng(5).random(asked.size), np.full(asked.size, 1.0)
    everything, seen = range(asked.num_groups), [Seen(), Seen(), Seen()]
    given: list[dict[str, Any]] = [
        {"noise": each, "accountant": accountant(neighbours), "neighbours": neighbours}
        for each in seen
    ]
    select_groups(exact, answers, 60, everything, 1, 9, **given[0])
    select_by_distance(exact, answers, 60, everything, 1, 9, **given[1])
    select_farthest([(exact, answers, floors)], 60, 1, 9, **given[2])
    return seen


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("weighting", "most"), [("units", 1), ("rows", 4)])
def test_selections_are_calibrated_to_a_unit(
    weighting: str, most: int, neighbours: Relation
) -> None:
    """Scores of tables that differ in one unit differ by no more than the noise is made for."""
    known = schema(4, weighting)
    asked = workloads.categorical_marginals(known, 1) + workloads.tree_marginals(known, 1)
    levels = 4  # of the tree, the tables of its group
    distance = most * (2 if neighbours == "replace-one" else 1) * levels
    assert asked.absolute_sensitivities(neighbours).max() == distance
    ids = TABLE["patient"]
    tables = [TABLE.filter(pc.not_equal(ids, each)) for each in ids.unique()[:12]]
    pairs = [(TABLE, each) for each in tables]
    if neighbours == "replace-one":
        pairs = list(itertools.pairwise(tables))
    moved = np.zeros(3)
    for pair in pairs:
        one, other = (
            scores(exact_counts(asked, table, unit_key=KEY), neighbours) for table in pair
        )
        for place, bound in enumerate((most, distance, distance)):
            assert one[place].scales == other[place].scales == [selection_scale(9, 1, bound)]
            difference = np.abs(np.array(one[place].values) - np.array(other[place].values))
            moved[place] = max(moved[place], difference.max())
    assert (moved <= [most, distance, distance]).all()
    assert (moved > 0).all()


def test_a_ledger_protects_one_kind_of_unit(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        made = ledger.add_dataset("visits", BUDGET, "add-remove", "patient")
        assert ledger.add_dataset("visits", BUDGET, "add-remove", "patient") == made
        assert ledger.account("visits").unit == "patient"
        for unit in (None, "ward"):
            with pytest.raises(LedgerError, match="of units by 'patient' neighbours; its terms"):
                ledger.add_dataset("visits", BUDGET, "add-remove", unit)
        exact = exact_of("units")
        paid = LedgerAccountant(ledger, "visits", "run")
        release_counts(exact, [0], [9], accountant=paid, noise=Seen(), neighbours="add-remove")
        with pytest.raises(BudgetError, match="the budget is for add-remove of units by 'patient'"):
            release_counts(exact, [0], [9], accountant=paid, noise=Seen())
        record = ledger.privacy_record("visits")
    with Ledger(tmp_path / "ledger.db", read_only=True) as again:
        assert again.account("visits").relation == "add-remove of units by 'patient'"
    assert record["unit"] == "patient"
    assert record["neighbours_in_words"].endswith("and those of one more unit")
    seeded = record["charges"][0]["mechanism"]
    assert "seeded" in seeded or "insecure" in seeded.lower()


def test_the_guarantee_names_the_unit(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("visits", BUDGET, "replace-one", "patient")
        ledger.add_dataset("rows", BUDGET)
        of_units, of_rows = ledger.privacy_record("visits"), ledger.privacy_record("rows")
    assert unit_in_words("patient") == "all records with the same 'patient'"
    assert (
        "The unit of protection is all records with the same 'patient', however many they are: for "
        "several units together the guarantee is weaker (groups_of_units)." in of_units["guarantee"]
    )
    assert "all records of one unit are replaced by those of another" in of_units["guarantee"]
    assert "one row" not in of_units["guarantee"]
    assert [each["units"] for each in of_units["groups_of_units"]] == [2, 5, 10]
    assert "groups_of_rows" not in of_units
    assert "groups_of_units" not in of_rows
    assert of_rows["unit"] is None
    assert "The unit of protection is one row" in of_rows["guarantee"]


def test_units_of_different_sizes_replace_each_other() -> None:
    """Of a table of one cell, which no row in place of another changes: 4 rows against 1."""
    columns = [Categorical("all", values=["a"])]
    for weighting, square in (("rows", 16.0), ("units", 0.0)):
        known = Schema(columns, unit=Unit("id", 4, weighting))  # type: ignore[arg-type]
        asked = workloads.categorical_marginals(known, 1)
        assert asked.squared_sensitivities("replace-one").tolist() == [square]
        few, many = (
            exact_counts(asked, pa.table({"id": [1, *[2] * rows], "all": ["a"] * (rows + 1)}))
            for rows in (1, 4)
        )
        change = int(many.counts[0] - few.counts[0])
        assert change == (3 if weighting == "rows" else 0)
        assert change**2 <= square
        noise = Seen()
        release_counts(many, [0], [9], accountant=accountant("replace-one", "id"), noise=noise)
        least = gaussian_scale(max(square, 1.0) * many.weight**2, 9, "zcdp")
        assert noise.scales == [least]


def test_large_weights_are_rounded_to_the_safe_side() -> None:
    """Noise in W-ths is never below W times the noise of a row."""
    known = schema(1000)
    asked = workloads.categorical_marginals(known, 1)
    exact = exact_counts(asked, TABLE, unit_key=KEY)
    assert exact.weight == 720720
    noise = Seen()
    release_counts(exact, [0], [2**40], accountant=accountant("replace-one"), noise=noise)
    least = math.sqrt(2) * 720720 / math.sqrt(2 * 2**40 / 2**52)
    assert least * (1 - 1e-15) <= noise.scales[0] <= least * (1 + 1e-12)


def test_a_row_counts_as_in_a_table_without_units() -> None:
    """With at most one row of each unit, and one row each, nothing differs but the words."""
    table = TABLE.set_column(1, "patient", [list(range(len(TABLE)))])
    of_units = exact_counts(workloads.categorical_marginals(schema(1), 1), table)
    plain = schema(1).with_unit(None)
    of_rows = exact_counts(
        workloads.categorical_marginals(plain, 1), table.drop_columns(["patient"])
    )
    np.testing.assert_array_equal(of_units.counts, of_rows.counts)
    assert of_units.n_records == of_rows.n_records
    assert of_units.weight == of_rows.weight == 1
    for neighbours in RELATIONS:
        np.testing.assert_array_equal(
            of_units.workload.squared_sensitivities(neighbours),
            of_rows.workload.squared_sensitivities(neighbours),
        )
    assert Unit("patient", 1, "rows").weight == 1
