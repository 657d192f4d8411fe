"""The adapter with SmartNoise's interface: the same calls, with a public schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from private_gsd import Budget, Ledger, SchemaError, datasets
from private_gsd.synthesis.smartnoise import GsdSynthesizer

SCHEMA = datasets.census_schema().select(["sex", "marital", "age", "income"])
FRAME = datasets.census(400).select(SCHEMA.names).to_pandas()
COLUMNS: dict[str, Any] = {
    "categorical_columns": ["sex", "marital"],
    "continuous_columns": ["income"],
    "ordinal_columns": ["age"],
}


def test_it_fits_and_samples() -> None:
    synth = GsdSynthesizer(epsilon=1.0, schema=SCHEMA, rows=50, projector="gsd:denoise=false")
    frame = synth.fit_sample(FRAME, **COLUMNS, preprocessor_eps=0.0)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(FRAME.columns)
    assert len(frame) == 50
    assert len(synth.sample(120)) == 120
    assert synth.synthesizer.release_.privacy["private"]


def test_budget_and_options_reach_the_synthesizer(tmp_path: Path) -> None:
    synth = GsdSynthesizer(
        0.5, schema=SCHEMA, delta=1e-6, neighbours="add-remove", rows=20, mechanism="mst"
    )
    assert synth.synthesizer.budget == Budget(0.5, 1e-6, "add-remove")
    synth.fit(FRAME, ledger=tmp_path / "ledger.db", create_ledger=True)
    with Ledger(tmp_path / "ledger.db", read_only=True) as ledger:
        account = ledger.account("table")
    assert account.neighbours == "add-remove"
    assert account.epsilon_of(account.spent) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"categorical_columns": ["age"]}, "column 'age' is integer in the schema, and was said"),
        ({"continuous_columns": ["sex"]}, "column 'sex' is categorical in the schema"),
        ({"ordinal_columns": ["agee"]}, "no column 'agee' in the schema .did you mean 'age'"),
        ({"preprocessor_eps": 0.5}, "preprocessor_eps must be 0"),
    ],
)
def test_what_is_refused(columns: dict[str, Any], message: str) -> None:
    synth = GsdSynthesizer(epsilon=1.0, schema=SCHEMA)
    with pytest.raises(SchemaError, match=message):
        synth.fit(FRAME, **columns)


def test_a_schema_is_needed() -> None:
    with pytest.raises(SchemaError, match="a public schema is needed"):
        GsdSynthesizer(epsilon=1.0)
