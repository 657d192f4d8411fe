"""Forecasts: what a plan says is what comes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import (
    Adaptive,
    Budget,
    Categorical,
    NumbersFirst,
    Schema,
)
from private_gsd.errors import (
    ReleaseError,
    SourceError,
)
from private_gsd.mechanisms import Task
from private_gsd.mechanisms.numbers_first import FRACTION
from private_gsd.privacy.noise import selection_scale
from private_gsd.synthesis.synthesizer import Synthesizer
from tests.fitting import ADD_REMOVE, QUICK, SCHEMA, SMALL, TABLE, synthesizer
from tests.releases import document_of, reopen, rewrite


def test_less_noise_for_the_same_epsilon() -> None:
    noise = []
    for conversion in ("zcdp", "gdp"):
        plan = Synthesizer(SCHEMA, Budget(1.0, conversion=conversion)).plan(TABLE)
        noise.append(plan.budget.rho)
    assert 0.92 < math.sqrt(noise[0] / noise[1]) < 0.96


def test_noise_takes_time() -> None:
    """A hundred thousand counts take a second, where the search has hardly anything to do."""
    schema = Schema([Categorical(name, values=[*map(str, range(300))]) for name in "ab"])
    forecast = Synthesizer(schema, 1.0, workload="categorical:2", rows=10).plan(expected_records=9)
    assert forecast.workload.size == 90_000
    assert 1 < forecast.seconds < 2.5


@pytest.mark.slow
def test_default_rows_are_planned_made_and_resumed(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, 5.0, workload="categorical:1", projector=QUICK)
    expected = synth.plan(TABLE).rows
    assert 5000 < expected <= 20_000
    made = synth.fit(TABLE, release=tmp_path / "r", insecure_noise_seed=1)
    assert made.sample().num_rows == expected
    assert synth.get_params()["rows"] is None
    settings_of = document_of(tmp_path / "r")["settings"]
    assert settings_of["rows"] == expected
    reopen(tmp_path / "r")
    for name in ("synthetic.parquet", "table-0.npy"):  # it has to search again
        (tmp_path / "r" / name).unlink()
    assert Synthesizer.resume(tmp_path / "r", TABLE).sample().num_rows == expected
    rewrite(tmp_path / "r", settings={**settings_of, "rows": 0})
    with pytest.raises(ReleaseError, match=r"release.json is damaged: rows must be"):
        Synthesizer.resume(tmp_path / "r", TABLE)
    # The number of rows is private here, and must not show.
    budget = Budget(5.0, delta=1e-6, neighbours="add-remove")
    private = Synthesizer(SCHEMA, budget, workload=["categorical:1"])
    assert private.plan(TABLE, expected_records=800).rows == 5000


def test_the_forecast_is_what_comes() -> None:
    """Its noise is that of the measurements, its errors those of noise of that scale."""
    adaptive = Adaptive(epochs=3, queries_per_epoch=2)
    for settings in (SMALL, {**SMALL, "mechanism": adaptive}, ADD_REMOVE):
        synth = synthesizer(SCHEMA, 1.0, **settings)
        guess = 800 if settings is ADD_REMOVE else None
        forecast = synth.plan(TABLE, expected_records=guess)
        measured = synth.fit(TABLE).release_.measurements()
        assert measured is not None
        noise = {group.name: group.noise for group in forecast.groups}
        columns = {name.partition(" (hist")[0]: each for name, each in noise.items()}
        for number, scale in enumerate(measured.scales):
            name = measured.workload.describe(number)
            if "(hist" in name:  # all levels of a column have the same noise
                assert columns[name.partition(" (hist")[0]] == pytest.approx(scale, rel=1e-9)
            else:  # what histograms do not need goes to the marginals
                assert 0.3 * noise[name] < scale < noise[name] * (1 + 1e-9)
        total = synth.release_.n_records()
        assert forecast.counting == (0.0 if total is None else pytest.approx(total.scale))
        rng = np.random.default_rng(1)
        group = max(forecast.groups, key=lambda each: each.queries)
        drawn = np.abs(group.noise * rng.standard_normal((4000, group.queries))) / 800
        assert drawn.mean() == pytest.approx(group.error, rel=0.02)
        assert drawn.max(axis=1).mean() == pytest.approx(group.largest, rel=0.2)
        if forecast.mechanism == NumbersFirst(adaptive):
            left = replace(forecast.budget, units=round(forecast.budget.units * (1 - FRACTION)))
            units, _ = adaptive.allocate(Task(forecast.workload, forecast.target, left))
            assert forecast.selecting == pytest.approx(selection_scale(units[0], 2), rel=1e-6)
        else:
            assert forecast.selecting == 0
        assert forecast.seconds > 0
        assert forecast.bytes > 0


def test_nobody_to_plan_for() -> None:
    with pytest.raises(SourceError, match="the table has no rows"):
        Synthesizer(SCHEMA, Budget(1.0, delta=1e-6)).plan(TABLE.slice(0, 0))


def test_what_can_be_read_once_cannot_be_planned_with() -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    with pytest.raises(SourceError, match="can be read only once"):
        Synthesizer(SCHEMA, 1.0).plan(reader)
    assert Synthesizer(SCHEMA, 1.0, **SMALL).fit(reader).sample().num_rows == 60
