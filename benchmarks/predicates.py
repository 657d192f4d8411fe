"""Predicates: random conditions in SQL, counted and searched for.

    python -m benchmarks.predicates [--queries 1000] [--rows 2000]

Conditions of 2 to 4 comparisons over 12 columns of the simulated census: with constants only, and
with a sixth of them between columns (arithmetic). Counting a million rows, beside DuckDB running
the same texts; and the search for a table from noisy answers, on one core.
"""

from __future__ import annotations

import argparse
import json
import random
import time

import duckdb
from rich.console import Console
from rich.table import Table
from tests.workloads.random_sql import predicate

from private_gsd import GeneticSearch, datasets, evolve, exact_counts, workloads
from private_gsd.counting.exact import count
from private_gsd.data.sources import open_source
from private_gsd.measurements.measurements import measure
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.allocation import allocate
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.noise import InsecureSeededNoise

COLUMNS = ["sex", "age", "marital", "tenure", "rent", "education", "employment", "hours"]
COLUMNS += ["commute_minutes", "income", "children", "citizen"]
PEOPLE = 1_000_000
IN_DUCKDB = 100


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Conditions in SQL.")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    schema = datasets.census_schema().select(COLUMNS)
    people = datasets.census(PEOPLE).select(COLUMNS)
    [*matrices] = open_source(people, schema).encoded(batch_rows=PEOPLE)
    budget = RhoBudget.from_epsilon(1.0, 1 / PEOPLE**2)
    table = Table("", "count, 1 thread", "2 threads", "DuckDB", "search", "edits a second")
    results = []
    for name, compared in (("constants", 0.0), ("and between columns", 0.15)):
        rng = random.Random(1)
        texts = [
            predicate(schema, rng, rng.randint(2, 4), compared) for _ in range(options.queries)
        ]
        workload = workloads.predicates(schema, texts)
        exact = exact_counts(workload, people)  # compiled before the clock starts
        seconds = []
        for threads in (1, 2):
            start = time.perf_counter()
            for matrix in matrices:
                count(workload, matrix, threads=threads)
            seconds.append(time.perf_counter() - start)
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.register("people", people)
            connection.execute("CREATE TABLE mine AS FROM people")
            asked = ", ".join(f"count(*) FILTER (WHERE {each})" for each in texts[:IN_DUCKDB])
            start = time.perf_counter()
            connection.execute(f"SELECT {asked} FROM mine").fetchall()
            other = (time.perf_counter() - start) * options.queries / IN_DUCKDB
        measured = measure(
            exact,
            range(workload.num_groups),
            allocate(workload, budget).units,
            accountant=LocalAccountant(budget),
            noise=InsecureSeededNoise(1),
        )
        config = GeneticSearch(rows=options.rows)
        evolve(measured, GeneticSearch(rows=20, generations=2), seed=1, threads=1)
        start = time.perf_counter()
        found = evolve(measured, config, seed=1, threads=1)
        search = time.perf_counter() - start
        edits = found.edits / found.seconds
        results.append([name, *seconds, other, search, edits])
        table.add_row(
            name,
            *(f"{each:.1f} s" for each in seconds),
            f"{other:.1f} s ({other / seconds[0]:.1f}×)",
            f"{search:.1f} s ({found.reason})",
            f"{edits:,.0f}",
        )
    Console(width=120).print(table)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
