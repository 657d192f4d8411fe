"""Narrowing: the part of each column's domain in which a condition can hold.

Numbers are narrowed as intervals, forwards from columns to a comparison and back again.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from private_gsd.errors import expect_type
from private_gsd.sql.expressions import (
    CONTRARY,
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Arithmetic,
    ColumnTest,
    ColumnValue,
    Comparison,
    Constant,
    ConstantTruth,
    HasTruth,
    Not,
    Or,
    both,
    columns_of_number,
    either,
)
from private_gsd.sql.regions import SLACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from private_gsd.sql.expressions import Number, Truth
    from private_gsd.sql.regions import Region

    Box = dict[int, Region]
    Interval = tuple[float, float]

ALL = frozenset({FALSE, UNKNOWN, TRUE})
PASSES = frozenset({UNKNOWN, TRUE})
ROUNDS = 30
EVERYWHERE = (-math.inf, math.inf)


def passing(truth: Truth) -> Truth:
    """Whether a rule is met: true or unknown, as in SQL's CHECK; never unknown itself."""
    if isinstance(truth, And):
        return both([passing(part) for part in truth.parts])
    if isinstance(truth, Or):
        return either([passing(part) for part in truth.parts])
    if isinstance(truth, ConstantTruth):
        return ConstantTruth(TRUE if truth.truth in PASSES else FALSE)
    if isinstance(truth, ColumnTest):
        return _chosen(truth, PASSES)
    if isinstance(truth, HasTruth):
        return truth
    if isinstance(truth, Not) and isinstance(truth.part, HasTruth):
        return truth
    return Not(HasTruth(truth, FALSE))


def wanted(truth: Truth, values: frozenset[int]) -> Truth:
    """A condition that holds at least wherever another has one of some truth values.

    It is made of tests, comparisons, AND and OR alone, each met or not.
    """
    if values >= ALL:
        return ConstantTruth(TRUE)
    if isinstance(truth, ConstantTruth):
        return ConstantTruth(TRUE if truth.truth in values else FALSE)
    if isinstance(truth, ColumnTest):
        return _chosen(truth, values)
    if isinstance(truth, Not):
        return wanted(truth.part, frozenset(2 - each for each in values))
    if isinstance(truth, HasTruth):
        inner = frozenset({truth.truth})
        parts = [wanted(truth.part, inner)] if TRUE in values else []
        parts += [wanted(truth.part, ALL - inner)] if FALSE in values else []
        return either(parts) if parts else ConstantTruth(FALSE)
    if isinstance(truth, And | Or):
        return _combined(truth, values)
    return _compared(truth, values)


def _combined(truth: And | Or, values: frozenset[int]) -> Truth:
    """AND has the least truth value of its parts, OR the greatest."""
    least = isinstance(truth, And)
    if len(values) == 2 and UNKNOWN in values:
        parts = [wanted(part, values) for part in truth.parts]
        return both(parts) if (TRUE in values) == least else either(parts)
    alternatives = []
    for value in sorted(values):
        # All parts are at least (or at most) so true, and one of them just so.
        bound = frozenset(each for each in ALL if (each >= value if least else each <= value))
        parts = [wanted(part, bound) for part in truth.parts]
        if len(bound) > 1:
            parts.append(either([wanted(part, frozenset({value})) for part in truth.parts]))
        alternatives.append(both(parts))
    return either(alternatives)


def _compared(truth: Comparison, values: frozenset[int]) -> Truth:
    parts: list[Truth] = []
    if TRUE in values:
        parts.append(truth)
    if FALSE in values:
        parts.append(Comparison(CONTRARY[truth.operator], truth.left, truth.right))
    if UNKNOWN in values:
        sides = (truth.left, truth.right)
        if any(map(_has_choice, sides)):
            return ConstantTruth(TRUE)
        columns = columns_of_number(truth.left) | columns_of_number(truth.right)
        parts += [ColumnTest(position, (FALSE,), TRUE) for position in sorted(columns)]
        parts += [
            Comparison("=", divisor, Constant(0.0)) for side in sides for divisor in _divisors(side)
        ]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _has_choice(number: Number) -> bool:
    """Whether a number may be null where no column is, or the reverse, apart from division."""
    if isinstance(number, Arithmetic):
        return number.operator == "coalesce" or any(map(_has_choice, number.parts))
    return isinstance(number, Constant) and math.isnan(number.number)


def _divisors(number: Number) -> list[Number]:
    if not isinstance(number, Arithmetic):
        return []
    found = [each for part in number.parts for each in _divisors(part)]
    return [*found, number.parts[1]] if number.operator == "/" else found


def _chosen(test: ColumnTest, values: frozenset[int]) -> ColumnTest:
    truths = tuple(TRUE if each in values else FALSE for each in test.truths)
    return ColumnTest(test.position, truths, TRUE if test.null in values else FALSE, test.breaks)


def narrowed(conditions: list[Truth], box: Box) -> Box | None:
    """The part of a box in which all conditions can hold; None where there is none.

    Args:
        conditions: As ``wanted`` gives them.
        box: For each column, the values that it may have.
    """
    for _ in range(ROUNDS):
        before = box
        for condition in conditions:
            after = _narrow(condition, box)
            if after is None:
                return None
            box = after
        if box == before:
            break
    return box


