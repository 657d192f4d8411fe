"""Text: each one is parsed by itself, whatever the others are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from private_gsd.data.encoding.text import clean_text, parse_integers, parse_moments, parse_numbers
from private_gsd.schema import Integer

NOON = dt.datetime(2020, 7, 1, 12)


@pytest.mark.parametrize(
    ("parse", "texts", "expected"),
    [
        (parse_numbers, ["1", "-2.5", "1e3", "nan", "inf", "x", None], [1, -2.5, 1e3, *[None] * 4]),
        (
            parse_integers,
            ["7", "+7", "7.0", "7.5", "9007199254740993", "1e3", None],
            [7, 7, 7, None, 9007199254740993, None, None],
        ),
        (
            lambda text: parse_moments(text, None, None),
            ["2020-07-01 12:00", "2020-02-30", "noon", None],
            [NOON, None, None, None],
        ),
        (
            lambda text: parse_moments(text, "%d.%m.%Y %H", None),
            ["01.07.2020 12", "31.02.2020 12", "2020-07-01", None],
            [NOON, None, None, None],
        ),
        (
            lambda text: parse_moments(text, None, "Europe/Vienna"),
            ["2020-07-01 12:00", "2020-07-01 10:00Z", "2020-07-01 05:00-05:00"],
            [NOON, NOON, NOON],
        ),
    ],
)
def test_texts_are_parsed_one_by_one(
    parse: Callable[[pa.Array], Any], texts: list[str | None], expected: list[Any]
) -> None:
    values, lost = parse(pa.array(texts, pa.string()))
    assert values.to_pylist() == expected
    assert lost.tolist() == [
        text is not None and value is None for text, value in zip(texts, expected, strict=True)
    ]
    for text, value in zip(texts, expected, strict=True):
        assert parse(pa.array([text], pa.string()))[0].to_pylist() == [value]


def test_spellings_of_null_and_blanks_around() -> None:
    column = Integer("x", lower=0, upper=9, nullable=True, null_values=("", " N "))
    found = clean_text(column, pa.array([" 3 ", "N", " N", "", "n", None]))
    assert found.to_pylist() == ["3", None, None, None, "n", None]
