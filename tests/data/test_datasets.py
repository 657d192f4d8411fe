"""The simulated census: its domain, its null rules, its streams, and its dependence."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from private_gsd import datasets
from private_gsd.schema import Categorical, Discrete, Numeric, Real

ROWS = 70_000  # more than one chunk
COLUMNS = (
    *("region", "sex", "age", "birth_date", "marital", "citizen", "household_size", "children"),
    *("tenure", "rent", "education", "in_school", "employment", "occupation", "industry", "hours"),
    *("commute_minutes", "income", "veteran", "vision_difficulty", "hearing_difficulty"),
    *("mobility_difficulty", "weight", "interviewed_at"),
)


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return datasets.census(ROWS, seed=7)


def mean(values: pa.ChunkedArray, where: pa.ChunkedArray | None = None) -> float:
    """The mean of numbers, or the share of true, over the rows where a condition holds."""
    kept = values if where is None else values.filter(where)
    return float(pc.mean(kept.cast(pa.float64())).as_py())


def same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(left, right)).as_py())


def test_columns_and_types_are_those_of_the_schema(people: pa.Table) -> None:
    schema = datasets.census_schema()
    assert schema.names == COLUMNS
    assert not schema.drafted
    assert all(column.description for column in schema)
    assert people.schema == schema.arrow_schema
    people.validate(full=True)


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_in_the_domain(people: pa.Table, name: str) -> None:
    column, values = datasets.census_schema()[name], people[name]
    assert (values.null_count > 0) == column.nullable
    if isinstance(column, Discrete):
        assert set(values.unique().drop_null().to_pylist()) == set(column.values)
    if isinstance(column, Numeric):
        span = pc.min_max(values).as_py()
        assert column.lower <= span["min"] < span["max"] <= column.upper
    if isinstance(column, Real):
        assert same(values, pc.round(values, column.decimals))


def test_codes_keep_their_kind() -> None:
    region, industry = (datasets.census_schema()[name] for name in ("region", "industry"))
    assert isinstance(region, Categorical) and isinstance(industry, Categorical)
    assert region.values[0] == "01"
    assert all(type(code) is int for code in industry.values)


def test_nulls_mean_not_applicable(people: pa.Table) -> None:
    employed = pc.equal(people["employment"], "employed").fill_null(False)
    grown = pc.greater_equal(people["age"], 15)
    rules = {
        "rent": pc.equal(people["tenure"], "rent"),
        "education": pc.greater_equal(people["age"], 3),
        "veteran": pc.greater_equal(people["age"], 17),
        **dict.fromkeys(("children", "employment", "income"), grown),
        **dict.fromkeys(("occupation", "industry", "hours", "commute_minutes"), employed),
    }
    for name, applies in rules.items():
        assert same(people[name].is_valid(), applies), name
    assert {c.name for c in datasets.census_schema() if c.nullable} == set(rules)


def test_birth_date_agrees_with_age(people: pa.Table) -> None:
    born = people["birth_date"]
    later_in_year = pc.or_(
        pc.greater(pc.month(born), 6),
        pc.and_(pc.equal(pc.month(born), 6), pc.greater(pc.day(born), 1)),
    )
    age = pc.subtract(pc.subtract(2021, pc.year(born)), later_in_year.cast(pa.int64()))
    assert same(age, people["age"])


def test_impossible_people_do_not_occur(people: pa.Table) -> None:
    child = people.filter(pc.less(people["age"], 15))
    assert child["marital"].unique().to_pylist() == ["single"]
    assert (
        pc.min(child.filter(pc.not_equal(child["tenure"], "institution"))["household_size"]).as_py()
        > 1
    )
    family = pc.add(people["children"], 1)
    assert pc.all(pc.less_equal(family, people["household_size"])).as_py()
    student = pc.equal(people["employment"], "student")
    assert mean(people["in_school"], student) == 1
    degree = people.filter(pc.is_in(people["education"], pa.array(["master", "doctorate"])))
    assert pc.min(degree["age"]).as_py() >= 23


def test_interviews_are_by_the_minute_and_mostly_by_day(people: pa.Table) -> None:
    moment = people["interviewed_at"]
    assert same(moment, pc.floor_temporal(moment, unit="minute"))
    hour = pc.hour(moment)
    assert mean(pc.and_(pc.greater_equal(hour, 9), pc.less(hour, 20))) > 0.8
    assert mean(pc.equal(pc.day_of_week(moment), 6)) < 0.1
    assert pc.max(moment).as_py().date() == dt.date(2021, 8, 31)


def test_income_grows_with_education_and_has_a_heavy_tail(people: pa.Table) -> None:
    levels = ("primary", "upper secondary", "bachelor", "master", "doctorate")
    incomes = [mean(people["income"], pc.equal(people["education"], level)) for level in levels]
    assert incomes == sorted(incomes)
    assert incomes[-1] > 3 * incomes[0]
    income = np.sort(people["income"].drop_null().to_numpy())
    assert income[-len(income) // 100 :].sum() > 0.1 * income.sum()
    assert 0.001 < (income < 0).mean() < 0.02
    assert np.median(income) < income.mean()


def test_income_and_rent_differ_by_region(people: pa.Table) -> None:
    capital, remote = (pc.equal(people["region"], code) for code in ("01", "11"))
    for name in ("income", "rent"):
        assert mean(people[name], capital) > 1.3 * mean(people[name], remote)


def test_difficulties_rise_with_age_and_come_together(people: pa.Table) -> None:
    for name in ("vision_difficulty", "hearing_difficulty", "mobility_difficulty"):
        shares = [
            mean(
                people[name],
                pc.and_(pc.greater_equal(people["age"], low), pc.less(people["age"], low + 20)),
            )
            for low in (0, 20, 40, 60, 80)
        ]
        assert shares == sorted(shares)
    old = people.filter(pc.greater_equal(people["age"], 75))  # so that it is not age alone
    hearing, vision = old["hearing_difficulty"], old["vision_difficulty"]
    assert mean(hearing, vision) > 1.4 * mean(hearing)


def test_work_depends_on_sex_and_home_on_family(people: pa.Table) -> None:
    female = pc.equal(people["sex"], "female")
    assert mean(female, pc.equal(people["occupation"], "nurse")) > 0.7
    assert mean(female, pc.equal(people["occupation"], "builder")) < 0.2
    assert mean(people["hours"], female) < mean(people["hours"], pc.invert(female)) - 3
    adult = people.filter(pc.greater_equal(people["age"], 30))
    married, single = (pc.equal(adult["marital"], status) for status in ("married", "single"))
    assert mean(adult["household_size"], married) > mean(adult["household_size"], single) + 1
    assert mean(adult["children"], married) > 2 * mean(adult["children"], single)


def test_a_short_table_is_the_beginning_of_a_long_one(people: pa.Table) -> None:
    for rows in (1, 1000, datasets.CHUNK_ROWS, datasets.CHUNK_ROWS + 1):
        assert datasets.census(rows, seed=7).equals(people.slice(0, rows))


@pytest.mark.parametrize("batch_rows", [999, 50_000, datasets.CHUNK_ROWS, 1_000_000])
def test_batches_are_the_same_people(people: pa.Table, batch_rows: int) -> None:
    batches = list(datasets.census_batches(ROWS, seed=7, batch_rows=batch_rows))
    assert pa.Table.from_batches(batches).equals(people)
    assert {batch.num_rows for batch in batches[:-1]} <= {batch_rows}
    assert 0 < batches[-1].num_rows <= batch_rows


def test_the_seed_decides(people: pa.Table) -> None:
    assert datasets.census(500, seed=7).equals(people.slice(0, 500))
    assert datasets.census(500, np.int64(7)).equals(people.slice(0, 500))  # type: ignore[arg-type]
    other = datasets.census(500, seed=8)
    assert not any(other[name].equals(people[name].slice(0, 500)) for name in ("age", "income"))
    second = people.slice(datasets.CHUNK_ROWS, 500)  # a later chunk does not repeat the first
    assert not second["income"].equals(people["income"].slice(0, 500))


def test_no_rows() -> None:
    assert list(datasets.census_batches(0)) == []
    empty = datasets.census(0)
    assert empty.num_rows == 0
    assert empty.schema == datasets.census(1).schema


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": -1}, "rows must be a whole number of at least 0, not -1"),
        ({"rows": 1.5}, "rows must be .* not 1.5"),
        ({"rows": "10"}, "rows must be .* not '10'"),
        ({"rows": True}, "rows must be .* not True"),
        ({"rows": 1, "seed": 0.5}, "seed must be .* not 0.5"),
        ({"rows": 1, "seed": -3}, "seed must be .* not -3"),
        ({"rows": 1, "seed": None}, "seed must be .* not None"),
    ],
)
def test_bad_input_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        datasets.census(**options)
    with pytest.raises(ValueError, match=message):
        datasets.census_batches(**options)


def test_batches_need_a_row() -> None:
    with pytest.raises(ValueError, match="batch_rows must be a whole number of at least 1, not 0"):
        datasets.census_batches(10, batch_rows=0)
