"""Strongest pairs: what is selected and measured, part by part, and what a plan says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from private_gsd import (
    Boolean,
    Budget,
    Categorical,
    Integer,
    Knowledge,
    Ledger,
    Measurements,
    NumbersFirst,
    Schema,
    StrongestPairs,
    Sweep,
    Synthesizer,
    datasets,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.mechanisms import defaults, strongest_pairs
from private_gsd.mechanisms.base import Task, plan_run
from private_gsd.mechanisms.defaults import drowns_pairs
from private_gsd.mechanisms.joined_categories import MOST_CATEGORIES, joined
from private_gsd.mechanisms.mst import column_shares, independent_shares
from private_gsd.mechanisms.strongest_pairs import columns_of, pairs_of
from private_gsd.privacy.budget import RhoBudget
from private_gsd.projection import projector_of
from private_gsd.runs.run_folder import RunFolder
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.features import discrete_feature
from private_gsd.workloads.marginals import Marginal
from private_gsd.workloads.specs import default_specs, workload_of
from tests.fitting import QUICK
from tests.mechanisms.tables import CENSUS, PEOPLE, chain, copies, spent

RHO = RhoBudget.from_epsilon(1.0, 1e-6)
MIXED = Schema([*CENSUS.columns, Integer("dice", lower=1, upper=6)])


def measured_pairs(synth: Synthesizer) -> set[frozenset[str]]:
    """The pairs that were measured, by their names."""
    measured = synth.release_.measurements()
    assert measured is not None
    names = [measured.workload.describe(group) for group in range(measured.workload.num_groups)]
    return {frozenset(name.split(" x ")) for name in names if " x " in name}


def test_it_measures_the_pairs_that_depend_on_each_other(tmp_path: Path) -> None:
    schema, table = chain()
    synth = Synthesizer(
        schema,
        100.0,
        workload="categorical:1",
        mechanism=StrongestPairs(pairs_per_column=1),
        projector=QUICK,
        rows=1000,
    ).fit(table, release=tmp_path / "r")
    # Five pairs of ten: the four of neighbours, and the nearest of the others.
    found = measured_pairs(synth)
    assert len(found) == 5
    assert {frozenset((f"c{n}", f"c{n + 1}")) for n in range(4)} <= found
    charges = synth.release_.privacy["charges"]
    steps = [charge["run"].split(" ", 1)[1] for charge in charges]
    assert steps == ["columns: measure", "pairs: select", "pairs: measure"]
    rho = np.array([charge["rho"] for charge in charges])
    np.testing.assert_allclose(rho / rho.sum(), [0.3, 0.05, 0.65], rtol=1e-6)
    assert spent(synth.release_) == RhoBudget.from_epsilon(100.0, 1 / 3000**2).units


def test_parts_are_scored_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow, obvious twin: one workload of all pairs, with the shares of independent columns."""
    schema, _ = copies()
    mechanism = StrongestPairs(pairs_per_column=1)
    target = workload_of(schema, ["categorical:1"])
    columns = mechanism.candidates(target)
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 4, (300, 4)).astype(float)
    counts = count(columns, matrix) + rng.normal(0, 5, columns.size)
    measured = Measurements(columns, counts, np.full(4, 5.0), 300, ("",) * 4, False)
    features = columns_of(target)
    pairs = pairs_of(features)
    assert len(pairs) == 6
    whole = Workload(
        schema,
        (Marginals(schema, [Marginal(((features[i][0], features[j][0]),)) for i, j in pairs]),),
    )
    expected = independent_shares(whole, measured)
    scored = strongest_pairs._scored(columns)
    for cells in (1, 40, 10**6):
        monkeypatch.setattr(strongest_pairs, "PART_CELLS", cells)
        shares = column_shares(measured)
        parts = list(strongest_pairs._parts(measured, shares, scored, pairs, 7.0))
        assert len(parts) == {1: 6, 40: 3, 10**6: 1}[cells]
        names = [p.workload.describe(g) for p in parts for g in range(p.workload.num_groups)]
        assert names == [whole.describe(group) for group in range(6)]
        np.testing.assert_allclose(np.concatenate([p.answers for p in parts]), expected)
        floors = np.sqrt(expected * 300 + (strongest_pairs.BEYOND_NOISE * 7.0) ** 2)
        np.testing.assert_allclose(np.concatenate([p.floors for p in parts]), floors)


