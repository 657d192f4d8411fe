"""Tables with a known structure, and what a release selected and spent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from private_gsd import (
    Categorical,
    Ledger,
    Mechanism,
    Release,
    Schema,
    datasets,
)

CENSUS = datasets.census_schema().select(["sex", "age", "marital"])


PEOPLE = datasets.census(400, seed=2).select(CENSUS.names)


def chain(rows: int = 3000) -> tuple[Schema, pa.Table]:
    """A Markov chain c0 → c1 → … → c4, with columns that stand in another order."""
    rng = np.random.default_rng(4)
    values = [rng.integers(3, size=rows)]
    for _ in range(4):
        new = rng.integers(3, size=rows)
        values.append(np.where(rng.random(rows) < 0.7, values[-1], new))
    order = [3, 0, 4, 2, 1]
    schema = Schema([Categorical(f"c{n}", values=list("abc")) for n in order])
    return schema, pa.table({f"c{n}": np.array(list("abc"))[values[n]] for n in order})


def names_of(release: Release, mechanism: Mechanism) -> list[str]:
    """What was selected, in words."""
    everything = mechanism.candidates(release.workload)
    return [everything.describe(group) for epoch in release.selections() for group in epoch]


def spent(release: Release) -> int:
    with Ledger(Path(f"{release.folder}.ledger.db"), create=True) as ledger:
        return sum(charge.units for charge in ledger.charges("table"))


def copies(rows: int = 2000) -> tuple[Schema, pa.Table]:
    """The second column is the first; the others know of nothing."""
    rng = np.random.default_rng(1)
    schema = Schema([Categorical(name, values=list("pqrs")) for name in "abcd"])
    values = {name: np.array(list("pqrs"))[rng.integers(4, size=rows)] for name in "acd"}
    return schema, pa.table({name: values["a" if name == "b" else name] for name in "abcd"})
