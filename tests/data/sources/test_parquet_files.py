"""Parquet files: columns of their own and of their folders, and damage that is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from private_gsd import Categorical, LeftOutWarning, Schema, open_source
from private_gsd.errors import SourceError
from tests.data.sources.small_files import GOOD, SCHEMA, check_bad, flips, rows


def test_parquet_globs_know_their_rows(tmp_path: Path) -> None:
    for name, ages in (("a", [1, 2]), ("b", [3])):
        table = pa.table({"age": ages, "code": ["7"] * len(ages)})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    source = open_source(tmp_path / "*.parquet", SCHEMA)
    assert source.rows == 3
    assert rows(tmp_path) == [[1, 1], [1, 2], [1, 3]]


def test_a_flipped_bit_in_a_page_of_a_parquet_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = pa.table({"code": ["7", None, "007"] * 9, "age": [1, 2, 3] * 9})
    pyarrow.parquet.write_table(table, path, write_page_checksum=True, compression="none")
    good, expected = path.read_bytes(), rows(path)
    end = len(good) - 8 - int.from_bytes(good[-8:-4], "little")  # where the footer begins
    refused = 0
    for content in flips(good[:end], 5):
        path.write_bytes(content + good[end:])
        try:
            np.testing.assert_array_equal(rows(path), expected)
        except SourceError as error:
            refused += 1
            assert str(path) in str(error)
    assert refused > end * 8 / 5 / 2  # the others are in what nobody reads, such as statistics
    place = good.index(b"007")
    check_bad(
        path,
        good[:place] + b"0" + good[place + 1 :].replace(b"07", b"17", 1),
        "a checksum is wrong",
    )


def test_folder_names_do_not_override_columns(tmp_path: Path) -> None:
    """A folder named like a column is where the column comes from only if the file lacks it."""
    folder = tmp_path / "age=99" / "c0=9"
    folder.mkdir(parents=True)
    (folder / "data.csv").write_text(GOOD)
    assert rows(tmp_path) == [[0, 5], [1, 6]]
    (folder / "data.csv").unlink()
    pyarrow.parquet.write_table(pa.table({"code": ["7"], "age": [1]}), folder / "data.parquet")
    with pytest.warns(LeftOutWarning, match="c0"):
        assert rows(tmp_path) == [[1, 1]]


def test_hive_partitions_are_columns(tmp_path: Path) -> None:
    for code, ages in (("007", [1, 2]), ("caf%C3%A9", [3]), ("__HIVE_DEFAULT_PARTITION__", [4])):
        folder = tmp_path / f"code={code}"
        folder.mkdir()
        pyarrow.parquet.write_table(pa.table({"age": ages}), folder / "part.parquet")
    nan = float("nan")
    np.testing.assert_array_equal(rows(tmp_path), [[0, 1], [0, 2], [nan, 4], [2, 3]])


def test_parquet_files_of_other_types_are_read_each_in_its_own(tmp_path: Path) -> None:
    big = 2**53 + 1
    schema = Schema([Categorical("code", values=(big, big - 1, 1))])
    for name, values in (("a", [big]), ("b", [1.0]), ("c", [str(big)]), ("d", [big - 1])):
        pyarrow.parquet.write_table(pa.table({"code": values}), tmp_path / f"{name}.parquet")
    assert rows(tmp_path, schema) == [[0], [2], [0], [1]]


def test_parquet_columns_that_differ_in_case_only(tmp_path: Path) -> None:
    table = pa.table([["7"], [6], [99]], names=["code", "age", "AGE"])
    pyarrow.parquet.write_table(table, tmp_path / "data.parquet")
    with pytest.warns(LeftOutWarning):
        assert rows(tmp_path / "data.parquet") == [[1, 6]]
