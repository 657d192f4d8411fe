"""Conditional samples: rows that meet a condition, and columns made to go with given ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from private_gsd import Schema, Synthesizer, datasets
from private_gsd.errors import DataError, GsdError, ReleaseError, WorkloadError
from private_gsd.synthesis.sampling import FewAlikeWarning, donors_of
from tests.fitting import QUICK

pytestmark = pytest.mark.worker("large")

NAMES = ["sex", "age", "marital", "education", "hours"]
RULES = ["NOT (age < 15 AND marital = 'married')", "hours IS NULL OR age >= 14"]
SCHEMA = Schema(datasets.census_schema().select(NAMES).columns, RULES)
DATA = datasets.census(8000, seed=5).select(NAMES)


@pytest.fixture(scope="module")
def synth() -> Synthesizer:
    synth = Synthesizer(
        SCHEMA, 2.0, workload=["categorical:2", "tree:2"], rows=5000, projector=QUICK
    )
    return synth.fit(DATA, insecure_noise_seed=1)


def broken(table: Any) -> int:
    with duckdb.connect() as connection:
        connection.register("rows", table)
        text = " OR ".join(f"NOT ({rule})" for rule in RULES)
        return int(connection.execute(f"SELECT count(*) FROM rows WHERE {text}").fetchall()[0][0])


def test_rules_hold_in_a_million_sampled_rows(synth: Synthesizer) -> None:
    table = synth.sample(1_000_000)
    assert table.num_rows == 1_000_000
    assert broken(table) == 0


def test_rules_hold_in_a_table_of_many_rows() -> None:
    synth = Synthesizer(SCHEMA, 1.0, rows=50_000, workload=["categorical:2"], projector=QUICK)
    made = synth.fit(DATA, insecure_noise_seed=1)
    assert broken(made.sample()) == 0


def test_only_rows_that_meet_the_condition_are_sampled(synth: Synthesizer) -> None:
    where = "sex = 'female' AND age > 60"
    every = synth.sample(where=where)
    assert set(every["sex"].to_pylist()) == {"female"}
    assert min(every["age"].to_pylist()) > 60
    with duckdb.connect() as connection:
        connection.register("rows", synth.sample())
        [(number,)] = connection.execute(f"SELECT count(*) FROM rows WHERE {where}").fetchall()
    assert every.num_rows == number
    more = synth.sample(3 * number + 5, where=where)
    assert more.num_rows == 3 * number + 5
    assert min(more["age"].to_pylist()) > 60


def test_conditions_that_no_row_meets_or_that_are_wrong(synth: Synthesizer) -> None:
    with pytest.raises(ReleaseError, match="none of the 5,000 synthetic rows meets"):
        synth.sample(where="age < 5 AND education = 'doctorate'")
    with pytest.raises(WorkloadError, match="no column 'aeg'"):
        synth.sample(where="aeg < 5")


@pytest.mark.parametrize("rows", [1, 40, 2500])
def test_given_columns_stay_and_the_others_go_with_them(synth: Synthesizer, rows: int) -> None:
    other = datasets.census(rows, seed=11).select(["age", "sex"])
    found = synth.sample_given(other)
    assert found.column_names == NAMES
    for name in ("age", "sex"):
        assert found[name].to_pylist() == other[name].to_pylist()
    assert broken(found) == 0
    again = synth.sample_given(other)
    assert again.equals(found)


def test_given_rows_that_are_few_of_all_are_like_those_few(synth: Synthesizer) -> None:
    """Widowhood among women over 70, who are given: as in the data, not as in all the data."""
    old = datasets.census(6000, seed=12).select(NAMES).to_pandas()
    old = old[(old.sex == "female") & (old.age > 70)]
    found = synth.sample_given(old[["age", "sex"]]).to_pandas()
    real = (old.marital == "widowed").mean()
    everyone = (DATA.to_pandas().marital == "widowed").mean()
    assert abs((found.marital == "widowed").mean() - real) < 0.12 < real - everyone


def test_frames_of_other_makes_and_files_can_be_given(synth: Synthesizer, tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": ["male", "female"], "age": [30, 4]})
    assert synth.sample_given(frame)["age"].to_pylist() == [30, 4]
    frame.to_csv(tmp_path / "given.csv", index=False)
    assert synth.sample_given(tmp_path / "given.csv")["sex"].to_pylist() == ["male", "female"]


def test_all_columns_given_is_all_columns_back(synth: Synthesizer) -> None:
    rows = synth.sample(20)
    assert synth.sample_given(rows).equals(rows)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"aeg": [1]}, r"a column 'aeg' that the schema has not \(did you mean 'age'"),
        ({"age": [1, 200]}, "age"),
        ({"age": [30, 12], "marital": ["married", "married"]}, "given row 2.*breaks a rule"),
    ],
)
def test_given_tables_that_make_no_sense(synth: Synthesizer, given: Any, words: str) -> None:
    with pytest.raises(GsdError, match=words):
        synth.sample_given(pa.table(given))


def test_donors_are_the_nearest_and_none_is_used_too_often() -> None:
    columns = np.array([0, 1], dtype=np.int64)
    rng = np.random.default_rng(0)
    table = np.zeros((300, len(SCHEMA)))
    table[:, 0], table[:, 1] = rng.integers(0, 2, 300), rng.integers(0, 100, 300)
    rows = np.zeros((100, len(SCHEMA)))
    rows[:, 0], rows[:, 1] = rng.integers(0, 2, 100), rng.integers(0, 100, 100)
    often, donors = donors_of(SCHEMA, rows, table, columns, 1)
    assert np.bincount(donors).max() <= often
    span = SCHEMA["age"].bounds[1] - SCHEMA["age"].bounds[0]
    distance = (rows[:, None, 0] != table[None, :, 0]) + np.abs(
        rows[:, None, 1] - table[None, :, 1]
    ) / span
    chosen = distance[np.arange(100), donors]
    assert chosen.mean() <= distance.min(axis=1).mean() + 0.05


def test_the_given_error_names_data(synth: Synthesizer) -> None:
    with pytest.raises(DataError):
        synth.sample_given(pa.table({"age": [12], "marital": ["married"]}))


def test_many_given_rows_like_few_synthetic_ones_say_that_they_did_not_evolve(
    synth: Synthesizer,
) -> None:
    old = pa.table({"age": [99] * 3000, "education": ["doctorate"] * 3000})
    with pytest.warns(FewAlikeWarning, match="did not evolve"):
        found = synth.sample_given(old)
    assert set(found["age"].to_pylist()) == {99}
    assert broken(found) == 0
