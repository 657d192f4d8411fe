"""Public counts: met by the table, recorded, and refused where they make no sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from private_gsd import (
    Knowledge,
    Release,
    Synthesizer,
)
from private_gsd.errors import WorkloadError
from private_gsd.measurements.public_counts import read_public_counts
from tests.fitting import QUICK, fitted
from tests.measurements.census import COUNTS, DATA, SCHEMA, share

pytestmark = pytest.mark.worker("large")


def test_public_counts_are_met_and_recorded(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"workload": ["categorical:2"], "projector": QUICK}
    plain = fitted(SCHEMA, 0.1, DATA, insecure_noise_seed=1, **settings).sample()
    synth = fitted(
        SCHEMA,
        0.1,
        DATA,
        knowledge=Knowledge(public_counts=COUNTS),
        release=tmp_path / "r",
        insecure_noise_seed=1,
        **settings,
    )
    for condition, number in COUNTS.items():
        assert abs(share(synth.sample(), condition) - number / 6000) <= 1.5 / 2000
        assert abs(share(plain, condition) - number / 6000) > 0.005
    assert synth.release_.privacy["claims"]["public_counts"] == COUNTS
    again = Release.load(tmp_path / "r")
    assert again.settings.knowledge.public_counts == COUNTS
    assert again.privacy["spent"]["epsilon"] == pytest.approx(0.1)  # they cost nothing


@pytest.mark.parametrize(
    ("counts", "words"),
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
def test_public_counts_that_make_no_sense(counts: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=words):
        Synthesizer(SCHEMA, 1.0, projector=QUICK, knowledge=Knowledge(public_counts=counts)).fit(
            DATA, ledger=tmp_path / "ledger.db", create_ledger=True
        )
    assert not (tmp_path / "ledger.db").exists()


def test_public_counts_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(
        "condition,count\n\"sex = 'female' AND age >= 65\",777\nmarital = 'single',2500\n"
    )
    assert read_public_counts(path) == COUNTS
    for text, words in (
        ("a,b\n1,2\n", "columns must be condition and count"),
        ("condition,count\nage > 3,many\n", "line 2: expected a condition"),
        ("condition,count\nage > 3,1\nage > 3,2\n", "line 3: 'age > 3' stands there twice"),
        ("condition,count\n", "holds no public counts"),
        ("condition,count\nage > 3,1,200\n", "line 2: expected a condition"),
        ("condition,count\nage > 3," + "9" * 5000 + "\n", "line 2: expected a condition"),
    ):
        path.write_text(text)
        with pytest.raises(WorkloadError, match=words):
            read_public_counts(path)
    with pytest.raises(WorkloadError, match="cannot be read"):
        read_public_counts(tmp_path / "none.csv")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkloadError, match="is no CSV file"):
        read_public_counts(path)
