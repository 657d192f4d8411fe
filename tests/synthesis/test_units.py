"""Releases of tables with a unit of protection: from a table to a release, resumed and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from private_gsd import (
    Adaptive,
    Budget,
    BudgetError,
    DataError,
    Knowledge,
    Ledger,
    LedgerError,
    RhoBudget,
    Sweep,
    Synthesizer,
    WorkloadError,
)
from private_gsd.counting import of_units
from private_gsd.data.units.choosing import UnitKey
from private_gsd.runs import runner
from tests import fitting
from tests.counting.visits import schema, visits

TABLE = visits(300)
RELATIONS = ["replace-one", "add-remove"]
SMALL: dict[str, Any] = {**fitting.SMALL, "workload": ["categorical:1", "tree:1"]}
ADAPTIVE: dict[str, Any] = {
    **SMALL,
    "mechanism": Adaptive(epochs=2, queries_per_epoch=1),
    "workload": ["categorical:1", "tree:1"],
}
# Ids that are nowhere else, to be looked for.
SPELLED = TABLE.set_column(
    1, "patient", pa.array([f"NHS{number}-QXJZWK" for number in TABLE["patient"].to_pylist()])
)


def fitted(known: Any, data: Any = SPELLED, **settings: Any) -> Synthesizer:
    return fitting.fitted(known, 1.0, data, **{**SMALL, "delta": 1e-6, **settings})


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("weighting", ["units", "rows"])
@pytest.mark.parametrize("settings", [SMALL, ADAPTIVE], ids=["one-shot", "adaptive"])
def test_a_release_of_units(
    weighting: str, neighbours: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    known = schema(3, weighting)
    synth = fitted(
        known,
        **{**settings, "neighbours": neighbours},
        ledger=tmp_path / "ledger.db",
        create_ledger=True,
        release=tmp_path / "release",
    )
    release = synth.release_
    assert release.schema.unit == known.unit
    table = synth.sample()
    assert table.column_names == ["ward", "age"]
    measured = release.measurements()
    assert measured is not None
    public = weighting == "units" and neighbours == "replace-one"
    assert (release.n_records() is None) == public
    assert release.settings.n_records == (300 if public else None)
    if public:
        assert measured.n_records == 300
    assert release.privacy["unit"] == "patient"
    assert "all records with the same 'patient'" in release.privacy["guarantee"]
    # Neither ids nor the key are left anywhere, in files that are published or not.
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"QXJZWK" not in path.read_bytes()
    run = json.loads((tmp_path / "release" / "run.json").read_text())
    assert run["unit_key"] is None


@pytest.mark.parametrize("weighting", ["units", "rows"])
def test_a_resumed_run_makes_the_same_choice(
    weighting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []
    real = of_units.bounded_rows

    def noted(source: Any, key: UnitKey, **options: Any) -> Any:
        keys.append(key.hexadecimal)
        return real(source, key, **options)

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(of_units, "bounded_rows", noted)
    pyarrow.csv.write_csv(SPELLED, tmp_path / "visits.csv")
    with monkeypatch.context() as patch:
        patch.setattr(runner, "project", stopped)
        with pytest.raises(KeyboardInterrupt):
            fitted(
                schema(2, weighting),
                tmp_path / "visits.csv",
                **ADAPTIVE,
                release=tmp_path / "release",
            )
    kept = json.loads((tmp_path / "release" / "run.json").read_text())["unit_key"]
    assert keys == [kept]
    done = Synthesizer.resume(tmp_path / "release", threads=1)
    assert keys == [kept, kept]  # the second epoch counts again, as the first did
    assert done.release_.finished
    assert json.loads((tmp_path / "release" / "run.json").read_text())["unit_key"] is None


def test_noise_of_a_seed_goes_with_a_choice_of_the_seed() -> None:
    """Experiments are made again; what comes of them is not private, and says so."""
    one, same, other = (
        fitted(schema(2), insecure_noise_seed=seed).release_.measurements() for seed in (1, 1, 2)
    )
    assert one is not None and same is not None and other is not None
    assert one.counts.tolist() == same.counts.tolist() != other.counts.tolist()


def test_a_ledger_of_another_unit_is_refused(tmp_path: Path) -> None:
    """Before the table is read."""
    budget = RhoBudget.from_epsilon(9.0, 1e-6, "zcdp")
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("rows", budget)
        ledger.add_dataset("visits", budget, unit="patient")
    given = {"ledger": tmp_path / "ledger.db"}
    with pytest.raises(LedgerError, match="protects a record, and the schema names all records wi"):
        fitted(schema(), "no such table", dataset="rows", **given)
    with pytest.raises(LedgerError, match="protects all records with the same 'patient', and the"):
        fitted(schema().with_unit(None), "no such table", dataset="visits", **given)
    fitted(schema(), dataset="visits", **given)


def test_rows_without_an_id_cost_nothing(tmp_path: Path) -> None:
    ids = SPELLED["patient"].to_pylist()
    table = SPELLED.set_column(1, "patient", pa.array([None, *ids[1:]]))
    with pytest.raises(DataError, match="is null in 1 row; remove them"):
        fitted(schema(), table, release=tmp_path / "release")
    assert not (tmp_path / "release" / "release.json").exists()
    found = fitted(schema(null_ids="own"), table).release_
    assert found.settings.n_records == 301 - (ids.count(ids[0]) == 1)


def test_what_a_unit_does_not_go_with() -> None:
    with pytest.raises(WorkloadError, match="public counts are of rows, and a table with a unit"):
        fitting.synthesizer(schema(), 1.0, knowledge=Knowledge({"ward = 'a'": 5}))
    with pytest.raises(BudgetError, match=r"give a delta: .*the number of rows is private"):
        fitting.fitted(schema(3, "rows"), 1.0, TABLE, **SMALL)
    with pytest.raises(BudgetError, match=r"where each row of a unit counts .* a public guess"):
        fitting.synthesizer(schema(3, "rows"), 1.0, delta=1e-6).plan(TABLE)


def test_a_plan_knows_the_number_of_units() -> None:
    plan = fitting.synthesizer(schema(3), 1.0, **SMALL).plan(TABLE)
    assert (plan.n_records, plan.records, plan.counting) == (300, "units", 0)
    rows = fitting.synthesizer(schema(3, "rows"), 1.0, delta=1e-6, **SMALL)
    guessed = rows.plan(expected_records=900)
    assert guessed.records == "rows that are taken of units"
    assert guessed.counting > 0
    # Noise in units is that of a table of rows; where each of 3 rows counts, 3 times as much.
    plain = fitting.synthesizer(schema().with_unit(None), 1.0, delta=plan.budget.delta, **SMALL)
    noise = [group.noise for group in plain.plan(expected_records=300).groups]
    assert [group.noise for group in plan.groups] == noise


def test_given_columns_need_no_id() -> None:
    synth = fitted(schema())
    made = synth.sample_given(pa.table({"ward": ["a", "b"]}))
    assert made.column_names == ["ward", "age"]


@pytest.mark.parametrize("weighting", ["units", "rows"])
def test_a_sweep_of_units(weighting: str) -> None:
    sweep = Sweep(schema(3, weighting), TABLE, ["categorical:1", "tree:1"], delta=1e-6)
    settings = [{"rows": 50, "projector": fitting.QUICK}]
    [run] = sweep.run([1.0], settings=settings, insecure=True, n_jobs=1, evaluate=True)
    assert run.measurements.workload.schema.unit is not None
    assert run.errors is not None and run.errors.max < 1
    if weighting == "rows":
        with pytest.raises(BudgetError, match="give a delta"):
            Sweep(schema(3, weighting), TABLE, "categorical:1")


def test_a_budget_in_epsilon_needs_no_delta_where_units_are_public() -> None:
    release = fitting.fitted(schema(3), 1.0, TABLE, **SMALL).release_
    assert release.settings.budget == Budget(1.0, 1 / 300**2, conversion="gdp")


@pytest.mark.slow
@pytest.mark.worker("engines")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("weighting", ["units", "rows"])
def test_a_spark_frame_of_units_is_fitted(spark: Any, weighting: str, tmp_path: Path) -> None:
    """By a mechanism that counts twice: with the same key the measurements of a table in memory."""
    frame = spark.createDataFrame(SPELLED).repartition(3)
    known, given = schema(2, weighting), {**ADAPTIVE, "insecure_noise_seed": 7}
    synth = fitted(known, frame, **given, release=tmp_path / "release")
    here = fitted(known, SPELLED, **given)
    found, expected = (each.release_.measurements() for each in (synth, here))
    assert found is not None and expected is not None
    assert found.counts.tolist() == expected.counts.tolist()
    assert synth.sample().columns == ["ward", "age"]
    for path in (tmp_path / "release").rglob("*"):
        assert not path.is_file() or b"QXJZWK" not in path.read_bytes()