@pytest.mark.parametrize("cells", [1, 2**22])
def test_the_same_is_selected_in_parts(
    cells: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(strongest_pairs, "PART_CELLS", cells)
    schema, table = copies()
    synth = Synthesizer(
        schema, 5.0, workload="categorical:1", mechanism="strongest-pairs", projector=QUICK, rows=50
    ).fit(table, insecure_noise_seed=1)
    assert synth.release_.selections()[0][0] == 0  # a and b, first of all
    measured = synth.release_.measurements()
    assert measured is not None
    assert measured.workload.num_groups == 4 + 6


def test_numbers_are_cut_where_the_data_is() -> None:
    table = PEOPLE.append_column("dice", pa.array(np.arange(len(PEOPLE)) % 6 + 1))
    synth = Synthesizer(
        MIXED,
        20.0,
        workload=default_specs(MIXED, 1),
        mechanism=NumbersFirst(StrongestPairs()),
        projector=QUICK,
        rows=60,
    ).fit(table, insecure_noise_seed=1)
    measured = synth.release_.measurements()
    assert measured is not None
    marginals = [m for family in measured.workload.families for m in family.marginals]
    # Every column alone, by one table; a pair with a number by a coarse and a fine one.
    assert [len(m.tables) for m in marginals if len(m.positions) == 1] == [1] * 4
    tables = {m.positions: len(m.tables) for m in marginals if len(m.positions) == 2}
    assert len(tables) == 6
    assert tables[0, 1] == 2
    assert tables[0, 2] == 1
    assert synth.sample().num_rows == 60


def test_all_columns_may_be_numbers() -> None:
    schema = Schema([Integer(name, lower=0, upper=99) for name in "abc"])
    values = np.random.default_rng(0).integers(0, 100, 500)
    table = pa.table({"a": values, "b": values, "c": values[::-1].copy()})
    synth = Synthesizer(
        schema,
        20.0,
        workload="tree:1",
        mechanism=NumbersFirst(StrongestPairs()),
        projector=QUICK,
        rows=60,
    ).fit(table, insecure_noise_seed=1)
    assert len(measured_pairs(synth)) == 3


def test_a_plan_says_what_is_selected() -> None:
    schema = Schema([Categorical(f"c{n}", values=list("abc")) for n in range(30)])
    synth = Synthesizer(schema, 1.0, workload="categorical:1", mechanism="strongest-pairs")
    forecast = synth.plan(expected_records=10_000)
    pairs = forecast.plan.pairs
    assert pairs is not None
    assert (pairs.candidates, pairs.left_out, pairs.size) == (435, 0, 90)
    assert "90 of 435 pairs" in forecast.selection_summary
    assert f"noise of {pairs.noise:,.3g} rows" in forecast.selection_summary
    assert forecast.document()["pairs"] == pairs._asdict()
    assert len(forecast.groups) == 30
    # The noise of a release is that of the plan.
    rng = np.random.default_rng(0)
    values = {f"c{n}": np.array(list("abc"))[rng.integers(3, size=10_000)] for n in range(30)}
    fitted = Synthesizer(
        schema,
        1.0,
        workload="categorical:1",
        mechanism="strongest-pairs",
        projector=QUICK,
        rows=20,
    ).fit(pa.table(values), insecure_noise_seed=0)
    measured = fitted.release_.measurements()
    assert measured is not None
    assert measured.scales[-1] == pytest.approx(pairs.noise, rel=1e-3)
    # More rows where there is less noise.
    generous = Synthesizer(schema, 9.0, workload="categorical:1", mechanism="strongest-pairs")
    assert generous.plan(expected_records=10**6).rows > forecast.rows


def test_pairs_of_too_many_cells_are_left_out() -> None:
    """Ranges that a user has named stay as they are."""
    many = [Integer(f"m{n}", lower=0, upper=10**4) for n in range(2)]
    schema = Schema([*many, Boolean("b")])
    ranges = [(n, n) for n in range(1100)]
    target = sum(
        (workloads.range_marginals(schema, {f"m{n}": ranges}) for n in range(2)),
        workloads.categorical_marginals(schema, 1),
    )
    forecast = Synthesizer(schema, 1.0, workload=target, mechanism="strongest-pairs").plan(
        expected_records=1000
    )
    pairs = forecast.plan.pairs
    assert pairs is not None
    assert (pairs.candidates, pairs.left_out) == (2, 1)
    assert forecast.selection_summary.endswith(". 1 pairs of too many cells are left out")
    some = workloads.range_marginals(schema, {"m0": ranges})
    some += workloads.range_marginals(schema, {"m1": ranges})
    with pytest.raises(WorkloadError, match="needs a pair of columns, of at most 1,048,576 cells"):
        Synthesizer(schema, 1.0, workload=some, mechanism="strongest-pairs")


# Many categories


def many_values(records: int = 3000) -> tuple[Schema, pa.Table]:
    """Two columns of 300 values, most of them rare, of which one follows the other."""
    rng = np.random.default_rng(0)
    weights = 1 / (1 + np.arange(300)) ** 1.3
    codes = rng.choice(300, records, p=weights / weights.sum())
    other = np.where(rng.random(records) < 0.8, (codes * 7) % 5, rng.integers(0, 300, records))
    names = [f"v{n:03}" for n in range(300)]
    schema = Schema([*(Categorical(name, values=names) for name in "ab"), Boolean("c")])
    values = np.array(names)
    return schema, pa.table({"a": values[codes], "b": values[other], "c": codes % 2 == 0})


def test_rare_categories_are_joined_in_pairs() -> None:
    schema, table = many_values()
    synth = Synthesizer(schema, 3.0, rows=2000, projector=QUICK)
    forecast = synth.plan(table)
    assert forecast.mechanism.name == "strongest-pairs"
    assert forecast.selection_summary.endswith(". In pairs, rare categories of a, b are joined")
    synth.fit(table, insecure_noise_seed=0)
    measured = synth.release_.measurements()
    assert measured is not None
    groups = [m for family in measured.workload.families for m in family.marginals]
    assert [m.size for m in groups if len(m.positions) == 1] == [300, 300, 2]
    joined = {f for m in groups if len(m.positions) == 2 for (*t,) in m.tables for f in t}
    sizes = {feature.position: feature.size for feature in joined}
    assert len(joined) == 3
    assert sizes[2] == 2
    assert 2 < sizes[0] <= MOST_CATEGORIES
    # Common categories have cells of their own, and the pair says that b follows a.
    [feature] = [feature for feature in joined if feature.position == 0]
    own = [feature.segments.count(feature.segments[code]) for code in range(300)]
    assert own[:3] == [1, 1, 1]
    assert max(own) > 20
    made = synth.sample().to_pandas()
    found = ((made["a"] == "v001") & (made["b"] == "v002")).mean()
    true = ((table["a"].to_pandas() == "v001") & (table["b"].to_pandas() == "v002")).mean()
    assert abs(found - true) < 0.02
    assert set(made["a"]) <= set(schema["a"].values)  # type: ignore[attr-defined]
    assert made["a"].nunique() > MOST_CATEGORIES  # rare ones, too


def test_common_categories_stand_alone() -> None:
    schema, _ = many_values()
    feature = discrete_feature(schema, 0)
    shares = np.full(300, 0.5 / 298)
    shares[[7, 250]] = 0.25
    found = joined(feature, shares, 0.01)
    cells = np.bincount(found.segments)
    assert (cells == 1).sum() == 2
    assert found.size == 2 + 16
    assert cells.max() <= 20
    # Nothing is common where the least share is large; few cells, each of them of that share.
    assert joined(feature, np.full(300, 1 / 300), 0.2).size == 5
    assert joined(feature, np.zeros(300), 0.01).size == 1
    nulls = Categorical("n", values=list(range(65)), nullable=True)
    one = discrete_feature(Schema([nulls]), 0)
    assert joined(one, np.full(66, 1 / 66), 0.0).size <= MOST_CATEGORIES + 1
    few = discrete_feature(Schema([Categorical("n", values=list(range(64)))]), 0)
    assert joined(few, np.full(64, 1 / 64), 0.1) is few


def test_many_categories_of_many_records_are_measured_as_they_are() -> None:
    """Where a cell of the largest pair has more records than noise."""
    schema, _ = many_values()
    assert chosen(schema, 10**4) == "strongest-pairs"
    assert chosen(schema, 10**8) != "strongest-pairs"
    enormous = Schema([Categorical(f"c{n}", values=list(range(2100))) for n in range(2)])
    assert chosen(enormous, 10**12) == "strongest-pairs"


def test_settings_are_checked() -> None:
    for number in (0, 1.5, 2**11, True):
        with pytest.raises(BudgetError, match="pairs_per_column must be a whole number"):
            StrongestPairs(pairs_per_column=number)  # type: ignore[arg-type]


class Killed(BaseException):
    """What a kill is."""


@pytest.mark.parametrize("save", ["save_selections", "save_measurements"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_killed_run_resumes(
    save: str, neighbours: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, table = chain(400)
    data = tmp_path / "table.csv"
    pyarrow.csv.write_csv(table, data)
    synth = Synthesizer(
        schema,
        Budget(3.0, delta=1e-6, neighbours=neighbours),
        workload="categorical:1",
        mechanism=StrongestPairs(pairs_per_column=1),
        projector=QUICK,
        rows=40,
    )
    whole = synth.fit(data, insecure_noise_seed=3).release_
    real = getattr(RunFolder, save)

    def killed(self: RunFolder, *given: Any) -> None:
        real(self, *given)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, save, killed)
        with pytest.raises(Killed):
            synth.fit(data, insecure_noise_seed=3, release=tmp_path / "release")
    again = Synthesizer.resume(tmp_path / "release").release_
    assert again.synthetic.equals(whole.synthetic)
    assert again.privacy["spent"] == whole.privacy["spent"]
    with Ledger(tmp_path / "release.ledger.db", read_only=True) as ledger:
        steps = [charge.run.partition(" ")[2] for charge in ledger.charges("table")]
    asked = ["columns: measure", "pairs: select", "pairs: measure"]
    assert [step for step in steps if step != "number of records"] == asked


def test_it_is_swept() -> None:
    schema, table = chain(300)
    settings = [{"mechanism": "strongest-pairs", "projector": QUICK, "rows": 40}]
    sweep = Sweep(schema, table, "categorical:1")
    runs = sweep.run([1.0, 50.0], settings=settings, insecure=True, n_jobs=1)
    assert [run.measurements.workload.num_groups for run in runs] == [5 + 10] * 2
    assert runs[0].measurements.scales[-1] > runs[1].measurements.scales[-1]


# What is chosen for the user


def wide(columns: int) -> Schema:
    return Schema([Categorical(f"c{n}", values=list("abcd")) for n in range(columns)])


def chosen(schema: Schema, records: int, epsilon: float = 1.0, **settings: Any) -> str:
    """The name of the mechanism that is chosen for a table of so many records."""
    return Synthesizer(schema, epsilon, **settings).plan(expected_records=records).mechanism.name


def test_tables_of_many_columns_have_their_strongest_pairs_measured() -> None:
    assert chosen(wide(30), 5000) == "strongest-pairs"
    assert chosen(wide(30), 10**7) != "strongest-pairs"  # hardly any noise on all pairs
    assert chosen(wide(24), 5000) != "strongest-pairs"  # few columns
    assert chosen(wide(120), 10**9) == "strongest-pairs"  # more pairs than can be measured
    mixed = Schema([*wide(30).columns, Integer("age", lower=0, upper=99)])
    forecast = Synthesizer(mixed, 1.0).plan(expected_records=5000)
    assert forecast.mechanism == NumbersFirst(StrongestPairs())
    assert forecast.budget.conversion == "zcdp"
    assert Synthesizer(wide(24), 1.0).plan(expected_records=5000).budget.conversion == "gdp"


def test_a_private_number_of_records_chooses_nothing() -> None:
    """The guess of a plan does not either: the fit would not know it."""
    for columns, name in ((30, "one-shot"), (120, "strongest-pairs")):
        budget = Budget(1.0, delta=1e-6, neighbours="add-remove")
        for guess in (100, 10**8):
            forecast = Synthesizer(wide(columns), budget).plan(expected_records=guess)
            assert forecast.mechanism.name == name


def test_a_table_that_can_be_read_once() -> None:
    """Its number of records is not known before, and no δ either."""
    rng = np.random.default_rng(0)
    for columns, name in ((30, "one-shot"), (120, "strongest-pairs")):
        schema = wide(columns)
        values = np.array(list("abcd"))
        columns_of_table = {name: values[rng.integers(4, size=200)] for name in schema.names}
        reader = pa.table(columns_of_table).to_reader()
        synth = Synthesizer(schema, 1.0, rows=20, projector=QUICK)
        synth.fit(reader, insecure_noise_seed=0)
        assert synth.release_.settings.mechanism.name == name


def test_what_stands_against_a_selection(tmp_path: Path) -> None:
    schema = wide(30)
    assert chosen(schema, 5000, mechanism="one-shot") == "one-shot"
    assert chosen(schema, 5000, workload="categorical:2") == "one-shot"
    numbers = Schema([*schema.columns, Integer("age", lower=0, upper=99)])
    known = Knowledge(derived_statistics=["mean(age)"])
    assert chosen(numbers, 5000, knowledge=known) == "numbers-first"
    forecast = Synthesizer(numbers, 1.0, knowledge=known).plan(expected_records=5000)
    assert forecast.mechanism == NumbersFirst()
    gaussian = Budget(1.0, delta=1e-9, conversion="gdp")
    forecast = Synthesizer(schema, gaussian).plan(expected_records=5000)
    assert forecast.mechanism.name == "one-shot"
    first = Synthesizer(wide(2), 1.0, rows=20, projector=QUICK)
    table = pa.table({"c0": ["a", "b"] * 20, "c1": ["c", "d"] * 20})
    first.fit(table, ledger=tmp_path / "ledger.db", create_ledger=True)
    synth = Synthesizer(schema, 1.0)
    ledger = tmp_path / "ledger.db"
    assert synth.plan(expected_records=5000, ledger=ledger).mechanism.name == "one-shot"


def test_the_estimate_of_the_noise_is_that_of_measuring_all_pairs() -> None:
    schema = Schema([*wide(26).columns, Integer("a", lower=0, upper=99)])
    budget = RhoBudget.from_epsilon(1.0, 1e-9)
    share = defaults.noise_share(workload_of(schema, default_specs(schema, 2)), budget, 1)
    least = share / defaults.MAX_NOISE_OF_ALL_PAIRS
    assert drowns_pairs(schema, budget, int(least * 0.98))
    assert not drowns_pairs(schema, budget, int(least * 1.02))
    assert not drowns_pairs(datasets.census_schema(), budget, 100)


def test_a_fit_is_what_was_planned() -> None:
    schema = wide(26)
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (300, 26))
    values[:, 1] = values[:, 0]
    table = pa.table({f"c{n}": np.array(list("abcd"))[values[:, n]] for n in range(26)})
    synth = Synthesizer(schema, 8.0, rows=50, projector=QUICK).fit(table, insecure_noise_seed=0)
    settings = synth.release_.settings
    assert settings.mechanism == synth.plan(table).mechanism == StrongestPairs()
    assert settings.budget.conversion == "zcdp"
    assert frozenset(("c0", "c1")) in measured_pairs(synth)
    assert len(measured_pairs(synth)) == 78


@pytest.mark.slow
def test_a_model_that_cannot_take_all_pairs_takes_some() -> None:
    assert chosen(wide(30), 5000, projector="pgm") == "strongest-pairs"
    schema, table = chain(500)
    synth = Synthesizer(
        schema,
        3.0,
        workload="categorical:1",
        mechanism=StrongestPairs(),
        projector="pgm:iterations=10,cells=30",
        rows=50,
    ).fit(table, insecure_noise_seed=0)
    measured = synth.release_.measurements()
    assert measured is not None
    assert 0 < len(measured_pairs(synth)) < 10
    assert projector_of("pgm:cells=30").why_infeasible(measured.workload) is None
    steps = StrongestPairs()
    task = Task(steps.candidates(synth.release_.workload), synth.release_.workload, RHO)
    assert plan_run(steps, task).total == RHO.units
