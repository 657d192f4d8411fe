"""Counting: exact counts for every family of queries, encoded rows in memory, on one core.

    python -m benchmarks.counting

Beside each stands what people write instead: pandas.crosstab and DuckDB's GROUP BY for marginals,
NumPy for the rest. Where that would take hours, it answers a part of the queries, and its time is
scaled to all of them; the table says so.
"""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.measure import Result, measure, report
from private_gsd import Categorical, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.workloads import Conjunctions, Halfspaces, Workload

# The categories of the 17 categorical columns of ACSmobility, the paper's first data set.
SIZES = (5, 3, 5, 2, 9, 5, 24, 3, 2, 4, 2, 2, 2, 7, 3, 9, 18)
PREFIX_SHARE, HALFSPACE_SHARE = 100, 50


def schema(numeric: int = 0) -> Schema:
    """17 categorical columns, and some numeric ones."""
    return Schema(
        [
            *(Categorical(f"c{i}", values=range(size)) for i, size in enumerate(SIZES)),
            *(Real(f"n{i}", lower=0, upper=1) for i in range(numeric)),
        ]
    )


def rows(number: int, numeric: int = 0) -> NDArray[np.float64]:
    """Rows with skewed categories that depend on each other, in the order of the encoder."""
    rng = np.random.default_rng(0)
    hidden = rng.random(number)
    matrix = np.empty((number, len(SIZES) + numeric), order="F")
    for column, size in enumerate(SIZES):
        mixed = np.where(rng.random(number) < 0.5, hidden, rng.random(number))
        matrix[:, column] = np.minimum((size * mixed**2).astype(int), size - 1)
    for column in range(numeric):
        matrix[:, len(SIZES) + column] = (hidden + rng.random(number)) / 2
    return matrix


State = tuple[Workload, NDArray[np.float64]]


def compiled(workload: Workload, matrix: NDArray[np.float64]) -> State:
    """The workload and the rows, after a first run on a few of them."""
    count(workload, matrix[:1000])
    return workload, matrix


def two_way() -> State:
    """All pairs over a million rows."""
    return compiled(workloads.categorical_marginals(schema(), 2), rows(1_000_000))


def three_way() -> State:
    """All triples over a million rows."""
    return compiled(workloads.categorical_marginals(schema(), 3), rows(1_000_000))


def trees() -> State:
    """All 2-way binary trees over a million rows."""
    return compiled(workloads.tree_marginals(schema(4), 2), rows(1_000_000, 4))


def prefixes() -> State:
    """200,000 prefixes over 300,000 rows."""
    return compiled(workloads.random_prefixes(schema(4), 200_000), rows(300_000, 4))


def halfspaces() -> State:
    """200,000 halfspaces over 100,000 rows."""
    return compiled(workloads.random_halfspaces(schema(4), 200_000), rows(100_000, 4))


def ours_one(state: State) -> int:
    """Our count on one thread."""
    count(*state, threads=1)
    return len(state[1])


def ours_two(state: State) -> int:
    """Our count on two threads."""
    count(*state, threads=2)
    return len(state[1])


def numpy_pairs(state: State) -> int:
    """A bincount for each pair."""
    matrix = state[1]
    codes = matrix.astype(np.int64)
    for a, b in itertools.combinations(range(len(SIZES)), 2):
        np.bincount(codes[:, a] * SIZES[b] + codes[:, b], minlength=SIZES[a] * SIZES[b])
    return len(matrix)


def numpy_triples(state: State) -> int:
    """A bincount for each triple."""
    matrix = state[1]
    codes = matrix.astype(np.int64)
    for a, b, c in itertools.combinations(range(len(SIZES)), 3):
        cell = (codes[:, a] * SIZES[b] + codes[:, b]) * SIZES[c] + codes[:, c]
        np.bincount(cell, minlength=SIZES[a] * SIZES[b] * SIZES[c])
    return len(matrix)


def pandas_frame() -> pd.DataFrame:
    """The million rows as pandas has them."""
    return pd.DataFrame(rows(1_000_000).astype(np.int8), columns=schema().names)


def pandas_pairs(frame: pd.DataFrame) -> int:
    """A crosstab for each pair."""
    for a, b in itertools.combinations(frame.columns, 2):
        pd.crosstab(frame[a], frame[b])
    return len(frame)


