"""Expressions: three-valued logic, and one form for one meaning."""

from __future__ import annotations

import itertools

import pytest

from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.expressions import (
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
    Truth,
    both,
    columns_of_truth,
    contrary,
    either,
    just,
    leaves,
    tidy,
)

NAN = float("nan")
# Two columns of three codes or null, and a number or null.
ROWS = list(itertools.product((0.0, 1.0, 2.0, NAN), (0.0, 1.0, 2.0, NAN), (0.0, 1.5, 7.0, NAN)))
CODES = ColumnTest(0, (TRUE, FALSE, UNKNOWN), UNKNOWN)
MORE = ColumnTest(0, (TRUE, TRUE, FALSE), TRUE)
OTHER = ColumnTest(1, (FALSE, TRUE, TRUE), FALSE)
LESS = ColumnTest(2, (TRUE, FALSE), UNKNOWN, (1.5,))
BETWEEN = ColumnTest(2, (FALSE, TRUE, FALSE), UNKNOWN, (1.0, 2.0))
SUM = Comparison("<", Arithmetic("+", (ColumnValue(1), ColumnValue(2))), Constant(3.0))
PARTS: list[Truth] = [
    CODES,
    MORE,
    OTHER,
    LESS,
    BETWEEN,
    SUM,
    ConstantTruth(UNKNOWN),
    ConstantTruth(TRUE),
]


@pytest.mark.parametrize("parts", list(itertools.combinations(PARTS, 3)))
def test_joined_conditions_mean_what_plain_ones_do(parts: tuple[Truth, ...]) -> None:
    inner = either(parts[:2])
    for row in ROWS:
        assert truth_of(both(parts), row) == truth_of(And(parts), row)
        assert truth_of(either(parts), row) == truth_of(Or(parts), row)
        negated = contrary(both([inner, parts[2]]))
        assert truth_of(negated, row) == truth_of(Not(And((inner, parts[2]))), row)
        for truth in (FALSE, UNKNOWN, TRUE):
            assert truth_of(just(inner, truth), row) == truth_of(HasTruth(inner, truth), row)


def test_tests_of_one_column_become_one_and_the_order_makes_no_difference() -> None:
    assert both([CODES, MORE]) == ColumnTest(0, (TRUE, FALSE, FALSE), UNKNOWN)
    assert both([OTHER, SUM, CODES]) == both([CODES, SUM, OTHER]) == And((CODES, OTHER, SUM))
    assert both([]) == ConstantTruth(TRUE)
    assert either([]) == ConstantTruth(FALSE)
    assert both([CODES, ConstantTruth(FALSE), SUM]) == ConstantTruth(FALSE)
    assert contrary(contrary(SUM)) == SUM


def test_breaks_at_which_nothing_changes_go() -> None:
    assert tidy(ColumnTest(2, (TRUE, TRUE, FALSE), UNKNOWN, (1.0, 2.0))) == ColumnTest(
        2, (TRUE, FALSE), UNKNOWN, (2.0,)
    )


def test_the_parts_of_a_condition() -> None:
    condition = Or((And((CODES, SUM)), Not(HasTruth(OTHER, UNKNOWN))))
    assert list(leaves(condition)) == [CODES, SUM, OTHER]
    assert columns_of_truth(condition) == {0, 1, 2}
    assert columns_of_truth(ConstantTruth(TRUE)) == set()
