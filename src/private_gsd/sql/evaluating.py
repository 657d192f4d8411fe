"""Evaluation of a condition on one row: slow and plain, the reference for the kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from private_gsd.sql.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    ColumnTest,
    ColumnValue,
    Constant,
    ConstantTruth,
    HasTruth,
    Not,
    Or,
    truth_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.sql.expressions import Number, Truth


def truth_of(truth: Truth, row: Sequence[float]) -> int:
    """The truth value of a condition on an encoded row."""
    if isinstance(truth, ConstantTruth):
        return truth.truth
    if isinstance(truth, ColumnTest):
        value = row[truth.position]
        if math.isnan(value):
            return truth.null
        if truth.breaks or len(truth.truths) == 1:
            return truth_at(truth, value)
        return truth.truths[int(value)]
    if isinstance(truth, Not):
        return 2 - truth_of(truth.part, row)
    if isinstance(truth, HasTruth):
        return TRUE if truth_of(truth.part, row) == truth.truth else FALSE
    if isinstance(truth, And):
        return min(truth_of(part, row) for part in truth.parts)
    if isinstance(truth, Or):
        return max(truth_of(part, row) for part in truth.parts)
    left, right = number_of(truth.left, row), number_of(truth.right, row)
    if math.isnan(left) or math.isnan(right):
        return UNKNOWN
    holds = {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "=": left == right,
        "<>": left != right,
    }[truth.operator]
    return TRUE if holds else FALSE


def divided(one: float, other: float) -> float:
    """A quotient. Division by zero is infinite, as in DuckDB; zero by zero is null."""
    if other != 0:
        return one / other
    return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one)


def number_of(number: Number, row: Sequence[float]) -> float:
    """The value of a number on an encoded row; NaN is null."""
    if isinstance(number, ColumnValue):
        return row[number.position] * number.factor
    if isinstance(number, Constant):
        return number.number
    parts = [number_of(part, row) for part in number.parts]
    if number.operator == "abs":
        return abs(parts[0])
    one, other = parts
    if number.operator == "coalesce":
        return other if math.isnan(one) else one
    if number.operator == "/":
        return divided(one, other)
    return {"+": one + other, "-": one - other, "*": one * other}[number.operator]
