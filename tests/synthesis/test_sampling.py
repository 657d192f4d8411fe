"""Conditional samples: rows that meet a condition, and columns made to go with given ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from private_gsd import Integer, Schema, Synthesizer, datasets, query_errors
from private_gsd.errors import DataError, GsdError, ReleaseError, WorkloadError
from private_gsd.projection.constraints import broken_rows
from private_gsd.schema import Discrete
from private_gsd.synthesis import sampling
from private_gsd.synthesis.sampling import ENOUGH, Donors, spreads
from private_gsd.workloads.specs import workload_of
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


@pytest.mark.parametrize("rows", [30_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_rules_hold_in_many_sampled_rows(synth: Synthesizer, rows: int) -> None:
    table = synth.sample(rows)
    assert table.num_rows == rows
    assert broken(table) == 0


@pytest.mark.slow
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
    assert set(more["sex"].to_pylist()) == {"female"}
    assert min(more["age"].to_pylist()) > 60
    assert more.slice(0, number).equals(every)
    assert broken(more) == 0
    distinct = [len({str(row) for row in each.to_pylist()}) for each in (every, more)]
    assert distinct[1] > 1.5 * distinct[0]


def test_a_condition_that_hardly_any_row_meets_is_not_met_many_times(
    synth: Synthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "sex = 'female' AND age > 60"
    number = synth.sample(where=where).num_rows
    monkeypatch.setattr(sampling, "MOST_TRIED", 5000)
    assert synth.sample(2 * number, where=where).num_rows == 2 * number
    with pytest.raises(ReleaseError, match=rf"ask for at most {2 * number:,}$"):
        synth.sample(2 * number + 1, where=where)


def test_new_rows_answer_as_the_table_does_and_are_new(synth: Synthesizer) -> None:
    """Pairs of 20,000 rows that were drawn by themselves would differ by 0.0011 in the mean."""
    workload = workload_of(SCHEMA, ["categorical:2", "tree:2"])
    table, more = synth.sample(), synth.sample(25_000)
    assert more.slice(0, 5000).equals(table)
    new = more.slice(5000)
    assert query_errors(workload, table, new).mean < 0.0005
    real = datasets.census(20_000, seed=77).select(NAMES)
    seen = set(map(str, table.to_pylist()))
    copied, by_chance = (
        np.mean([str(row) in seen for row in each.to_pylist()]) for each in (new, real)
    )
    assert copied < by_chance + 0.1


def test_more_given_rows_than_the_table_has_take_new_rows(synth: Synthesizer) -> None:
    """Of 12,000 equal rows the last 2,000 take no row of the table more often than the first."""
    given = pa.table({"sex": ["female"] * 12_000})
    found = synth.sample_given(given)
    assert found.num_rows == 12_000
    table = set(map(str, synth.sample(where="sex = 'female'").to_pylist()))
    first, last = (
        np.mean([str(row) in table for row in found.slice(begin, 2000).to_pylist()])
        for begin in (0, 10_000)
    )
    assert first == 1 > last + 0.2
    assert broken(found) == 0


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


def slow_distances(row: np.ndarray, table: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The distances of all rows of a table to a row, value by value."""
    scales = spreads(table)
    found = []
    for other in table:
        total = 0.0
        for place in columns:
            mine, theirs = row[place], other[place]
            if np.isnan(mine) or np.isnan(theirs):
                total += np.isnan(mine) != np.isnan(theirs)
            elif isinstance(SCHEMA.columns[place], Discrete):
                total += mine != theirs
            else:
                total += abs(mine - theirs) / scales[place]
        found.append(total)
    return np.array(found)


def random_people(number: int, rng: np.random.Generator) -> np.ndarray:
    rows = np.zeros((number, len(SCHEMA)))
    rows[:, 0], rows[:, 1] = rng.integers(0, 2, number), rng.integers(0, 100, number)
    rows[:, 4] = np.where(rng.random(number) < 0.3, np.nan, rng.integers(0, 80, number))
    return rows


