"""Data sets: what ``--data`` names, with public schemas, and numbers scaled to [0, 1].

A name is a file with a schema, ``census`` for simulated people (``census:5000`` for so many), or
``acs:TASK`` for one of the paper's tables.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from experiments.acs import TASKS, TRAIN_SHARE, load_task
from private_gsd import Encoder, LeftOutWarning, Real, Schema, datasets, open_source
from private_gsd.errors import SourceError, did_you_mean
from private_gsd.schema import Discrete, Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd import Column

    Matrix = NDArray[np.float64]

SCHEMAS = Path(__file__).parent.parent / "benchmarks" / "schemas"
CENSUS_ROWS = 10_000
# What models predict where the paper's targets are not to be had: a few columns of different
# kinds. Beside them, columns that give one of them away are left out.
TARGETS: dict[str, tuple[str, ...]] = {"acs_ma2019": ("SEX", "OWN_RENT", "DREM", "PINCP")}
GIVE_AWAY = {"acs_ma2019": ("PINCP_DECILE",)}
SPLIT_SEED = 0


@dataclass(frozen=True)
class Named:
    """What was named: enough to load it again in another process.

    Attributes:
        name: What it is called in tables and plots.
        source: A path, or ``census:ROWS``, or ``acs:TASK``.
        schema: The path of the schema of a file.
    """

    name: str
    source: str
    schema: str = ""


@dataclass(frozen=True, eq=False)
class Data:
    """A table, all numbers in [0, 1].

    Attributes:
        name: What it is called.
        schema: The public schema, scaled.
        matrix: The encoded rows.
        holdout: Encoded rows that were held out; none for most.
        targets: What models predict.
    """

    name: str
    schema: Schema
    matrix: Matrix = field(repr=False)
    holdout: Matrix = field(repr=False)
    targets: tuple[str, ...] = ()

    @property
    def table(self) -> pa.Table:
        """The rows, in the schema's types."""
        return pa.Table.from_batches([Encoder(self.schema).decode(self.matrix)])

    @property
    def digest(self) -> str:
        """What tells it from other data of the same name."""
        text = self.schema.to_toml().encode()
        rows = np.ascontiguousarray(self.matrix).tobytes()
        return hashlib.sha256(text + rows + str(len(self.holdout)).encode()).hexdigest()[:16]

    def split(self) -> Data:
        """With a fifth of the rows held out, if none are yet."""
        if len(self.holdout):
            return self
        order = np.random.default_rng(SPLIT_SEED).permutation(len(self.matrix))
        cut = round(TRAIN_SHARE * len(order))
        train, test = np.sort(order[:cut]), np.sort(order[cut:])
        return replace(self, matrix=self.matrix[train], holdout=self.matrix[test])

    def without(self, names: tuple[str, ...]) -> Data:
        """Without some columns."""
        kept = [place for place, name in enumerate(self.schema.names) if name not in names]
        schema = self.schema.select(self.schema.names[place] for place in kept)
        targets = tuple(name for name in self.targets if name not in names)
        return replace(
            self,
            schema=schema,
            matrix=self.matrix[:, kept],
            holdout=self.holdout[:, kept],
            targets=targets,
        )

    def categories(self) -> Data:
        """The discrete columns alone."""
        return self.without(tuple(c.name for c in self.schema if not isinstance(c, Discrete)))

    def first(self, rows: int, seed: int) -> Data:
        """So many of the rows, drawn at random."""
        chosen = np.random.default_rng(seed).permutation(len(self.matrix))[:rows]
        return replace(self, matrix=self.matrix[chosen])


def name_data(source: str, schema: str | None = None) -> Named:
    """What ``--data`` and ``--schema`` stand for."""
    kind, _, rest = source.partition(":")
    if kind == "census":
        return Named("simulated census", f"census:{rest or CENSUS_ROWS}")
    if kind == "acs":
        if rest not in TASKS:
            hint = did_you_mean(rest, TASKS)
            raise SourceError(f"no task {rest!r}{hint}; there are {', '.join(TASKS)}")
        return Named(rest, source)
    path = Path(source)
    known = SCHEMAS / f"{path.stem}.toml"
    if schema is None and not known.exists():
        raise SourceError(f"{source}: give its public schema with --schema FILE.toml")
    return Named(path.stem, str(path.resolve()), schema or str(known))


@lru_cache(maxsize=2)
def load(named: Named) -> Data:
    """Read a data set and scale it."""
    kind, _, rest = named.source.partition(":")
    table: Any
    if kind == "census":
        table, schema = datasets.census(int(rest)), datasets.census_schema()
    elif kind == "acs":
        table, schema = load_task(rest), TASKS[rest].schema
    else:
        table, schema = named.source, Schema.read(named.schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        matrix = np.concatenate(list(open_source(table, schema).encoded()))
    targets = TARGETS.get(named.name, ())
    if kind == "acs":
        targets = tuple(TASKS[rest].targets)
    data = scaled(named.name, schema, matrix, targets)
    return data.split() if kind == "acs" else data


def scaled(name: str, schema: Schema, matrix: Matrix, targets: tuple[str, ...] = ()) -> Data:
    """With every number between its public bounds put on [0, 1]; nulls stay null."""
    columns: list[Column] = []
    matrix = matrix.copy()
    for place, column in enumerate(schema):
        if isinstance(column, Numeric):
            low, high = column.bounds
            matrix[:, place] = np.clip((matrix[:, place] - low) / (high - low), 0, 1)
            columns.append(Real(column.name, lower=0, upper=1, nullable=column.nullable))
        else:
            columns.append(column)
    return Data(name, Schema(columns), matrix, np.empty((0, len(columns))), targets)
