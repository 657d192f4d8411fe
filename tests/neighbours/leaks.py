"""Doors that leak on purpose: each tells how many nulls there are, in another way."""

from __future__ import annotations

import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet

import private_gsd as gsd
from private_gsd.errors import BudgetError, GsdError
from tests.neighbours.doors import Look, Visit, command


def _nulls(visit: Visit) -> int:
    return sum(value == "" for row in visit.rows for value in row.values())


def _warned(visit: Visit) -> None:
    warnings.warn(gsd.LeftOutWarning(f"{_nulls(visit)} nulls"), stacklevel=1)


def _failed(visit: Visit) -> None:
    raise BudgetError(f"{_nulls(visit)} nulls")


def _noted(visit: Visit) -> None:
    error = GsdError("no")
    error.add_note(f"{_nulls(visit)} nulls")
    raise error


def _written(visit: Visit) -> Path:
    (visit.folder / "file.bin").write_bytes(b"\0" * _nulls(visit))
    return visit.folder


def _named(visit: Visit) -> Path:
    (visit.folder / f".{_nulls(visit)}").touch()
    return visit.folder


def _moded(visit: Visit) -> Path:
    (visit.folder / "file").touch(mode=0o600 + bool(_nulls(visit)))
    return visit.folder


def _parquet(visit: Visit) -> Path:
    """The same values, and what pandas says of the frame that they came from."""
    table = pa.table({"a": [1]}).replace_schema_metadata({"nulls": str(_nulls(visit))})
    pyarrow.parquet.write_table(table, visit.folder / "file.parquet")
    return visit.folder


def _charged(visit: Visit) -> Path:
    connection = sqlite3.connect(visit.folder / "ledger.db")
    connection.execute("CREATE TABLE charges (units INTEGER)")
    connection.execute("INSERT INTO charges VALUES (?)", (_nulls(visit),))
    connection.commit()
    connection.close()
    return visit.folder


def _with_attributes(visit: Visit) -> Any:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["nulls"] = _nulls(visit)
    return frame


LEAKS: dict[str, Look] = {
    "a count": _nulls,
    "a type": lambda visit: 1.0 if _nulls(visit) else 1,
    "an order": lambda visit: {n: n for n in sorted("ab", reverse=bool(_nulls(visit)))},
    "a length": lambda visit: [0] * _nulls(visit),
    "an array's type": lambda visit: np.zeros(1, dtype=np.int8 if _nulls(visit) else np.int16),
    "a frame's types": lambda visit: pd.DataFrame(
        {"a": [1]}, dtype="Int64" if _nulls(visit) else int
    ),
    "a frame's categories": lambda visit: pd.DataFrame(
        {"a": pd.Categorical(["x"], ["x", "y"] if _nulls(visit) else ["y", "x"])}
    ),
    "a frame's order": lambda visit: pl.DataFrame(
        dict.fromkeys(("ab", "ba")[bool(_nulls(visit))], 1)
    ),
    "a frame's attributes": _with_attributes,
    "codes": lambda visit: pl.DataFrame(
        {"a": pl.Series(["x"], dtype=pl.Enum(["x", "y"] if _nulls(visit) else ["y", "x"]))}
    ),
    "chunks": lambda visit: pa.table(
        {"a": pa.chunked_array([[1]] + [[]] * bool(_nulls(visit)), pa.int64())}
    ),
    "an Arrow field": lambda visit: pa.schema([pa.field("a", pa.int64(), bool(_nulls(visit)))]),
    "metadata": lambda visit: pa.table({"a": [1]}).replace_schema_metadata(
        {"n": str(_nulls(visit))}
    ),
    "a warning": _warned,
    "an error": _failed,
    "a note on an error": _noted,
    "a file's size": _written,
    "a file's name": _named,
    "a file's mode": _moded,
    "metadata of a Parquet file": _parquet,
    "a row of a ledger": _charged,
    "what a command says": lambda visit: command(
        visit, *(["--version"] if _nulls(visit) else ["-h"])
    ),
    "an exit code": lambda visit: command(visit, "report", "x", *["-o", "x.html"][: _nulls(visit)])[
        "exit code"
    ],
}
