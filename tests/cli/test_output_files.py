"""Tables that the command line writes are what their schema describes: they are read as written."""

from __future__ import annotations

import datetime as dt
import errno
import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from private_gsd import (
    Boolean,
    Categorical,
    Column,
    Date,
    Datetime,
    Encoder,
    Integer,
    Real,
    Schema,
    open_source,
)
from private_gsd.cli.output_files import GROUP_ROWS, OutputFile
from private_gsd.errors import GsdError, SchemaError
from tests.strategies import columns, encoded_values

# Any text at all: empty, of blanks, of quotes and line breaks, or like a null.
texts = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(
    [
        "",
        " ",
        '"',
        '""',
        ",",
        "\n",
        "\r",
        "\r\n",
        "a,b",
        " a",
        "a ",
        "NA",
        " NA",
        "-9",
        "\0",
        "\ufeff",
    ]
)
names = texts.filter(str.strip)
spellings = st.lists(
    st.sampled_from(["", "NA", "-9", "1", "false", "t", " 7 ", "01.01.1900", "2000-01-01"]) | texts,
    max_size=3,
).map(tuple)
DATES = ["%d.%m.%Y", "%Y%m%d", "%m/%Y", "%Y", "%j %Y", "%d %b %y", "%A, %d %B %Y", "%G-W%V-%u"]
MOMENTS = ["%Y-%m-%dT%H:%M:%S.%f", "%d/%m/%Y %I:%M:%S %p", "%Y-%m-%d %H:%M", "%Y%m%d%H%M%S%f"]


@st.composite
def described(draw: st.DrawFn, name: str) -> Column:
    """A column of any kind, with spellings of null and a format."""
    column = draw(columns(name))
    changes: dict[str, Any] = {"null_values": draw(st.just(("",)) | spellings)}
    if isinstance(column, Categorical) and isinstance(column.values[0], str):
        changes["values"] = tuple(draw(st.lists(texts, min_size=1, max_size=5, unique=True)))
    if isinstance(column, Date):
        changes["format"] = draw(st.none() | st.sampled_from(DATES))
    if isinstance(column, Datetime):
        changes["timezone"] = draw(st.sampled_from([None, "UTC", "Europe/Vienna"]))
        zoned = [f"{each} %z" for each in MOMENTS if changes["timezone"]]
        changes["format"] = draw(st.none() | st.sampled_from(DATES + MOMENTS + zoned))
    try:
        return replace(column, **changes)
    except SchemaError:  # a category that is a spelling of null
        assume(False)
        raise


@st.composite
def described_tables(draw: st.DrawFn) -> tuple[Schema, np.ndarray[Any, Any]]:
    found = draw(st.lists(names, min_size=1, max_size=3, unique_by=str.strip))
    schema = Schema([draw(described(name)) for name in found])
    rows = draw(st.integers(0, 5))
    cells = [draw(st.lists(encoded_values(each), min_size=rows, max_size=rows)) for each in schema]
    return schema, np.array(cells, dtype=np.float64).T.reshape(rows, len(schema))


def written(schema: Schema, table: pa.Table, path: Path) -> list[pa.RecordBatch]:
    """What is read of a table that was written."""
    target = OutputFile(path, force=True)
    target.check_schema(schema)
    target.write_table([table], schema)
    if not table.num_rows:
        source = open_source(path, schema)
        assert source.count() == 0
        assert source.columns == schema.names
        return []
    return [Encoder(schema).decode(each) for each in open_source(path, schema).encoded()]


EMPTY = Schema([Categorical("a", values=("", "b"), nullable=True)])


@given(described_tables(), st.sampled_from(["csv", "parquet"]))
@example((EMPTY, np.array([[0.0], [np.nan], [1.0], [np.nan]])), "csv")
def test_a_table_that_is_written_is_read_as_it_was(
    drawn: tuple[Schema, np.ndarray[Any, Any]], ending: str
) -> None:
    schema, matrix = drawn
    table = pa.Table.from_batches([Encoder(schema).decode(matrix)])
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = written(schema, table, Path(folder) / f"table.{ending}")
        except SchemaError as error:
            event("refused")
            assert ending == "csv"
            assert "cannot be written as text" in str(error)
            return
        event(f"written as {ending}")
        assert pa.Table.from_batches(found, schema.arrow_schema).equals(table)


DAYS: dict[str, Any] = {"lower": dt.date(900, 1, 1), "upper": dt.date(2020, 12, 31)}
NOON: dict[str, Any] = {"lower": dt.datetime(1800, 1, 1), "upper": dt.datetime(2020, 1, 1)}
GOOD: list[tuple[Column, str, str]] = [
    (Date("x", **DAYS, format="%d/%m/%Y"), '"01/01/0900"', '"31/12/2020"'),
    (Date("x", **DAYS, resolution="year", format="%Y"), '"0900"', '"2020"'),
    (Date("x", **DAYS), "0900-01-01", "2020-12-31"),
    (Datetime("x", **NOON, resolution="day", format="%d.%m.%Y"), '"01.01.1800"', '"01.01.2020"'),
    (Integer("x", lower=-9, upper=5), "-9", "5"),
    (Real("x", lower=-9, upper=5), "-9", "5"),
    (Boolean("x"), "false", "true"),
    (Categorical("x", values=(" a", "-9")), '" a"', '"-9"'),
]


