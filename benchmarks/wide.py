"""Wide: tables of many columns, and of columns of many values. Time, memory and errors.

    python -m benchmarks.wide [--data tree|factors|noise] [--columns 100] [--records 50000]
        [--epsilons 1] [--mechanisms auto pairs strongest] [--seeds 1] [--secure] [--f1]
    python -m benchmarks.wide --values 3000 --columns 8 --records 200000

The tables are simulated: every fourth column is a number. In "tree", each column depends on one of
the columns before it; in "factors", on one of ten hidden ones; half of the columns of "noise" are
of a tree, and the others of nothing. With ``--data FILE --schema FILE`` and ``--beside N``, N
columns of noise stand beside a real table.

Errors are total variation distances (the share of rows that would have to move), averaged over all
pairs, over the strongest hundredth of the pairs, and over some triples; and the mean error of rank
correlations of all pairs of columns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import resource
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from private_gsd import (
    Categorical,
    Integer,
    LeftOutWarning,
    Measurements,
    NumbersFirst,
    Real,
    RhoBudget,
    Schema,
    Synthesizer,
    default_delta,
    open_source,
)
from private_gsd.data.encoding import Encoder, Problems
from private_gsd.errors import expect_type
from private_gsd.evaluation.metrics.machine_learning import default_targets, learn
from private_gsd.mechanisms.defaults import choose_pairs
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.specs import default_specs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]

FACTORS = 10
TRIPLES = 2000
CELLS = 8
# Of a column of more values than this, the rarest are judged as one.
MOST_VALUES = 64


def simulated(kind: str, columns: int, records: int, seed: int = 0) -> tuple[Schema, pa.Table]:
    """A schema of many columns, and a table of it."""
    rng = np.random.default_rng(seed)
    made: list[Codes] = []
    sizes = rng.integers(2, 21, columns)
    hidden = [rng.integers(0, 6, records) for _ in range(FACTORS)]
    for place in range(columns):
        size = int(sizes[place])
        own = rng.choice(size, records, p=rng.dirichlet(np.full(size, 1.5)))
        if kind == "factors":
            parent = hidden[int(rng.integers(FACTORS))]
        elif place == 0 or (kind == "noise" and place % 2):
            made.append(own)
            continue
        else:
            before = range(0, place, 2) if kind == "noise" else range(place)
            parent = made[int(rng.choice(np.array(before)[-20:]))]
        table = rng.integers(0, size, int(parent.max()) + 1)
        follows = rng.random(records) < rng.uniform(0.05, 0.7)
        made.append(np.where(follows, table[parent], own))
    described: list[Any] = []
    arrays = {}
    for place, codes in enumerate(made):
        name, size = f"c{place:03}", int(sizes[place])
        if place % 8 == 3:
            described.append(Integer(name, lower=0, upper=999))
            spread = codes * (1000 // size) + rng.integers(0, 1000 // size, records)
            arrays[name] = pa.array(spread)
        elif place % 8 == 7:
            described.append(Real(name, lower=0, upper=10_000, decimals=2))
            values = np.exp(1 + 6.0 * (codes + rng.random(records)) / size)
            arrays[name] = pa.array(np.clip(np.round(values, 2), 0, 10_000))
        else:
            described.append(Categorical(name, values=[f"v{value}" for value in range(size)]))
            arrays[name] = pa.array([f"v{value}" for value in range(size)]).take(pa.array(codes))
    return Schema(described), pa.table(arrays)


def beside(path: str, schema_path: str, columns: int, seed: int = 0) -> tuple[Schema, pa.Table]:
    """A real table with columns of noise beside it."""
    rng = np.random.default_rng(seed)
    schema = Schema.read(schema_path)
    source = open_source(path, schema)
    encoder = Encoder(schema)
    matrix = np.concatenate([source.encode(b, encoder, Problems()) for b in source.batches()])
    table = encoder.decode(matrix)
    described = list(schema.columns)
    for place in range(columns):
        name, size = f"noise{place:03}", int(rng.integers(2, 21))
        described.append(Categorical(name, values=[f"v{value}" for value in range(size)]))
        codes = rng.choice(size, len(matrix), p=rng.dirichlet(np.full(size, 1.5)))
        drawn = pa.array([f"v{value}" for value in range(size)]).take(pa.array(codes))
        table = table.append_column(name, drawn)
    return Schema(described), table


def many_values(columns: int, values: int, records: int, seed: int = 0) -> tuple[Schema, pa.Table]:
    """Columns of up to so many values, most of them rare, which depend on each other."""
    rng = np.random.default_rng(seed)
    sizes = np.unique(np.geomspace(20, values, columns).astype(int))
    described, arrays = [], {}
    before: Codes | None = None
    for place, size in enumerate(sizes.tolist()):
        weights = 1 / (1 + np.arange(size)) ** 1.1
        codes = rng.choice(size, records, p=weights / weights.sum())
        if before is not None:
            follows = rng.random(records) < 0.5
            codes = np.where(follows, (before * 7 + place) % min(size, 40), codes)
        before = codes
        name = f"c{place}"
        described.append(Categorical(name, values=[f"v{value}" for value in range(size)]))
        arrays[name] = pa.array([f"v{value}" for value in range(size)]).take(pa.array(codes))
    return Schema(described), pa.table(arrays)


class Judge:
    """Errors of synthetic tables of one true table."""

    def __init__(self, schema: Schema, table: pa.Table, seed: int = 0) -> None:
        self._schema = schema
        self._edges: dict[int, NDArray[np.float64]] = {}
        self._places: dict[int, Codes] = {}
        true = self._matrix(table)
        for place, column in enumerate(schema):
            if isinstance(column, Numeric):
                values = true[:, place]
                cuts = np.quantile(values[~np.isnan(values)], np.arange(1, CELLS) / CELLS)
                self._edges[place] = np.unique(cuts)
            elif len(expect_type(Discrete, column).values) > MOST_VALUES:
                values = true[~np.isnan(true[:, place]), place].astype(np.int64)
                number = len(expect_type(Discrete, column).values)
                rank = np.argsort(np.argsort(-np.bincount(values, minlength=number)))
                self._places[place] = np.minimum(rank, MOST_VALUES - 1)
        self._true = self._codes(true)
        self.sizes = [int(each.max()) + 1 for each in self._true]
        width = len(schema)
        self.pairs = list(itertools.combinations(range(width), 2))
        rng = np.random.default_rng(seed)
        most = min(TRIPLES, math.comb(width, 3))
        found: set[tuple[int, ...]] = set()
        while len(found) < most:
            found.add(tuple(sorted(rng.choice(width, 3, replace=False).tolist())))
        self.triples = sorted(found)
        self._pair_tables = [self._table(self._true, each) for each in self.pairs]
        self._triple_tables = [self._table(self._true, each) for each in self.triples]
        ones = [self._table(self._true, (place,)) for place in range(width)]
        self.dependence = np.array(
            [
                0.5 * np.abs(table - np.multiply.outer(ones[i], ones[j]).ravel()).sum()
                for (i, j), table in zip(self.pairs, self._pair_tables, strict=True)
            ]
        )
        self._ranks = self._correlations(true)
        self._matrix_of_all = true

    def f1(self, table: pa.Table) -> dict[str, float]:
        """The macro F1 of models that learn from synthetic and from real rows, three columns."""
        true = self._matrix_of_all
        targets = default_targets(self._schema, true)
        tasks = learn(self._schema, self._matrix(table), true[::2], true[1::2], targets)
        return {
            f"f1_{name}": float(np.mean([task.f1(name) for task in tasks]))
            for name in ("synthetic", "real")
        }

    def _matrix(self, table: pa.Table) -> NDArray[np.float64]:
        source = open_source(table, self._schema)
        encoder = Encoder(self._schema)
        return np.concatenate([source.encode(b, encoder, Problems()) for b in source.batches()])

    def _codes(self, matrix: NDArray[np.float64]) -> list[Codes]:
        found = []
        for place, column in enumerate(self._schema):
            values = matrix[:, place]
            null = np.isnan(values)
            if place in self._edges:
                codes = np.searchsorted(self._edges[place], values, side="right")
                last = len(self._edges[place]) + 1
            else:
                codes = np.where(null, 0, values).astype(np.int64)
                last = len(expect_type(Discrete, column).values)
                if place in self._places:
                    codes, last = self._places[place][codes], MOST_VALUES
            found.append(np.where(null, last, codes))
        return found

    def _table(self, codes: list[Codes], places: tuple[int, ...]) -> NDArray[np.float64]:
        flat = np.zeros(len(codes[0]), dtype=np.int64)
        size = 1
        for place in places:
            flat = flat * self.sizes[place] + np.minimum(codes[place], self.sizes[place] - 1)
            size *= self.sizes[place]
        return np.bincount(flat, minlength=size) / len(flat)

    def _correlations(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        ranked = np.argsort(np.argsort(np.nan_to_num(matrix, nan=-1.0), axis=0), axis=0)
        # Ties get their mean rank.
        for place in range(matrix.shape[1]):
            _, inverse = np.unique(np.nan_to_num(matrix[:, place], nan=-1.0), return_inverse=True)
            sums = np.bincount(inverse, ranked[:, place]) / np.bincount(inverse)
            ranked[:, place] = sums[inverse]
        return np.asarray(np.corrcoef(ranked + 0.0, rowvar=False))

    def errors(self, table: pa.Table) -> dict[str, float]:
        """The errors of a synthetic table."""
        matrix = self._matrix(table)
        codes = self._codes(matrix)
        pairs = np.array(
            [
                0.5 * np.abs(self._table(codes, each) - true).sum()
                for each, true in zip(self.pairs, self._pair_tables, strict=True)
            ]
        )
        triples = [
            0.5 * np.abs(self._table(codes, each) - true).sum()
            for each, true in zip(self.triples, self._triple_tables, strict=True)
        ]
        singles = [
            0.5 * np.abs(self._table(codes, (place,)) - self._table(self._true, (place,))).sum()
            for place in range(len(codes))
        ]
        strongest = np.argsort(-self.dependence)[: max(len(self.pairs) // 100, 1)]
        upper = np.triu_indices(len(self._schema), 1)
        with np.errstate(all="ignore"):
            ranks = np.nan_to_num(self._correlations(matrix))
        return {
            "singles": float(np.mean(singles)),
            "pairs": float(pairs.mean()),
            "strongest": float(pairs[strongest].mean()),
            "triples": float(np.mean(triples)),
            "ranks": float(np.abs(ranks - self._ranks)[upper].mean()),
        }


def synthesizer(schema: Schema, epsilon: float, name: str, records: int, seed: int) -> Synthesizer:
    """The synthesizer of a mechanism: all pairs, the strongest pairs, or what is chosen."""
    if name == "pairs":
        return Synthesizer(schema, epsilon, mechanism=NumbersFirst(), random_state=seed)
    if name == "auto":
        return Synthesizer(schema, epsilon, random_state=seed)
    budget = RhoBudget.from_epsilon(epsilon, default_delta(records))
    chosen = NumbersFirst(choose_pairs(schema, budget, records))
    specs = default_specs(schema, 1)
    return Synthesizer(schema, epsilon, workload=specs, mechanism=chosen, random_state=seed)


def main() -> None:
    """Measure and report."""
    warnings.simplefilter("ignore", LeftOutWarning)
    parser = argparse.ArgumentParser(description="Tables of many columns or of many values.")
    parser.add_argument("--data", default="tree")
    parser.add_argument("--schema")
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--values", type=int)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument(
        "--mechanisms", nargs="+", default=["auto"], choices=["auto", "pairs", "strongest"]
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--secure", action="store_true", help="with OpenDP's noise")
    parser.add_argument("--no-errors", action="store_true")
    parser.add_argument("--f1", action="store_true", help="train models, too")
    options = parser.parse_args()
    if options.schema:
        schema, table = beside(options.data, options.schema, options.beside)
    elif options.values:
        schema, table = many_values(options.columns, options.values, options.records)
    else:
        schema, table = simulated(options.data, options.columns, options.records)
    judge = None if options.no_errors else Judge(schema, table)
    for epsilon, name, seed in itertools.product(
        options.epsilons, options.mechanisms, range(options.seeds)
    ):
        cpu = time.process_time()
        synth = synthesizer(schema, epsilon, name, table.num_rows, seed)
        plan = synth.plan(table)
        planned = time.process_time() - cpu
        cpu, start = time.process_time(), time.perf_counter()
        synth.fit(table, insecure_noise_seed=None if options.secure else seed)
        measured = expect_type(Measurements, synth.release_.measurements())
        found = {
            "data": f"{options.values} values" if options.values else options.data,
            "columns": len(schema),
            "records": table.num_rows,
            "epsilon": epsilon,
            "seed": seed,
            "mechanism": str(plan.mechanism),
            "groups": measured.workload.num_groups,
            "noise": float(measured.scales[-1]) / table.num_rows,
            "plan_cpu": planned,
            "cpu": time.process_time() - cpu,
            "seconds": time.perf_counter() - start,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if judge is not None:
            made = synth.sample()
            found |= judge.errors(made) | (judge.f1(made) if options.f1 else {})
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
