"""Serialisation: a workload as plain values and arrays, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from private_gsd.errors import WorkloadError
from private_gsd.workloads.families import FAMILIES
from private_gsd.workloads.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads.family import Family

    Arrays = dict[str, NDArray[Any]]

# The names of a workload's arrays, as a regular expression.
ARRAY_NAMES = r"family\d{1,6}_[a-z_]{1,40}"


def dump_workload(workload: Workload) -> tuple[list[dict[str, Any]], Arrays]:
    """The families of a workload as values for JSON, and their arrays by name."""
    families: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for number, family in enumerate(workload.families):
        values, mine = family.to_document()
        families.append({"family": family.name, **values})
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


def _load_family(schema: Schema, values: dict[str, Any], arrays: Arrays) -> Family:
    name = values.get("family")
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None:
        raise WorkloadError(f"unknown family of queries {name!r}")
    if set(arrays) != set(family.array_names):
        raise WorkloadError(f"the arrays of the {family.title} are not those that they are made of")
    return family.from_document(schema, values, arrays)
