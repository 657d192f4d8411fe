"""What an evaluation says of tables whose quality is known."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import private_gsd as gsd
from private_gsd import Boolean, Categorical, Integer, Real, Schema
from private_gsd.errors import MissingExtraError, SchemaError, WorkloadError
from private_gsd.evaluation import Evaluation, evaluate, evaluation_page
from tests.evaluation.tables import (
    HELD_OUT,
    SCHEMA,
    TRAIN,
    check_page,
    constant,
    quick,
    shuffled,
)

pytestmark = pytest.mark.worker("evaluation")


def evaluated(synthetic: Any, **options: Any) -> Evaluation:
    return evaluate(synthetic, TRAIN, **{"schema": SCHEMA, "holdout": HELD_OUT, **options})


def test_identical_tables_score_perfect(copy: Evaluation) -> None:
    assert copy.errors.mean == copy.errors.largest == 0
    assert all(column.distance == 0 for column in copy.columns)
    assert all(column.ks in (0, None) for column in copy.columns)
    assert copy.associations.mean_difference == 0
    assert np.abs(copy.associations.difference).max() == 0
    assert [each.score for each in copy.kmarginals] == pytest.approx([1000, 1000])
    assert copy.propensity is not None
    assert copy.propensity.pmse == pytest.approx(0, abs=1e-6)
    assert copy.propensity.auc == pytest.approx(0.5, abs=0.02)
    assert copy.tasks
    for task in copy.tasks:
        for model in ("logistic regression", "gradient boosting"):
            assert task.f1("synthetic", model) == task.f1("real", model)
        assert task.f1("synthetic") >= task.f1("nothing")


@pytest.mark.slow
def test_shuffled_columns_lose_their_associations() -> None:
    found = evaluated(shuffled(TRAIN))
    assert all(column.distance == 0 for column in found.columns)
    strong = np.abs(found.associations.real) > 0.4
    off = ~np.eye(len(SCHEMA), dtype=bool)
    assert (strong & off).any()
    assert np.abs(found.associations.synthetic[strong & off]).max() < 0.2
    assert found.associations.pairs[0].real > found.associations.pairs[0].synthetic + 0.4
    assert found.errors.mean > 0
    assert found.kmarginals[1].score < found.kmarginals[0].score < 950
    assert found.propensity is not None
    assert found.propensity.auc > 0.8
    best = max(found.tasks, key=lambda task: task.f1("real") - task.f1("nothing"))
    assert best.f1("synthetic") < best.f1("real") - 0.1
    assert found.attacks is not None
    assert found.attacks.findings == []


def test_a_constant_table_scores_badly() -> None:
    found = evaluated(constant(TRAIN))
    assert np.mean([column.distance for column in found.columns]) > 0.5
    assert np.abs(found.associations.synthetic - np.eye(len(SCHEMA))).max() == 0
    assert max(each.score for each in found.kmarginals) < 300
    assert found.propensity is not None
    assert found.propensity.auc > 0.99
    assert found.propensity.pmse > 0.2
    for task in found.tasks:
        assert task.f1("synthetic") <= 0.5  # it only ever says one thing
    check_page(evaluation_page(found))


def test_one_column() -> None:
    schema = Schema([Integer("n", lower=0, upper=9)])
    table = pa.table({"n": list(range(10)) * 5})
    found = evaluate(table, table, schema=schema, holdout=table)
    assert found.associations.mean_difference == 0
    assert [each.k for each in found.kmarginals] == [1]
    assert found.tasks == ()
    check_page(evaluation_page(found))
    json.loads(found.json())


def test_two_rows() -> None:
    two = TRAIN.slice(0, 2)
    found = evaluate(two, two, schema=SCHEMA, holdout=HELD_OUT.slice(0, 2))
    assert found.propensity is None
    assert found.tasks == ()
    check_page(evaluation_page(found))
    json.loads(found.json())
    one = evaluate(TRAIN.slice(0, 1), two, schema=SCHEMA)
    assert one.attacks is None
    check_page(evaluation_page(one))


def test_columns_of_nulls_of_one_value_and_of_many() -> None:
    values = [f"value {number}" for number in range(1000)]
    schema = Schema(
        [
            Real("empty", lower=0, upper=1, nullable=True),
            Categorical("nothing", values=["a", "b"], nullable=True),
            Integer("still", lower=0, upper=100),
            Categorical("many", values=values),
            Boolean("flag"),
        ]
    )
    rng = np.random.default_rng(0)

    def table(rows: int) -> pa.Table:
        return pa.table(
            {
                "empty": pa.nulls(rows, pa.float64()),
                "nothing": pa.nulls(rows, pa.string()),
                "still": [7] * rows,
                "many": rng.choice(values, rows),
                "flag": rng.random(rows) < 0.5,
            }
        )

    found = evaluate(table(300), table(400), schema=schema, holdout=table(300))
    by_name = {column.name: column for column in found.columns}
    assert min(by_name["empty"].nulls) == 1
    assert by_name["empty"].ks is None
    assert by_name["empty"].distance == by_name["still"].distance == 0
    assert len(by_name["many"].labels) == 1000
    text = evaluation_page(found)
    check_page(text)
    assert "989 others" in text
    assert len(text) < 200_000
    # One table of nulls, and another with values.
    full = table(300).set_column(0, "empty", pa.array(rng.random(300)))
    assert evaluate(full, table(300), schema=schema).columns[0].distance == 1
    assert evaluate(table(300), full, schema=schema).columns[0].distance == 1


def test_two_hundred_columns() -> None:
    rng = np.random.default_rng(0)
    schema = Schema(
        [Boolean(f"flag {number}") for number in range(100)]
        + [Real(f"number {number}", lower=0, upper=1) for number in range(100)]
    )

    def table() -> pd.DataFrame:
        flags = {f"flag {number}": rng.random(200) < 0.5 for number in range(100)}
        return pd.DataFrame({**flags, **{f"number {n}": rng.random(200) for n in range(100)}})

    found = evaluate(table(), table(), schema=schema, targets=["flag 0"], workload=["tree:1:3"])
    assert len(found.columns) == 200
    assert len(found.associations.names) == 60
    assert found.associations.left_out == 140
    text = evaluation_page(found)
    check_page(text)
    assert "140 further columns were left out" in text
    assert len(text.encode()) < 3_000_000


def test_rules_are_counted_in_both() -> None:
    rules = ["NOT (age < 18 AND marital = 'married')", "age >= 50", "income > 0"]
    schema = Schema(SCHEMA.columns, rules)
    found = evaluate(TRAIN, TRAIN, schema=schema, targets=[])
    frame = TRAIN.to_pandas()
    young = float((frame.age < 50).mean())
    poor = float((frame.income <= 0).mean())  # unknown breaks no rule
    assert [rule for rule, _, _ in found.rules] == rules
    assert found.rules[1][1:] == pytest.approx((young, young))
    assert found.rules[2][1:] == pytest.approx((poor, poor))
    assert "NOT (age &lt; 18 AND" in evaluation_page(found)


def test_progress_is_that_of_fit() -> None:
    calls: list[tuple[str, float, float | None]] = []
    evaluated(TRAIN, targets=["citizen"], progress=lambda *call: calls.append(call))
    assert ("reading the real table", 1500, 1500) in calls
    assert ("training models", 0, 1) in calls
    assert calls[-1][0] == "attacking"
    with pytest.raises(gsd.GsdError, match="progress must be"):
        evaluated(TRAIN, progress="yes")


def test_a_release_brings_its_schema_workload_and_settings() -> None:
    schema = SCHEMA.select(["age", "income"])
    table = TRAIN.select(schema.names)
    synth = quick(schema, rows=100, workload="tree:1:3").fit(
        table, on_invalid="coerce", insecure_noise_seed=1
    )
    found = gsd.evaluate(synth.release_, table, targets=[])
    assert found.errors.queries == synth.release_.workload.size
    assert found.errors.noise is not None
    assert found.privacy == synth.release_.privacy
    assert found.name == synth.release_.name
    # Values outside the schema are treated as the release treated them.
    old = table.set_column(0, "age", pa.array([500] * table.num_rows))
    gsd.evaluate(synth.release_, old, targets=[])
    with pytest.raises(gsd.DataError):
        gsd.evaluate(synth.release_, old, targets=[], on_invalid="error")
    with pytest.raises(SchemaError, match="another schema"):
        gsd.evaluate(synth.release_, table, schema=SCHEMA)
    other = gsd.evaluate(synth.release_, table, targets=[], workload="tree:1:2")
    assert other.errors.noise is None


def test_mistakes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SchemaError, match="give its schema"):
        evaluate(TRAIN, TRAIN)
    with pytest.raises(SchemaError, match=r"'citzen' to predict \(did you mean 'citizen'"):
        evaluated(TRAIN, targets=["citzen"])
    with pytest.raises(WorkloadError, match="sample must be"):
        evaluated(TRAIN, sample=5)
    other = gsd.workloads.categorical_marginals(SCHEMA.select(["sex"]), 1)
    with pytest.raises(WorkloadError, match="another schema"):
        evaluated(TRAIN, workload=other)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"private-gsd\[evaluation\]"):
        evaluated(TRAIN)


@pytest.mark.parametrize("kind", ["integer", "real"])
@pytest.mark.parametrize("made", [-50_000, 50_000])
def test_a_column_of_one_value_is_told_from_another(kind: str, made: int) -> None:
    """Nearly all real rows are 0, and no synthetic one: nothing is alike."""
    make = Integer if kind == "integer" else Real
    schema = Schema([make("gain", lower=-100_000, upper=100_000), Boolean("b")])
    rng = np.random.default_rng(0)
    real = np.zeros(2000)
    real[:15] = rng.integers(1, 100_000, 15)
    flags = rng.random(2000) < 0.5
    tables = [
        pa.table({"gain": values.astype(np.int64 if kind == "integer" else float), "b": flags})
        for values in (np.full(2000, float(made)), real)
    ]
    found = evaluate(tables[0], tables[1], schema=schema)
    assert found.columns[0].distance > 0.99
    assert found.kmarginals[0].score < 50
