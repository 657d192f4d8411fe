"""Numbers: the tables of other systems' own packages, to compare with ours.

    python -m benchmarks.numbers.other_systems --data FILE.csv|census [--data …] --out FOLDER
        --system dpmm-aim|dpmm-mst|opendp-aim|opendp-mst|… [--system …] --python PATH
        [--epsilons 0.23 1 3] [--seeds 5] [--jobs 1] [--limit SECONDS]

``python -m benchmarks.numbers`` then compares all tables in the folder. The packages do not go
together with ours or with one another, and run in an interpreter of their own, ``--python``:

    python3.11 -m venv dpmm && dpmm/bin/pip install dpmm==0.1.9
    python3.11 -m venv opendp && opendp/bin/pip install 'opendp[mbi]==0.16.0' pandas
    python3.11 -m venv smartnoise && smartnoise/bin/pip install smartnoise-synth==1.0.8

They take what our schemas say as public: categories, bounds, and which columns have nulls; but
smartnoise finds the categories in the data. All promise (ε, δ) for adding or removing one row,
which is weaker than for replacing one, and to their advantage. Their noise is secure: a seed names
a table, and does not make it again. How they are called is in ``other_fits.py``. A table is left
out that takes more than ten minutes of a processor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.numbers.__main__ import everything
from benchmarks.numbers.datasets import table_of
from benchmarks.numbers.making import DELTA, Run
from benchmarks.numbers.scores import read
from private_gsd import Encoder
from private_gsd.privacy.budget import rho_of
from private_gsd.schema import Discrete, Real

if TYPE_CHECKING:
    from private_gsd import Column, Schema

    Rows = np.ndarray[Any, Any]

SYSTEMS = (
    "dpmm-aim",
    "dpmm-mst",
    "dpmm-privbayes",
    "opendp-aim",
    "opendp-mst",
    "smartnoise-aim",
    "smartnoise-mst",
)
FITS = Path(__file__).with_name("other_fits.py")
# One core for each table, whatever the library of linear algebra.
ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def make(run: Run, folder: Path, python: str, limit: int) -> None:
    """Make a synthetic table by another system; a finished one is kept.

    Args:
        run: The run.
        folder: The folder of the tables.
        python: The interpreter that has the system.
        limit: The most seconds of a processor that it may take.
    """
    path = run.path(folder)
    if path.exists():
        return
    schema, table = table_of(run.data)
    try:
        rows, seconds = rows_of(run, schema, read(table, schema).sample, python, limit)
    except subprocess.CalledProcessError as error:
        print(f"{path.name}: left out, {error}", flush=True)
        return
    path.with_suffix(".json").write_text(json.dumps(seconds))
    unfinished = path.with_suffix(".part")
    made = Encoder(schema).decode(rows)
    pq.write_table(pa.Table.from_batches([made]), unfinished)
    unfinished.rename(path)
    print(f"{path.name}: {seconds}", flush=True)


def rows_of(
    run: Run, schema: Schema, matrix: Rows, python: str, limit: int
) -> tuple[Rows, list[float]]:
    """Synthetic rows by another system, encoded, and the seconds of wall and processor time.

    Args:
        run: The run.
        schema: The schema.
        matrix: The real rows, encoded.
        python: The interpreter that has the system.
        limit: The most seconds of a processor that it may take.
    """
    request = {
        "system": run.system,
        "epsilon": run.epsilon,
        "delta": DELTA,
        "rho": rho_of(run.epsilon, DELTA),
        "seed": run.seed,
        "limit": limit,
        "columns": {column.name: described(column) for column in schema},
    }
    with tempfile.TemporaryDirectory() as exchange:
        np.save(Path(exchange, "real.npy"), matrix)
        Path(exchange, "request.json").write_text(json.dumps(request))
        command = [python, str(FITS), exchange]
        subprocess.run(command, check=True, env={**os.environ, **ONE_CORE}, stderr=subprocess.PIPE)
        made = np.load(Path(exchange, "made.npy"))
        seconds = json.loads(Path(exchange, "seconds.json").read_text())
    return within(schema, made, run.seed), seconds


def described(column: Column) -> dict[str, Any]:
    """What is publicly known about an encoded column, in plain values."""
    lower, upper = column.bounds
    known = {"nullable": column.nullable, "lower": lower, "upper": upper}
    if isinstance(column, Discrete):
        return {**known, "kind": "category"}
    return {**known, "kind": "real" if isinstance(column, Real) and column.decimals else "whole"}


def within(schema: Schema, made: Rows, seed: int) -> Rows:
    """Rows as the schema allows them: within bounds, and nulls only where they may be.

    Other nulls become values of random other rows.
    """
    rng = np.random.default_rng(seed)
    made = made.copy()
    for place, column in enumerate(schema):
        values = made[:, place]
        np.clip(values, *column.bounds, out=values)
        null = np.isnan(values)
        if null.any() and not column.nullable:
            values[null] = rng.choice(values[~null], null.sum())
    return made


def main() -> None:
    """Make the tables, one seed after the other."""
    parser = argparse.ArgumentParser(description="Tables of other systems.")
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--system", action="append", choices=SYSTEMS, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.23, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=600)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = itertools.product(range(options.seeds), options.system, options.data, options.epsilons)
    runs = [Run(data, system, epsilon, seed) for seed, system, data, epsilon in wanted]
    do = partial(make, python=options.python, limit=options.limit)
    everything(do, runs, options.out, options.jobs)


if __name__ == "__main__":
    main()
