"""CSV files: every form that programs write is read, and what is torn is found."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from private_gsd import Categorical, Integer, LeftOutWarning, Schema, open_source
from private_gsd.errors import DataError, SourceError
from tests.data.sources.small_files import GOOD, SCHEMA, check_bad, flips, rows


def test_types_follow_the_schema_not_a_sniffer(path: Path) -> None:
    path.write_text(GOOD)
    assert rows(path) == [[0, 5], [1, 6]]
    assert rows(str(path)) == [[0, 5], [1, 6]]


@pytest.mark.parametrize(
    "text",
    [
        "code;age\n007;5\n7;6\n",
        "code\tage\n007\t5\n7\t6\n",
        "code|age\n007|5\n7|6\n",
        '"code","age"\n"007","5"\n"7","6"\n',
        "code,age\r\n007,5\r\n7,6\r\n",
        "code,age\n007,5\n7,6",
        "code,age\n007,5\n\n7,6\n\n",
        "\ufeffcode,age\n007,5\n7,6\n",
        " code , age \n 007, 5\n7 ,6 \n",
        "age,code\n5,007\n6,7\n",
    ],
)
def test_forms_of_csv(path: Path, text: str) -> None:
    path.write_bytes(text.encode())
    assert rows(path) == [[0, 5], [1, 6]]


def test_names_that_differ_in_case_only(path: Path) -> None:
    path.write_text("AGE,age,code\n99,5,007\n")
    with pytest.warns(LeftOutWarning, match="AGE"):
        assert rows(path) == [[0, 5]]


def test_quoted_line_breaks_and_quotes(path: Path) -> None:
    schema = Schema([Categorical("x", values=("a\nb", 'say "a"', "", "a,b"), nullable=True)])
    path.write_text('x,y\n"a\nb",\n"say ""a""",\n"",\n"a,b",\n,\n')
    with pytest.warns(LeftOutWarning):
        assert [row[0] for row in rows(path, schema)][:4] == [0, 1, 2, 3]


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert rows(path) == [[0, 5], [1, 6]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty; expected a line of column names"),
        (b"\n\n", "the first line is blank"),
        (b"code,age\n", "the table has no rows"),
        (b"code,age", "the table has no rows"),
        (b"code,agee\n7,6\n", "missing column 'age' (did you mean 'agee'?)"),
        (b"x,y\n7,6\n", "missing columns 'code', 'age'; the table has x, y"),
        (b"code,age,age\n7,6,6\n", "two columns are named age"),
        (b'code,age,"a\rb"\n7,6,6\n7,6,6\n', "a column name holds a carriage return"),
        (b"code,age\n7,6\n7", "a row (line 3) has 1 fields where the header has 2"),
        (b"code,age\n7,6,8\n", "a row (line 2) has 3 fields where the header has 2"),
        (b"code,age\n7,6,\n", "a row (line 2) has 3 fields where the header has 2"),
        (b"code,age\n7,6\n7,5,,\n", "a row (line 3) has"),
        (b'code,age\n7,6\n"7,5', "a quote (line 3) is never closed; is the file torn?"),
        (b"code,age\ncaf\xe9,6\n", "not UTF-8 text (line 2); convert it, for example with: iconv"),
        (b"c\xf6de,age\n7,6\n", "not UTF-8 text"),
        ("code,age\n7,6\n".encode("utf-16"), "not UTF-8 text"),
    ],
)
def test_bad_csv(path: Path, content: bytes, message: str) -> None:
    check_bad(path, content, message)


def test_an_empty_field_too_many_is_refused_however_the_file_is_read(path: Path) -> None:
    path.write_text("code,age\n7,6\n" + "7,6,\n")
    with pytest.raises(SourceError, match=r"a row \(line 3\) has 3 fields"):
        open_source(path, SCHEMA).count()
    with pytest.raises(SourceError, match="has 3 fields"), pytest.warns(LeftOutWarning):
        rows(path, SCHEMA.select(["code"]))
    empty = Schema([Categorical("code", values=("", "7"), nullable=True), SCHEMA["age"]])
    with pytest.raises(SourceError, match="has 3 fields"):
        rows(path, empty)
    path.write_text("age\n6\n6,\n")
    with pytest.raises(SourceError, match="has 2 fields where the header has 1"):
        rows(path, SCHEMA.select(["age"]))


def test_a_flipped_bit_in_a_gzip_file_is_found(tmp_path: Path) -> None:
    """Whatever bit it is: no other error than ours, and no other data."""
    path = tmp_path / "data.csv.gz"
    good = gzip.compress(GOOD.encode() + b"007,9\n", mtime=0)
    refused = 0
    for content in flips(good):
        path.write_bytes(content)
        try:
            assert rows(path) == [[0, 5], [1, 6], [0, 9]]
        except SourceError as error:
            refused += 1
            assert str(path) in str(error)
    # What is left says when, where and how hard it was zipped.
    assert len(good) * 8 - refused <= 8 * 8
    for content in (good[:-1], good[:-8], good[:20], good + b"and more", good + good[:-1], b""):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"data\.csv\.gz"):
            rows(path)
    path.write_bytes(gzip.compress(GOOD.encode()) + gzip.compress(b"7,8\n"))
    assert rows(path) == [[0, 5], [1, 6], [1, 8]]


