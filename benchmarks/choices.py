"""Choices: what to measure, and how to spend the budget, by the noise that it would mean.

    python -m benchmarks.choices [--data FILE --schema FILE | --records 30000] [--seeds 2]

For each ε: single columns, pairs and triples, one-shot, and triples layered. Each is judged by how
far the synthetic table is from the true one over all pairs of categories, categories by numbers,
pairs of numbers, and triples of categories: the total variation distance, the share of rows that
would have to move, averaged over the tables. These are the measurements behind
``private_gsd.mechanisms.defaults``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from private_gsd import LeftOutWarning, Schema, Synthesizer, datasets
from private_gsd.counting.exact import count, exact_counts
from private_gsd.mechanisms.defaults import choose_mechanism, choose_specs, noise_share
from private_gsd.privacy.budget import RhoBudget, default_delta
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.workloads import Workload

JUDGED = ("categorical:2", "tree:2", "numeric:2", "categorical:3")
NAMES = {1: "single columns", 2: "pairs", 3: "triples"}


def distance(workload: Workload, one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The total variation distance, averaged over all tables of a workload."""
    differences = np.add.reduceat(np.abs(one - other), workload.offsets[:-1])
    tables = np.add.reduceat(one, workload.offsets[:-1])  # each of them sums to 1
    return float(np.mean(differences / 2 / tables))


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore", LeftOutWarning)
    parser = argparse.ArgumentParser(description="What to measure, and how to spend the budget.")
    parser.add_argument("--data")
    parser.add_argument("--schema")
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.03, 0.1, 0.3, 1.0, 3.0])
    options = parser.parse_args()
    schema = Schema.read(options.schema) if options.schema else datasets.census_schema()
    data = options.data or datasets.census(options.records)
    judged = [(workload_of(schema, [name]), name) for name in JUDGED]
    true = [exact_counts(workload, data) for workload, _ in judged]
    rows = true[0].n_records
    table = Table("ε", "workload", "mechanism", "noise share", *JUDGED, "mean", "chosen")
    results = []
    for epsilon in options.epsilons:
        budget = RhoBudget.from_epsilon(epsilon, default_delta(rows))
        for k, words in NAMES.items():
            specs = default_specs(schema, k)
            share = noise_share(workload_of(schema, specs), budget, rows)
            for name in ("one-shot",) if k < 3 else ("one-shot", "layered"):
                found = []
                for seed in range(options.seeds):
                    synth = Synthesizer(
                        schema,
                        epsilon,
                        workload=specs,
                        mechanism=name,
                        random_state=seed,
                    ).fit(data, insecure_noise_seed=seed)
                    matrix = synth.release_.matrix
                    found.append(
                        [
                            distance(
                                workload, exact.counts / rows, count(workload, matrix) / len(matrix)
                            )
                            for (workload, _), exact in zip(judged, true, strict=True)
                        ]
                    )
                means = np.mean(found, axis=0).tolist()
                auto = choose_mechanism(workload_of(schema, specs)).name == name
                chosen = auto and choose_specs(schema, budget, rows) == specs
                results.append(
                    {"epsilon": epsilon, "workload": words, "mechanism": name, "noise": share}
                    | dict(zip(JUDGED, means, strict=True))
                    | {"mean": float(np.mean(means)), "chosen": chosen}
                )
                table.add_row(
                    f"{epsilon:g}",
                    words,
                    name,
                    f"{share:.3g}",
                    *(f"{mean:.4f}" for mean in means),
                    f"{np.mean(means):.4f}",
                    "*" if chosen else "",
                )
    Console(width=140).print(table)
    print(json.dumps({"data": options.data, "rows": rows, "results": results}))


if __name__ == "__main__":
    main()
