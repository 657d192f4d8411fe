"""Numbers first on real tables: any source, killed and resumed, and what the ledger says."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import (
    MST,
    Adaptive,
    Categorical,
    Date,
    Integer,
    Knowledge,
    Layered,
    Mechanism,
    NumbersFirst,
    OneShot,
    Real,
    Schema,
    Synthesizer,
    open_source,
    workloads,
)
from private_gsd.counting import exact
from private_gsd.counting.exact import TableCounts
from private_gsd.data.sources import Source
from private_gsd.errors import LedgerError, ReleaseError, SourceError, WorkloadError
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.runs.release import Release
from private_gsd.runs.run_folder import RunFolder
from private_gsd.workloads import Workload
from private_gsd.workloads.histograms import first_histograms
from private_gsd.workloads.specs import workload_of
from tests.data.sources.test_contract import EACH, MAKERS, Made
from tests.fitting import QUICK, fitted, synthesizer
from tests.runs.kills import Killed, durable_steps, killing, outcome

SCHEMA = Schema(
    [
        Categorical("a", values=["x", "y"]),
        Date("day", lower=dt.date(1960, 1, 1), upper=dt.date(2024, 12, 31)),
        Integer("pay", lower=-1000, upper=1_000_000, nullable=True),
        Real("rate", lower=0, upper=12.5, decimals=1),
    ]
)
WORKLOAD = ["categorical:1", "tree:2"]
SETTINGS: dict[str, Any] = {
    "rows": 30,
    "threads": 1,
    "projector": QUICK,
    "mechanism": "numbers-first",
    "workload": WORKLOAD,
}
ADD_REMOVE: dict[str, Any] = {**SETTINGS, "neighbours": "add-remove", "delta": 1e-6}


def table_of(rows: int, seed: int = 0) -> pa.Table:
    """Round pay, with nulls; days of two years; rates of which many are 7.5."""
    rng = np.random.default_rng(seed)
    pay = rng.integers(0, 40, rows) * 1000
    rate = np.where(rng.random(rows) < 0.5, 7.5, rng.integers(0, 126, rows) / 10)
    return pa.table(
        {
            "a": np.array(["x", "y"])[rng.integers(0, 2, rows)],
            "day": pa.array(rng.integers(14_000, 14_700, rows).astype(np.int32)).cast(pa.date32()),
            "pay": pa.array(pay, mask=rng.random(rows) < 0.2),
            "rate": np.round(rate, 1),
        }
    )


TABLE = table_of(300)
EPSILON = 30.0  # enough that cells of every column are split


def fit(data: Any, **settings: Any) -> Synthesizer:
    return fitted(SCHEMA, EPSILON, data, insecure_noise_seed=3, **{**SETTINGS, **settings})


def result(synth: Synthesizer) -> tuple[Any, ...]:
    """All that was measured, and the table."""
    measured = synth.release_.measurements()
    assert measured is not None
    described = [measured.workload.describe(group) for group in range(measured.workload.num_groups)]
    return described, measured.counts.tolist(), synth.release_.synthetic.to_pylist()


@pytest.fixture(scope="module")
def expected() -> tuple[Any, ...]:
    """What a run on the table in memory comes to."""
    return result(fit(TABLE))


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(TABLE, tmp_path / "table.csv")
    return tmp_path / "table.csv"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the sources, each time that one is read."""
    found: list[str] = []
    batches = Source.batches

    def watched(self: Source, *arguments: Any) -> Any:
        found.append(self.name)
        return batches(self, *arguments)

    monkeypatch.setattr(Source, "batches", watched)
    return found


def levels_of(described: list[str]) -> dict[str, int]:
    """The number of histograms of each column."""
    names = [each.partition(" (histogram")[0] for each in described if "(histogram" in each]
    return {name: names.count(name) for name in names}


