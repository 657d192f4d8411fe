"""Small tables whose answers are known exactly, for all tests of projectors."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from private_gsd import Boolean, Categorical, Integer, Measurements, Real, Schema
from private_gsd.counting.exact import count
from private_gsd.workloads import Conjunctions, Workload

SCHEMA = Schema(
    [
        Categorical("colour", values=["red", "green", "blue"], nullable=True),
        Integer("age", lower=0, upper=6),
        Boolean("member"),
        Real("income", lower=0, upper=1000, decimals=0, nullable=True),
        Real("rate", lower=-1, upper=1),
    ]
)
# Small settings that are as good on small tables.
SPECS = {
    "gsd": "gsd:denoise=false",
    "rap": "rap:mixtures=100,batch=200,iterations=300",
    "gem": "gem:mixtures=100,batch=200,iterations=300,learning_rate=0.003",
    "rap++": "rap++:points=500,iterations=100,learning_rate=0.01",
    "pgm": "pgm",
}


def table(rows: int, seed: int = 0) -> np.ndarray:
    """Rows whose columns hang together."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(4, rows, p=[0.5, 0.25, 0.15, 0.1])
    age = np.minimum(rng.poisson(1 + colour), 6)
    member = rng.random(rows) < 0.2 + 0.1 * age
    income = np.rint(1000 * rng.beta(1 + member, 3, rows))
    income[rng.random(rows) < 0.15] = np.nan
    rate = np.clip(rng.normal(0.3 * member, 0.3), -1, 1)
    return np.column_stack([np.where(colour == 3, np.nan, colour), age, member, income, rate])


def measured(workload: Workload, matrix: np.ndarray, scale: float = 0.01) -> Measurements:
    """What an (almost) infinite budget would give."""
    groups = workload.num_groups
    scales = np.full(groups, scale)
    counts = count(workload, matrix).astype(np.float64)
    return Measurements(workload, counts, scales, len(matrix), ("",) * groups, False)


LINE = Schema([Categorical("all", values=["yes"]), Real("x", lower=0, upper=1)])


def at_most(thresholds: list[float]) -> Workload:
    """Prefixes x <= t on a line; ours ask for less than the next number."""
    number = len(thresholds)
    nothing = np.zeros(number, dtype=np.int64)
    ends = np.nextafter(np.array(thresholds), 2)[:, None]
    asked: Any = Conjunctions(LINE, nothing, nothing, nothing[:, None] + 1, ends)
    return Workload(LINE, (asked,))


def on_the_line(x: Any) -> np.ndarray:
    """A table of numbers on a line."""
    return np.column_stack([np.zeros(len(x)), x])


@contextmanager
def memory_of_at_most(megabytes: float) -> Iterator[None]:
    """NumPy and Python never have more memory than this."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()