@pytest.mark.parametrize("nulls", [("",), ("NA", ""), ("NA",), (" none ",)])
@pytest.mark.parametrize(("column", "low", "high"), GOOD)
def test_what_is_written(
    tmp_path: Path, column: Column, low: str, high: str, nulls: tuple[str, ...]
) -> None:
    schema = Schema([replace(column, nullable=True, null_values=nulls)])
    table = pa.Table.from_batches(
        [Encoder(schema).decode(np.array([[column.bounds[0]], [column.bounds[1]], [np.nan]]))]
    )
    [batch] = written(schema, table, tmp_path / "table.csv")
    assert batch.to_pylist() == table.to_pylist()
    null = "" if "" in nulls else f'"{nulls[0]}"'
    lines = (tmp_path / "table.csv").read_text().splitlines()
    if null:  # a column with words for nulls is text
        low, high = (text if text.startswith('"') else f'"{text}"' for text in (low, high))
    assert lines == ['"x"', low, high, null]


BAD: list[tuple[Column, str]] = [
    (
        Integer("x", lower=-10, upper=9, nullable=True, null_values=("-9",)),
        "-9 would be written as '-9', and be read as null",
    ),
    (Real("x", lower=0, upper=99, null_values=("", " 77 ")), "77.0 would be written as '77'"),
    (Categorical("x", values=(7, 8), null_values=(" 7",)), "7 would be written as '7'"),
    (Boolean("x", null_values=("false",)), "be read as null"),
    (Boolean("x\r"), "its name holds a carriage return"),
    (Integer("x", lower=0, upper=9, nullable=True, null_values=()), "a null has no text"),
    (
        Date("x", **DAYS, format="%m/%Y"),
        "2020-12-31 would be written as '12/2020', and be read as another value",
    ),
    (Date("x", **DAYS, format="%d/%m/%y"), "be read as another value"),
    (Datetime("x", **NOON, format="%d.%m.%Y %H:%M"), "be read as another value"),
    (Datetime("x", **NOON, resolution="hour", format="%d.%m.%Y %I"), "another value"),
    (
        Date("x", **DAYS, format="%d/%m/%Y", null_values=("01/02/1900",)),
        "1900-02-01 would be written as '01/02/1900', and be read as null",
    ),
]


@pytest.mark.parametrize(("column", "message"), BAD)
def test_what_a_csv_cannot_hold_is_refused_before_anything_is_spent(
    tmp_path: Path, column: Column, message: str
) -> None:
    schema = Schema([column])
    with pytest.raises(SchemaError, match="cannot be written as text") as caught:
        OutputFile(tmp_path / "table.csv", force=False).check_schema(schema)
    assert str(caught.value).startswith(f"{tmp_path / 'table.csv'}: column 'x")
    assert message in str(caught.value)
    OutputFile(tmp_path / "table.parquet", force=False).check_schema(schema)


def test_a_parquet_file_has_checksums(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    schema = Schema([Categorical("x", values=("one", "two"))])
    OutputFile(path, force=False).write_table([pa.table({"x": ["one", "two"] * 9})], schema)
    assert pyarrow.parquet.read_schema(path) == schema.arrow_schema
    content = path.read_bytes()
    path.write_bytes(content.replace(b"two", b"twO", 1))
    with pytest.raises(OSError, match="checksum"):
        pyarrow.parquet.read_table(path, page_checksum_verification=True)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables_are_written_one_after_the_other(tmp_path: Path, ending: str) -> None:
    """No more is kept than a group of rows: a table is gone when the third after it is made."""
    schema = Schema([Categorical("x", values=(0, 1, 2))])
    made: list[weakref.ref[pa.Table]] = []
    kept = []

    def tables() -> Iterator[pa.Table]:
        for number in range(6):
            kept.append(sum(each() is not None for each in made))
            table = pa.table({"x": np.full(GROUP_ROWS, number % 3)})
            made.append(weakref.ref(table))
            yield table

    path = tmp_path / f"table{ending}"
    assert OutputFile(path, force=False).write_table(tables(), schema) == 6 * GROUP_ROWS
    assert max(kept) <= 2
    [matrix] = [np.concatenate(list(open_source(path, schema).encoded()))]
    assert matrix[::GROUP_ROWS, 0].tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("ending", [b".csv", b".parquet"])
def test_a_name_that_is_not_utf8_can_be_written_to(tmp_path: Path, ending: bytes) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9" + ending))
    target = OutputFile(path, force=False)
    target.check({})
    target.write_table([pa.table({"x": [True]})], Schema([Boolean("x")]))
    assert [each.name.encode("utf-8", "surrogateescape") for each in tmp_path.iterdir()] == [
        b"caf\xe9" + ending
    ]


def test_an_output_that_appears_meanwhile(tmp_path: Path) -> None:
    """It is not replaced, and the release is kept."""
    target = OutputFile(tmp_path / "o.csv", force=False)
    target.check({})
    target.path.write_text("somebody's")
    with pytest.raises(GsdError, match="exists already"):
        target.write("rows")
    assert target.path.read_text() == "somebody's"
    OutputFile(target.path, force=True).write("rows")
    assert target.path.read_text() != "somebody's"
    assert sorted(path.name for path in tmp_path.iterdir() if "o.csv" in path.name) == ["o.csv"]


def test_a_disk_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    OutputFile(tmp_path / "o.csv", force=False).write("rows")
    assert (tmp_path / "o.csv").exists()
    with pytest.raises(GsdError, match="exists already"):
        OutputFile(tmp_path / "o.csv", force=False).write("rows")
