"""The unit of protection as a value: what it takes, and how a schema file says it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Integer, Schema, SchemaError, Unit
from private_gsd.schema.neighbours import records_are_public
from private_gsd.schema.unit import MOST_EXACT, MOST_ROWS

COLUMNS = [Integer("age", lower=0, upper=120)]
UNITS = st.builds(
    Unit,
    st.text(min_size=1, max_size=5).filter(lambda text: text != "age"),
    st.integers(1, MOST_ROWS),
    st.sampled_from(["units", "rows"]),
    st.sampled_from(["refuse", "own"]),
)


@given(UNITS, st.data())
def test_weights_are_whole_numbers_that_add_up(unit: Unit, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, unit.at_most))
    weights = unit.weights(rows)
    assert len(weights) == rows
    assert all(type(weight) is int and weight > 0 for weight in weights)
    assert weights == sorted(weights, reverse=True)
    assert weights[0] - weights[-1] <= (0 if unit.at_most <= MOST_EXACT else 1)
    assert sum(weights) == (rows if unit.rows_count else unit.weight)


def test_the_weight_of_a_unit() -> None:
    assert [Unit("id", most).weight for most in (1, 2, 3, 4, 8, 16)] == [1, 2, 6, 12, 840, 720720]
    assert Unit("id", 17).weight == Unit("id", MOST_ROWS).weight == math.lcm(*range(1, 17))
    assert Unit("id", 8, "rows").weight == 1
    assert [Unit("id", 8, "rows").most, Unit("id", 8).most, Unit("id", 1, "rows").most] == [8, 1, 1]


@given(UNITS)
def test_a_schema_file_says_it(unit: Unit) -> None:
    schema = Schema(COLUMNS, unit=unit)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema != Schema(COLUMNS)
    assert schema.select(["age"]).unit == unit
    assert schema.with_unit(None) == Schema(COLUMNS)
    assert schema.read_names == ("age", unit.column)


def test_as_people_write_it() -> None:
    text = '[unit]\ncolumn = "patient_id"\nat_most = 8\n'
    schema = Schema.from_toml(text + "[columns.age]\nkind = 'integer'\nlower = 0\nupper = 120\n")
    assert schema.unit == Unit("patient_id", at_most=8)
    assert schema.to_toml().startswith(text)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"column": "", "at_most": 8}, "column must be the name of a column"),
        ({"column": 3, "at_most": 8}, "column must be the name of a column"),
        ({"column": "id", "at_most": 0}, "a whole number from 1 to 1,000, not 0"),
        ({"column": "id", "at_most": 1001}, "a whole number from 1 to 1,000, not 1001"),
        ({"column": "id", "at_most": 2.0}, "a whole number from 1 to 1,000, not 2.0"),
        ({"column": "id", "at_most": True}, "a whole number from 1 to 1,000, not True"),
        ({"column": "id", "at_most": 8, "weighting": "both"}, "'units' or 'rows', not 'both'"),
        ({"column": "id", "at_most": 8, "null_ids": "drop"}, "'refuse' or 'own', not 'drop'"),
        ({"column": "id"}, "at_most missing; a unit needs the column of its ids and the most rows"),
        ({"at_most": 8}, "column missing"),
        ({"column": "id", "atmost": 8}, "unknown key 'atmost'"),
        ("id", "expected a table of keys, column and at_most"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(keys: Any, words: str) -> None:
    with pytest.raises(SchemaError, match="unit: .*" + words):
        Unit.from_dict(keys)


def test_it_says_what_it_is() -> None:
    rows = Schema(COLUMNS, unit=Unit("id", 3, "rows"))
    words = "all rows with the same 'id', of which at most 3 are taken; each of them counts one"
    assert rows.unit is not None and rows.unit.in_words == words
    assert "unit of protection: all rows with the same" in rows._repr_html_()
    assert "unit of protection" not in rows.with_unit(None)._repr_html_()


def test_an_id_is_no_column() -> None:
    with pytest.raises(SchemaError, match="column 'age' names the unit of protection, and would"):
        Schema(COLUMNS, unit=Unit("age", 2))
    with pytest.raises(SchemaError, match=r"unit must be a Unit\('patient_id', at_most=8\)"):
        Schema(COLUMNS, unit="id")  # type: ignore[arg-type]


def test_which_numbers_are_public() -> None:
    rows, units, one = Unit("id", 3, "rows"), Unit("id", 3), Unit("id", 1, "rows")
    public = [records_are_public("replace-one", unit) for unit in (None, units, one, rows)]
    assert public == [True, True, True, False]
    assert not any(records_are_public("add-remove", unit) for unit in (None, units, one, rows))
