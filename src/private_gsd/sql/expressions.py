"""Expressions: what a predicate asks of a row, checked, in three-valued logic.

Truth is 0 for false, 1 for unknown and 2 for true, so that AND is the least, OR the greatest, and
NOT what is missing to 2. Numbers are those of encoded rows; NaN is null.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FALSE, UNKNOWN, TRUE = 0, 1, 2

COMPARISONS = ("<", "<=", ">", ">=", "=", "<>")
CONTRARY = dict(zip(COMPARISONS, (">=", ">", "<=", "<", "<>", "="), strict=True))
ARITHMETIC = ("+", "-", "*", "/", "abs", "coalesce")


@dataclass(frozen=True)
class ColumnTest:
    """A condition on one column: a truth value for each code, or each segment between breaks.

    Attributes:
        position: The column's position in the schema.
        truths: For each code, or for each segment: [.., b0), [b0, b1), … [bn, ..].
        null: For a null.
        breaks: Where a number is cut, inside its bounds; none for a column of categories.
    """

    position: int
    truths: tuple[int, ...]
    null: int
    breaks: tuple[float, ...] = ()


@dataclass(frozen=True)
class ConstantTruth:
    """A truth value that is the same for every row."""

    truth: int


@dataclass(frozen=True)
class ColumnValue:
    """The number in a column, times a factor (of units of time)."""

    position: int
    factor: float = 1.0


@dataclass(frozen=True)
class Constant:
    """A number."""

    number: float


@dataclass(frozen=True)
class Arithmetic:
    """A number computed from other numbers."""

    operator: str
    parts: tuple[Number, ...]


Number = ColumnValue | Constant | Arithmetic


@dataclass(frozen=True)
class Comparison:
    """A comparison of two numbers; unknown where one is null."""

    operator: str
    left: Number
    right: Number


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    part: Truth


@dataclass(frozen=True)
class And:
    """A condition that asks for all of its parts."""

    parts: tuple[Truth, ...]


@dataclass(frozen=True)
class Or:
    """A condition that asks for at least one of its parts."""

    parts: tuple[Truth, ...]


@dataclass(frozen=True)
class HasTruth:
    """Whether a condition has one truth value; this is never unknown itself."""

    part: Truth
    truth: int


Truth = ColumnTest | ConstantTruth | Comparison | Not | And | Or | HasTruth


def both(parts: Sequence[Truth]) -> Truth:
    """The conjunction of conditions; tests of one column become one test."""
    return _joined(list(parts), And, TRUE, FALSE)


def either(parts: Sequence[Truth]) -> Truth:
    """The disjunction of conditions; tests of one column become one test."""
    return _joined(list(parts), Or, FALSE, TRUE)


def contrary(part: Truth) -> Truth:
    """The negation of a condition, moved down to its parts where possible."""
    if isinstance(part, ColumnTest):
        return ColumnTest(
            part.position, tuple(2 - t for t in part.truths), 2 - part.null, part.breaks
        )
    if isinstance(part, ConstantTruth):
        return ConstantTruth(2 - part.truth)
    if isinstance(part, Not):
        return part.part
    if isinstance(part, And):
        return either([contrary(each) for each in part.parts])
    if isinstance(part, Or):
        return both([contrary(each) for each in part.parts])
    return Not(part)


def just(part: Truth, truth: int) -> Truth:
    """Whether a condition has one truth value."""
    if isinstance(part, ColumnTest):
        truths = tuple(TRUE if each == truth else FALSE for each in part.truths)
        return ColumnTest(part.position, truths, TRUE if part.null == truth else FALSE, part.breaks)
    if isinstance(part, ConstantTruth):
        return ConstantTruth(TRUE if part.truth == truth else FALSE)
    if _never_unknown(part):
        return {FALSE: contrary(part), UNKNOWN: ConstantTruth(FALSE), TRUE: part}[truth]
    return HasTruth(part, truth)


def _never_unknown(part: Truth) -> bool:
    if isinstance(part, And | Or):
        return all(_never_unknown(each) for each in part.parts)
    if isinstance(part, Not):
        return _never_unknown(part.part)
    if isinstance(part, ColumnTest):
        return UNKNOWN not in (*part.truths, part.null)
    return isinstance(part, HasTruth) or (isinstance(part, ConstantTruth) and part.truth != UNKNOWN)


def leaves(part: Truth) -> Iterator[ColumnTest | Comparison | ConstantTruth]:
    """The tests, comparisons and known truths that a condition is made of."""
    if isinstance(part, And | Or):
        for each in part.parts:
            yield from leaves(each)
    elif isinstance(part, Not | HasTruth):
        yield from leaves(part.part)
    else:
        yield part


def columns_of_number(number: Number) -> set[int]:
    """The columns that a number depends on."""
    if isinstance(number, ColumnValue):
        return {number.position}
    if isinstance(number, Arithmetic):
        return set().union(*(columns_of_number(part) for part in number.parts))
    return set()


def columns_of_truth(part: Truth) -> set[int]:
    """The columns that a condition depends on."""
    found: set[int] = set()
    for leaf in leaves(part):
        if isinstance(leaf, ColumnTest):
            found.add(leaf.position)
        elif isinstance(leaf, Comparison):
            found |= columns_of_number(leaf.left) | columns_of_number(leaf.right)
    return found


def _joined(parts: list[Truth], kind: type[And | Or], neutral: int, decides: int) -> Truth:
    flat: list[Truth] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else [part])
    tests: dict[int, ColumnTest] = {}
    rest: list[Truth] = []
    for part in flat:
        if isinstance(part, ConstantTruth):
            if part.truth == decides:
                return part
            if part.truth != neutral:
                rest.append(part)
        elif isinstance(part, ColumnTest):
            known = tests.get(part.position)
            tests[part.position] = part if known is None else _merged(known, part, decides)
        elif part not in rest:
            rest.append(part)
    # In the order of the columns: the order in the text makes no difference.
    found: list[Truth] = [tests[position] for position in sorted(tests)]
    found += rest
    if not found:
        return ConstantTruth(neutral)
    return found[0] if len(found) == 1 else kind(tuple(found))


def _merged(one: ColumnTest, other: ColumnTest, decides: int) -> ColumnTest:
    """Two tests of one column as one test."""
    pick = min if decides == FALSE else max
    if not one.breaks and not other.breaks:
        truths = tuple(map(pick, _wide(one, other), _wide(other, one)))
        return ColumnTest(one.position, truths, pick(one.null, other.null))
    breaks = tuple(sorted({*one.breaks, *other.breaks}))
    truths = tuple(
        pick(truth_at(one, start), truth_at(other, start)) for start in (-float("inf"), *breaks)
    )
    return tidy(ColumnTest(one.position, truths, pick(one.null, other.null), breaks))


def _wide(one: ColumnTest, other: ColumnTest) -> tuple[int, ...]:
    """The truths of a test, as many as those of another test of the same column."""
    return one.truths if len(one.truths) >= len(other.truths) else one.truths * len(other.truths)


def truth_at(test: ColumnTest, number: float) -> int:
    """The truth value of a numeric test at a number."""
    return test.truths[sum(number >= each for each in test.breaks)]


def tidy(test: ColumnTest) -> ColumnTest:
    """A test without breaks at which its truth value does not change."""
    kept = [
        (break_, truth)
        for break_, (before, truth) in zip(
            test.breaks, itertools.pairwise(test.truths), strict=True
        )
        if before != truth
    ]
    truths = (test.truths[0], *(truth for _, truth in kept))
    return ColumnTest(test.position, truths, test.null, tuple(each for each, _ in kept))
