"""Workloads by name, as on the command line: ``categorical:2``, ``tree:2``, ``prefix:1000``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from private_gsd.errors import WorkloadError, did_you_mean
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.conjunctions import random_prefixes
from private_gsd.workloads.halfspaces import random_halfspaces
from private_gsd.workloads.marginal_constructors import categorical_marginals, tree_marginals
from private_gsd.workloads.sums import sums

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from private_gsd.schema import Schema
    from private_gsd.workloads.workload import Workload

NUMERIC_DEPTH = 3


class Spec(NamedTuple):
    """How specs of one name, such as ``tree:2:5``, are read.

    Attributes:
        reads: The form of the spec and its meaning, in words.
        make: Makes the workload from a schema and the numbers of the spec.
        most: The largest number of numbers that the spec takes.
        least: The smallest number of numbers that the spec takes.
    """

    reads: str
    make: Callable[..., Workload]
    most: int = 1
    least: int = 1


def _numeric(schema: Schema, k: int, depth: int = NUMERIC_DEPTH) -> Workload:
    return tree_marginals(schema, k, depth, categorical=0)


def _sum(schema: Schema, k: int = 1) -> Workload:
    if k != 1:
        raise WorkloadError(f"'sum:{k}' should read {SPECS['sum'].reads}")
    return sums(schema)


# The registry of specs: a family adds a line for each of its constructors that users can name.
SPECS = {
    "categorical": Spec(
        "categorical:K, all K-way marginals of discrete columns", categorical_marginals
    ),
    "tree": Spec(
        "tree:K or tree:K:DEPTH, K-way marginals with binary trees of numbers", tree_marginals, 2
    ),
    "numeric": Spec(
        "numeric:K or numeric:K:DEPTH, K numbers together, cut like trees", _numeric, 2
    ),
    "prefix": Spec("prefix:COUNT, random prefixes", random_prefixes),
    "halfspace": Spec("halfspace:COUNT, random halfspaces", random_halfspaces),
    "sum": Spec("sum, the sum of each numeric column, between its public bounds", _sum, least=0),
}


def listed_specs() -> str:
    """All specs in words."""
    return "; ".join(spec.reads for spec in SPECS.values())


def workload_of(schema: Schema, specs: str | Sequence[str]) -> Workload:
    """The workload of one spec or of several specs together.

    >>> from private_gsd import datasets
    >>> workload_of(datasets.census_schema(), ["categorical:1", "tree:1:3"])
    <Workload of 244 queries in 24 groups: marginals>
    """
    if isinstance(specs, str):
        specs = [specs]
    if not isinstance(specs, list | tuple) or not specs:
        raise WorkloadError(f"name at least one workload: {listed_specs()}")
    parts = [_one(schema, spec) for spec in specs]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def default_specs(schema: Schema, k: int = 2) -> list[str]:
    """The specs of all single columns, pairs or triples of a schema.

    >>> from private_gsd import datasets
    >>> default_specs(datasets.census_schema(), 3)
    ['categorical:3', 'tree:2', 'numeric:2']

    Args:
        schema: The schema.
        k: 1 for single columns; 2 for pairs of discrete columns, every discrete column by every
            number, and pairs of numbers; 3 for triples of discrete columns and those pairs.
    """
    discrete = sum(isinstance(column, Discrete) for column in schema)
    numeric = sum(isinstance(column, Numeric) for column in schema)
    found = []
    if discrete:
        found.append(f"categorical:{min(discrete, k)}")
    if numeric:
        found.append("tree:2" if discrete and k > 1 else "tree:1")
    if numeric > 1 and k > 1:
        found.append("numeric:2")
    return found


def _one(schema: Schema, text: object) -> Workload:
    name, *numbers = str(text).split(":")
    if name not in SPECS:
        raise WorkloadError(
            f"no workload is called {text!r}{did_you_mean(name, SPECS)}; there are {listed_specs()}"
        )
    spec = SPECS[name]
    try:
        values: list[int] | None = [int(number) for number in numbers]
    except ValueError:
        values = None
    if values is None or not spec.least <= len(values) <= spec.most:
        raise WorkloadError(f"{text!r} should read {spec.reads}")
    return spec.make(schema, *values)
