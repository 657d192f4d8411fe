"""Rules: what hard rules cost in error and time, and what they save the reader of a release.

    python -m benchmarks.rules --data adult.csv [--seeds 3]

All pairs of columns of the Adult table, with and without rules that its documentation implies: each
degree has its number, spouses are married, husbands are men. Then the time to a first table where
few rows keep the rules, beside drawing rows until one does. The noise is seeded, so that anyone
gets the same figures; a release would not be private.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Phases
from private_gsd import Integer, LeftOutWarning, Schema, Synthesizer
from private_gsd.counting.comparison import share_errors
from private_gsd.counting.exact import count, exact_counts
from private_gsd.projection.constraints import broken_rows, first_table
from private_gsd.workloads.specs import default_specs, workload_of

HERE = Path(__file__).parent
DEGREES = [
    *(" Preschool", " 1st-4th", " 5th-6th", " 7th-8th", " 9th", " 10th", " 11th", " 12th"),
    *(" HS-grad", " Some-college", " Assoc-voc", " Assoc-acdm", " Bachelors", " Masters"),
    *(" Prof-school", " Doctorate"),
]
RULES = [
    " OR ".join(
        f"""education = '{d}' AND "education-num" = {n + 1}""" for n, d in enumerate(DEGREES)
    ),
    "NOT (relationship = ' Husband' AND sex = ' Female')",
    "NOT (relationship = ' Wife' AND sex = ' Male')",
    """relationship NOT IN (' Husband', ' Wife') OR "marital-status" IN """
    "(' Married-civ-spouse', ' Married-AF-spouse')",
    "workclass <> ' Never-worked' OR occupation IS NULL",
    """NOT ("capital-gain" > 0 AND "capital-loss" > 0)""",
]
EPSILONS = (0.23, 1.0)


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore", LeftOutWarning)
    parser = argparse.ArgumentParser(description="Hard rules.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    free = Schema.read(HERE / "schemas/adult.toml")
    ruled = Schema(free.columns, RULES)
    workload = workload_of(free, default_specs(free, 2))
    exact = exact_counts(workload, options.data)
    table = Table("epsilon", "rules", "mean error", "largest", "rows that break a rule", "seconds")
    results = []
    for epsilon in EPSILONS:
        for name, schema in (("none", free), ("six", ruled)):
            found = []
            for seed in range(options.seeds):
                synth = Synthesizer(
                    schema,
                    epsilon,
                    workload=default_specs(schema, 2),
                    mechanism="one-shot",
                    random_state=seed,
                )
                phases = Phases()
                synth.fit(options.data, insecure_noise_seed=seed, progress=phases)
                matrix = synth.release_.matrix
                error = share_errors(
                    exact.counts / exact.n_records, count(workload, matrix) / len(matrix)
                )
                share = broken_rows(ruled, matrix).mean()
                found.append((error.mean, error.max, share, phases.seconds("searching")))
            means = np.mean(found, axis=0).tolist()
            results.append([epsilon, name, *means])
            cells = (f"{means[0]:.5f}", f"{means[1]:.4f}", f"{means[2]:.1%}", f"{means[3]:.1f}")
            table.add_row(f"{epsilon}", name, *cells)
    Console(width=100).print(table)
    table = Table("rule", "one row in", "first table of 2,000 rows", "drawn until obeyed")
    whole = [Integer(name, lower=0, upper=9999) for name in ("a", "b", "total")]
    for rule, one_in in (
        ("total >= a + b", 6),
        ("total = a + b", 20_000),
        ("a = 7 AND b = 9", 1e8),
    ):
        schema = Schema(whole, [rule])
        first_table(schema, 10, 0)  # compiled before the clock starts
        start = time.perf_counter()
        first_table(schema, 2000, 1)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        rows = np.random.default_rng(0).integers(0, 10_000, (10**6, 3)).astype(np.float64)
        broken = broken_rows(schema, rows)
        other = (time.perf_counter() - start) * 2000 * one_in / len(broken)
        results.append([rule, one_in, seconds, other])
        table.add_row(rule, f"{one_in:,.0f}", f"{seconds:.2f} s", f"{other:.2g} s")
    Console(width=100).print(table)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