def test_a_wrong_checksum_of_a_gzip_file(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    content = bytearray(gzip.compress(GOOD.encode()))
    content[-8] ^= 1
    check_bad(path, bytes(content), "not a gzip file, or a damaged one", "data check")


def test_a_long_header(path: Path) -> None:
    names = [
        f"a column with a name of some length, and a number: {number}" for number in range(3000)
    ]
    assert len(",".join(names)) > 2**17
    path.write_text("code;age;" + ";".join(names) + "\n7;6;" + ";".join("1" * 3000) + "\n")
    with pytest.warns(LeftOutWarning):
        assert rows(path) == [[1, 6]]
    check_bad(
        path, b"code,age," + b"x" * 2**18 + b"\n7,6,1\n", "a name has more than 131,072 letters"
    )
    check_bad(path, b"code," * 4_000_000 + b"\n", "a line is longer than 16 MB")


def test_numbers_of_many_digits(path: Path) -> None:
    path.write_text(f"code,age\n7,{'9' * 5000}\n")
    with pytest.raises(DataError, match="column 'age': 1 value is not integer 0 to 120: 9999"):
        rows(path)
    with pytest.raises(DataError, match="column 'code': 1 value"):
        rows(path, Schema([Categorical("code", values=(1, 2)), SCHEMA["age"]]))
    path.write_text(f"code,age\n{'9' * 5000},6\n")
    with pytest.raises(DataError, match="column 'code': 1 value is not categorical 1, 2: '9999"):
        rows(path, Schema([Categorical("code", values=(1, 2)), SCHEMA["age"]]))


def test_errors_do_not_repeat_the_line(path: Path) -> None:
    path.write_text("code,age\n7,6\nsecret,1,2\n")
    with pytest.raises(SourceError) as error:
        rows(path)
    assert "secret" not in str(error.value)


def test_all_bad_values_are_counted_over_all_batches(path: Path) -> None:
    path.write_text("code,age\n" + "7,6\n" * 500 + "7,200\n" * 500 + ",300\n")
    with pytest.raises(DataError) as error:
        rows(path, batch_rows=64)
    assert f"{path} does not fit the schema" in str(error.value)
    assert "column 'age': 501 values are not integer 0 to 120: e.g. 200, 300" in str(error.value)


def test_columns_without_a_name(path: Path, tmp_path: Path) -> None:
    path.write_text(",code,age,\n0,007,5,\n1,7,6,\n")
    assert rows(path) == [[0, 5], [1, 6]]
    assert Schema.draft(open_source(path)).names == ("code", "age")
    pyarrow.parquet.write_table(
        pa.table([[1], ["7"], [6]], names=["", "code", "age"]), tmp_path / "data.parquet"
    )
    assert rows(tmp_path / "data.parquet") == [[1, 6]]


def test_the_line_that_excel_writes_first(path: Path) -> None:
    path.write_text("sep=;\ncode;age\n007;5\n7;6\n")
    assert rows(path) == [[0, 5], [1, 6]]


def test_an_empty_field_is_null_only_where_the_schema_says_so(path: Path) -> None:
    path.write_text("x,y\n,1\nNA,2\n")
    schema = Schema(
        [
            Categorical("x", values=("", "b"), nullable=True, null_values=("NA",)),
            Integer("y", lower=0, upper=9),
        ]
    )
    np.testing.assert_array_equal(rows(path, schema), [[0, 1], [float("nan"), 2]])
    number = Schema(
        [Integer("x", lower=0, upper=9, nullable=True, null_values=("NA",)), schema["y"]]
    )
    with pytest.raises(DataError, match="1 value is not integer 0 to 9: ''"):
        rows(path, number)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"code,age\n7,6\r\n7,5\n", "ends otherwise than the first"),
        (b"code,age\n7," + b"6" * 17_000_000 + b"\n", "is longer than 16 MB"),
    ],
)
def test_lines_that_no_reader_takes(path: Path, content: bytes, message: str) -> None:
    check_bad(path, content, message)


def test_odd_line_breaks_in_names(path: Path) -> None:
    schema = Schema([Integer("a\u2028b", lower=0, upper=9)])
    path.write_text("a\u2028b,c\n5,6\n")
    with pytest.warns(LeftOutWarning):
        assert rows(path, schema) == [[5]]


def test_late_errors_are_translated_too(path: Path) -> None:
    """What goes wrong after the first batches comes through the Arrow stream."""
    path.write_bytes(b"code,age\n" + b"7,6\n" * 300_000 + b"caf\xe9,6\n")
    with pytest.raises(SourceError, match=r"not UTF-8 text \(line 300002\)"):
        rows(path)
