"""Evaluations and releases that several tests look at, made once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest

import private_gsd as gsd
from private_gsd import Evaluation, Schema
from tests.evaluation.tables import HELD_OUT, SCHEMA, TRAIN, parts, quick


@pytest.fixture(scope="session")
def copy() -> Evaluation:
    """The evaluation of a synthetic table that is the real one."""
    return gsd.evaluate(TRAIN, TRAIN, schema=SCHEMA, holdout=HELD_OUT)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, with its data and its ledger beside it."""
    folder = tmp_path_factory.mktemp("release")
    pyarrow.csv.write_csv(parts(400)[0], folder / "secret.csv")
    schema = Schema(SCHEMA.columns, ["NOT (age < 18 AND marital = 'married')"])
    quick(schema, rows=200, workload=["categorical:2", "tree:1:3"]).fit(
        folder / "secret.csv",
        release=folder / "release",
        ledger=folder / "ledger.db",
        create_ledger=True,
    )
    return folder
