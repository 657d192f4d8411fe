"""Projectors: the genetic search and its rivals on the same measurements of real data.

    python -m benchmarks.projectors --data FILE [--schema FILE] [--seeds 3] [--epsilon 1]
        [--only WORKLOAD …] [--projectors NAME …] [--log FILE]

Each projector makes a table of the paper's size for it from the same noisy answers, in a process of
its own on one core, and the table's answers are compared with the true ones. Four workloads are
measured one-shot: all pairs of discrete columns, every discrete column by every number's tree,
1,000 random prefixes and 1,000 random halfspaces. For the fifth an adaptive run of the graphical
model selects 10 of all 3-way marginals, and all others get what it measured. The noise is seeded,
so that anyone gets the same errors; a release would not be private. A projector may have settings
and another number of rows, as in "gsd@50000" or "rap:iterations=200@2000". "mst/pgm" is a mechanism
with a projector: it spends the same budget in its own way, on all pairs or triples of categories,
and its time is that of the whole run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import measure as measured_run
from private_gsd import Adaptive, LeftOutWarning, Schema, Sweep
from private_gsd.counting.comparison import share_errors
from private_gsd.counting.exact import count, exact_counts
from private_gsd.errors import WorkloadError
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection import projector_of
from private_gsd.workloads.specs import workload_of

WORKLOADS = {
    "2-way categorical": "categorical:2",
    "2-way tree": "tree:2",
    "prefixes": "prefix:1000",
    "halfspaces": "halfspace:1000",
    "3-way, selected": "categorical:3",
}
EPOCHS = 10
# The sizes of the paper's tables; None is as many rows as the data has.
ROWS: dict[str, int | None] = {
    "gsd": 2000,
    "rap": 50_000,
    "gem": 50_000,
    "rap++": 1000,
    "pgm": None,
}
MECHANISMS = ("mst/pgm", "aim/pgm", "mst/gsd", "aim/gsd")
SERVED = ("2-way categorical", "3-way, selected")
SCHEMA = "benchmarks/schemas/acs_ma2019.toml"


def load(folder: str) -> Measurements:
    """What a process begins with."""
    return Measurements.load(folder)


def project(
    spec: str, rows: int, seed: int, result: str, measurements: Measurements
) -> tuple[int, dict[str, Any]]:
    """What a process is timed with; the table goes to a file."""
    threads = 1 if spec == "gsd" else None
    found = projector_of(spec).project(measurements, rows=rows, seed=seed, threads=threads)
    np.save(result, found.matrix)
    return rows, {"steps": found.steps, "reason": found.reason}


def begin(schema: str, data: str, name: str) -> Sweep:
    """What a process begins with that runs a whole mechanism."""
    warnings.simplefilter("ignore", LeftOutWarning)
    public = Schema.read(schema)
    return Sweep(public, data, workload_of(public, [WORKLOADS[name]]))


def run_whole(
    spec: str, rows: int, seed: int, epsilon: float, result: str, sweep: Sweep
) -> tuple[int, dict[str, Any]]:
    """What a process is timed with that runs a whole mechanism; the table goes to a file."""
    mechanism, _, projector = spec.partition("/")
    settings = {"mechanism": mechanism, "projector": projector, "rows": rows}
    (run,) = sweep.run([epsilon], seeds=[seed], settings=[settings], insecure=True, n_jobs=1)
    np.save(result, run.matrix)
    return rows, {"measured": run.measurements.workload.num_groups}


def measurements_of(sweep: Sweep, name: str, epsilon: float, seed: int) -> Measurements:
    """The noisy answers that all projectors get."""
    # The table of a one-shot run is thrown away.
    settings: dict[str, Any] = {"projector": "gsd:generations=0", "rows": 1}
    if name.endswith("selected"):
        settings = {"mechanism": Adaptive(epochs=EPOCHS), "projector": "pgm"}
    (run,) = sweep.run([epsilon], seeds=[seed], settings=[settings], insecure=True, n_jobs=1)
    return run.measurements


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore", LeftOutWarning)
    parser = argparse.ArgumentParser(description="Projectors on the same measurements.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--schema", default=SCHEMA)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--projectors", nargs="+", default=[*ROWS, *MECHANISMS])
    parser.add_argument("--log", help="Also write each result here, as it comes.")
    options = parser.parse_args()
    schema = Schema.read(options.schema)
    table = Table("workload", "projector", "mean error", "largest error", "seconds", "peak MB")
    for name in options.only:
        workload = workload_of(schema, [WORKLOADS[name]])
        exact = exact_counts(workload, options.data)
        true = exact.counts / exact.n_records
        sweep = Sweep(schema, options.data, workload)
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(options.seeds):
                found = measurements_of(sweep, name, options.epsilon, seed)
                found.save(Path(folder) / str(seed))
            for shown in options.projectors:
                spec, _, wanted = shown.partition("@")
                projector = projector_of(spec.rpartition("/")[2])
                rows = int(wanted or ROWS[projector.name] or exact.n_records)
                try:
                    projector.check(found.workload)
                    reason = None if "/" in spec else projector.why_infeasible(found.workload)
                except WorkloadError as error:
                    reason = str(error)
                if "/" in spec and name not in SERVED:
                    reason = "mechanisms are compared on marginals of categories"
                if reason is not None:
                    print(f"{name}: {shown} is left out: {reason}", flush=True)
                    continue
                runs = []
                for seed in range(options.seeds):
                    target = str(Path(folder) / "table.npy")
                    work: Callable[[Any], tuple[int, dict[str, Any]]]
                    prepare: Callable[[], Any]
                    if "/" in spec:
                        work = partial(run_whole, spec, rows, seed, options.epsilon, target)
                        prepare = partial(begin, options.schema, options.data, name)
                    else:
                        work = partial(project, spec, rows, seed, target)
                        prepare = partial(load, str(Path(folder) / str(seed)))
                    run = measured_run(spec, work, prepare)
                    shares = count(workload, np.load(target)) / rows
                    errors = share_errors(true, shares)
                    runs.append((errors.mean, errors.max, run.seconds, run.peak_mb))
                    document = {
                        "workload": name,
                        "projector": shown,
                        "seed": seed,
                        "rows": rows,
                        "mean": errors.mean,
                        "max": errors.max,
                        "seconds": run.seconds,
                        "peak_mb": run.peak_mb,
                        **run.details,
                    }
                    print(json.dumps(document), flush=True)
                    if options.log:
                        with Path(options.log).open("a") as log:
                            log.write(json.dumps(document) + "\n")
                mean, largest = np.mean([run[:2] for run in runs], axis=0)
                # Other work on the machine makes a run slower, never faster: the best time counts.
                seconds, peak = min(run[2] for run in runs), max(run[3] for run in runs)
                table.add_row(
                    *(name, shown, f"{mean:.5f}", f"{largest:.4f}", f"{seconds:.1f}"),
                    f"{peak:,.0f}",
                )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
