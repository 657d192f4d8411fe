"""Candidate queries: what a mechanism may measure for a target workload. Found by public facts.

Layered, MST and AIM measure marginals that nobody asked for as such: every column by itself, pairs
of a triple's columns. A part of a marginal has the parts of its tables, so that a numeric column
keeps the ranges or the levels of the tree that the target workload has for it.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.projection.atoms import Atoms
from private_gsd.projection.denoising.chow_liu import SpanningTrees
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.layout import marginal_tables
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.workloads.features import Feature

    Scope = tuple[int, ...]
    # For each set of columns, its tables in order; the values mean nothing.
    Parts = dict[Scope, dict[tuple[Feature, ...], None]]

# Pairs of more cells than this are not candidates of MST.
MOST_PAIR_CELLS = 2**20
# The parts of a marginal of more columns than this are not looked for.
MOST_COLUMNS = 8


def all_pairs(mechanism: str, target: Workload) -> Workload:
    """Every column of the target workload, and every pair of them of at most so many cells."""
    require_marginals(mechanism, target)
    return _marginals(target, _pairs(mechanism, target, _parts(target)))


def all_parts(mechanism: str, target: Workload) -> Workload:
    """The target workload and all parts of its marginals; single columns come first."""
    require_marginals(mechanism, target)
    return _marginals(target, _parts(target))


def with_pairs(workload: Workload) -> Workload:
    """The target workload, and the pairs in its marginals of more columns, where not asked."""
    known = set(scopes_of(workload))
    pairs: Parts = {}
    for family in workload.families:
        for group in family.marginals:
            if len(group.positions) < 3:
                continue
            for table in group.tables:
                for pair in itertools.combinations(table, 2):
                    scope = tuple(sorted(feature.position for feature in pair))
                    if scope not in known:
                        pairs.setdefault(scope, {})[pair] = None
    if not pairs:
        return workload
    groups = [Marginal(tuple(tables)) for tables in pairs.values()]
    return workload + Workload(workload.schema, (Marginals(workload.schema, groups),))


def require_marginals(mechanism: str, target: Workload) -> None:
    """Refuse families that a mechanism cannot measure."""
    for family in target.families:
        if not family.marginals:
            raise WorkloadError(
                f"the mechanism {mechanism!r} cannot measure {family.title} "
                f"(such as {family.describe(0)}); "
                "it measures marginals. Leave them out, or use the mechanism one-shot or adaptive"
            )


def _marginals(target: Workload, parts: Parts) -> Workload:
    ordered = sorted(parts, key=lambda scope: (len(scope), scope))
    groups = [Marginal(tuple(parts[scope])) for scope in ordered]
    return Workload(target.schema, (Marginals(target.schema, groups),))


def largest_tree(workload: Workload) -> list[int]:
    """The pairs of the spanning tree with the most cells."""
    sizes = Atoms.of(workload.schema, marginal_tables(workload)).sizes
    scopes = scopes_of(workload)
    pairs = sorted(
        range(single_columns(workload), len(scopes)),
        key=lambda pair: -math.prod(sizes[place] for place in scopes[pair]),
    )
    trees = SpanningTrees()
    return [pair for pair in pairs if trees.add(scopes[pair])]


def scopes_of(workload: Workload) -> list[Scope]:
    """The columns of each group of marginals, by their positions."""
    return [tuple(sorted(order)) for order in _orders(workload)]


def of_fewest_columns(workload: Workload) -> NDArray[np.bool_]:
    """For each group, whether it is no marginal of three columns or more; all, if all are."""
    few = np.concatenate(
        [
            [len(marginal.positions) < 3 for marginal in family.marginals]
            if family.marginals
            else np.ones(len(family.group_sizes), dtype=np.bool_)
            for family in workload.families
        ]
    )
    return few if few.any() else ~few


def single_columns(workload: Workload) -> int:
    """How many of the groups, the first ones, are of a single column."""
    return sum(len(scope) == 1 for scope in scopes_of(workload))


def _parts(workload: Workload) -> Parts:
    """The questions and all their parts, each once."""
    parts: Parts = {}
    # A question keeps the order of its columns, and so its name.
    orders = {tuple(sorted(order)): order for order in reversed(_orders(workload))}
    for family in workload.families:
        for group in family.marginals:
            if len(group.positions) > MOST_COLUMNS:
                names = " x ".join(workload.schema.names[place] for place in group.positions)
                raise WorkloadError(
                    f"the marginal of {names} has more than {MOST_COLUMNS} columns, too many to "
                    "look for its parts; measure it one-shot or adaptively"
                )
            for table in group.tables:
                feature_of = {feature.position: feature for feature in table}
                for number in range(1, len(table) + 1):
                    for scope in itertools.combinations(sorted(feature_of), number):
                        part = tuple(feature_of[place] for place in orders.get(scope, scope))
                        parts.setdefault(scope, {})[part] = None
    return parts


def _orders(workload: Workload) -> list[Scope]:
    """The columns of each question, in its own order."""
    return [group.positions for family in workload.families for group in family.marginals]


def _pairs(mechanism: str, workload: Workload, parts: Parts) -> Parts:
    """Single columns and all pairs of them."""
    singles: Parts = {scope: tables for scope, tables in parts.items() if len(scope) == 1}
    found: Parts = dict(singles)
    for (one,), (other,) in itertools.combinations(sorted(singles), 2):
        tables = parts.get((one, other))
        if tables is None:
            # Not in the target workload: level i of both trees together. The shallower tree
            # repeats its last level.
            mine, yours = ([table[0] for table in singles[(each,)]] for each in (one, other))
            deepest = range(max(len(mine), len(yours)))
            tables = {
                (mine[min(level, len(mine) - 1)], yours[min(level, len(yours) - 1)]): None
                for level in deepest
            }
        if Marginal(tuple(tables)).size <= MOST_PAIR_CELLS:
            found[(one, other)] = tables
    if len(found) == len(singles):
        names = ", ".join(workload.schema.names[place] for (place,) in sorted(singles))
        raise WorkloadError(
            f"the mechanism {mechanism!r} needs a pair of columns, of at most {MOST_PAIR_CELLS:,} "
            f"cells, and the workload asks of {names} alone"
        )
    return found
