"""Observing: everything that can be seen of a result, as texts, lists and dicts to be compared.

Nothing is left out silently: an object of an unknown kind is an error.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import io
import re
import sqlite3
import stat
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet

from private_gsd import Release, Schema
from private_gsd.measurements.measurements import Measurements
from private_gsd.workloads import Workload
from private_gsd.workloads.serialisation import dump_workload

# What is seen: a text, or a list or dict of what is seen.
Seen = Any
PLAIN = (
    *(type(None), bool, int, float, np.generic, Decimal, type),
    *(dt.date, dt.time, dt.timedelta, type(pd.NA), type(pd.NaT)),
)


def observe(value: Any) -> Seen:
    """Everything that can be seen of a value, its type included."""
    if isinstance(value, str):
        # But for where an object lies in memory; and markup is seen as a text.
        return re.sub(r" at 0x[0-9a-f]+", " at …", str.__str__(value))
    if isinstance(value, bytes):
        return f"{len(value)} bytes {hashlib.sha256(value).hexdigest()}"
    if isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, Path):
        return folder_of(value) if value.is_dir() else file_of(value)
    if isinstance(value, Mapping):
        return {str(observe(key)): observe(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return {"type": type(value).__name__, "items": [observe(each) for each in value]}
    for kind, look in LOOKS.items():
        if isinstance(value, kind):
            return {"type": _name(value), **look(value)}
    if type(value).__module__.startswith("pyspark.sql"):
        return {"type": _name(value), **_spark(value)}
    if dataclasses.is_dataclass(value):
        return {
            "type": _name(value),
            "repr": repr(value),
            **{each.name: observe(getattr(value, each.name)) for each in dataclasses.fields(value)},
        }
    raise TypeError(f"nobody said how to observe {type(value)}")


def first_difference(one: Seen, other: Seen, where: str = "") -> str | None:
    """Where two observations are different, and how; None where they are not."""
    if type(one) is not type(other):
        return f"{where}: {_short(one)} and {_short(other)}"
    if isinstance(one, dict):
        if list(one) != list(other):
            return f"{where}: what is there differs: {_apart(str(list(one)), str(list(other)))}"
        pairs = [(f"{where} › {key}", one[key], other[key]) for key in one]
    elif isinstance(one, list):
        pairs = [
            (f"{where} [{number}]", *each)
            for number, each in enumerate(zip(one, other, strict=False))
        ]
    else:
        return None if one == other else f"{where}: {_apart(str(one), str(other))}"
    for place, mine, theirs in pairs:
        found = first_difference(mine, theirs, place)
        if found is not None:
            return found
    if len(one) != len(other):
        return f"{where}: {len(one)} things and {len(other)}"
    return None


def _apart(one: str, other: str) -> str:
    """Two texts around the place from which they differ."""
    same = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    start = max(0, same - 60)
    return f"\n  one:   {one[start : same + 120]!r}\n  other: {other[start : same + 120]!r}"


def _short(seen: Seen) -> str:
    return repr(seen)[:120]


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


# Files


def folder_of(folder: Path) -> Seen:
    """Every file in a folder and below, hidden ones too."""
    paths = sorted(path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    return {str(path.relative_to(folder)): file_of(path) for path in paths}


def file_of(path: Path) -> Seen:
    """What is in a file, read as far as it can be, and its bytes."""
    content = path.read_bytes()
    seen = {"mode": stat.filemode(path.stat().st_mode), "size": str(len(content))}
    if path.name.endswith(("-wal", "-shm", "-journal")):  # of SQLite, with random numbers
        return seen
    if path.suffix == ".db":  # its pages may hold what was deleted
        return {**seen, "rows": _database(path)}
    # The digest says whether they are the same; the rest is for people to read.
    return {**seen, "read": _read(path, content), "sha256": hashlib.sha256(content).hexdigest()}


def _read(path: Path, content: bytes) -> Seen:
    if path.suffix == ".parquet":
        file = pyarrow.parquet.ParquetFile(io.BytesIO(content))
        return {
            "schema": file.schema_arrow.to_string(truncate_metadata=False),
            "metadata": str(file.metadata.metadata),
            "made by": file.metadata.created_by,
            "columns": str(file.metadata.schema).partition("\n")[2],
        }
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "not text"


def _database(path: Path) -> Seen:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


# Frames


def _pandas(frame: Any) -> dict[str, Seen]:
    try:
        metadata = str(pa.Table.from_pandas(frame).schema.to_string(truncate_metadata=False))
    except (pa.ArrowException, TypeError) as error:
        metadata = f"{type(error).__name__}: {error}"
    return {
        "columns": observe(list(frame.columns)),
        "kind of names": repr(frame.columns),
        "index": repr(frame.index),
        "attrs": observe(frame.attrs),
        "dtypes": {str(name): _pandas_type(frame[name].dtype) for name in frame.columns},
        "values": {str(name): observe(list(frame[name].array)) for name in frame.columns},
        "as Arrow": metadata,
        "bytes": str(list(frame.memory_usage(deep=True))),
        "repr": repr(frame),
    }


def _pandas_type(dtype: Any) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        known = dtype.categories
        return f"category of {list(known)!r} ({known.dtype!r}), ordered: {dtype.ordered}"
    return repr(dtype)


def _polars(frame: Any) -> dict[str, Seen]:
    return {
        "schema": repr(frame.schema),
        "columns": {name: _polars_series(frame[name]) for name in frame.columns},
        "as Arrow": _arrow(frame.to_arrow()),
        "repr": repr(frame),
        "html": frame._repr_html_(),
    }


def _polars_series(series: Any) -> Seen:
    seen = {
        "type": repr(series.dtype),
        "values": observe(series.to_list()),
        "flags": repr(series.flags),
        "chunks": str(series.chunk_lengths()),
    }
    if series.dtype in (pl.Categorical, pl.Enum):
        # The codes of categories may follow the order in which this process has met them.
        seen["codes"] = observe(series.to_physical().to_list())
    return seen


def _polars_lazy(frame: Any) -> dict[str, Seen]:
    return {"plan": frame.explain(), "collected": _polars(frame.collect())}


def _arrow(table: Any) -> dict[str, Seen]:
    columns = {}
    for number, name in enumerate(table.schema.names):
        column = table.column(number)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        columns[f"{number} {name}"] = {
            "type": str(column.type),
            "chunks": str([(len(chunk), chunk.null_count, chunk.nbytes) for chunk in chunks]),
            "categories": observe(
                [
                    chunk.dictionary.to_pylist()
                    for chunk in chunks
                    if isinstance(chunk, pa.DictionaryArray)
                ]
            ),
            "values": observe(column.to_pylist()),
        }
    return {
        "schema": table.schema.to_string(truncate_metadata=False),
        "columns": columns,
        "repr": str(table),
    }


def _duckdb(relation: Any) -> dict[str, Seen]:
    return {
        "columns": str(relation.columns),
        "types": str(relation.types),
        "rows": observe(relation.fetchall()),
        "repr": str(relation),
    }


def _spark(frame: Any) -> dict[str, Seen]:
    return {
        "schema": frame.schema.json(),
        "rows": [repr(row) for row in frame.collect()],
        "repr": repr(frame),
    }


# What else is public


def _error(error: BaseException) -> dict[str, Seen]:
    return {
        "says": str(error),
        "notes": list(getattr(error, "__notes__", [])),
        "exit code": str(getattr(error, "exit_code", None)),
    }


def _workload(workload: Workload) -> dict[str, Seen]:
    families, arrays = dump_workload(workload)
    return {"repr": repr(workload), "families": observe(families), "arrays": observe(arrays)}


def _release(release: Release) -> dict[str, Seen]:
    return {
        "repr": repr(release),
        "html": observe(release._repr_html_()),
        "complete": str(release.complete),
        "privacy": observe(release.privacy),
        "files": folder_of(release.folder),
    }


LOOKS: dict[Any, Any] = {
    pd.DataFrame: _pandas,
    pl.DataFrame: _polars,
    pl.LazyFrame: _polars_lazy,
    (pa.Table, pa.RecordBatch): _arrow,
    pa.Schema: lambda schema: {"fields": schema.to_string(truncate_metadata=False)},
    duckdb.DuckDBPyRelation: _duckdb,
    np.ndarray: lambda array: {
        "dtype": str(array.dtype),
        "shape": str(array.shape),
        "values": [repr(each) for each in array.ravel().tolist()],
    },
    BaseException: _error,
    Schema: lambda schema: {"repr": repr(schema), "toml": schema.to_toml()},
    Workload: _workload,
    Release: _release,
    Measurements: lambda measured: {
        "repr": repr(measured),
        **{
            each.name: observe(getattr(measured, each.name))
            for each in dataclasses.fields(measured)
        },
    },
}
