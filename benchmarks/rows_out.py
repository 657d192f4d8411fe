"""Rows out: synthetic tables of any number of rows, from one table of records.

    python -m benchmarks.rows_out [--rows 10000,100000,1000000] [--records 100000] [--cores 2]

Releases of the simulated census (24 columns, ε = 1, default settings) with so many synthetic rows,
each in a process of its own: time and memory of the fit. Up to 20,000 rows are fitted, and all
others are new rows. Their errors against the records: of pairs and triples of discrete columns, of
pairs of trees of numbers, and of marginals of five columns of any kind, which were not measured (80
at random, numbers in eighths; total variation distance). Then the share of rows whose discrete
columns are those of one of the first 20,000 rows, and the area of gradient boosting that tells rows
from those first rows (0.5 where nothing does). Beside them the same of other records. The noise is
seeded; a release would not be private.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.measure import measure
from private_gsd import Encoder, Release, Synthesizer, datasets
from private_gsd.counting.exact import count
from private_gsd.schema import Discrete
from private_gsd.workloads.specs import workload_of

SCHEMA = datasets.census_schema()
WORKLOADS = {"pairs": "categorical:2", "triples": "categorical:3", "numbers": "tree:2"}
FITTED = 20_000
SETS, COLUMNS, PARTS = 80, 5, 8
JUDGED = 20_000

Matrix = NDArray[np.float64]


def encoded(rows: int, seed: int) -> Matrix:
    """Records of the census."""
    table = datasets.census(rows, seed=seed).combine_chunks().to_batches()[0]
    return np.asfortranarray(Encoder(SCHEMA).encode(table))


def fit(folder: str, rows: int, table: Any) -> tuple[int, dict[str, Any]]:
    """A release with so many rows."""
    begin = time.process_time()
    made = Synthesizer(SCHEMA, epsilon=1.0, rows=rows).fit(table, insecure_noise_seed=1).release_
    seconds = time.process_time() - begin
    made.save(folder)
    return rows, {"processor": seconds}


def prepared(records: int) -> Any:
    """The records, after a small fit that loads all kernels."""
    table = datasets.census(records)
    few = table.slice(0, 2000)
    Synthesizer(SCHEMA, epsilon=1.0, rows=2 * FITTED).fit(few, insecure_noise_seed=1)
    return table


class Errors:
    """What is wrong with rows.

    Args:
        real: The records.
    """

    def __init__(self, real: Matrix) -> None:
        self._discrete = [place for place, each in enumerate(SCHEMA) if isinstance(each, Discrete)]
        steps = np.linspace(0, 1, PARTS + 1)[1:-1]
        self._cuts = [np.unique(np.nanquantile(column, steps)) for column in real.T]
        rng = np.random.default_rng(0)
        width = len(SCHEMA)
        self._sets = [rng.choice(width, COLUMNS, replace=False).tolist() for _ in range(SETS)]
        self._workloads = {name: workload_of(SCHEMA, [each]) for name, each in WORKLOADS.items()}
        self._truth = {
            name: count(each, real) / len(real) for name, each in self._workloads.items()
        }
        codes = self._codes(real)
        self._sizes = np.maximum(codes.max(axis=0) + 2, PARTS + 2).tolist()
        self._marginals = self._counted(codes)

    def _codes(self, rows: Matrix) -> NDArray[np.int64]:
        """Each value as a category, numbers by the eighth of the records."""
        found = np.empty(rows.shape, dtype=np.int64)
        for place, column in enumerate(rows.T):
            own = column if place in self._discrete else np.searchsorted(self._cuts[place], column)
            found[:, place] = np.where(np.isnan(column), -1, own) + 1
        return found

    def _counted(self, codes: NDArray[np.int64]) -> list[dict[int, float]]:
        """The share of the rows in each cell that has any, for each set of columns."""
        found = []
        for places in self._sets:
            cells = np.zeros(len(codes), dtype=np.int64)
            for place in places:
                cells = cells * self._sizes[place] + codes[:, place]
            numbers, counts = np.unique(cells, return_counts=True)
            found.append(dict(zip(numbers.tolist(), (counts / len(codes)).tolist(), strict=True)))
        return found

    def of(self, rows: Matrix) -> list[str]:
        """The mean errors."""
        found = [
            f"{np.abs(count(each, rows) / len(rows) - self._truth[name]).mean():.6f}"
            for name, each in self._workloads.items()
        ]
        distances = []
        for mine, real in zip(self._counted(self._codes(rows)), self._marginals, strict=True):
            cells = mine.keys() | real.keys()
            distances.append(sum(abs(mine.get(c, 0) - real.get(c, 0)) for c in cells) / 2)
        return [*found, f"{np.mean(distances):.4f}"]

    def copied(self, rows: Matrix, first: Matrix) -> str:
        """The share of rows that are one of the first rows in all discrete columns."""
        seen, mine = (
            [row.tobytes() for row in np.ascontiguousarray(self._codes(each)[:, self._discrete])]
            for each in (first, rows)
        )
        known = set(seen)
        return f"{np.mean([row in known for row in mine]):.3f}"


def area(rows: Matrix, first: Matrix) -> str:
    """The area under the curve of a classifier that tells rows from the first rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    size = min(JUDGED, len(rows), len(first))
    both = np.concatenate([each[rng.permutation(len(each))[:size]] for each in (rows, first)])
    truth = np.repeat([0, 1], size)
    train = rng.random(len(both)) < 0.5
    model = HistGradientBoostingClassifier(random_state=0).fit(both[train], truth[train])
    return f"{roc_auc_score(truth[~train], model.predict_proba(both[~train])[:, 1]):.3f}"


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Tables of many rows")
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    report = Table("rows", "seconds", "processor", "MB", *WORKLOADS, "five columns")
    for header in ("copied", "area"):
        report.add_column(header)
    real, others = encoded(options.records, 0), encoded(options.records, 77)
    errors = Errors(real)
    for rows in map(int, options.rows.split(",")):
        with tempfile.TemporaryDirectory() as place:
            folder = str(Path(place) / "release")
            timed = measure(
                f"{rows:,}",
                partial(fit, folder, rows),
                partial(prepared, options.records),
                cores=options.cores,
            )
            made = np.asfortranarray(Release.load(folder).matrix)
        parts = {f"{rows:,}": made}
        if rows > FITTED:
            parts = {f"{rows:,}, fitted": made[:FITTED], **parts, "… new": made[FITTED:]}
        for name, part in parts.items():
            figures = ["", "", ""]
            if part is made:
                processor = timed.details["processor"]
                figures = [f"{timed.seconds:.1f}", f"{processor:.1f}", f"{timed.peak_mb:,.0f}"]
            apart = ["", ""]
            if name == "… new":
                apart = [errors.copied(part[:FITTED], made[:FITTED]), area(part, made[:FITTED])]
            report.add_row(name, *figures, *errors.of(np.asfortranarray(part)), *apart)
    apart = [errors.copied(others[:FITTED], real[:FITTED]), area(others, real[:FITTED])]
    report.add_row("other records", "", "", "", *errors.of(others), *apart)
    Console(width=140).print(report)


if __name__ == "__main__":
    main()
