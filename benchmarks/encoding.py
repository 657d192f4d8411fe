"""Encoding: census rows from Parquet and CSV to row matrices, on one core.

    python -m benchmarks.encoding [--rows 5000000]

Beside it stands what people write with pandas: read the whole file, give each text column its
categories, take the codes, and put everything into one float matrix.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet

from benchmarks.measure import Result, measure, report
from private_gsd import datasets, open_source
from private_gsd.schema import Boolean, Categorical


def ours(path: Path) -> int:
    """Stream the file through the encoder."""
    return sum(len(matrix) for matrix in open_source(path, datasets.census_schema()).encoded())


def reading_only(path: Path) -> int:
    """Stream the file and do nothing with it."""
    return sum(batch.num_rows for batch in open_source(path, datasets.census_schema()).batches())


def with_pandas(path: Path) -> int:
    """What one would write with pandas, without any check of the values."""
    frame = pd.read_parquet(path)
    matrix = np.empty(frame.shape, order="F")
    for position, column in enumerate(datasets.census_schema()):
        values = frame[column.name]
        if isinstance(column, Categorical):
            codes = pd.Categorical(values, categories=list(column.values)).codes
            matrix[:, position] = np.where(codes < 0, np.nan, codes)
        elif isinstance(column, Boolean) or column.kind in ("integer", "real"):
            matrix[:, position] = values.astype("float64")
        else:
            moments = pd.to_datetime(values).astype("int64").astype("float64")
            matrix[:, position] = moments
    return len(matrix)


def write_parquet(path: Path, rows: int) -> None:
    """Write the census, a batch at a time."""
    schema = datasets.census_schema().arrow_schema
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in datasets.census_batches(rows):
            writer.write_batch(batch)


def main() -> None:
    """Make the data, measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.parquet", Path(folder) / "large.parquet"
        write_parquet(small, rows // 5)
        write_parquet(large, rows)
        csv = Path(folder) / "small.csv"
        pyarrow.csv.write_csv(pyarrow.parquet.read_table(small), csv)
        results: list[Result] = [
            measure("Parquet: read, check, encode", ours, partial(Path, large)),
            measure("the same, a fifth of the rows", ours, partial(Path, small)),
            measure("Parquet: read only", reading_only, partial(Path, large)),
            measure("pandas, whole file, no checks", with_pandas, partial(Path, large)),
            measure("CSV: read, check, encode", ours, partial(Path, csv)),
        ]
    report(f"Encoding {rows:,} census rows x 24 columns, one core", results)


if __name__ == "__main__":
    main()