def test_all_columns_have_several_levels(expected: tuple[Any, ...]) -> None:
    """The runs of this file do all that there is to do."""
    described, *_ = expected
    assert min(levels_of(described).values()) > 1
    assert set(levels_of(described)) == {"day", "pay", "rate"}
    assert {"pay (how round)", "day (weekdays)", "day (months)"} <= set(described)
    assert "a x pay" in described


@pytest.mark.worker("engines")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("source", EACH)
def test_every_source_gives_the_same(
    source: Any, expected: tuple[Any, ...], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The same seeded noise gives the same measurements and the same table."""
    assert result(fit(MAKERS[source](Made(request, tmp_path), TABLE))) == expected


def test_a_table_is_read_once_where_its_rows_are_kept(
    csv: Path, passes: list[str], expected: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or once for each level, and for the marginals; it comes to the same."""
    assert result(fit(csv)) == expected
    kept = len(passes)
    monkeypatch.setattr(exact, "KEPT_BYTES", 0)
    assert result(fit(csv)) == expected
    assert len(passes) - 2 * kept == max(levels_of(expected[0]).values())


def test_a_table_that_can_be_read_once_is_kept(
    passes: list[str], expected: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever memory it takes."""
    monkeypatch.setattr(exact, "KEPT_BYTES", 0)
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(100))
    described, counts, rows = result(fit(reader))
    assert (described, counts, rows) == expected
    assert len(passes) == 1


def test_a_table_that_was_read_is_refused() -> None:
    """Where its rows were not kept, since nobody would ask again."""
    workload = Workload(SCHEMA, (first_histograms(SCHEMA),))
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    counts = TableCounts(open_source(reader, SCHEMA), again=False)
    assert counts(workload).n_records == 300
    assert counts(workload).n_records == 300  # the last counts are kept
    with pytest.raises(SourceError, match="can be read only once and was read before"):
        counts(Workload(SCHEMA, (first_histograms(SCHEMA),)))


def test_counts_of_a_table_show_nothing(csv: Path) -> None:
    counts = TableCounts(open_source(csv, SCHEMA), again=True, threads=1)
    assert repr(counts) == "<TableCounts: redacted>"
    with pytest.raises(TypeError, match="cannot be pickled"):
        counts.__reduce_ex__(4)


@pytest.mark.parametrize("limit", [0, 2**30])
def test_counts_of_one_workload_after_the_other(csv: Path, limit: int) -> None:
    """From the rows that were kept, and from the file: the same."""
    workload = Workload(SCHEMA, (first_histograms(SCHEMA),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "KEPT_BYTES", limit)
        counts = TableCounts(open_source(csv, SCHEMA), again=True, threads=2)
        once = counts(workload)
        again = counts(workload.select([1]))
    assert once.n_records == again.n_records == 300
    begin, end = workload.offsets[1:3]
    np.testing.assert_array_equal(again.counts, once.counts[begin:end])


@pytest.mark.parametrize("settings", [SETTINGS, ADD_REMOVE], ids=["replace-one", "add-remove"])
def test_a_table_that_changes_between_levels_is_refused(
    settings: dict[str, Any], csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the run resumes when the table is back."""
    whole = fit(csv, **settings, release=tmp_path / "whole")
    monkeypatch.setattr(exact, "KEPT_BYTES", 0)
    before = csv.read_bytes()

    def grow(what: str, done: int, total: int | None) -> None:
        del done, total
        if what == "counting" and (tmp_path / "grown" / "release.json").exists():
            pyarrow.csv.write_csv(table_of(301), csv)

    with pytest.raises(SourceError, match=r"table\.csv: the table was changed while it was read"):
        fit(csv, **settings, release=tmp_path / "grown", progress=grow)
    if settings is SETTINGS:
        with pytest.raises(ReleaseError, match="another number of rows than the run began with"):
            Synthesizer.resume(tmp_path / "grown")
    csv.write_bytes(before)
    Synthesizer.resume(tmp_path / "grown")
    mine, yours = (tmp_path / name for name in ("grown", "whole"))
    assert outcome(mine, tmp_path / "grown.ledger.db") == outcome(
        yours, tmp_path / "whole.ledger.db"
    )
    assert whole.release_.complete


@pytest.mark.slow
@pytest.mark.parametrize("settings", [SETTINGS, ADD_REMOVE], ids=["replace-one", "add-remove"])
def test_a_run_that_was_killed_resumes_as_if_it_was_not(
    settings: dict[str, Any], csv: Path, tmp_path: Path
) -> None:
    """On disk, with the ledger; every seventh moment, since the contract has all of them."""

    def run(folder: Path, kill_at: int = -1) -> int:
        with pytest.MonkeyPatch.context() as patch:
            steps = durable_steps(patch, kill_at)
            fit(csv, **settings, release=folder)
        return 2 * len(steps)

    moments = run(tmp_path / "whole")
    expected = outcome(tmp_path / "whole", tmp_path / "whole.ledger.db")
    assert len(expected[-1]) > 4  # charges
    resumed = 0
    for kill_at in range(0, moments, 7):
        folder = tmp_path / str(kill_at)
        with pytest.raises(Killed):
            run(folder, kill_at)
        if not (folder / "release.json").exists():
            continue
        Synthesizer.resume(folder)
        assert outcome(folder, tmp_path / f"{kill_at}.ledger.db") == expected
        resumed += 1
    assert resumed > 4


def test_levels_that_are_lost_are_not_drawn_again(csv: Path, tmp_path: Path) -> None:
    """A run that has measured and then lost what it has measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", killing)
        with pytest.raises(Killed):
            fit(csv, release=tmp_path / "run")
    ledger = tmp_path / "run.ledger.db"
    before = charged(ledger)
    for path in (tmp_path / "run" / "measurements").iterdir():
        path.unlink()
    with pytest.raises(LedgerError, match="paid for at 'numbers: level 1' was drawn and committed"):
        Synthesizer.resume(tmp_path / "run")
    assert charged(ledger) == before
    assert not Release.load(tmp_path / "run").complete


def charged(ledger: Path) -> int:
    """What a ledger was charged in all, in units."""
    with Ledger(ledger, create=True) as opened:
        return sum(charge.units for charge in opened.charges("table"))


@settings(max_examples=12)
@given(
    epsilon=st.floats(0.05, 60),
    rows=st.integers(20, 400),
    fraction=st.floats(0.02, 0.95),
    then=st.sampled_from([OneShot(), Layered(), Adaptive(epochs=2)]),
    neighbours=st.sampled_from(["replace-one", "add-remove"]),
    target=st.sampled_from([WORKLOAD, ["tree:1"], ["numeric:2"], ["categorical:1"]]),
)
@pytest.mark.filterwarnings("ignore::private_gsd.mechanisms.base.EndedEarlyWarning")
def test_the_ledger_is_charged_what_was_planned(
    epsilon: float, rows: int, fraction: float, then: Mechanism, neighbours: str, target: list[str]
) -> None:
    """And no more, however many levels the columns need."""
    chosen: dict[str, Any] = {
        **SETTINGS,
        "mechanism": NumbersFirst(then, fraction),
        "workload": target,
        "neighbours": neighbours,
        "delta": 1e-6,
    }
    table = table_of(rows, rows)
    known: dict[str, Any] = {} if neighbours == "replace-one" else {"expected_records": rows}
    forecast = synthesizer(SCHEMA, epsilon, **chosen).plan(table, **known)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "run")
        synth = fitted(SCHEMA, epsilon, table, release=made, insecure_noise_seed=rows, **chosen)
        spent = charged(Path(folder, "run.ledger.db"))
        assert spent <= forecast.plan.total <= forecast.budget.units
        if then == OneShot() or target == ["tree:1"]:  # nothing follows single numbers
            assert spent == pytest.approx(forecast.plan.total, rel=1e-9)  # but for rounding
        assert synth.release_.privacy["spent"]["epsilon"] <= epsilon * (1 + 1e-9)
        measured = synth.release_.measurements()
        assert measured is not None
        # What was planned for a first histogram is what it got.
        planned = forecast.groups[0]
        assert measured.workload.describe(0) == planned.name
        assert measured.scales[0] == pytest.approx(planned.noise)


def test_a_model_that_is_too_large_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    """Of columns with fewer values than a column has cells."""
    schema = Schema([Integer(f"n{place}", lower=0, upper=7) for place in range(11)])
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(0, 8, 20_000) for name in schema.names})
    synth = Synthesizer(schema, epsilon=3.0, rows=30, projector="pgm")
    with pytest.raises(WorkloadError, match="the graphical model of these 55 marginals would have"):
        synth.fit(table, ledger=tmp_path / "ledger.db", create_ledger=True)
    assert not (tmp_path / "ledger.db").exists()


def test_ranges_and_trees_together() -> None:
    """MST makes pairs of a range of one column and the cells of another."""
    schema = Schema([*SCHEMA.columns[:1], *SCHEMA.columns[2:]])
    target = workloads.range_marginals(schema, {"pay": [(0, 9999), (10_000, 10**6)]})
    target += workloads.tree_marginals(schema, sets=[["a", "rate"]], depth=3)
    chosen = {**SETTINGS, "workload": target, "mechanism": NumbersFirst(MST())}
    synth = fitted(schema, EPSILON, TABLE.select(schema.names), insecure_noise_seed=3, **chosen)
    measured = synth.release_.measurements()
    assert measured is not None
    groups = [measured.workload.describe(each) for each in range(measured.workload.num_groups)]
    assert sum(" x " in each for each in groups) == 2


@pytest.mark.parametrize("names", [["a", "pay", "rate"], ["day", "pay", "rate"]])
def test_mst_has_pairs_of_numbers_also_where_the_budget_is_small(names: list[str]) -> None:
    """Where single columns are asked, pairs are its own choice."""
    schema = SCHEMA.select(names)
    chosen = {**SETTINGS, "workload": None, "mechanism": "mst"}
    synth = fitted(schema, 0.01, TABLE.select(names), insecure_noise_seed=3, **chosen)
    measured = synth.release_.measurements()
    assert measured is not None
    groups = [measured.workload.describe(each) for each in range(measured.workload.num_groups)]
    assert sum(" x " in each for each in groups) == 2
    assert any("histogram" in each for each in groups)


@pytest.mark.parametrize("workload", [None, WORKLOAD])
@pytest.mark.parametrize("condition", ["pay < 499500", "rate >= 6.3"])
def test_conditions_on_numbers_need_cut_points(condition: str, workload: Any) -> None:
    """Those of even cells are not measured; refused before anything is paid."""
    knowledge = Knowledge(derived_statistics=[f"share(a = 'x') where {condition}"])
    chosen = {"mechanism": NumbersFirst(), "workload": workload, "knowledge": knowledge}
    with pytest.raises(WorkloadError, match="numbers-first cuts columns where the data is"):
        fit(table_of(5000), **chosen)  # pairs are the choice for so many


def test_conditions_on_ranges_that_are_named_and_medians_of_numbers() -> None:
    target = workloads.range_marginals(
        SCHEMA, {"a": ..., "pay": [(-1000, 499_999), (500_000, 10**6)]}
    )
    target += workload_of(SCHEMA, WORKLOAD)
    statistics = ["share(a = 'x') where pay < 500000", "median(rate)", "mean(pay) where a = 'x'"]
    knowledge = Knowledge(derived_statistics=statistics)
    fit(TABLE, mechanism=NumbersFirst(), workload=target, knowledge=knowledge)


def test_rows_that_can_be_read_once_must_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found before anything is paid: the first pass comes first."""
    monkeypatch.setattr(exact, "available", lambda: 4000.0)
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(100))
    with pytest.raises(SourceError, match="can be read only once, and does not fit into memory"):
        fit(reader)
    assert fit(TABLE).release_.complete
