"""Derived statistics: what follows from measurements, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from private_gsd import (
    Categorical,
    Datetime,
    Integer,
    Knowledge,
    Measurements,
    Schema,
    Synthesizer,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import GsdError, MeasurementError, WorkloadError
from private_gsd.measurements.derived_statistics import Statistic, check_derivable, derive
from private_gsd.workloads.specs import workload_of
from tests.fitting import QUICK
from tests.measurements.census import DATA, SCHEMA, measured

pytestmark = pytest.mark.worker("large")


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
        projector=QUICK,
        workload=["categorical:2", "tree:2:6"],
        rows=2000,
        knowledge=Knowledge(derived_statistics=[text]),
    ).fit(DATA, insecure_noise_seed=3)
    statistic = DERIVED[text]
    low, high = SCHEMA["age" if "age" in text else "hours"].bounds
    found, real = (statistic(table.to_pandas()) for table in (synth.sample(), DATA))
    assert abs(found - real) <= (high - low) / 40
    assert synth.release_.privacy["claims"]["derived_statistics"] == [text]


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
        (7, "is a list of texts"),
    ],
)
def test_statistics_that_cannot_be_had(text: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(GsdError, match=words):
        Synthesizer(
            SCHEMA,
            1.0,
            projector=QUICK,
            workload=["tree:2"],
            knowledge=Knowledge(derived_statistics=[text]),
        ).fit(DATA, ledger=tmp_path / "ledger.db", create_ledger=True)
    assert not (tmp_path / "ledger.db").exists()
    with pytest.raises(WorkloadError, match="a list of texts"):
        Synthesizer(
            SCHEMA, 1.0, projector=QUICK, knowledge=Knowledge(derived_statistics="median(age)")
        ).fit(DATA)


def test_a_statistic_follows_from_the_tables_of_its_columns() -> None:
    check_derivable(
        workload_of(SCHEMA, ["tree:2"]), [Statistic.read(SCHEMA, "median(age) WHERE sex = 'male'")]
    )
    with pytest.raises(MeasurementError, match="no table of age x sex"):
        check_derivable(
            workload_of(SCHEMA, ["tree:1"]),
            [Statistic.read(SCHEMA, "median(age) WHERE sex = 'male'")],
        )


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
