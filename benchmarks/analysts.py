"""Analysts: questions in SQL, asked for by name, beside what the default workload makes of them.

    python -m benchmarks.analysts --data adult.csv [--epsilon 1] [--seeds 5]

Three releases of one budget: all pairs of columns (the default workload), the questions alone, and
both. The error is that of the 200 questions in benchmarks/queries/adult.sql. The noise is seeded,
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

from private_gsd import LeftOutWarning, Schema, Synthesizer
from private_gsd.counting.comparison import share_errors
from private_gsd.counting.exact import count, exact_counts
from private_gsd.workloads import read_predicates
from private_gsd.workloads.specs import default_specs, workload_of

HERE = Path(__file__).parent


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore", LeftOutWarning)
    parser = argparse.ArgumentParser(description="Questions in SQL.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--schema", default=HERE / "schemas/adult.toml", type=Path)
    parser.add_argument("--queries", default=HERE / "queries/adult.sql", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    schema = Schema.read(options.schema)
    asked = read_predicates(schema, options.queries)
    pairs = workload_of(schema, default_specs(schema, 2))
    exact = exact_counts(asked, options.data)
    truth = exact.counts / exact.n_records
    table = Table("workload", "groups", "mean error", "spread", "largest error", "seconds")
    results = {}
    for name, workload in (("all pairs", pairs), ("questions", asked), ("both", pairs + asked)):
        means, largest, seconds = [], [], []
        for seed in range(options.seeds):
            synth = Synthesizer(
                schema,
                options.epsilon,
                workload=workload,
                mechanism="one-shot",
                rows=options.rows,
                random_state=seed,
                insecure_noise_seed=seed,
            )
            took: list[float] = []
            synth.fit(
                options.data,
                tell=lambda what, now, took=took: (
                    took.append(now.seconds)  # type: ignore[misc]
                    if what == "searching"
                    else None
                ),
            )
            found = share_errors(truth, count(asked, synth.release.matrix) / options.rows)
            means.append(found.mean)
            largest.append(found.max)
            seconds.append(took[-1])
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
