"""Files: what is read, and what each bad file says."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from private_gsd import Categorical, Integer, LeftOutWarning, Schema, open_source
from private_gsd.errors import SourceError
from tests.data.sources.small_files import GOOD, SCHEMA, check_bad, rows


def test_names_with_brackets(tmp_path: Path) -> None:
    path = tmp_path / "data [1]*.csv"
    path.write_text(GOOD)
    assert rows(path) == [[0, 5], [1, 6]]


def test_globs_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text("age,code\n7,007\n")
    (tmp_path / "notes.md").write_text("not data")
    expected = [[0, 5], [1, 6], [0, 7]]
    assert rows(tmp_path / "*.csv") == expected
    assert rows(tmp_path) == expected


def test_a_source_can_be_read_again_in_any_batches(path: Path) -> None:
    path.write_text("code,age\n" + "7,6\n" * 1000)
    source = open_source(path, SCHEMA)
    sizes = [batch.num_rows for batch in source.batches(batch_rows=300)]
    assert sum(sizes) == 1000
    assert max(sizes) <= 300
    assert sum(len(matrix) for matrix in source.encoded()) == 1000


def test_columns_left_out_are_named(path: Path) -> None:
    path.write_text("code,age,name,phone\n7,6,a,b\n")
    with pytest.warns(LeftOutWarning, match=r"data.csv: left out.*: name, phone"):
        source = open_source(path, SCHEMA)
    assert source.left_out == ("name", "phone")
    assert source.columns == ("code", "age")


@pytest.mark.parametrize("name", [b"caf\xe9.csv", b"caf\xe9.parquet", b"caf\xe9/data.csv"])
def test_a_path_that_is_not_utf8(tmp_path: Path, name: bytes) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.parent.mkdir(exist_ok=True)
    path.write_text(GOOD)
    for given in (path, tmp_path, tmp_path / "*.*" if path.parent == tmp_path else path):
        with pytest.raises(SourceError, match=r"caf\\udce9.*: the path is not UTF-8 text; rename"):
            open_source(given, SCHEMA)
    with pytest.raises(SourceError, match=r"caf\\udce9.*no such file"):
        open_source(path.with_suffix(".tsv"), SCHEMA)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.csv.gz", b"code,age\n7,6\n", "not a gzip file"),
        ("data.csv.gz", gzip.compress(GOOD.encode() * 9000)[:-20], "data.csv.gz"),
        ("data.parquet", b"", "not a Parquet file, or a torn one: empty"),
        ("data.parquet", b"PAR1 and then nothing", "not a Parquet file, or a torn one"),
        ("data.xlsx", b"PK", "unknown sort of file; expected one of .csv"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    check_bad(tmp_path / name, content, message)


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere.csv: no such file"):
        open_source(tmp_path / "nowhere.csv", SCHEMA)
    with pytest.raises(SourceError, match="no file matches"):
        open_source(tmp_path / "*.csv", SCHEMA)
    with pytest.raises(SourceError, match="the folder holds no CSV or Parquet file"):
        open_source(tmp_path, SCHEMA)


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text("code,years\n7,6\n")
    with pytest.raises(SourceError, match=r"b.csv lacks columns that .*a.csv has: age"):
        rows(tmp_path / "*.csv")
    pyarrow.parquet.write_table(pa.table({"code": ["7"], "age": [1]}), tmp_path / "c.parquet")
    with pytest.raises(SourceError, match="both CSV and Parquet"):
        rows(tmp_path)
    pyarrow.parquet.write_table(pa.table({"code": ["7"]}), tmp_path / "d.parquet")
    with pytest.raises(SourceError, match=r"d.parquet lacks columns that .*c.parquet has: age"):
        rows(tmp_path / "*.parquet")


def test_hidden_files_and_endings_in_capitals(tmp_path: Path) -> None:
    (tmp_path / "a.CSV").write_text(GOOD)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "a.csv").write_text(GOOD)
    (tmp_path / "._a.csv").write_text("junk")
    (tmp_path / "_SUCCESS.csv").write_text("junk")
    assert rows(tmp_path) == [[0, 5], [1, 6]]


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_path_is_not_the_current_folder(empty: str) -> None:
    with pytest.raises(SourceError, match="the path of the table is empty"):
        open_source(empty, SCHEMA)


def test_a_source_opened_again_is_read_by_the_schema(path: Path) -> None:
    path.write_text("x,y\n,1\n")
    schema = Schema(
        [
            Categorical("x", values=("", "b"), nullable=True, null_values=("NA",)),
            Integer("y", lower=0, upper=9),
        ]
    )
    assert rows(open_source(path), schema) == rows(path, schema) == [[0, 1]]
