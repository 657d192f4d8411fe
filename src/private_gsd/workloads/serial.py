"""Serial form: a workload as plain values and arrays, and back, so that it can be saved.

Halfspaces are saved with their coefficients: a seed gives the same numbers only as long as NumPy's
generators do not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.workloads.conjunctions import Conjunctions
from private_gsd.workloads.features import Feature
from private_gsd.workloads.halfspaces import Halfspaces
from private_gsd.workloads.tables import Marginal, Marginals
from private_gsd.workloads.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads.workload import Family

    Arrays = dict[str, NDArray[Any]]


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
    raise WorkloadError(f"a family of {type(family).__name__} cannot be saved")


def _load_family(schema: Schema, values: dict[str, Any], arrays: Arrays) -> Family:
    kind = values.get("family")
    if kind == "marginals":
        features = [
            Feature(
                each["position"],
                tuple(each["segments"]),
                tuple(float(cut) for cut in each["breaks"]),
                each["nullable"],
            )
            for each in values["features"]
        ]
        return Marginals(
            schema,
            (
                Marginal(tuple(tuple(features[f] for f in table) for table in group))
                for group in values["groups"]
            ),
        )
    if kind == "conjunctions":
        return Conjunctions(
            schema, arrays["category"], arrays["value"], arrays["numbers"], arrays["thresholds"]
        )
    if kind == "halfspaces":
        return Halfspaces(
            schema,
            values["seed"],
            arrays["indices"],
            (arrays["coefficients"], arrays["thresholds"]),
        )
    raise WorkloadError(f"unknown family of queries {kind!r}")
