"""Forecasts: what a plan says is what comes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import (
    Budget,
)
from private_gsd.errors import (
    ReleaseError,
    SourceError,
)
from private_gsd.privacy.noise import selection_scale
from private_gsd.synthesis.synthesizer import Synthesizer
from tests.fitting import SCHEMA, TABLE
from tests.releases import document_of, reopen, rewrite


def test_less_noise_for_the_same_epsilon() -> None:
    noise = []
    for conversion in ("zcdp", "gdp"):
        plan = Synthesizer(SCHEMA, Budget(1.0, conversion=conversion)).plan(TABLE)
        noise.append(plan.budget.rho)
    assert 0.92 < math.sqrt(noise[0] / noise[1]) < 0.96


def test_default_rows_are_planned_made_and_resumed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"workload": ["categorical:1"], "insecure_noise_seed": 1}
    synth = Synthesizer(SCHEMA, 5.0, **settings)  # FIT release=tmp_path / "r"
    expected = synth.plan(TABLE).rows
    assert 5000 < expected <= 20_000
    assert synth.fit(TABLE).sample().num_rows == expected
    assert synth.get_params()["rows"] is None
    settings_of = document_of(tmp_path / "r")["settings"]
    assert settings_of["rows"] == expected
    reopen(tmp_path / "r")
    for name in ("synthetic.parquet", "table-0.npy"):  # it has to search again
        (tmp_path / "r" / name).unlink()
    assert Synthesizer.resume(tmp_path / "r", TABLE).sample().num_rows == expected
    rewrite(tmp_path / "r", settings={**settings_of, "rows": None})
    with pytest.raises(ReleaseError, match=r"release.json is damaged: no 'rows'"):
        Synthesizer.resume(tmp_path / "r", TABLE)
    # The number of rows is private here, and must not show.
    private = Synthesizer(SCHEMA, Budget(5.0, delta=1e-6, neighbours="add-remove"), **settings)
    assert private.plan(TABLE, expected_records=800).rows == 5000


def test_the_forecast_is_what_comes() -> None:
    """Its noise is that of the measurements, its errors those of noise of that scale."""
    for settings in ({}, {"mechanism": "adaptive", "epochs": 3, "groups": 2}, ADD_REMOVE):
        synth = Synthesizer(SCHEMA, 1.0, **{"rows": 60, "threads": 1, **settings})
        guess = 800 if settings is ADD_REMOVE else None
        forecast = synth.plan(TABLE, expected_records=guess)
        measured = synth.fit(TABLE).release_.measurements()
        assert measured is not None
        noise = {group.name: group.noise for group in forecast.groups}
        for number, scale in enumerate(measured.scales):
            assert noise[measured.workload.describe(number)] == pytest.approx(scale, rel=1e-9)
        total = synth.release_.n_records()
        assert forecast.counting == (0.0 if total is None else pytest.approx(total.scale))
        rng = np.random.default_rng(1)
        group = max(forecast.groups, key=lambda each: each.queries)
        drawn = np.abs(group.noise * rng.standard_normal((4000, group.queries))) / 800
        assert drawn.mean() == pytest.approx(group.error, rel=0.02)
        assert drawn.max(axis=1).mean() == pytest.approx(group.largest, rel=0.15)
        if forecast.mechanism.name == "adaptive":
            units, _ = adaptive_units(forecast.mechanism, forecast.workload, forecast.budget)
            assert forecast.selecting == pytest.approx(selection_scale(units[0], 2))
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
    assert Synthesizer(SCHEMA, 1.0, rows=60).fit(reader).sample().num_rows == 60