@pytest.mark.parametrize("columns", [[0, 1], [0, 1, 4], [1]])
def test_donors_are_among_the_nearest(columns: list[int]) -> None:
    rng = np.random.default_rng(0)
    table, rows = random_people(200, rng), random_people(60, rng)
    places = np.array(columns, dtype=np.int64)
    donors = Donors(SCHEMA, table, places, 1).draw(rows, ENOUGH)
    for row, donor in zip(rows, donors, strict=True):
        distances = slow_distances(row, table, places)
        assert distances[donor] <= np.sort(distances)[ENOUGH - 1]


def test_donors_that_are_as_good_are_drawn_equally_often() -> None:
    """All that are equal to the given row are drawn, by turns, and no others."""
    table = np.zeros((40, len(SCHEMA)))
    table[::2, 1] = 50
    rows = np.zeros((100, len(SCHEMA)))
    rows[:, 1] = 50
    columns = np.array([1], dtype=np.int64)
    donors = Donors(SCHEMA, table, columns, 1).draw(rows, ENOUGH)
    assert np.bincount(donors, minlength=40).tolist() == [5, 0] * 20
    assert donors[:20].tolist() != sorted(donors[:20].tolist())  # in random order
    other = Donors(SCHEMA, table, columns, 2).draw(rows, ENOUGH)
    assert other.tolist() != donors.tolist()


def test_columns_of_one_value_or_of_nulls_have_a_spread() -> None:
    table = np.array([[1.0, 2.0, np.nan], [3.0, 2.0, np.nan]])
    assert spreads(table).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("number", [3, 30, 300, 3000])
def test_given_rows_do_not_depend_on_their_number(number: int) -> None:
    """Years married of people of one age: those of that age in the table, not those of all."""
    names = ["age", "years"]
    schema = Schema([Integer(name, lower=0, upper=60) for name in names])
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, 4000)
    data = pa.table({"age": age, "years": np.maximum(age - rng.integers(18, 26, 4000), 0)})
    synth = Synthesizer(schema, 50.0, workload=["numeric:2"], rows=4000)
    synth.fit(data, insecure_noise_seed=1)
    made = synth.sample()
    expected = made.filter(pc.equal(made["age"], 24))["years"].to_numpy()
    found = synth.sample_given(pa.table({"age": [24] * number}))["years"].to_numpy()
    assert set(found) <= set(expected)
    assert abs(found.mean() - expected.mean()) < 3 * expected.std() / np.sqrt(number) + 0.05


def test_rows_that_would_break_a_rule_take_other_donors() -> None:
    """Of the people near 14, only those without hours go with somebody of 12."""
    rng = np.random.default_rng(0)
    table = np.zeros((400, len(SCHEMA)))
    table[:, 1] = 14
    table[:, 3] = rng.integers(0, 4, 400)
    table[:, 4] = np.where(np.arange(400) % 50 == 0, np.nan, 20)
    rows = np.zeros((100, len(SCHEMA)))
    rows[:, 1] = 12
    columns = np.array([1], dtype=np.int64)
    filled = Donors(SCHEMA, table, columns, 1).fill(rows)
    assert np.isnan(filled[:, 4]).all()
    assert not broken_rows(SCHEMA, filled).any()
    assert (filled[:, 1] == 12).all()


def test_the_given_error_names_data(synth: Synthesizer) -> None:
    with pytest.raises(DataError):
        synth.sample_given(pa.table({"age": [12], "marital": ["married"]}))


def test_many_given_rows_like_few_synthetic_ones(synth: Synthesizer) -> None:
    old = pa.table({"age": [99] * 3000, "education": ["doctorate"] * 3000})
    found = synth.sample_given(old)
    assert set(found["age"].to_pylist()) == {99}
    assert broken(found) == 0
