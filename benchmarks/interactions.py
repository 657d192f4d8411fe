"""Interactions: what neither a pair nor a triple of columns shows.

    python -m benchmarks.interactions [--part parities|models] [--seeds 3] [--records 10000]
        [--columns 2 3 4 5 6 7] [--beside 0 3] [--kinds binary numbers] [--pairs]
        [--trained 30000]
    python -m benchmarks.interactions --part costs --data FILE [--seeds 3]

``parities``: y says whether an odd number of k independent columns is 1, or above its middle, alone
or with three other columns beside. ``models``: nine columns, four of them numbers, and a y that a
random tree of decisions, a random network or random features say, of which a twentieth is turned
over. All releases have the defaults, at ε = 1. A boosted model of y is trained on 30,000
synthetic rows, and beside it on as many rows of the truth as there are records; its accuracy is
that on other rows of the truth. With ``--pairs`` the same of a release without the joint table.

``costs``: the mean error of all pairs of a few columns of a real table (numbers in eighths), with
and without the joint table.

The noise is seeded; a release would not be private.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from private_gsd import Categorical, Encoder, Integer, NumbersFirst, OneShot, Synthesizer
from private_gsd.schema import Numeric, Schema

Matrix = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Matrix]

TESTED = 5000
# Trees that can hold a parity: many leaves, and few cut points to choose from.
DEEP: dict[str, Any] = {
    "max_iter": 400,
    "max_leaf_nodes": 127,
    "max_bins": 8,
    "early_stopping": False,
}
PLAIN: dict[str, Any] = {"max_iter": 200, "learning_rate": 0.05}
FEW = {
    "acs_ma2019": ("SEX MSP OWN_RENT DPHY EDU", "SEX MSP HISP OWN_RENT EDU DPHY DEYE AGEP"),
    "adult": (
        "age sex education marital-status income>50K hours-per-week",
        "age workclass education-num marital-status race sex hours-per-week capital-gain "
        "income>50K",
    ),
}
EPSILONS = (0.1, 0.3, 1.0, 3.0)
KINDS = ("tree", "network", "features")
# The values of each column of the models but y; 0 for numbers.
VALUES = (0, 0, 0, 0, 2, 2, 2, 3, 4)
NUMBERS = VALUES.count(0)
TURNED = 0.05


def parities(k: int, numeric: bool, beside: int) -> tuple[Schema, Draw]:
    """Columns of which the first k say y together, and nothing if one of them is not known."""
    names = [f"x{place}" for place in range(k + beside)]
    described: list[Any] = [
        Integer(name, lower=0, upper=999) if numeric else Categorical(name, values=[0, 1])
        for name in names
    ]
    size = 1000 if numeric else 2

    def draw(rows: int, rng: np.random.Generator) -> Matrix:
        columns = rng.integers(0, size, (rows, k + beside))
        odd = (columns[:, :k] >= size // 2).sum(axis=1) % 2
        return np.column_stack([columns, odd]).astype(np.float64)

    return Schema([*described, Categorical("y", values=[0, 1])]), draw


def model(kind: str, seed: int) -> tuple[Schema, Draw]:
    """Mixed columns that depend on each other, and a y that a random model says."""
    rng = np.random.default_rng([seed, 77])
    rotation, _ = np.linalg.qr(rng.normal(size=(NUMBERS, NUMBERS)))
    mix = 0.7 * np.eye(NUMBERS) + 0.5 * rotation
    categories = [
        (np.log(rng.dirichlet(np.full(size, 4.0))), rng.normal(0, 0.7, size))
        for size in VALUES[NUMBERS:]
    ]

    def columns_of(rows: int, rng: np.random.Generator) -> Matrix:
        numbers = rng.normal(size=(rows, NUMBERS)) @ mix
        found = list(np.clip(np.rint(500 + 150 * numbers), 0, 1000).T)
        for logs, weights in categories:
            odds = logs + np.outer(numbers[:, 0], weights)
            found.append((odds + rng.gumbel(size=odds.shape)).argmax(axis=1).astype(np.float64))
        return np.column_stack(found)

    makers = {"tree": random_tree, "network": random_network, "features": random_features}
    says = makers[kind](columns_of(20_000, rng), rng)

    def draw(rows: int, rng: np.random.Generator) -> Matrix:
        columns = columns_of(rows, rng)
        turned = rng.random(rows) < TURNED
        return np.column_stack([columns, says(columns) ^ turned]).astype(np.float64)

    described: list[Any] = [
        Categorical(f"c{place}", values=list(range(size)))
        if size
        else Integer(f"n{place}", lower=0, upper=1000)
        for place, size in enumerate(VALUES)
    ]
    return Schema([*described, Categorical("y", values=[0, 1])]), draw


Says = Callable[[Matrix], NDArray[np.bool_]]


def random_tree(known: Matrix, rng: np.random.Generator) -> Says:
    """A tree of six random decisions on the way to each random leaf."""

    def grown(rows: NDArray[np.int64], depth: int) -> Any:
        if depth == 0 or len(rows) < 200:
            return bool(rng.integers(2))
        place = int(rng.integers(len(VALUES)))
        values = known[rows, place]
        if VALUES[place]:
            members = rng.permutation(VALUES[place])[: VALUES[place] // 2]
        else:
            members = np.arange(np.quantile(values, rng.uniform(0.3, 0.7)))
        left = np.isin(values, members)
        return place, members, grown(rows[left], depth - 1), grown(rows[~left], depth - 1)

    root = grown(np.arange(len(known)), 6)

    def says(columns: Matrix) -> NDArray[np.bool_]:
        found = np.zeros(len(columns), dtype=np.bool_)
        waiting = [(root, np.arange(len(columns)))]
        while waiting:
            node, rows = waiting.pop()
            if isinstance(node, bool):
                found[rows] = node
                continue
            place, members, one, other = node
            left = np.isin(columns[rows, place], members)
            waiting += [(one, rows[left]), (other, rows[~left])]
        return found

    return says


def random_network(known: Matrix, rng: np.random.Generator) -> Says:
    """A network of 16 and 8 units."""
    size = inputs(known).shape[1]
    first, bias = rng.normal(0, 2, (size, 16)) / np.sqrt(size), rng.normal(0, 0.5, 16)
    second, last = rng.normal(0, 0.6, (16, 8)), rng.normal(size=8)

    def output(columns: Matrix) -> NDArray[np.float64]:
        hidden = np.tanh(inputs(columns) @ first + bias)
        return np.asarray(np.tanh(hidden @ second) @ last)

    middle = np.median(output(known))
    return lambda columns: output(columns) > middle


def random_features(known: Matrix, rng: np.random.Generator) -> Says:
    """A sum of 30 random waves."""
    size = inputs(known).shape[1]
    waves, phases = rng.normal(0, 0.5, (size, 30)), rng.uniform(0, 2 * np.pi, 30)
    weights = rng.normal(size=30)

    def output(columns: Matrix) -> NDArray[np.float64]:
        return np.asarray(np.cos(inputs(columns) @ waves + phases) @ weights)

    middle = np.median(output(known))
    return lambda columns: output(columns) > middle


def inputs(columns: Matrix) -> Matrix:
    """Numbers by their deviation, categories one by one."""
    parts = [(columns[:, :NUMBERS] - 500) / 150]
    for place in range(NUMBERS, len(VALUES)):
        size = VALUES[place]
        parts.append((np.eye(size)[columns[:, place].astype(int)] - 1 / size) * np.sqrt(size))
    return np.column_stack(parts)


def accuracy(train: Matrix, test: Matrix, settings: dict[str, Any]) -> float:
    """The accuracy of a boosted model of the last column."""
    if len(np.unique(train[:, -1])) == 1:
        return float((test[:, -1] == train[0, -1]).mean())
    with threadpool_limits(1):
        made = HistGradientBoostingClassifier(random_state=0, **settings)
        return float(made.fit(train[:, :-1], train[:, -1]).score(test[:, :-1], test[:, -1]))


def rows_of(
    schema: Schema, data: Matrix, mechanism: Any, seed: int, rows: int
) -> tuple[Matrix, int]:
    """Rows of a release, and the number of cells of its joint table; 0 where it has none."""
    batch = Encoder(schema).decode(np.asfortranarray(data))
    synth = Synthesizer(schema, 1.0, mechanism=mechanism, random_state=seed)
    synth.fit(batch, insecure_noise_seed=seed)
    measured = synth.release_.measurements()
    assert measured is not None
    sizes = [
        marginal.size
        for family in measured.workload.families
        for marginal in family.marginals
        if len(marginal.positions) == len(schema) > 2
    ]
    made = synth.sample(rows).combine_chunks().to_batches()[0]
    return np.asarray(Encoder(schema).encode(made)), max(sizes, default=0)


def scores(
    schema: Schema, draw: Draw, settings: dict[str, Any], options: argparse.Namespace, *seeds: int
) -> list[float]:
    """Accuracies by true rows, a release and pairs alone; cells of the joint table."""
    rng = np.random.default_rng(seeds)
    data, test = draw(options.records, rng), draw(TESTED, rng)
    numeric = any(isinstance(column, Integer) for column in schema)
    pairs = NumbersFirst(OneShot()) if numeric else OneShot()
    ours, cells = rows_of(schema, data, "auto", seeds[0], options.trained)
    found = [accuracy(each, test, settings) for each in (data, ours)]
    if not options.pairs:
        return [*found, np.nan, float(cells)]
    others, _ = rows_of(schema, data, pairs, seeds[0], options.trained)
    return [*found, accuracy(others, test, settings), float(cells)]


def costs(path: str, seeds: range) -> Table:
    """Errors of pairs with and without the joint table, for a few columns of a real table."""
    from private_gsd.counting.exact import count
    from private_gsd.evaluation.table_sample import sample_table
    from private_gsd.workloads.specs import default_specs, workload_of

    schema = Schema.read(f"benchmarks/schemas/{Path(path).stem}.toml")
    rows = sample_table(path, schema, limit=2**31).sample
    table = Table("columns", "ε", "cells", "pairs alone", "default", "more")
    for names in FEW[Path(path).stem]:
        few = schema.select(names.split())
        data = np.asfortranarray(rows[:, [schema.names.index(name) for name in few.names]])
        batch, pairs = Encoder(few).decode(data), workload_of(few, default_specs(few, 2))
        numeric = any(isinstance(column, Numeric) for column in few)
        true = count(pairs, data) / len(data)
        for epsilon in EPSILONS:
            errors = []
            for seed in seeds:
                for mechanism in (NumbersFirst(OneShot()) if numeric else OneShot(), "auto"):
                    synth = Synthesizer(few, epsilon, mechanism=mechanism, random_state=seed)
                    joint = synth.plan(batch).plan.joint
                    made = synth.fit(batch, insecure_noise_seed=seed).release_.matrix
                    errors.append(np.abs(count(pairs, made) / len(made) - true).mean())
            without, default = np.mean(np.reshape(errors, (-1, 2)), axis=0)
            cells = 0 if joint is None else joint.cells
            figures = [f"{without:.5f}", f"{default:.5f}", f"{default / without - 1:+.1%}"]
            table.add_row(str(len(few)), str(epsilon), str(cells), *figures)
            print(len(few), epsilon, cells, *figures, flush=True)
    return table


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description="What neither a pair nor a triple shows.")
    parser.add_argument("--part", choices=("parities", "models", "costs"))
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--trained", type=int, default=30_000)
    parser.add_argument("--columns", type=int, nargs="+", default=range(2, 8))
    parser.add_argument("--beside", type=int, nargs="+", default=(0, 3))
    parser.add_argument("--kinds", nargs="+", default=("binary", "numbers"))
    parser.add_argument("--pairs", action="store_true")
    options = parser.parse_args()
    if options.part == "costs":
        Console(width=100).print(costs(options.data, range(options.seeds)))
        return
    table = Table("y", "true rows", "default", "least", "pairs", "cells")

    def add(name: str, found: list[list[float]]) -> None:
        true, ours, pairs, cells = np.mean(found, axis=0)
        least = min(each[1] for each in found)
        figures = [f"{each:.3f}" for each in (true, ours, least, pairs)]
        table.add_row(name, *figures, f"{cells:.0f}")
        print(name, *figures, f"{cells:.0f}", flush=True)

    seeds = range(options.seeds)
    if options.part != "models":
        for words in options.kinds:
            for beside in options.beside:
                for k in options.columns:
                    made = parities(k, words == "numbers", beside)
                    found = [scores(*made, DEEP, options, seed, k, beside) for seed in seeds]
                    add(f"{k} {words}, {beside} beside", found)
    if options.part != "parities":
        for kind in KINDS:
            add(kind, [scores(*model(kind, seed), PLAIN, options, seed) for seed in seeds])
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
