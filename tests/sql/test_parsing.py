"""Reading conditions: whatever text comes, a condition or a message comes out, and no traceback."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.errors import GsdError, WorkloadError
from private_gsd.measurements.derived_statistics import Statistic
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.predicate_text import column_named
from tests.sql.people import SCHEMA

CONDITIONS = [
    "age < 30 AND job = 'a'",
    "pay BETWEEN 1 AND 2e3",
    "begun < DATE '2021-01-01' + INTERVAL 3 days",
    "seen - TIMESTAMP '2021-01-01 10:00:00' > INTERVAL '2' hours",
    "coalesce(age, 3) * 2 - abs(pay) / 7 <> 1e5",
    "owner IS NOT TRUE OR code IN (3, 10)",
    "job LIKE 'a%' AND NOT (age IS NULL)",
    "code = -1.5",
    "begun + 3 < ended",
    "ended - DATE '2021-01-01' > 30",
]


PIECES = [
    *("1e", "1e+", "11e9.5", "1e999", "0x1F", "1_0", "1.", "..", "9" * 5000, "-", "--", "/*", "*/"),
    *("'", '"', "$$", "::", "[", "]", "{", "(", ")", ";", ",", "\0", "\ud800", "é", "\n", "||"),
    *("NULL", "NOT", "INTERVAL", "DATE", "CASE WHEN", "x'ff'", "$1", "COLLATE", "NaN", "->"),
    *("interval '1' year", "DATE '9999-12-31'", "* 1e308", "/ 0", "abs(", "coalesce(", "SELECT 1"),
    *("TIMESTAMP '2021-01-01 00:00:00Z'", "INTERVAL 1e305 weeks", "ESCAPE '\\'", "age", "SET"),
]


def test_text_that_is_not_unicode() -> None:
    """It could be asked, and neither saved nor charged."""
    with pytest.raises(WorkloadError, match="must be written in UTF-8"):
        parse_predicate(SCHEMA, "job LIKE '\udcff%'")
    with pytest.raises(WorkloadError, match="no statistic"):
        Statistic.read(SCHEMA, "share(job LIKE '\udcff%')")


def answered(text: str) -> None:
    """What may come of a text."""
    readers: tuple[Any, ...] = (
        lambda: parse_predicate(SCHEMA, text),
        lambda: column_named(SCHEMA, text, "a test"),
        *(
            (lambda form=form: Statistic.read(SCHEMA, form.format(text)))
            for form in ("{}", "share({})", "mean(age) WHERE {}", "quantile(age, {})", "mean({})")
        ),
    )
    for read in readers:
        try:
            read()
        except GsdError as error:
            assert str(error)


@given(st.text(max_size=60))
def test_any_text_is_answered(text: str) -> None:
    answered(text)


@given(st.randoms(use_true_random=False), st.sampled_from(CONDITIONS), st.integers(1, 5))
def test_conditions_taken_apart_are_answered(rng: random.Random, text: str, times: int) -> None:
    for _ in range(times):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.randint(0, 6))
        kind = rng.random()
        if kind < 0.6:
            text = text[:at] + " " * rng.randint(0, 1) + rng.choice(PIECES) + text[at:]
        elif kind < 0.8:
            text = text[:at] + text[end:]
        else:
            text = text[:at] + chr(rng.randint(0, 0x250)) + text[end:]
    answered(text)
