"""Growth: time and memory against records, rows out, columns and values, and the exponents.

    python -m benchmarks.growth [--series records rows-out columns values] [--most 1000]
        [--out growth.jsonl] [--cores 2]
    python -m benchmarks.growth --report growth.jsonl [--figure growth.svg]

Each series has one size that grows by a thousand, in steps of ten, and default settings otherwise
(ε = 1, OpenDP's noise). Records and rows out are of the simulated census of 24 columns, columns of
the table "tree" of ``benchmarks.wide`` with 50,000 records, and values of eight categorical columns
with 200,000 records, in which few values are frequent. The table is read from Parquet files.

Every release is made in a process of its own, after a small one that loads the kernels. Memory is
the peak of the process. Forecasts are those of ``plan``. The exponent of a step is the logarithm of
what it multiplies the figure by, to the base of what it multiplies the size by: 1 is in proportion.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import measure
from benchmarks.wide import simulated
from private_gsd import Categorical, Schema, Synthesizer, datasets

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = {
    "records": [10_000, 100_000, 1_000_000, 10_000_000],
    "rows-out": [1000, 10_000, 100_000, 1_000_000],
    "columns": [1, 10, 100, 1000],
    "values": [3, 30, 300, 3000],
}
FIXED = {"records": 100_000, "rows-out": 5000, "columns": 50_000, "values": 200_000}
PART = 1_000_000
# Records of the small release that comes before, and the most rows that it makes.
FEW, MORE = 2000, 40_000


def of_values(values: int, records: int, columns: int = 8) -> tuple[Schema, pa.Table]:
    """Columns of so many values, few of them frequent; each column follows the one before."""
    rng = np.random.default_rng(0)
    weights = 1 / (1 + np.arange(values)) ** 1.1
    texts = [f"v{value}" for value in range(values)]
    described, arrays, before = [], {}, np.zeros(records, dtype=np.int64)
    for place in range(columns):
        codes = rng.choice(values, records, p=weights / weights.sum())
        before = np.where(rng.random(records) < 0.5, (before * 7 + place) % min(values, 40), codes)
        described.append(Categorical(f"c{place}", values=texts))
        arrays[f"c{place}"] = pa.array(texts).take(pa.array(before))
    return Schema(described), pa.table(arrays)


def tables(series: str, size: int) -> tuple[Schema, Iterator[pa.Table]]:
    """The schema, and the parts of the table."""
    if series in ("records", "rows-out"):
        records = size if series == "records" else FIXED["records"]
        parts = (
            datasets.census(min(PART, records - start), seed=start // PART)
            for start in range(0, records, PART)
        )
        return datasets.census_schema(), parts
    made = (
        simulated("tree", size, FIXED[series])
        if series == "columns"
        else of_values(size, FIXED[series])
    )
    return made[0], iter([made[1]])


def prepared(schema: Schema, folder: str, rows: int | None) -> tuple[Schema, str, int | None]:
    """The same, after a small release of the same kind."""
    warnings.simplefilter("ignore")
    few = pq.ParquetFile(sorted(Path(folder).iterdir())[0])
    table = pa.Table.from_batches([next(few.iter_batches(FEW))])
    Synthesizer(schema, epsilon=1.0, rows=min(rows or MORE, MORE)).fit(table)
    return schema, folder, rows


def fit(given: tuple[Schema, str, int | None]) -> tuple[int, dict[str, Any]]:
    """Make a release of the table in a folder."""
    schema, folder, rows = given
    begin = time.process_time()
    Synthesizer(schema, epsilon=1.0, rows=rows).fit(f"{folder}/*.parquet")
    return 1, {"processor": time.process_time() - begin}


def forecast(series: str, size: int, schema: Schema, rows: int | None) -> dict[str, float]:
    """What ``plan`` says of time on one core, and of memory."""
    records = size if series == "records" else FIXED["records" if series == "rows-out" else series]
    plan = Synthesizer(schema, epsilon=1.0, rows=rows).plan(expected_records=records)
    return {"forecast": round(plan.seconds, 2), "forecast megabytes": round(plan.bytes / 1e6)}


def run(series: str, size: int, cores: int) -> dict[str, Any]:
    """The figures of one release."""
    rows = {"records": FIXED["rows-out"], "rows-out": size}.get(series)
    with tempfile.TemporaryDirectory() as folder:
        schema, parts = tables(series, size)
        for number, part in enumerate(parts):
            pq.write_table(part, f"{folder}/{number:04}.parquet")
        found = measure(series, fit, partial(prepared, schema, folder, rows), cores=cores)
    return {
        "series": series,
        "size": size,
        "seconds": round(found.seconds, 2),
        "processor": round(found.details["processor"], 2),
        "megabytes": round(found.peak_mb),
        **forecast(series, size, schema, rows),
    }


def exponents(sizes: list[int], figures: list[float]) -> list[float]:
    """The exponent of each step.

    >>> exponents([10, 100, 1000], [1.0, 10.0, 1000.0])
    [1.0, 2.0]
    """
    return [
        round(math.log(figures[step + 1] / figures[step], sizes[step + 1] / sizes[step]), 2)
        for step in range(len(sizes) - 1)
    ]


def report(found: list[dict[str, Any]]) -> str:
    """A table in Markdown."""
    heads = "| | | seconds | processor | exponent | forecast | memory | exponent | forecast |"
    lines = [heads, "|---" * 9 + "|"]
    for series in dict.fromkeys(each["series"] for each in found):
        mine = [each for each in found if each["series"] == series]
        sizes = [each["size"] for each in mine]
        steps = {
            key: ["", *exponents(sizes, [each[key] for each in mine])]
            for key in ("processor", "megabytes")
        }
        for place, each in enumerate(mine):
            lines.append(
                f"| {series.replace('-', ' ') if place == 0 else ''} | {each['size']:,} "
                f"| {each['seconds']:.3g} | {each['processor']:.3g} | {steps['processor'][place]} "
                f"| {each['forecast']:.3g} | {each['megabytes']:,} MB "
                f"| {steps['megabytes'][place]} | {each['forecast megabytes']:,} MB |"
            )
    return "\n".join(lines)


def draw(found: list[dict[str, Any]], path: str) -> None:
    """Curves of all series, as a picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "growth", "svg.fonttype": "none"}

    series = list(dict.fromkeys(each["series"] for each in found))
    figure, rows = plt.subplots(
        2, len(series), figsize=(2.6 * len(series), 4.6), sharey="row", squeeze=False
    )
    for column, name in enumerate(series):
        mine = [each for each in found if each["series"] == name]
        sizes = [each["size"] for each in mine]
        for row, (key, label) in enumerate(
            (("processor", "processor seconds"), ("megabytes", "peak memory, MB"))
        ):
            axes = rows[row, column]
            axes.loglog(sizes, [each[key] for each in mine], "o-", markersize=4)
            axes.grid(alpha=0.3)
            if column == 0:
                axes.set_ylabel(label)
        rows[1, column].set_xlabel(name.replace("-", " "))
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Measure, or report what was measured."""
    parser = argparse.ArgumentParser(description="Growth of time and memory.")
    parser.add_argument("--series", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--most", type=int, default=1000, help="the largest multiple of a size")
    parser.add_argument("--out")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--report")
    parser.add_argument("--figure")
    options = parser.parse_args()
    if options.report:
        found = [json.loads(line) for line in Path(options.report).read_text().splitlines()]
        print(report(found))
        if options.figure:
            draw(found, options.figure)
        return
    for series in options.series:
        for size in SIZES[series]:
            if size > options.most * SIZES[series][0]:
                continue
            line = json.dumps(run(series, size, options.cores))
            print(line, flush=True)
            if options.out:
                with Path(options.out).open("a") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
