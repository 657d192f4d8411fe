"""Evidence: public totals, statistics that follow from measurements, and others' measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from private_gsd import (
    Categorical,
    Datetime,
    Integer,
    Measurements,
    Release,
    Schema,
    Synthesizer,
    datasets,
    workloads,
)
from private_gsd.counting.exact import count, exact_counts
from private_gsd.errors import GsdError, MeasurementError, WorkloadError
from private_gsd.measurements.derived_statistics import Statistic, check_derivable, derive
from private_gsd.measurements.knowledge import join_outside, read_totals, resized, supplemented
from private_gsd.workloads import Workload
from private_gsd.workloads.specs import workload_of
from tests.releases import reopen

pytestmark = pytest.mark.worker("large")

NAMES = ["sex", "age", "marital", "hours"]
SCHEMA = datasets.census_schema().select(NAMES)
DATA = datasets.census(6000, seed=5).select(NAMES)
TOTALS = {"sex = 'female' AND age >= 65": 777, "marital = 'single'": 2500}


def measured(workload: Workload, sigma: float = 1.0) -> Measurements:
    exact = exact_counts(workload, DATA)
    noise = np.random.default_rng(1).normal(0, sigma, len(exact.counts))
    groups = workload.num_groups
    scales = np.full(groups, sigma) * workload.units
    counts = exact.counts + noise * np.repeat(workload.units, workload.group_sizes)
    return Measurements(workload, counts, scales, exact.n_records, ("",) * groups, False)


def share(table: pa.Table, condition: str) -> float:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("rows", table)
        text = f"SELECT avg(CASE WHEN {condition} THEN 1.0 ELSE 0.0 END) FROM rows"
        return float(connection.execute(text).fetchall()[0][0])


def test_public_totals_are_met_and_recorded(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"workload": ["categorical:2"], "insecure_noise_seed": 1}
    plain = Synthesizer(SCHEMA, 0.1, **settings).fit(DATA).sample()
    synth = Synthesizer(SCHEMA, 0.1, **settings, totals=TOTALS, release=tmp_path / "r").fit(DATA)
    for condition, number in TOTALS.items():
        assert abs(share(synth.sample(), condition) - number / 6000) <= 1.5 / 2000
        assert abs(share(plain, condition) - number / 6000) > 0.005
    assert synth.release.privacy["claims"]["public_counts"] == TOTALS
    again = Release.load(tmp_path / "r")
    assert again.settings["totals"] == TOTALS
    assert again.privacy["spent"]["epsilon"] == pytest.approx(0.1)  # they cost nothing


@pytest.mark.parametrize(
    ("totals", "words"),
    [
        ({"aeg > 3": 5}, "no column 'aeg'"),
        ({"age > 3": -1}, "whole number of rows"),
        ({"age > 3": 1.5}, "whole number of rows"),
        ({"age > 3": True}, "whole number of rows"),
        ({"age > 3": 10**400}, "whole number of rows"),
        ({3: 3}, "a condition in SQL, not of 3"),
        ({"age > 3": 5, "3 < age": 6}, "ask for the same rows"),
        ({"age > 3": 6001}, "is 6,001, and the table has 6,000 rows"),
        ([("age > 3", 1)], "are given as"),
    ],
)
def test_totals_that_make_no_sense(totals: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=words):
        Synthesizer(
            SCHEMA, 1.0, totals=totals, ledger=tmp_path / "ledger.db", create_ledger=True
        ).fit(DATA)
    assert not (tmp_path / "ledger.db").exists()


def test_totals_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "totals.csv"
    path.write_text(
        "condition,count\n\"sex = 'female' AND age >= 65\",777\nmarital = 'single',2500\n"
    )
    assert read_totals(path) == TOTALS
    for text, words in (
        ("a,b\n1,2\n", "columns must be condition and count"),
        ("condition,count\nage > 3,many\n", "line 2: expected a condition"),
        ("condition,count\nage > 3,1\nage > 3,2\n", "line 3: 'age > 3' stands there twice"),
        ("condition,count\n", "holds no totals"),
        ("condition,count\nage > 3,1,200\n", "line 2: expected a condition"),
        ("condition,count\nage > 3," + "9" * 5000 + "\n", "line 2: expected a condition"),
    ):
        path.write_text(text)
        with pytest.raises(WorkloadError, match=words):
            read_totals(path)
    with pytest.raises(WorkloadError, match="cannot be read"):
        read_totals(tmp_path / "none.csv")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkloadError, match="is no CSV file"):
        read_totals(path)


DERIVED: dict[str, Callable[[Any], float]] = {
    "median(age)": lambda d: d["age"].median(),
    "quantile(age, 0.9)": lambda d: d["age"].quantile(0.9),
    "mean(age)": lambda d: d["age"].mean(),
    "mean(age) WHERE sex = 'female'": lambda d: d[d.sex == "female"]["age"].mean(),
    "Median(hours) where marital = 'married'": lambda d: d[d.marital == "married"].hours.median(),
    "mean(hours)": lambda d: d.hours.mean(),
}


def test_what_is_derived_is_what_the_rows_say() -> None:
    """With next to no noise, the target is zero for the real table, within its own deviation."""
    workload = workload_of(SCHEMA, ["categorical:2", "tree:2:7", "sum:1"])
    texts = [
        *DERIVED,
        "share(marital = 'married') WHERE sex = 'female'",
        "share(age < 0 OR sex = 'male')",
    ]
    statistics = [Statistic.read(SCHEMA, text) for text in texts]
    targets = derive(measured(workload, 0.01), statistics)
    assert targets is not None
    [real] = list(_encoded())
    sums = count(targets.workload, real)
    # Each is off by no more than its deviation says, or by the rounding of its factors.
    rounding = 0.5 * 6000
    assert (np.abs(sums) <= 3 * targets.scales + rounding).all(), (sums, targets.scales)
    assert (targets.counts == 0).all()
    assert (targets.scales > 0).all()


def _encoded() -> Any:
    from private_gsd.data.sources import open_source

    return open_source(DATA, SCHEMA).encoded(batch_rows=6000)


@pytest.mark.parametrize("text", DERIVED)
def test_derived_statistics_are_met(text: str) -> None:
    """By the synthetic table, as by the data: to a fortieth of the column's span."""
    synth = Synthesizer(
        SCHEMA,
        20.0,
        workload=["categorical:2", "tree:2:6"],
        derived=[text],
        rows=2000,
        insecure_noise_seed=3,
    ).fit(DATA)
    statistic = DERIVED[text]
    low, high = SCHEMA["age" if "age" in text else "hours"].bounds
    found, real = (statistic(table.to_pandas()) for table in (synth.sample(), DATA))
    assert abs(found - real) <= (high - low) / 40
    assert synth.release.privacy["claims"]["derived_statistics"] == [text]


