"""Defaults: time, memory and errors of releases by default settings, large in one way each.

    python -m benchmarks.defaults [--acs FILE.csv] [--cases NAME …] [--cores 2]

Every release is made in a process of its own, after a small one of the same kind that loads the
kernels, with OpenDP's noise, as users get it. Peak memory is that of the process, with the table.
Beside them stand the forecasts of ``plan``, of time for one core, and the mean total variation
distance of pairs of columns (numbers in eighths). An older version of the package on PYTHONPATH
makes figures to compare with. A release that is not done after ten minutes is ended.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
import warnings
from typing import TYPE_CHECKING, Any

from benchmarks.wide import Judge, many_values, simulated

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from private_gsd import Schema

ACS_COLUMNS = (
    "PUMA SEX MSP HISP RAC1P NOC NPF HOUSING_TYPE OWN_RENT INDP_CAT EDU PINCP_DECILE DVET DREM "
    "DPHY DEYE DEAR"
)
# Records of the small release that comes before.
FEW = 2000
# Rows that the small release makes at most: some of them are new rows.
MORE = 40_000
LIMIT = 600


def census() -> tuple[Schema, Any]:
    """The simulated census."""
    from private_gsd import datasets

    return datasets.census_schema(), datasets.census(100_000)


def acs(path: str) -> tuple[Schema, Any]:
    """Seventeen discrete columns of the American Community Survey."""
    import pyarrow.csv as pacsv

    from private_gsd import Schema

    schema = Schema.read("benchmarks/schemas/acs_ma2019.toml").select(ACS_COLUMNS.split())
    texts = dict.fromkeys(ACS_COLUMNS.split(), "string")
    table = pacsv.read_csv(path, convert_options=pacsv.ConvertOptions(column_types=texts))
    return schema, table.select(schema.names)


Case = tuple["Callable[[], tuple[Schema, Any]]", dict[str, Any]]


def cases(path: str | None) -> dict[str, Case]:
    """For each case, what makes the table, and the settings that are not the default."""
    found: dict[str, Case] = {
        "100,000 rows, 24 columns": (census, {}),
        "the same, 5,000 rows out": (census, {"rows": 5000}),
        "the same, 1,000,000 rows out": (census, {"rows": 1_000_000}),
        "50,000 rows, 100 columns": (lambda: simulated("tree", 100, 50_000), {}),
        "50,000 rows, 300 columns": (lambda: simulated("tree", 300, 50_000), {}),
        "200,000 rows, 8 columns of up to 3,000 values": (
            lambda: many_values(8, 3000, 200_000),
            {},
        ),
    }
    if path:
        pairs = {"workload": ["categorical:2"], "rows": 5000}
        found["all pairs of 17 ACS columns, 5,000 rows out"] = lambda: acs(path), pairs
    return found


def run(name: str, path: str | None, out: Connection) -> None:
    """Make one release, and send its figures."""
    from private_gsd import Synthesizer

    warnings.simplefilter("ignore")
    make, settings = cases(path)[name]
    schema, table = make()
    small = {**settings, "rows": min(settings.get("rows", MORE), MORE)}
    Synthesizer(schema, epsilon=1.0, **small).fit(table.slice(0, FEW))
    synth = Synthesizer(schema, epsilon=1.0, **settings)
    forecast = synth.plan(table)
    begin, cpu = time.perf_counter(), time.process_time()
    synth.fit(table)
    found = {
        "case": name,
        "seconds": round(time.perf_counter() - begin, 2),
        "processor": round(time.process_time() - cpu, 2),
        "forecast": round(forecast.seconds, 2),
        "forecast megabytes": round(forecast.bytes / 1e6),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    judge = Judge(schema, table)
    out.send({**found, "pairs": round(judge.errors(synth.sample())["pairs"], 4)})


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Releases by default settings.")
    parser.add_argument("--acs")
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: options.cores]))
    context = multiprocessing.get_context("spawn")
    for name in options.cases or cases(options.acs):
        ours, theirs = context.Pipe()
        process = context.Process(target=run, args=(name, options.acs, theirs))
        process.start()
        theirs.close()
        try:
            done = ours.recv() if ours.poll(LIMIT) else {"case": name, "not done after": LIMIT}
        except EOFError:
            done = {"case": name, "failed": True}
        process.kill()
        process.join()
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
