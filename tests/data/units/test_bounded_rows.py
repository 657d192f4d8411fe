"""Bounded rows: the same in memory and through temporary files, in batches of any size."""

from __future__ import annotations

import gc
import pickle
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import SourceError, Unit
from private_gsd.data.units.bounded_rows import BoundedRows, Bounding
from private_gsd.data.units.choosing import UnitKey

KEY = UnitKey("17" * 32)


def table(units: int, seed: int = 0) -> tuple[list[str | None], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, units)
    ids: list[str | None] = [f"unit {n}" for n in np.repeat(np.arange(units), sizes)]
    ids[3] = ids[len(ids) // 2] = None
    values = rng.integers(0, 4, (len(ids), 2)).astype(np.float64)
    values[rng.random(len(ids)) < 0.1, 0] = np.nan
    return ids, values


def bounded(
    ids: list[str | None],
    matrix: NDArray[np.float64],
    unit: Unit,
    *,
    batch: int,
    waiting: int = 2**27,
    taken: int = 2**29,
) -> tuple[tuple[int, int, int], Counter[tuple[object, ...]]]:
    bounding = Bounding(unit, KEY, 2, waiting_bytes=waiting, into=BoundedRows(taken))
    for start in range(0, len(ids), batch):
        part = slice(start, start + batch)
        bounding.add(pa.array(ids[part], pa.large_string()), matrix[part])
    found = bounding.finish()
    rows: Counter[tuple[object, ...]] = Counter()
    for weight in found.weights():
        for piece in found.pieces(weight, 10):
            assert len(piece) <= 10
            rows.update((weight, *map(str, row)) for row in piece.tolist())
    assert rows.total() == found.rows
    return (found.units, found.rows, found.all_rows), rows


@pytest.mark.parametrize("weighting", ["units", "rows"])
@pytest.mark.parametrize("at_most", [1, 4, 30])
def test_memory_and_files_and_batches_are_the_same(at_most: int, weighting: str) -> None:
    ids, matrix = table(60)
    unit = Unit("id", at_most, weighting, "own")  # type: ignore[arg-type]
    expected = bounded(ids, matrix, unit, batch=len(ids))
    order = np.random.default_rng(1).permutation(len(ids))
    mixed = [ids[place] for place in order], matrix[order]
    assert bounded(*mixed, unit, batch=7) == expected
    assert bounded(*mixed, unit, batch=50, waiting=2000) == expected
    # Parts are parted again, and what is taken does not stay in memory.
    assert bounded(*mixed, unit, batch=13, waiting=300, taken=0) == expected
    assert bounded(*mixed, unit, batch=100, waiting=2000, taken=900) == expected


@settings(max_examples=25)
@given(st.integers(0, 20), st.integers(1, 9), st.integers(0, 400))
def test_any_sizes(units: int, batch: int, waiting: int) -> None:
    ids, matrix = table(units + 2)
    unit = Unit("id", 3, null_ids="own")
    expected = bounded(ids, matrix, unit, batch=len(ids))
    assert bounded(ids, matrix, unit, batch=batch, waiting=waiting, taken=waiting) == expected


def test_rows_without_an_id_are_units_of_their_own() -> None:
    unit = Unit("id", 2, null_ids="own")
    (units, taken, everything), rows = bounded(
        [None, "a", None, "a", "a"], np.zeros((5, 2)), unit, batch=2
    )
    assert (units, taken, everything) == (3, 4, 5)
    assert rows == {(2, "0.0", "0.0"): 2, (1, "0.0", "0.0"): 2}


def test_one_unit_has_all_rows() -> None:
    matrix = np.arange(400.0).reshape(200, 2)
    sizes, _ = bounded(["same"] * 200, matrix, Unit("id", 3), batch=9, waiting=500)
    assert sizes == (1, 3, 200)


def test_no_temporary_file_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ids, matrix = table(50)
    bounding = Bounding(Unit("id", 3, null_ids="own"), KEY, 2, waiting_bytes=0)
    bounding.add(pa.array(ids, pa.large_string()), matrix)
    assert list(tmp_path.iterdir()) == []
    bounding.finish()
    del bounding
    gc.collect()


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    ids, matrix = table(5)
    bounding = Bounding(Unit("id", 3, null_ids="own"), KEY, 2, waiting_bytes=0)
    with pytest.raises(SourceError, match="No space left on device; set TMPDIR to a folder"):
        bounding.add(pa.array(ids, pa.large_string()), matrix)


def test_they_show_nothing_and_are_not_written() -> None:
    rows = BoundedRows()
    assert repr(rows) == "<BoundedRows: redacted>"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(rows)
