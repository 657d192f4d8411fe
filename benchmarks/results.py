"""Results: errors of synthetic tables on real data, by budget and by mechanism.

    python -m benchmarks.results --data FILE --schema FILE [--seeds 3]

One-shot: all pairs of discrete columns and every discrete column by every number, for each ε.
Then one-shot beside adaptive on all 3-way marginals, with the same budget. The noise is seeded, so
that anyone gets the same figures; a release would not be private.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from private_gsd import Adaptive, LeftOutWarning, Schema, Synthesizer
from private_gsd.counting.comparison import share_errors
from private_gsd.counting.exact import count, exact_counts
from private_gsd.workloads.specs import workload_of

EPSILONS = (0.07, 0.23, 0.52, 0.74, 1.0)
PAIRS = ["categorical:2", "tree:2"]
THREE_WAY = ["categorical:3"]
ADAPTIVE = [(10, 1), (10, 5), (25, 1), (25, 5), (50, 5)]


def errors(
    schema: Schema, data: str, specs: list[str], seeds: int, epsilon: float, **settings: Any
) -> dict[str, float]:
    """Mean and largest error against the true answers, over seeds."""
    workload = workload_of(schema, specs)
    exact = exact_counts(workload, data)
    found = []
    for seed in range(seeds):
        synth = Synthesizer(
            schema,
            epsilon,
            workload=specs,
            random_state=seed,
            **settings,
        ).fit(data, insecure_noise_seed=seed)
        matrix = synth.release_.matrix
        shares = count(workload, matrix) / len(matrix)
        found.append(share_errors(exact.counts / exact.n_records, shares))
    means = np.array([each.mean for each in found])
    return {
        "mean": float(means.mean()),
        "spread": float(means.std()),
        "max": float(np.mean([each.max for each in found])),
    }


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore", LeftOutWarning)
    parser = argparse.ArgumentParser(description="Errors on real data.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--schema", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    schema = Schema.read(options.schema)
    results = []
    table = Table("workload", "mechanism", "ε", "mean error", "± over seeds", "largest error")
    jobs: list[tuple[list[str], str, Any]] = [
        (PAIRS, "one-shot", "one-shot"),
        (THREE_WAY, "one-shot", "one-shot"),
    ]
    jobs += [
        (THREE_WAY, f"adaptive, T = {t}, S = {s}", Adaptive(epochs=t, queries_per_epoch=s))
        for t, s in ADAPTIVE
    ]
    for specs, name, mechanism in jobs:
        for epsilon in EPSILONS:
            found = errors(
                schema,
                options.data,
                specs,
                options.seeds,
                epsilon,
                rows=options.rows,
                mechanism=mechanism,
            )
            results.append({"workload": specs, "mechanism": name, "epsilon": epsilon, **found})
            table.add_row(
                " + ".join(specs),
                name,
                f"{epsilon:g}",
                f"{found['mean']:.5f}",
                f"{found['spread']:.5f}",
                f"{found['max']:.3f}",
            )
    Console(width=120).print(table)
    print(json.dumps({"data": options.data, "rows": options.rows, "results": results}))


if __name__ == "__main__":
    main()
