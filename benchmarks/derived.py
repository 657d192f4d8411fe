"""Derived statistics: what matching them is worth, on the simulated census.

    python -m benchmarks.derived [--seeds 4]

20,000 people, all pairs of categories and trees of numbers, ε = 1: the mean absolute error of some
statistics of the synthetic table, without and with these as derived statistics. The noise is
seeded, so that anyone gets the same figures; a release would not be private.
"""

from __future__ import annotations

import argparse

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from private_gsd import Knowledge, Synthesizer, datasets

NAMES = ["sex", "age", "marital", "employment", "hours", "income", "education"]
STATISTICS = {
    "median(income)": "median(income)",
    "quantile(income, 0.9)": "quantile_cont(income, 0.9)",
    "mean(income)": "avg(income)",
    "mean(age)": "avg(age)",
    "median(income) WHERE sex = 'female'": "median(income) FILTER (WHERE sex = 'female')",
    "mean(hours) WHERE sex = 'female'": "avg(hours) FILTER (WHERE sex = 'female')",
}


def figures(table: pa.Table) -> list[float]:
    """All statistics of a table."""
    with duckdb.connect() as connection:
        connection.register("people", table)
        [row] = connection.execute(
            f"SELECT {', '.join(STATISTICS.values())} FROM people"
        ).fetchall()
    return [float(each) for each in row]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Derived statistics.")
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    schema = datasets.census_schema().select(NAMES)
    people = datasets.census(20_000, seed=3).select(NAMES)
    truth = np.array(figures(people))
    table = Table("trees", "derived statistics", *STATISTICS)
    for trees in ("tree:2:6", "tree:2"):
        for name, derived in (("none", ()), ("these", tuple(STATISTICS))):
            errors = []
            for seed in range(options.seeds):
                synth = Synthesizer(
                    schema,
                    1.0,
                    workload=["categorical:2", trees],
                    mechanism="one-shot",
                    knowledge=Knowledge(derived_statistics=derived),
                    random_state=seed,
                ).fit(people, insecure_noise_seed=seed)
                errors.append(np.abs(np.array(figures(synth.sample())) - truth))
            means = np.mean(errors, axis=0).tolist()
            table.add_row(trees, name, *(f"{each:,.4g}" for each in means))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
