"""Rules: rows that keep them are found, and if there are none, the reason is named."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Categorical, Date, Datetime, Integer, Real, Schema
from private_gsd.errors import SchemaError
from private_gsd.projection.constraints import Pool
from private_gsd.schema import Column
from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.rules import UndecidedError, check_rules, rules_of
from private_gsd.workloads.programs import cut_columns
from tests.sql.people import SCHEMA, rows_of
from tests.workloads.random_sql import predicates_of

pytestmark = pytest.mark.worker("large")


WARD = Schema(
    [
        Integer("age", lower=0, upper=120),
        Categorical("marital", values=["single", "married", "widowed"], nullable=True),
        Integer("a", lower=0, upper=10_000),
        Integer("b", lower=0, upper=10_000),
        Integer("total", lower=0, upper=20_000),
        Real("x", lower=0, upper=1),
        Real("y", lower=0, upper=1, decimals=2),
        Date("admit", lower="2020-01-01", upper="2024-12-31"),  # type: ignore[arg-type]
        Date("discharge", lower="2020-01-01", upper="2024-12-31", nullable=True),  # type: ignore[arg-type]
    ]
)


def ruled(*rules: str) -> Schema:
    return Schema(WARD.columns, rules)


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_rows_are_found_wherever_there_are_some(seed: int, number: int) -> None:
    """Random rules that a random row keeps: a row is found, and keeps them; never 'none'."""
    rng = random.Random(seed)
    rows = rows_of(SCHEMA, 5, seed).tolist()
    texts = predicates_of(SCHEMA, 4 * number, rng.randrange(2**31), compared=0.3)
    kept = [t for t in texts if truth_of(parse_predicate(SCHEMA, t), rows[0]) >= 1][:number]
    rules = rules_of(Schema(SCHEMA.columns, kept))
    try:
        found = rules.find(np.random.default_rng(seed))
    except UndecidedError:
        return  # it never says that there is none
    assert found is not None
    assert rules.broken(found.tolist()) == []


TIGHT = [
    ["total = a + b"],
    ["total = a + b", "b = 2 * a", "discharge - admit BETWEEN 1 AND 2", "discharge IS NOT NULL"],
    ["a = 37 AND b = 21"],
    ["a * b = total AND a > 100 AND b > 1"],
    ["x < y AND y - x < 0.000001"],
    ["x = y / 2"],
    ["abs(a - b) < 3 AND a / b > 1.5 AND b > 0"],
    ["age = 17 AND marital IS NULL AND a BETWEEN b AND b + 3 OR age = 118 AND total = 7"],
    ["discharge = admit + 3 AND discharge IS NOT NULL AND admit > '2024-12-01'"],
]


@pytest.mark.parametrize("texts", TIGHT, ids=lambda texts: texts[0][:30])
def test_tight_rules_are_met(texts: list[str]) -> None:
    """Of uniform rows, fewer than one in 10,000 keeps these."""
    rules = check_rules(ruled(*texts))
    assert not [row for row in rows_of(WARD, 2000, 1).tolist() if not rules.broken(row)]
    rng = np.random.default_rng(0)
    found = [rules.find(rng) for _ in range(20)]
    for row in found:
        assert row is not None
        assert rules.broken(row.tolist()) == []


CONTRARY = [
    (["age < 10", "marital = 'single'", "age > 20"], [1, 3], True),
    (["a < b", "b < a"], [1, 2], True),
    (["a + b + total = 40001"], [1], True),
    (["marital IS NULL", "age > 5", "marital IS NOT NULL"], [1, 3], True),
    (["FALSE"], [1], True),
    (["a = b", "b = total", "total = a + 1"], [1, 2, 3], True),
    (["discharge IS NOT NULL", "discharge < '2020-01-01'"], [1, 2], True),
    (["x < y", "age > 3", "y < x"], [1, 3], False),
    (["x * x = 0.5"], [1], False),
    (["y * y = 0.3"], [1], True),
]


@pytest.mark.parametrize(("texts", "named", "proven"), CONTRARY, ids=lambda each: str(each)[:30])
def test_rules_that_no_row_keeps_are_named(
    texts: list[str], named: list[int], proven: bool
) -> None:
    with pytest.raises(SchemaError) as caught:
        check_rules(ruled(*texts))
    words = str(caught.value)
    assert ("no row can meet" in words) == proven
    assert [int(line.split(":")[0]) for line in words.splitlines()[1:]] == named


def test_a_null_that_leaves_a_rule_unknown_keeps_it() -> None:
    rules = check_rules(ruled("discharge >= admit", "marital = 'married'"))
    row = [30.0, np.nan, 1.0, 1.0, 1.0, 0.5, 0.5, 18300.0, np.nan]
    assert rules.broken(row) == []
    row[8] = 18299.0
    assert rules.broken(row) == ["discharge >= admit"]


def test_bad_rules_are_named_and_marked() -> None:
    with pytest.raises(SchemaError, match=r"in rule 2 of constraints, at character 1.*\n.*\n.*\^"):
        check_rules(ruled("age < 3", "aeg < 3"))
    with pytest.raises(SchemaError, match=r"rule 1 of constraints.*not supported"):
        check_rules(ruled("age < (SELECT 3)"))


def test_columns_that_rules_tie_together_are_blocks() -> None:
    rules = check_rules(ruled("a < b", "b < total OR age > 5", "discharge >= admit", "x > 0.5"))
    assert sorted(rules.blocks) == [(0, 2, 3, 4), (5,), (7, 8)]


YEARS: dict[str, Any] = {"lower": "2020-01-01", "upper": "2024-01-01"}


EXACT: dict[str, tuple[list[Column], str]] = {
    "sum of reals": ([Real("a", lower=0, upper=10), Real("b", lower=0, upper=20)], "c = a + b"),
    "equal reals": ([Real("a", lower=0, upper=30)], "c = a"),
    "product": ([Real("a", lower=0, upper=5), Real("b", lower=0, upper=6)], "c = a * b"),
    "degrees": ([Real("a", lower=-10, upper=-1)], "c = 1.8 * a + 32"),
    "cents beside millions": (
        [Integer("a", lower=10**9, upper=10**9 + 9), Real("b", lower=0.28, upper=0.3, decimals=2)],
        "d = a + b AND b > 0.28 AND b < 0.30",
    ),
    "large whole numbers": ([Integer("a", lower=0, upper=10**15)], "e = a + 1"),
    "squares": ([Integer(n, lower=1, upper=999) for n in ("a", "b")], "a * a + b * b = f * f"),
    "microseconds": ([Datetime("a", **YEARS)], "g = a + INTERVAL 1 DAY"),
}


@pytest.mark.parametrize("name", EXACT)
def test_equations_are_met_to_the_last_digit(name: str) -> None:
    """Where all but one number are free, the last follows; none of these is contradictory."""
    columns, rule = EXACT[name]
    more: list[Column] = [
        Real("c", lower=0, upper=30),
        Real("d", lower=1e9, upper=1e9 + 11, decimals=2),
        Integer("e", lower=0, upper=10**15),
        Integer("f", lower=1, upper=1000),
        Datetime("g", **YEARS),
    ]
    used = [column for column in more if column.name in rule.split()]
    schema = Schema([*columns, *used], [rule])
    rules = check_rules(schema)
    pool = Pool.of(schema, cut_columns(schema, rules.truths)[0], 3)
    assert pool is not None
    assert len(pool.rows) > (3 if name == "squares" else 50)
    assert not any(rules.broken(row) for row in pool.rows.tolist())
