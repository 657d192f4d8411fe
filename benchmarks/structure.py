"""Structure that was not measured: it should be neither lost nor invented.

    python -m benchmarks.structure [--seeds 2]

Tables of 20,000 rows and 12 binary columns: independent columns, a Markov chain, and two latent
classes. Pairs are measured, or single columns alone (ε = 1). The mean error of all cells of 3-, 4-
and 5-way marginals, and the total variation of the distribution of the row sum, against the true
distribution: of our synthetic rows, of 100,000 new rows, of those of the projector pgm, and of
5,000 real rows. Where single columns are measured, the truth to compare with is independent
columns: nothing else is known. The mean absolute correlation of two columns is of that case.

Then ``sample_given``: 20,000 people of whom age and years married depend strongly on each other;
the mean number of years of 3, 30 and 300 people of one age, beside the real one. The noise is
seeded; a release would not be private.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from private_gsd import Categorical, Encoder, Integer, Schema, Synthesizer

ROWS, COLUMNS, REAL_ROWS = 20_000, 12, 5000
NEW_ROWS = 100_000
ORDERS = (3, 4, 5)
BINARY = Schema([Categorical(f"c{place}", values=[0, 1]) for place in range(COLUMNS)])
MEASURED = {"pairs": ["categorical:2"], "columns": ["categorical:1"]}
AGES = (22, 32, 52)
GIVEN = (3, 30, 300)
MARRIED = Schema(
    [
        Integer("age", lower=18, upper=65),
        Integer("married", lower=0, upper=45),
        Categorical("children", values=[0, 1, 2, 3]),
        Categorical("religious", values=[1, 2, 3, 4]),
    ]
)

Matrix = NDArray[np.float64]
Cube = NDArray[np.float64]


def distribution(kind: str) -> Cube:
    """The probability of every row, in an array with an axis for each column."""
    if kind == "independent":
        return product(np.linspace(0.1, 0.5, COLUMNS))
    if kind == "two classes":
        return 0.4 * product(np.full(COLUMNS, 0.7)) + 0.6 * product(np.full(COLUMNS, 0.2))
    cube = np.array([0.7, 0.3])
    following = np.array([[0.91, 0.09], [0.21, 0.79]])  # the share of ones stays at 0.3
    for _ in range(1, COLUMNS):
        cube = cube[..., None] * following
    return cube


def product(ones: NDArray[np.float64]) -> Cube:
    """The distribution of independent columns, by their shares of ones."""
    return functools.reduce(np.multiply.outer, np.stack([1 - ones, ones], axis=1))


def shares_of_ones(cube: Cube) -> NDArray[np.float64]:
    """The share of ones of each column."""
    return np.array([cube.take(1, axis=place).sum() for place in range(COLUMNS)])


def counted(table: Matrix) -> Cube:
    """The share of every row in a table."""
    codes = np.ravel_multi_index(tuple(table.astype(np.int64).T), (2,) * COLUMNS)
    return np.bincount(codes, minlength=2**COLUMNS).reshape((2,) * COLUMNS) / len(table)


def errors(cube: Cube, truth: Cube) -> list[float]:
    """Mean errors of marginals, total variation of the row sum, mean absolute correlation."""
    found = []
    for order in ORDERS:
        rest = itertools.combinations(range(COLUMNS), COLUMNS - order)
        found.append(float(np.mean([np.abs((cube - truth).sum(axis=axes)) for axes in rest])))
    sums = np.indices(cube.shape).sum(axis=0).ravel()
    row_sums = np.bincount(sums, (cube - truth).ravel())
    ones = shares_of_ones(cube)
    deviations = np.sqrt(ones * (1 - ones))
    correlations = [
        abs(cube.take(1, axis=two).take(1, axis=one).sum() - ones[one] * ones[two])
        / (deviations[one] * deviations[two])
        for one, two in itertools.combinations(range(COLUMNS), 2)
    ]
    return [*found, float(np.abs(row_sums).sum() / 2), float(np.mean(correlations))]


def fitted(table: Any, schema: Schema, seed: int, **settings: Any) -> Synthesizer:
    """A release of a table at ε = 1."""
    synth = Synthesizer(schema, 1.0, mechanism="one-shot", random_state=seed, **settings)
    return synth.fit(table, insecure_noise_seed=seed)


def binary_errors(kind: str, measured: str, seed: int) -> dict[str, list[float]]:
    """The errors of each system on one of the tables."""
    rng = np.random.default_rng(seed)
    truth = distribution(kind)
    codes = rng.choice(truth.size, ROWS + REAL_ROWS, p=truth.ravel())
    rows = np.column_stack(np.unravel_index(codes, truth.shape)).astype(np.float64)
    data, real = rows[:ROWS], rows[ROWS:]
    if measured == "columns":  # nothing else is known of the columns
        truth, real = product(shares_of_ones(truth)), rng.permuted(real, axis=0)
    batch = Encoder(BINARY).decode(np.asfortranarray(data))
    tables = {"5,000 real rows": real}
    for name in ("gsd", "pgm"):
        made = fitted(batch, BINARY, seed, workload=MEASURED[measured], projector=name)
        tables[name] = made.release_.matrix
        if name == "gsd":
            more = made.sample(len(tables[name]) + NEW_ROWS).slice(len(tables[name]))
            rows = Encoder(BINARY).encode(more.combine_chunks().to_batches()[0])
            tables["100,000 new rows"] = np.asarray(rows)
    return {name: errors(counted(each), truth) for name, each in tables.items()}


def couples(rows: int, rng: np.random.Generator) -> Matrix:
    """People of whom age, years married and children depend on each other."""
    age = np.clip(np.rint(18 + 47 * rng.beta(1.2, 2.2, rows)), 18, 65)
    wedding = np.clip(rng.normal(22, 3.5, rows), 17, None)
    married = np.clip(np.floor(age - np.minimum(wedding, age)), 0, 45)
    children = np.minimum(rng.poisson(0.12 * np.minimum(married, 18)), 3)
    religious = rng.integers(0, 4, rows)
    return np.column_stack([age, married, children, religious]).astype(np.float64)


def given_means(seed: int) -> list[tuple[int, float, float, list[float]]]:
    """For each age: the real mean of years married, that of the release, and of given people."""
    rng = np.random.default_rng(seed)
    truth = couples(1_000_000, rng)
    data = Encoder(MARRIED).decode(np.asfortranarray(couples(ROWS, rng)))
    synth = fitted(data, MARRIED, seed, workload=["categorical:2", "tree:2", "numeric:2"])
    matrix = synth.release_.matrix
    found = []
    for age in AGES:
        means = []
        for number in GIVEN:
            ages = pa.table({"age": [age] * number})
            years = synth.sample_given(ages)["married"].to_numpy()
            means.append(float(np.mean(years)))
        real, made = (float(each[each[:, 0] == age, 1].mean()) for each in (truth, matrix))
        found.append((age, real, made, means))
    return found


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Structure that was not measured.")
    parser.add_argument("--seeds", type=int, default=2)
    seeds = range(parser.parse_args().seeds)
    names = [f"{order}-way" for order in ORDERS]
    table = Table("table", "measured", "rows of", *names, "row sum", "correlation")
    for kind, measured in itertools.product(("independent", "chain", "two classes"), MEASURED):
        found = [binary_errors(kind, measured, seed) for seed in seeds]
        for name in found[0]:
            means = np.mean([each[name] for each in found], axis=0)
            texts = [f"{each:.5f}" for each in means[: len(ORDERS)]]
            texts += [f"{means[-2]:.4f}", f"{means[-1]:.3f}" if measured == "columns" else ""]
            table.add_row(kind, measured, name, *texts)
    console = Console(width=120)
    console.print(table)
    given = Table("age", "real years", "release", *(f"given {number}" for number in GIVEN))
    rounds = [given_means(seed) for seed in seeds]
    for entries in zip(*rounds, strict=True):
        age = entries[0][0]
        numbers = np.mean([[real, made, *means] for _, real, made, means in entries], axis=0)
        given.add_row(str(age), *(f"{each:.1f}" for each in numbers))
    console.print(given)


if __name__ == "__main__":
    main()
