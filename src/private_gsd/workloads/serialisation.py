"""Serial form: a workload as plain values and arrays, and back, so that it can be saved.

Halfspaces are saved with their coefficients: a seed gives the same numbers only as long as NumPy's
generators do not change.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.schema import Discrete
from private_gsd.workloads.conjunctions import Conjunctions
from private_gsd.workloads.features import Feature
from private_gsd.workloads.functions import Functions
from private_gsd.workloads.halfspaces import Halfspaces
from private_gsd.workloads.predicates import Predicates
from private_gsd.workloads.sums import Part, Sums
from private_gsd.workloads.tables import Marginal, Marginals
from private_gsd.workloads.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads.workload import Family

    Arrays = dict[str, NDArray[Any]]

# The names of a workload's arrays, as a regular expression.
ARRAY_NAMES = r"family\d{1,6}_(category|value|numbers|thresholds|indices|coefficients)"


def dump_workload(workload: Workload) -> tuple[list[dict[str, Any]], Arrays]:
    """The families of a workload, as values for JSON and arrays with names."""
    families: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for number, family in enumerate(workload.families):
        values, mine = _dump_family(family)
        families.append(values)
        arrays |= {f"family{number}_{name}": array for name, array in mine.items()}
    return families, arrays


def load_workload(schema: Schema, families: list[dict[str, Any]], arrays: Arrays) -> Workload:
    """The inverse of ``dump_workload``."""
    loaded = []
    for number, values in enumerate(families):
        prefix = f"family{number}_"
        mine = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        loaded.append(_load_family(schema, values, mine))
    if not loaded:
        raise WorkloadError("there are no queries")
    return Workload(schema, tuple(loaded))


def _dump_family(family: Family) -> tuple[dict[str, Any], Arrays]:
    if isinstance(family, Marginals):
        features: dict[Feature, int] = {}
        groups = [
            [[features.setdefault(f, len(features)) for f in table] for table in group.tables]
            for group in family.groups
        ]
        listed = [
            {
                "position": f.position,
                "segments": list(f.segments),
                "breaks": list(f.breaks),
                "nullable": f.nullable,
            }
            for f in features
        ]
        return {"family": "marginals", "features": listed, "groups": groups}, {}
    if isinstance(family, Conjunctions):
        return {"family": "conjunctions"}, {
            "category": family.category,
            "value": family.value,
            "numbers": family.numbers,
            "thresholds": family.thresholds,
        }
    if isinstance(family, Halfspaces):
        coefficients, thresholds = family.parameters(np.arange(len(family.indices)))
        return {"family": "halfspaces", "seed": family.seed}, {
            "indices": family.indices,
            "coefficients": coefficients,
            "thresholds": thresholds,
        }
    if isinstance(family, Predicates):
        sizes = family.group_sizes.tolist()
        return {"family": "predicates", "texts": list(family.texts), "groups": sizes}, {}
    if isinstance(family, Sums):
        return {"family": "sums", "queries": [[list(p) for p in q] for q in family.queries]}, {}
    if isinstance(family, Functions):
        raise WorkloadError(
            "queries that are Python functions cannot be saved; ask them as another kind of query"
        )
    raise WorkloadError(f"a family of {type(family).__name__} cannot be saved")


def _load_family(schema: Schema, values: dict[str, Any], arrays: Arrays) -> Family:
    kind = values.get("family")
    if kind == "marginals":
        features = [_load_feature(schema, each) for each in values["features"]]
        groups = [
            Marginal(tuple(tuple(features[f] for f in table) for table in group))
            for group in values["groups"]
        ]
        for group in groups:
            places = [tuple(feature.position for feature in table) for table in group.tables]
            _require(len(set(places)) == 1 and len(places[0]) > 0, "tables of different columns")
            _require(len(set(places[0])) == len(places[0]), "a column that stands twice")
        return Marginals(schema, groups)
    if kind == "conjunctions":
        names = ("category", "value", "numbers", "thresholds")
        return Conjunctions(schema, *(arrays[name] for name in names))
    if kind == "halfspaces":
        indices, coefficients, thresholds = (
            arrays[name] for name in ("indices", "coefficients", "thresholds")
        )
        family = Halfspaces(schema, values["seed"], indices, (coefficients, thresholds))
        number = len(indices)
        _require(indices.dtype == np.int64 and indices.shape == (number,), "indices")
        _require(coefficients.shape == (family.dimensions, number), "coefficients")
        _require(thresholds.shape == (number,), "thresholds")
        for each in (coefficients, thresholds):
            _require(each.dtype == np.float32 and bool(np.isfinite(each).all()), "coefficients")
        return family
    if kind == "predicates":
        texts, sizes = values["texts"], values["groups"]
        _require(bool(texts) and all(type(size) is int for size in sizes), "predicates")
        return Predicates(schema, texts, sizes)
    if kind == "sums":
        queries = [[Part(*part) for part in parts] for parts in values["queries"]]
        for part in (each for parts in queries for each in parts):
            _require(isinstance(part.column, str | None) and isinstance(part.where, str), "sums")
        return Sums(schema, queries)
    raise WorkloadError(f"unknown family of queries {kind!r}")


def _load_feature(schema: Schema, values: dict[str, Any]) -> Feature:
    position, segments, nullable = values["position"], values["segments"], values["nullable"]
    breaks = [float(cut) for cut in values["breaks"]]
    _require(type(position) is int and 0 <= position < len(schema), "a column's position")
    column = schema.columns[position]
    _require(nullable is column.nullable, "nulls")
    _require(bool(segments) and all(type(each) is int for each in segments), "segments")
    cells = sorted({each for each in segments if each >= 0})
    _require(cells == list(range(len(cells))) and len(cells) > 0, "cells")
    _require(min(segments) >= -1 and segments == _in_order(segments), "segments")
    if isinstance(column, Discrete):
        _require(not breaks and segments == list(range(len(column.values))), "categories")
    else:
        _require(len(segments) == len(breaks) + 1, "breaks")
        ordered = all(low < high for low, high in itertools.pairwise(breaks))
        _require(ordered and all(math.isfinite(cut) for cut in breaks), "breaks")
    return Feature(position, tuple(segments), tuple(breaks), nullable)


def _in_order(segments: list[int]) -> list[int]:
    """The segments with their cells numbered from the left, each of one segment."""
    number = itertools.count()
    return [-1 if each < 0 else next(number) for each in segments]


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise WorkloadError(f"the queries are not sound: {what}")
