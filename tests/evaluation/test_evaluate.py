"""What an evaluation says of tables whose quality is known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import private_gsd as gsd
from private_gsd import Boolean, Categorical, Integer, Real, Schema
from private_gsd.errors import GsdError, MissingExtraError, SchemaError, WorkloadError
from private_gsd.evaluation import Evaluation, evaluate
from private_gsd.evaluation.result import ALARM
from tests.evaluation.tables import SCHEMA, census, check_page, constant, parts, shuffled

pytestmark = pytest.mark.worker("evaluation")

TRAIN, HELD = parts(1500)


def evaluated(synthetic: Any, **options: Any) -> Evaluation:
    return evaluate(synthetic, TRAIN, **{"schema": SCHEMA, "holdout": HELD, **options})


@pytest.fixture(scope="module")
def copy() -> Evaluation:
    return evaluated(TRAIN)


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


def test_a_copy_of_the_training_rows_is_flagged(copy: Evaluation) -> None:
    attacks = copy.attacks
    assert attacks is not None
    assert attacks.closer is not None
    assert attacks.membership is not None
    assert attacks.caught is not None
    assert attacks.matches.value == 1
    assert max(attacks.distances) == 0
    assert attacks.closer.low > 0.9
    assert attacks.membership.low > 0.65
    assert attacks.caught.low > 0.05
    assert len(attacks.inference) == len(copy.tasks)
    assert all(each.members.value > each.others.value for each in attacks.inference)
    assert len(attacks.findings) == 4 + len(attacks.inference)
    assert "Attacks found something" in copy.html()


def test_other_rows_of_the_same_kind_are_not_flagged() -> None:
    found = evaluated(census(1500, seed=5), targets=["sex", "marital", "age"])
    assert found.attacks is not None
    assert found.attacks.findings == []
    assert [each.column for each in found.attacks.inference] == ["sex", "marital"]
    assert "did better than chance explains" in found.html()
    assert min(each.score for each in found.kmarginals) > 700


def test_shuffled_columns_lose_what_hangs_together(copy: Evaluation) -> None:
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
    check_page(found.html())


def test_targets_and_tests() -> None:
    found = evaluated(TRAIN, targets=["citizen", "age"])
    assert [task.target for task in found.tasks] == ["citizen", "age (above its median)"]
    assert found.tasks[0].tested == HELD.num_rows
    assert all(task.classes == 2 for task in found.tasks)
    binary = [score.f1_binary for score in found.tasks[1].scores]
    assert None not in binary
    several = evaluated(TRAIN, targets=["marital"]).tasks[0]
    assert several.classes > 2
    assert {score.f1_binary for score in several.scores} == {None}
    # Without held-out rows, a fifth of the real ones is tested on, and the report says so.
    alone = evaluated(TRAIN, holdout=None, targets=["citizen"])
    assert alone.tasks[0].tested == TRAIN.num_rows // 5
    assert alone.attacks is not None
    assert alone.attacks.membership is None
    # The synthetic table is a copy of the training rows, which needs no held-out ones to be seen.
    assert alone.attacks.findings == [
        "most synthetic rows repeat a row that the training rows have once"
    ]
    assert "No held-out rows were given" in alone.html()


def test_one_column() -> None:
    schema = Schema([Integer("n", lower=0, upper=9)])
    table = pa.table({"n": list(range(10)) * 5})
    found = evaluate(table, table, schema=schema, holdout=table)
    assert found.associations.mean_difference == 0
    assert [each.k for each in found.kmarginals] == [1]
    assert found.tasks == ()
    check_page(found.html())
    json.loads(found.json())


def test_two_rows() -> None:
    two = TRAIN.slice(0, 2)
    found = evaluate(two, two, schema=SCHEMA, holdout=HELD.slice(0, 2))
    assert found.propensity is None
    assert found.tasks == ()
    check_page(found.html())
    json.loads(found.json())
    one = evaluate(TRAIN.slice(0, 1), two, schema=SCHEMA)
    assert one.attacks is None
    check_page(one.html())


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
    text = found.html()
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
    text = found.html()
    check_page(text)
    assert "140 further columns were left out" in text
    assert len(text.encode()) < 3_000_000


def test_what_is_sampled_is_said() -> None:
    found = evaluated(census(700), sample=200, targets=[])
    assert found.tables.real_sample == found.tables.synthetic_sample == 200
    assert found.tables.real == 1500
    text = found.html()
    assert "a random sample of 200 of 1,500 real rows" in text
    assert "a random sample of 200 of 700 synthetic rows" in text


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
    assert "NOT (age &lt; 18 AND" in found.html()


def test_errors_of_groups_and_the_noise_floor(tmp_path: Path) -> None:
    synth = gsd.Synthesizer(
        SCHEMA, epsilon=1.0, rows=300, workload=["categorical:2"], insecure_noise_seed=1
    ).fit(TRAIN)
    found = gsd.evaluate(synth.release, TRAIN, targets=[])
    workload = synth.release.workload
    twin = gsd.query_errors(workload, TRAIN, synth.release.synthetic)
    assert found.errors.mean == pytest.approx(twin.mean)
    assert found.errors.rms == pytest.approx(twin.rms)
    assert found.errors.largest == pytest.approx(twin.max)
    assert len(found.errors.groups) == workload.num_groups
    measured = synth.release.measurements()
    assert measured is not None
    noise = {group.name: group.noise for group in found.errors.groups}
    for group in range(workload.num_groups):
        expected = float(measured.scales[group] / measured.n_records)
        assert noise[measured.workload.describe(group)] == pytest.approx(expected)
    worst, cells = found.errors.worst[0]
    assert worst == found.errors.groups[0]
    assert max(abs(cell.real - cell.synthetic) for cell in cells) == pytest.approx(worst.largest)
    # Of a release that measured only some groups, the others have no noise to compare with.
    some = gsd.Synthesizer(
        SCHEMA,
        epsilon=1.0,
        rows=200,
        workload=["categorical:2"],
        mechanism="adaptive",
        epochs=2,
        insecure_noise_seed=1,
    ).fit(TRAIN)
    groups = gsd.evaluate(some.release, TRAIN, targets=[]).errors.groups
    assert sum(group.noise is not None for group in groups) == 2
    with pytest.raises(SchemaError, match="another schema"):
        gsd.evaluate(some.release, TRAIN, schema=SCHEMA.select(["sex"]))


def test_documents_say_that_they_are_not_for_publication(copy: Evaluation, tmp_path: Path) -> None:
    document = json.loads(copy.json())
    assert document["warning"] == ALARM
    assert document["publishable"] is False
    assert document["attacks"]["membership"]["value"] > 0.65
    assert len(document["columns"]) == len(SCHEMA)
    assert "NOT FOR PUBLICATION" in copy._repr_html_()
    assert "not for publication" in repr(copy)
    copy.write(tmp_path / "report.html")
    copy.write(tmp_path / "report.json")
    assert (tmp_path / "report.html").read_text() == copy.html()
    assert json.loads((tmp_path / "report.json").read_text()) == document
    (tmp_path / "release.json").write_text("{}")
    copy.write(tmp_path / "other.html")  # not every file of that name makes a release
    (tmp_path / "release.json").write_text('{"format": "private-gsd release"}')
    (tmp_path / "deep").mkdir()
    (tmp_path.parent / "link").symlink_to(tmp_path / "deep")
    with pytest.raises(GsdError, match="may be published"):
        copy.write(tmp_path.parent / "link" / "report.html")
    with pytest.raises(GsdError, match="may be published"):
        copy.write(tmp_path / "deep" / "report.html")


def test_no_raw_row_is_in_the_report(copy: Evaluation) -> None:
    # A number that occurs once would be a row's own: incomes are shown in bins only.
    text = copy.html() + copy.json()
    incomes = TRAIN["income"].drop_null().to_pylist()
    rare = [f"{value:.2f}" for value in incomes if value and value % 1]
    assert rare
    assert not [value for value in rare if value in text]


def test_progress_is_told() -> None:
    told: list[tuple[str, int]] = []
    evaluated(TRAIN, targets=["citizen"], tell=lambda what, rows: told.append((what, rows)))
    assert ("Reading the real table", 1500) in told
    assert ("Learning to predict citizen", 0) in told
    assert told[-1][0] == "Attacking"


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


def test_held_out_rows_that_were_not_held_out_are_noticed() -> None:
    found = evaluated(TRAIN, holdout=TRAIN, targets=[])
    assert found.attacks is not None
    assert found.attacks.overlap
    assert any("cannot tell anything" in each for each in found.attacks.findings)


def test_a_shuffled_copy_cannot_be_told_apart() -> None:
    order = np.random.default_rng(3).permutation(TRAIN.num_rows)
    found = evaluated(TRAIN.take(pa.array(order)), holdout=None, targets=[])
    assert found.propensity is not None
    assert abs(found.propensity.auc - 0.5) < 0.05


def test_tables_from_one_place_have_a_propensity_ratio_of_about_one() -> None:
    """Ten columns of five values each, drawn twice: the mean of the ratio is 1."""
    schema = Schema([Categorical(f"c{n}", values=list("abcde")) for n in range(10)])
    rng = np.random.default_rng(5)

    def drawn() -> pa.Table:
        return pa.table({name: rng.choice(list("abcde"), 1000) for name in schema.names})

    found = [evaluate(drawn(), drawn(), schema=schema, targets=[]) for _ in range(4)]
    ratios = [each.propensity for each in found]
    assert 0.7 < np.mean([each.ratio for each in ratios if each is not None]) < 1.3