def test_a_base_of_noise_alone_gives_no_target() -> None:
    workload = workloads.categorical_marginals(SCHEMA, 2)
    noisy = measured(workload, 3000.0)
    assert (
        derive(noisy, [Statistic.read(SCHEMA, "share(sex = 'male') WHERE marital = 'widowed'")])
        is None
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mode(age)", "is no statistic; write median"),
        ("median(aeg)", r"no column 'aeg' \(did you mean 'age'"),
        ("median(sex)", "holds no numbers"),
        ("quantile(age, 1.5)", "between 0.001 and 0.999"),
        ("quantile(age)", "expected the name of a column, not ''"),
        ("median(age) AND", "is no statistic"),
        ("median(age", "is no statistic"),
        ("mean(age) WHERE aeg < 3", "no column 'aeg'"),
        ("share(sex = 'f')", "is no value of column 'sex'"),
        ("mean(age) WHERE hours > age", "does not follow"),
        ("median(hours) WHERE age < 33", "does not follow"),
        (7, "is no statistic"),
    ],
)
def test_statistics_that_cannot_be_had(text: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(GsdError, match=words):
        Synthesizer(
            SCHEMA,
            1.0,
            workload=["tree:2"],
            derived=[text],
            ledger=tmp_path / "ledger.db",
            create_ledger=True,
        ).fit(DATA)
    assert not (tmp_path / "ledger.db").exists()
    with pytest.raises(WorkloadError, match="a list of statistics"):
        Synthesizer(SCHEMA, 1.0, derived="median(age)").fit(DATA)


def test_a_statistic_follows_from_the_tables_of_its_columns() -> None:
    check_derivable(
        workload_of(SCHEMA, ["tree:2"]), [Statistic.read(SCHEMA, "median(age) WHERE sex = 'male'")]
    )
    with pytest.raises(MeasurementError, match="no table of age x sex"):
        check_derivable(
            workload_of(SCHEMA, ["tree:1"]),
            [Statistic.read(SCHEMA, "median(age) WHERE sex = 'male'")],
        )


def test_outside_evidence_counts_by_its_variance(tmp_path: Path) -> None:
    """A sharp measurement made elsewhere mends what little budget leaves of our own."""
    exact = exact_counts(workloads.categorical_marginals(SCHEMA, sets=[["sex", "marital"]]), DATA)
    outside = Measurements.from_marginals(
        SCHEMA, 12_000, [(["sex", "marital"], exact.counts * 2.0, 4.0)], private=True
    )
    outside.save(tmp_path / "elsewhere")
    settings: dict[str, Any] = {"workload": ["categorical:2"], "insecure_noise_seed": 2}
    errors = []
    for evidence in ([], [Measurements.load(tmp_path / "elsewhere")]):
        synth = Synthesizer(
            SCHEMA, 0.05, **settings, evidence=evidence, release=tmp_path / f"r{len(evidence)}"
        ).fit(DATA)
        found = count(exact.workload, synth.release.matrix) / len(synth.release.matrix)
        errors.append(np.abs(found - exact.counts / 6000).max())
    assert errors[1] < 0.002 < errors[0]
    release = Release.load(tmp_path / "r1")
    assert release.privacy["claims"]["external_groups"] == 1
    copy = release.save(tmp_path / "copy")
    assert (copy.folder / "evidence" / "measurements.json").exists()
    kept = copy.outside()
    assert kept is not None
    np.testing.assert_array_equal(kept.counts, outside.counts)


def test_a_run_with_evidence_resumes_to_the_same_table(tmp_path: Path) -> None:
    exact = exact_counts(workloads.categorical_marginals(SCHEMA, 1), DATA)
    groups = exact.workload.num_groups
    outside = Measurements(
        exact.workload, exact.counts.astype(np.float64), np.ones(groups), 6000, ("",) * groups, True
    )
    release = tmp_path / "r"
    synth = Synthesizer(
        SCHEMA,
        0.3,
        workload=["categorical:2", "tree:1"],
        evidence=[outside],
        totals=TOTALS,
        derived=["median(age)"],
        release=release,
        insecure_noise_seed=4,
    ).fit(DATA)
    before = synth.sample()
    for name in ("synthetic.parquet", "table-0.npy"):
        (release / name).unlink()
    reopen(release)
    assert Synthesizer.resume(release).sample().equals(before)
    (release / "evidence" / "measurements.json").write_text("{}")
    (release / "synthetic.parquet").unlink()
    with pytest.raises(GsdError, match="was changed or is torn"):
        Synthesizer.resume(release)


def test_evidence_of_other_columns_is_refused() -> None:
    other = Measurements.from_marginals(
        datasets.census_schema().select(["sex"]), 100, [(["sex"], [50, 50], 1.0)], private=True
    )
    with pytest.raises(MeasurementError, match="about the columns of the schema"):
        Synthesizer(SCHEMA, 1.0, evidence=[other]).fit(DATA)
    with pytest.raises(MeasurementError, match="given as Measurements, not str"):
        join_outside(SCHEMA, ["folder"])


def test_resizing_keeps_shares_and_their_noise() -> None:
    one = measured(workloads.categorical_marginals(SCHEMA, 1))
    other = resized(one, 123_456)
    np.testing.assert_allclose(other.shares, one.shares)
    np.testing.assert_allclose(other.variances, one.variances)


def test_nothing_beside_our_own_changes_nothing() -> None:
    one = measured(workloads.categorical_marginals(SCHEMA, 1))
    assert supplemented(one, {}, None, []) is one


def test_rules_and_all_evidence_go_together() -> None:
    schema = Schema(SCHEMA.columns, ["NOT (age < 15 AND marital = 'married')"])
    synth = Synthesizer(
        schema,
        1.0,
        workload=["categorical:2", "tree:2"],
        totals={"marital = 'single'": 2500},
        derived=["mean(age)"],
        insecure_noise_seed=1,
    ).fit(DATA)
    assert share(synth.sample(), "age < 15 AND marital = 'married'") == 0
    assert abs(share(synth.sample(), "marital = 'single'") - 2500 / 6000) < 0.002


YEARS: dict[str, Any] = {"lower": "2020-01-01T00:00:00", "upper": "2024-01-01T00:00:00"}
ODD = Schema(
    [
        Datetime("t", **YEARS, timezone="Europe/Berlin"),
        Integer('we"ird', lower=0, upper=9, nullable=True),
        Categorical("select", values=["a)", "b"]),
    ]
)
EMPTY = {"share(TRUE)", "share(\"select\" = 'b') WHERE \"select\" = 'a)'"}


@pytest.mark.parametrize(
    "text",
    [
        "median(t)",
        "mean(T)",
        'quantile("we""ird", 0.99)',
        'share("select" = \'a)\') WHERE ("we""ird" < 5)',
        "share(\"select\" = 'b' -- two\n) WHERE \"select\" IN ('a)', 'b');",
        "share(TRUE)",
        "share(\"select\" = 'b') WHERE \"select\" = 'a)'",
        'median("we""ird") WHERE "select" = \'b\';',
    ],
)
def test_odd_names_and_texts_are_found_out_before_anything_is_spent(text: str) -> None:
    """Each can be had, or is no target at all; none fails after the measurement."""
    statistic = Statistic.read(ODD, text)
    workload = workload_of(ODD, ["categorical:1", "tree:2:4", "tree:1:4"])
    check_derivable(workload, [statistic])
    groups = workload.num_groups
    blank = Measurements(
        workload, np.full(workload.size, 50.0), np.ones(groups), 400, ("",) * groups, False
    )
    found = derive(blank, [statistic])
    assert (found is None) == (text in EMPTY)


def test_claims_that_were_changed_are_noticed(tmp_path: Path) -> None:
    synth = Synthesizer(
        SCHEMA,
        0.3,
        workload=["categorical:1"],
        totals=TOTALS,
        release=tmp_path / "r",
        insecure_noise_seed=4,
    ).fit(DATA)
    assert synth.release.finished
    path = tmp_path / "r" / "release.json"
    reopen(tmp_path / "r")
    text = path.read_text()
    condition = next(iter(TOTALS))
    assert condition in text
    path.write_text(text.replace(f": {TOTALS[condition]}", f": {TOTALS[condition] + 1}"))
    with pytest.raises(GsdError, match="was changed or is torn"):
        Synthesizer.resume(tmp_path / "r")