def duckdb_table() -> Any:
    """The million rows as a DuckDB table."""
    connection = duckdb.connect()
    connection.register("arrow", pa.Table.from_pandas(pandas_frame()))
    connection.execute("CREATE TABLE t AS FROM arrow")
    return connection


def duckdb_pairs(connection: Any) -> int:
    """A GROUP BY for each pair."""
    for a, b in itertools.combinations(schema().names, 2):
        connection.sql(f"SELECT {a}, {b}, count(*) FROM t GROUP BY ALL").fetchall()
    return 1_000_000


def numpy_prefixes(state: State) -> int:
    """Three comparisons for each query, for a hundredth of the queries."""
    [family], matrix = state[0].families, state[1]
    assert isinstance(family, Conjunctions)
    for query in range(0, len(family.category), PREFIX_SHARE):
        first, second = family.numbers[query]
        meets = matrix[:, family.category[query]] == family.value[query]
        meets &= matrix[:, first] < family.thresholds[query, 0]
        meets &= matrix[:, second] < family.thresholds[query, 1]
        meets.sum()
    return len(matrix)


def numpy_halfspaces(state: State) -> int:
    """A product with a one-hot matrix, in blocks, for a fiftieth of the queries."""
    [family], matrix = state[0].families, state[1]
    assert isinstance(family, Halfspaces)
    hot = np.zeros((len(matrix), family.dimensions), dtype=np.float32)
    begin = 0
    for column, size in enumerate(SIZES):
        hot[np.arange(len(matrix)), begin + matrix[:, column].astype(int)] = 1
        begin += size
    hot[:, begin:] = matrix[:, len(SIZES) :]
    for start in range(0, len(family.indices) // HALFSPACE_SHARE, 500):
        coefficients, thresholds = family.parameters(np.arange(start, start + 500))
        (hot @ coefficients <= thresholds).sum(axis=0)
    return len(matrix)


def scaled(result: Result, share: int) -> Result:
    """The time that all queries would have taken."""
    return Result(result.name, result.rows, result.seconds * share, result.peak_mb)


def main() -> None:
    """Measure and report."""
    report(
        "All 136 2-way marginals of 17 columns, 1,000,000 rows",
        [
            measure("ours, one thread", ours_one, two_way, repeats=5),
            measure("ours, two threads", ours_two, two_way, cores=2, repeats=5),
            measure("NumPy bincount", numpy_pairs, two_way),
            measure("DuckDB GROUP BY, one thread", duckdb_pairs, duckdb_table),
            measure("pandas.crosstab", pandas_pairs, pandas_frame),
        ],
    )
    report(
        "All 680 3-way marginals of 17 columns, 1,000,000 rows",
        [
            measure("ours, one thread", ours_one, three_way, repeats=5),
            measure("ours, two threads", ours_two, three_way, cores=2, repeats=5),
            measure("NumPy bincount", numpy_triples, three_way),
        ],
    )
    report(
        "All 68 2-way binary-tree marginals of 17 by 4 columns, depth 5, 1,000,000 rows",
        [
            measure("ours, one thread", ours_one, trees, repeats=5),
            measure("ours, two threads", ours_two, trees, cores=2, repeats=5),
        ],
    )
    report(
        "200,000 random 3-way prefixes, 300,000 rows",
        [
            measure("ours, one thread", ours_one, prefixes, repeats=3),
            measure("ours, two threads", ours_two, prefixes, cores=2, repeats=3),
            scaled(measure("NumPy, scaled from 2,000", numpy_prefixes, prefixes), PREFIX_SHARE),
        ],
    )
    report(
        "200,000 random halfspaces of 21 columns, 100,000 rows",
        [
            plane := measure("ours, one thread", ours_one, halfspaces),
            measure("ours, two threads", ours_two, halfspaces, cores=2),
            scaled(
                measure("NumPy product, scaled from 4,000", numpy_halfspaces, halfspaces),
                HALFSPACE_SHARE,
            ),
        ],
    )
    operations = 100_000 * 200_000 * (len(SIZES) + 4)
    print(f"halfspaces: {operations / plane.seconds / 1e9:.1f} G operations a second")


if __name__ == "__main__":
    main()
