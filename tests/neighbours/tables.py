"""Pairs of tables that differ in one row, each as text fields, and the public schema of all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from private_gsd import Boolean, Categorical, Date, Datetime, Integer, Real, Schema

# A row is what a CSV file has: a text for each column, and an empty one for a null.
Row = dict[str, str]
Rows = tuple[Row, ...]

LONGEST = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"
SCHEMA = Schema(
    [
        Categorical("city", values=["York", "Wick", "Ely", LONGEST, "Rye"], other="Rye"),
        Categorical("code", values=["x", "2", "1", "01"], nullable=True),
        Boolean("member", nullable=True),
        Integer("age", lower=0, upper=99, nullable=True),
        Real("income", lower=0, upper=1000, decimals=2, nullable=True),
        Date("born", lower=dt.date(1950, 1, 1), upper=dt.date(1999, 12, 31), nullable=True),
        Datetime(
            "seen",
            lower=dt.datetime(2001, 1, 1),
            upper=dt.datetime(2001, 12, 31, 23, 59, 59),
            nullable=True,
        ),
    ]
)
# As the tables have them: in another order than the schema, and one that the schema does not name.
COLUMNS = ("remark", "seen", "age", "city", "born", "code", "income", "member")


def _row(number: int) -> Row:
    day = dt.date(1960, 1, 1) + dt.timedelta(days=37 * number)
    moment = dt.datetime(2001, 3, 1, 12, 30) + dt.timedelta(hours=29 * number)
    return {
        "remark": f"remark {number}",
        "seen": str(moment),
        "age": str(20 + number % 50),
        "city": ("York", "Wick")[number % 2],
        "born": str(day),
        "code": ("1", "2", "2")[number % 3],
        "income": f"{100 + 7 * number}.5",
        "member": ("true", "false")[number % 5 == 0],
    }


BASE: Rows = tuple(_row(number) for number in range(60))
# The row that differs stands neither first nor last.
PLACE = 41


def changed(**fields: str) -> Rows:
    """The base, with other fields in one row."""
    return (*BASE[:PLACE], {**BASE[PLACE], **fields}, *BASE[PLACE + 1 :])


NULLS = dict.fromkeys(("seen", "age", "born", "code", "income", "member"), "")


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, and settings that a run needs for them.

    Attributes:
        name: What is different.
        one: A table.
        other: The other.
        settings: Of the budget and of ``fit``.
        counts: Whether exact counts of the two differ.
        everywhere: Whether it goes through all doors, and not only those that read tables.
    """

    name: str
    one: Rows
    other: Rows
    settings: Mapping[str, Any] = field(default_factory=dict)
    counts: bool = True
    everywhere: bool = False

    def __str__(self) -> str:
        return self.name


COERCE = {"on_invalid": "coerce"}
ADD_REMOVE = {"neighbours": "add-remove", "delta": 1e-6}

NULL = changed(**NULLS)

PAIRS = (
    Pair("the same table", BASE, changed(), counts=False, everywhere=True),
    Pair("one more null in each column", BASE, NULL, everywhere=True),
    Pair("the order of rows", NULL, (*NULL[PLACE:], *NULL[:PLACE]), counts=False, everywhere=True),
    Pair(
        "values at the bounds",
        BASE,
        changed(age="99", income="0", born="1999-12-31", seen="2001-01-01 00:00:00"),
    ),
    Pair("a new longest text", BASE, changed(city=LONGEST)),
    Pair("rare categories, one with a leading zero", BASE, changed(city="Ely", code="01")),
    Pair("a text among numbers", BASE, changed(code="x")),
    Pair(
        "the same values in other words",
        BASE,
        changed(age=f"{BASE[PLACE]['age']}.0", member="yes", income="387.500000000"),
        counts=False,
    ),
    Pair(
        "a column beside the schema",
        BASE,
        changed(remark='said: "no",\nand went \N{EM DASH} \N{VULGAR FRACTION ONE HALF}'),
        counts=False,
    ),
    Pair(
        "unparsable fields",
        BASE,
        changed(
            age="n/a?", member="maybe", born="soon", seen="?", income="1 000,5", city="?", code="?"
        ),
        COERCE,
        everywhere=True,
    ),
    Pair(
        "values beyond the bounds",
        BASE,
        changed(age="9" * 18, income="-1e300", born="1066-10-14", seen="2222-02-02 02:02:02"),
        COERCE,
    ),
    Pair("one row more", BASE, (*BASE, _row(60)), ADD_REMOVE),
    Pair(
        "one row more, of nulls", BASE, ({**_row(60), **NULLS}, *BASE), ADD_REMOVE, everywhere=True
    ),
)