def _narrow(truth: Truth, box: Box) -> Box | None:
    if isinstance(truth, ConstantTruth):
        return box if truth.truth == TRUE else None
    if isinstance(truth, ColumnTest):
        region = box[truth.position].meet(truth)
        return None if region.empty else {**box, truth.position: region}
    if isinstance(truth, And):
        for part in truth.parts:
            inner = _narrow(part, box)
            if inner is None:
                return None
            box = inner
        return box
    if isinstance(truth, Or):
        found: Box | None = None
        for part in truth.parts:
            one = _narrow(part, box)
            if one is None:
                continue
            found = one if found is None else {key: found[key].join(one[key]) for key in box}
            if found == box:
                return box
        return found
    return _narrow_comparison(expect_type(Comparison, truth), box)


def _narrow_comparison(comparison: Comparison, box: Box) -> Box | None:
    left, right = comparison.left, comparison.right
    one, other = _forward(left, box), _forward(right, box)
    if one[0] > one[1] or other[0] > other[1]:
        return None
    # Of whole numbers, one that is less is less by 1.
    whole = comparison.operator in ("<", ">") and _whole(left, box) and _whole(right, box)
    if comparison.operator in ("<", "<="):
        other = other[0] - whole, other[1] - whole
        one, other = (one[0], min(one[1], other[1])), (max(one[0], other[0]), other[1])
        other = other[0] + whole, other[1] + whole
    elif comparison.operator in (">", ">="):
        other = other[0] + whole, other[1] + whole
        one, other = (max(one[0], other[0]), one[1]), (other[0], min(one[1], other[1]))
        other = other[0] - whole, other[1] - whole
    elif comparison.operator == "=":
        one = other = (max(one[0], other[0]), min(one[1], other[1]))
    elif one[0] == one[1] == other[0] == other[1]:
        return None
    strict = comparison.operator in ("<", ">") and one[0] == one[1] == other[0] == other[1]
    if _none(one) or _none(other) or strict:
        return None
    after = dict(box)
    if not (_backward(left, one, after) and _backward(right, other, after)):
        return None
    return after


def _whole(number: Number, box: Mapping[int, Region]) -> bool:
    """Whether a number is whole on every row of a box."""
    if isinstance(number, ColumnValue):
        return box[number.position].grid == 1 and number.factor.is_integer()
    if isinstance(number, Constant):
        return number.number.is_integer()
    return number.operator != "/" and all(_whole(part, box) for part in number.parts)


def _none(interval: Interval) -> bool:
    low, high = interval
    return low - high > 1e-9 * max(abs(low), abs(high), 1e-300)


def _forward(number: Number, box: Mapping[int, Region]) -> Interval:
    """The interval of a number's values on a box, apart from null."""
    if isinstance(number, ColumnValue):
        low, high = box[number.position].hull
        if low > high:
            return low, high
        return _ordered(low * number.factor, high * number.factor)
    if isinstance(number, Constant):
        return (math.inf, -math.inf) if math.isnan(number.number) else (number.number,) * 2
    parts = [_forward(part, box) for part in number.parts]
    if number.operator == "coalesce":
        known = [part for part in parts if part[0] <= part[1]]
        return min((p[0] for p in known), default=math.inf), max(
            (p[1] for p in known), default=-math.inf
        )
    if any(low > high for low, high in parts):
        return math.inf, -math.inf
    if number.operator == "abs":
        return _absolute(parts[0])
    one, other = parts
    if number.operator == "+":
        return one[0] + other[0], one[1] + other[1]
    if number.operator == "-":
        return one[0] - other[1], one[1] - other[0]
    if number.operator == "*":
        return _product(one, other)
    return _quotient(one, other)


def _backward(number: Number, interval: Interval, box: Box) -> bool:
    """Narrow the columns of a number that lies in an interval; false where nothing is left."""
    if isinstance(number, Constant):
        return True
    if isinstance(number, ColumnValue):
        low, high = _ordered(interval[0] / number.factor, interval[1] / number.factor)
        region = box[number.position].within(low, high)
        box[number.position] = region
        return not region.empty
    if number.operator == "coalesce":
        return True
    if number.operator == "abs":
        high = interval[1]
        return _backward(number.parts[0], (-high, high), box)
    left, right = number.parts
    one, other = _forward(left, box), _forward(right, box)
    if number.operator == "+":
        first = interval[0] - other[1], interval[1] - other[0]
        second = interval[0] - one[1], interval[1] - one[0]
    elif number.operator == "-":
        first = interval[0] + other[0], interval[1] + other[1]
        second = one[0] - interval[1], one[1] - interval[0]
    elif number.operator == "*":
        first, second = _quotient(interval, other), _quotient(interval, one)
    else:
        first, second = _product(interval, other), _quotient(one, interval)
    # The sum of a small and a large number is only as exact as the large one.
    ends = [abs(end) for end in (*interval, *one, *other) if math.isfinite(end)]
    slack = SLACK * max(ends, default=0.0) if number.operator in "+-" else 0.0
    return all(
        _backward(part, _finite((inner[0] - slack, inner[1] + slack)), box)
        for part, inner in ((left, first), (right, second))
    )


def _ordered(one: float, other: float) -> Interval:
    return (one, other) if one <= other else (other, one)


def _finite(interval: Interval) -> Interval:
    low, high = interval
    return -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high


def _absolute(interval: Interval) -> Interval:
    low, high = interval
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def _product(one: Interval, other: Interval) -> Interval:
    ends = [a * b for a, b in itertools.product(one, other)]
    return EVERYWHERE if any(map(math.isnan, ends)) else (min(ends), max(ends))


def _quotient(one: Interval, other: Interval) -> Interval:
    if other[0] <= 0 <= other[1]:
        return EVERYWHERE
    ends = [a / b for a, b in itertools.product(one, other)]
    return EVERYWHERE if any(map(math.isnan, ends)) else (min(ends), max(ends))
