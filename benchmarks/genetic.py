"""The genetic search: time to converge, beside the same algorithm on dense arrays of answers.

    python -m benchmarks.genetic [--data FILE] [--rows N]

Without a file, 27,253 rows of 17 categorical and 4 numeric columns are simulated; with one, its
own columns are taken, by a drafted schema. Answers are measured with noise of ε = 1.

Beside the fast search on one core stand, on one core too: Algorithm 1 of the paper on our edits
(P_mut = P_cross = 50, two elites), and the same algorithm in vectorised NumPy, where candidates are
scored on all queries, O(P·m) a generation. The latter runs for a few seconds; its time is scaled to
the generations that Algorithm 1 took, or would take if they grow with the number of rows.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result, measure, print_json
from private_gsd import Categorical, Encoder, Real, Schema, open_source, workloads
from private_gsd.counting.exact import exact_counts
from private_gsd.measurements.measurements import Measurements
from private_gsd.measurements.measurements import measure as measure_noisily
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.noise import InsecureSeededNoise
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads import Conjunctions, Halfspaces, Marginals, Workload

# 17 columns whose pairs have 7,877 cells, much like the paper's ACS data, and as many people.
SIZES = (5, 3, 5, 2, 9, 6, 24, 3, 2, 8, 2, 2, 3, 13, 4, 18, 24)
PEOPLE = 27_253
# A dense population runs for so long, and Algorithm 1 on no more rows than this.
DENSE_SECONDS = 3.0
PAPER_ROWS = 30_000
POPULATION = 50


def simulated() -> tuple[Schema, Any]:
    """Skewed categories that depend on each other, and numbers that depend on them."""
    rng = np.random.default_rng(0)
    hidden = rng.random(PEOPLE)
    columns: list[Any] = [Categorical(f"c{i}", values=range(n)) for i, n in enumerate(SIZES)]
    columns += [Real(f"n{i}", lower=0, upper=1) for i in range(4)]
    matrix = np.empty((PEOPLE, len(columns)), order="F")
    for place, size in enumerate(SIZES):
        mixed = np.where(rng.random(PEOPLE) < 0.5, hidden, rng.random(PEOPLE))
        matrix[:, place] = np.minimum((size * mixed**2).astype(int), size - 1)
    for place in range(len(SIZES), len(columns)):
        matrix[:, place] = (hidden + rng.random(PEOPLE)) / 2
    schema = Schema(columns)
    return schema, Encoder(schema).decode(matrix)


def measured(make: Callable[[Schema], Workload], data: str | None) -> Measurements:
    """Noisy answers to a workload, all groups alike; the noise is seeded, and not private."""
    if data is None:
        schema, table = simulated()
    else:
        drafted = Schema.draft(open_source(data))
        chosen = [
            c.name
            for c in drafted
            if isinstance(c, Numeric) or (isinstance(c, Discrete) and len(c.values) <= 64)
        ]
        schema = drafted.select(chosen)
        table = open_source(data, schema)
    workload = make(schema)
    exact = exact_counts(workload, table)
    budget = RhoBudget.from_epsilon(1.0, 1 / exact.n_records**2)
    groups = list(range(workload.num_groups))
    return measure_noisily(
        exact,
        groups,
        budget.split([1] * len(groups)),
        accountant=LocalAccountant(budget),
        noise=InsecureSeededNoise(0),
    )


def prepared(make: Callable[[Schema], Workload], data: str | None, algorithm: Any) -> Measurements:
    """Measurements, and compiled kernels."""
    measurements = measured(make, data)
    for rows in (10, 9000) if algorithm == "fast" else (10,):
        evolve(
            measurements,
            GeneticSearch(rows=rows, generations=1, algorithm=algorithm, denoise=False),
        )
    return measurements


def fast(rows: int, threads: int, measurements: Measurements) -> tuple[int, dict[str, Any]]:
    """The fast search, for the noisy answers."""
    found = evolve(
        measurements, GeneticSearch(rows=rows, weights="equal", denoise=False), threads=threads
    )
    details = {
        "loss": found.loss,
        "generations": found.generations,
        "edits_a_second": found.edits / found.seconds,
        "queries": measurements.workload.size,
    }
    return rows, details


def paper(rows: int, measurements: Measurements) -> tuple[int, dict[str, Any]]:
    """Algorithm 1, on edits."""
    config = GeneticSearch.paper(
        rows=rows, mutations=POPULATION, crossovers=POPULATION, generations=10**9
    )
    found = evolve(measurements, config)
    return rows, {"loss": found.loss, "generations": found.generations}


def dense_answers(workload: Workload, matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """For each row and query, whether it meets it."""
    found: list[Any] = []
    everyone = np.arange(len(matrix))
    for family in workload.families:
        if isinstance(family, Marginals):
            for group in family.marginals:
                for features in group.tables:
                    cell = np.zeros(len(matrix), dtype=np.int64)
                    for feature in features:
                        column = matrix[:, feature.position]
                        null = np.isnan(column)
                        place: Any = np.where(null, 0, column)
                        if feature.breaks:
                            place = np.searchsorted(feature.breaks, place, side="right")
                        own = np.array(feature.segments)[place.astype(np.int64)]
                        cell = cell * feature.size + np.where(null, feature.size - 1, own)
                    size = int(np.prod([feature.size for feature in features]))
                    hot = np.zeros((len(matrix), size), dtype=np.float32)
                    hot[everyone, cell] = 1
                    found.append(hot)
        elif isinstance(family, Conjunctions):
            meets = matrix[:, family.category] == family.value
            for place in range(family.numbers.shape[1]):
                meets &= matrix[:, family.numbers[:, place]] < family.thresholds[:, place]
            found.append(meets)
        elif isinstance(family, Halfspaces):
            categories, dimensions, units = family.one_hot(matrix)
            hot = np.zeros((len(matrix), family.dimensions), dtype=np.float32)
            for column in categories.T:
                hot[everyone, column] = 1
            for column, unit in zip(dimensions.T, units.T, strict=True):
                hot[everyone, column] = unit
            coefficients, thresholds = family.parameters(np.arange(len(family.indices)))
            found.append(hot @ coefficients <= thresholds)
    return np.concatenate(found, axis=1, dtype=np.float32)


def dense(rows: int, measurements: Measurements) -> tuple[int, dict[str, Any]]:
    """Algorithm 1 with every candidate scored on all queries; for a few seconds."""
    workload, schema = measurements.workload, measurements.workload.schema
    rng = np.random.default_rng(0)

    def draw(column: int, size: int) -> NDArray[np.float64]:
        low, high = schema.columns[column].bounds
        values = low + rng.random(size) * (high - low)
        return values if isinstance(schema.columns[column], Real) else np.rint(values)

    best = np.stack([draw(column, rows) for column in range(len(schema))], axis=1)
    answers = np.zeros(workload.size)
    for begin in range(0, rows, 1000):
        answers += dense_answers(workload, best[begin : begin + 1000]).sum(axis=0)
    targets = measurements.shares * rows
    loss = float(((targets - answers) ** 2).sum())
    population = 2 * POPULATION
    generations = 0
    begin_time = time.perf_counter()
    while time.perf_counter() - begin_time < DENSE_SECONDS:
        where = rng.integers(0, rows, population)
        columns = rng.integers(0, len(schema), population)
        others = rng.integers(0, rows, population)
        values = best[others, columns]
        for number in range(POPULATION):
            values[number] = draw(int(columns[number]), 1)[0]
        old = best[where]
        new = old.copy()
        new[np.arange(population), columns] = values
        tried = answers - dense_answers(workload, old) + dense_answers(workload, new)
        losses = ((targets - tried) ** 2).sum(axis=1)
        winner = int(losses.argmin())
        if losses[winner] < loss:
            loss = float(losses[winner])
            best[where[winner], columns[winner]] = values[winner]
            answers = tried[winner]
        generations += 1
    seconds = (time.perf_counter() - begin_time) / generations
    return rows, {"seconds_a_generation": seconds, "generations": generations}


PROBLEMS: list[tuple[str, Callable[[Schema], Workload], list[tuple[int, float | None]]]] = [
    (
        "all 2-way marginals",
        functools.partial(workloads.categorical_marginals, k=2),
        [(1000, 0.2), (30_000, 3), (200_000, 20), (1_000_000, None)],
    ),
    ("all 3-way marginals", functools.partial(workloads.categorical_marginals, k=3), [(2000, 10)]),
    ("all 2-way trees, depth 5", functools.partial(workloads.tree_marginals, k=2), [(1000, 1)]),
    ("1,000 prefixes", functools.partial(workloads.random_prefixes, count=1000), [(2000, 5)]),
    ("1,000 halfspaces", functools.partial(workloads.random_halfspaces, count=1000), [(2000, 5)]),
]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Benchmark the genetic search.")
    parser.add_argument("--data", help="a CSV or Parquet file; simulated by default")
    parser.add_argument("--rows", type=int, default=10**9, help="no more synthetic rows than this")
    options = parser.parse_args()
    table = Table(
        *("", "queries", "rows", "goal s", "seconds", "edits/s", "two threads", "Algorithm 1"),
        *("loss to its loss", "dense NumPy", "peak MB"),
        title="Time to converge on one core",
    )
    results: list[Result] = []
    for title, make, sizes in PROBLEMS:
        generations_a_row = 0.0
        # A generation's time does not depend on the rows: measured once.
        first = functools.partial(measured, make, options.data)
        slow = measure(f"{title}: dense", functools.partial(dense, 1000), first)
        for rows, goal in sizes:
            if rows > options.rows:
                continue
            ready = functools.partial(prepared, make, options.data)
            name = f"{title}, {rows:,} rows"
            one = measure(
                f"{name}: fast",
                functools.partial(fast, rows, 1),
                functools.partial(ready, "fast"),
                repeats=3 if rows <= 30_000 else 1,
            )
            results.append(one)
            cells = [title, f"{one.details['queries']:,}", f"{rows:,}", str(goal or "")]
            cells += [f"{one.seconds:.3f}", f"{one.details['edits_a_second'] / 1e6:.0f} M"]
            if rows >= 30_000:
                two = measure(
                    f"{name}: fast, two threads",
                    functools.partial(fast, rows, 2),
                    functools.partial(ready, "fast"),
                    cores=2,
                    repeats=3 if rows <= 30_000 else 1,
                )
                results.append(two)
                cells.append(f"{two.seconds:.3f} ({one.seconds / two.seconds:.2f}x)")
            else:
                cells.append("")
            if rows <= PAPER_ROWS:
                ours = measure(
                    f"{name}: Algorithm 1",
                    functools.partial(paper, rows),
                    functools.partial(ready, "paper"),
                )
                results.append(ours)
                generations_a_row = ours.details["generations"] / rows
                cells.append(f"{ours.seconds:.2f} ({ours.seconds / one.seconds:.0f}x)")
                cells.append(f"{one.details['loss'] / ours.details['loss']:.4f}")
            else:
                cells += ["", ""]
            scaled = slow.details["seconds_a_generation"] * generations_a_row * rows
            results.append(
                Result(f"{name}: dense NumPy, scaled", rows, scaled, slow.peak_mb, slow.details)
            )
            cells += [f"{scaled:,.0f} ({scaled / one.seconds:,.0f}x)", f"{one.peak_mb:,.0f}"]
            table.add_row(*cells)
    Console(width=160).print(table)
    print_json("genetic", results)


if __name__ == "__main__":
    main()
