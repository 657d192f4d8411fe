"""Checks of the arguments of workload constructors, and of queries read from files."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import GsdError, WorkloadError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Schema


def whole(name: str, value: Any, low: int, high: int, error: type[GsdError] = WorkloadError) -> int:
    """Check a whole number between two bounds; any integer type is accepted."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise error(f"{name} must be a whole number from {low:,} to {high:,}, not {value!r:.80}")
    return number


def fraction(name: str, value: Any, error: type[GsdError] = WorkloadError) -> float:
    """Check a number between 0 and 1, both excluded; any numeric type is accepted."""
    found = any_number(value)
    if not 0 < found < 1:
        raise error(f"{name} must be a number between 0 and 1, not {value!r:.80}")
    return found


def any_number(value: Any) -> float:
    """Convert a number of any type to a float; NaN for anything else."""
    try:
        return math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def group_numbers(groups: Any, number: int) -> NDArray[np.int64]:
    """Check the numbers of groups: each in range, and none twice."""
    wanted = np.asarray(groups)
    if wanted.ndim != 1 or not wanted.size or wanted.dtype.kind not in "iu":
        raise WorkloadError(f"give some of the groups 0 to {number - 1:,} by their numbers")
    if wanted.min() < 0 or wanted.max() >= number:
        raise WorkloadError(f"there are groups 0 to {number - 1:,} only")
    if len(np.unique(wanted)) < len(wanted):
        raise WorkloadError("a group was given twice")
    return wanted.astype(np.int64)


def position_of(schema: Schema, name: Any) -> int:
    """The position of a column in the schema, by its name."""
    if name not in schema:
        raise WorkloadError(
            f"no column {name!r} in the schema{did_you_mean(str(name), schema.names)}"
        )
    return schema.names.index(name)


def require_sound(sound: Any, what: str) -> None:
    """Refuse queries from a file that the kernels could not handle, since kernels check nothing."""
    if not sound:
        raise WorkloadError(f"the queries are not sound: {what}")
