"""Which rows of units are taken: at most K of each, by the key and the unit's own rows alone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Unit
from private_gsd.data.units.choosing import UnitKey, choose_rows_of_units
from private_gsd.errors import ReleaseError

Row = tuple[float, ...]
Taken = dict[str, Counter[tuple[Row, int]]]
KEY = UnitKey("5a" * 32)
# Few values, so that units have equal rows.
VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.5, math.nan])
TABLES = st.lists(st.tuples(st.sampled_from("abcdef"), VALUES, VALUES), min_size=1, max_size=40)
UNITS = st.builds(
    Unit,
    st.just("id"),
    st.sampled_from([1, 2, 3, 5, 17, 30]),
    st.sampled_from(["units", "rows"]),
)


def matrix_of(rows: list[tuple[str, float, float]]) -> NDArray[np.float64]:
    return np.array([row[1:] for row in rows], dtype=np.float64).reshape(len(rows), 2)


def taken(rows: list[tuple[str, float, float]], unit: Unit, key: UnitKey = KEY) -> Taken:
    """For each unit, its rows that are taken with their weights; NaN as text, to be compared."""
    ids = pa.array([row[0] for row in rows], pa.large_string())
    matrix = matrix_of(rows)
    chosen = choose_rows_of_units(ids, matrix, unit, key)
    found: Taken = defaultdict(Counter)
    for place, weight in zip(chosen.rows.tolist(), chosen.weights.tolist(), strict=True):
        values = tuple(str(value + 0.0) for value in matrix[place].tolist())
        found[rows[place][0]][values, weight] += 1  # type: ignore[index]
    assert chosen.units == len(found) == len({row[0] for row in rows})
    assert len(set(chosen.rows.tolist())) == len(chosen.rows)
    return found


@given(TABLES, UNITS)
def test_of_each_unit_at_most_so_many_rows(
    rows: list[tuple[str, float, float]], unit: Unit
) -> None:
    sizes = Counter(row[0] for row in rows)
    for name, mine in taken(rows, unit).items():
        assert mine.total() == min(sizes[name], unit.at_most)
        weight = sum(weight * number for (_, weight), number in mine.items())
        assert weight == (mine.total() if unit.weighting == "rows" else unit.weight)


@given(TABLES, UNITS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(
    rows: list[tuple[str, float, float]], unit: Unit, random: object
) -> None:
    again = list(rows)
    random.shuffle(again)  # type: ignore[attr-defined]
    assert taken(again, unit) == taken(rows, unit)


@given(TABLES, TABLES, UNITS)
def test_another_unit_changes_nothing_of_the_others(
    rows: list[tuple[str, float, float]], other: list[tuple[str, float, float]], unit: Unit
) -> None:
    """What the whole guarantee rests on."""
    rest = [row for row in rows if row[0] != "a"]
    mine = [("a", *row[1:]) for row in other]
    with_it = taken([*mine[::2], *rest, *mine[1::2]], unit)
    del with_it["a"]
    assert with_it == (taken(rest, unit) if rest else {})


def test_the_key_decides() -> None:
    rows = [("a", float(number), 0.0) for number in range(100)]
    unit = Unit("id", 5)
    assert taken(rows, unit) == taken(rows, unit)
    assert taken(rows, unit) != taken(rows, unit, UnitKey("5b" * 32))
    drawn = {UnitKey.draw().hexadecimal for _ in range(5)}
    assert len(drawn) == 5


@pytest.mark.parametrize("equal", [False, True])
def test_every_choice_is_as_likely(equal: bool) -> None:
    """Of 5 rows, of which some may be equal, 2 are taken; over keys each row is as often."""
    values = [0.0, 0.0, 0.0, 1.0, 2.0] if equal else [0.0, 1.0, 2.0, 3.0, 4.0]
    rows = [(str(unit), value, 0.0) for unit in range(4000) for value in values]
    seen: Counter[float] = Counter()
    for mine in taken(rows, Unit("id", 2)).values():
        for (row, _), number in mine.items():
            seen[float(row[0])] += number
    for value, copies in Counter(values).items():
        expected = 4000 * 2 / 5 * copies
        assert abs(seen[value] - expected) < 5 * math.sqrt(expected)


def test_pairs_are_as_likely_as_others() -> None:
    rows = [(str(unit), float(value), 0.0) for unit in range(6000) for value in range(4)]
    pairs: Counter[tuple[str, ...]] = Counter()
    for mine in taken(rows, Unit("id", 2)).values():
        pairs[tuple(sorted(str(row[0]) for row, _ in mine))] += 1
    assert len(pairs) == 6
    assert all(abs(number - 1000) < 5 * math.sqrt(1000) for number in pairs.values())


@pytest.mark.parametrize("text", ["", "5a", "zz" * 32, "5a" * 33])
def test_a_damaged_key_is_refused(text: str) -> None:
    with pytest.raises(ReleaseError, match="the key of the choice of rows is damaged"):
        UnitKey(text)


def test_a_key_shows_nothing() -> None:
    assert repr(KEY) == "<UnitKey: redacted>"
