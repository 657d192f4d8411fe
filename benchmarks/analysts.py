"""Analysts: queries in SQL, measured by name, beside what the default workload makes of them.

    python -m benchmarks.analysts --data adult.csv [--epsilon 1] [--seeds 5]

Three releases of one budget: all pairs of columns (the default workload), the queries alone, and
both. The error is that of the 200 queries in benchmarks/queries/adult.sql. The noise is seeded,
so that anyone gets the same figures; a release would not be private.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Phases
from private_gsd import LeftOutWarning, Schema, Synthesizer
from private_gsd.counting.comparison import share_errors
from private_gsd.counting.exact import count, exact_counts
from private_gsd.workloads import read_predicates
from private_gsd.workloads.specs import default_specs, workload_of

HERE = Path(__file__).parent


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore", LeftOutWarning)
    parser = argparse.ArgumentParser(description="Queries in SQL.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--schema", default=HERE / "schemas/adult.toml", type=Path)
    parser.add_argument("--queries", default=HERE / "queries/adult.sql", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    schema = Schema.read(options.schema)
    queries = read_predicates(schema, options.queries)
    pairs = workload_of(schema, default_specs(schema, 2))
    exact = exact_counts(queries, options.data)
    truth = exact.counts / exact.n_records
    table = Table("workload", "groups", "mean error", "spread", "largest error", "seconds")
    results = {}
    for name, workload in (("all pairs", pairs), ("queries", queries), ("both", pairs + queries)):
        means, largest, seconds = [], [], []
        for seed in range(options.seeds):
            synth = Synthesizer(
                schema,
                options.epsilon,
                workload=workload,
                mechanism="one-shot",
                rows=options.rows,
                random_state=seed,
            )
            phases = Phases()
            synth.fit(options.data, insecure_noise_seed=seed, progress=phases)
            matrix = synth.release_.matrix
            found = share_errors(truth, count(queries, matrix) / options.rows)
            means.append(found.mean)
            largest.append(found.max)
            seconds.append(phases.seconds("searching"))
        results[name] = [float(np.mean(each)) for each in (means, largest, seconds)]
        table.add_row(
            name,
            f"{workload.num_groups:,}",
            f"{np.mean(means):.5f}",
            f"{np.std(means):.5f}",
            f"{np.mean(largest):.4f}",
            f"{np.mean(seconds):.1f}",
        )
    Console(width=100).print(table)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
