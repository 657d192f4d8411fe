"""Workloads by name, as on the command line: ``categorical:2``, ``tree:2``, ``prefix:1000``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_gsd.errors import WorkloadError, did_you_mean
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.conjunctions import random_prefixes
from private_gsd.workloads.halfspaces import random_halfspaces
from private_gsd.workloads.marginals import categorical_marginals, tree_marginals
from private_gsd.workloads.sums import sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.schema import Schema
    from private_gsd.workloads.workload import Workload

KINDS = {
    "categorical": "categorical:K, all K-way marginals of discrete columns",
    "tree": "tree:K or tree:K:DEPTH, K-way marginals with binary trees of numbers",
    "numeric": "numeric:K or numeric:K:DEPTH, K numbers together, cut like trees",
    "prefix": "prefix:COUNT, random prefixes",
    "halfspace": "halfspace:COUNT, random halfspaces",
    "sum": "sum:1, the sum of each number, between its public bounds",
}

NUMERIC_DEPTH = 3


def workload_of(schema: Schema, specs: Sequence[str]) -> Workload:
    """The workload that some names stand for, all of them together.

    >>> from private_gsd import datasets
    >>> workload_of(datasets.census_schema(), ["categorical:1", "tree:1:3"])
    <Workload of 244 queries in 24 groups: marginals>
    """
    if not isinstance(specs, list | tuple) or not specs:
        raise WorkloadError(f"name at least one workload: {'; '.join(KINDS.values())}")
    parts = [_one(schema, spec) for spec in specs]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def default_specs(schema: Schema, k: int = 2) -> list[str]:
    """All single columns, pairs or triples of a schema, by name.

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


def _one(schema: Schema, spec: object) -> Workload:
    kind, *numbers = str(spec).split(":")
    if kind not in KINDS:
        raise WorkloadError(
            f"no workload is called {spec!r}{did_you_mean(kind, KINDS)}; there are "
            f"{'; '.join(KINDS.values())}"
        )
    try:
        values = [int(number) for number in numbers]
    except ValueError:
        values = []
    if not 1 <= len(values) <= (2 if kind in ("tree", "numeric") else 1):
        raise WorkloadError(f"{spec!r} should read {KINDS[kind]}")
    if kind == "categorical":
        return categorical_marginals(schema, values[0])
    if kind == "tree":
        return tree_marginals(schema, *values)
    if kind == "numeric":
        return tree_marginals(schema, values[0], *(values[1:] or [NUMERIC_DEPTH]), categorical=0)
    if kind == "prefix":
        return random_prefixes(schema, values[0])
    if kind == "sum":
        if values != [1]:
            raise WorkloadError(f"{spec!r} should read {KINDS[kind]}")
        return sums(schema)
    return random_halfspaces(schema, values[0])
