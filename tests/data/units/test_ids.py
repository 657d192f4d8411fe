"""Ids as text: the same for the same id, whatever type its column has. Messages quote none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from private_gsd import DataError, Unit
from private_gsd.data.units.ids import texts_of

UNIT = Unit("id", 2)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([7, None, 12]), ["7", None, "12"]),
        (pa.array([7, None, 12], pa.int8()), ["7", None, "12"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array(["7", "", None, "012"]), ["7", None, None, "012"]),
        (pa.array(["7", "7"]).dictionary_encode(), ["7", "7"]),
        (pa.array([7.0, None, float("nan"), -0.0]), ["7", None, None, "0"]),
        (pa.array([Decimal(7), None], pa.decimal128(20, 0)), ["7", None]),
        (pa.array([Decimal("7.00")], pa.decimal128(20, 2)), ["7"]),
        (pa.array([dt.date(2001, 2, 3)]), ["2001-02-03"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([None, None]), [None, None]),
        (pa.array(["7", ""]).cast(pa.string_view()), ["7", None]),
    ],
    ids=str,
)
def test_ids_are_text(array: Any, expected: list[str | None]) -> None:
    found = texts_of(pa.record_batch({"id": array}), UNIT)
    assert found.type == pa.large_string()
    assert found.to_pylist() == expected


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (pa.array([12345.5]), "numbers that are not whole"),
        (pa.array([1e300]), "have too many digits for their type"),
        (pa.array([b"12345"]), "holds binary"),
        (pa.array([dt.datetime(2012, 3, 4, 12345 % 24)]), r"holds timestamp\[us\]"),
        (pa.array([[12345]]), "holds list"),
    ],
    ids=str,
)
def test_other_ids_are_refused_and_not_quoted(array: Any, words: str) -> None:
    with pytest.raises(DataError, match=words) as refused:
        texts_of(pa.record_batch({"id": array}), UNIT)
    assert "12345" not in str(refused.value)
    assert "column 'id', which names the unit" in str(refused.value)


def test_a_missing_column_is_told() -> None:
    with pytest.raises(DataError, match="is missing or stands twice"):
        texts_of(pa.record_batch({"other": [1]}), UNIT)
