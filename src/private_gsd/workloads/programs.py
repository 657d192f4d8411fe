"""Programs: checked expressions, compiled to the arrays that kernels run."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import WorkloadError, expect_type
from private_gsd.kernels import programs as kernels
from private_gsd.kernels.cells import Cuts
from private_gsd.kernels.programs import Clauses
from private_gsd.schema import Discrete
from private_gsd.sql.expressions import (
    ARITHMETIC,
    COMPARISONS,
    CONTRARY,
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
    columns_of_number,
    columns_of_truth,
    contrary,
    leaves,
    truth_at,
)
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Number, Truth

MAX_NODES = 20_000

OPERATORS = dict(
    zip(
        ARITHMETIC,
        (
            *(kernels.ADD, kernels.SUBTRACT, kernels.MULTIPLY, kernels.DIVIDE),
            *(kernels.ABSOLUTE, kernels.COALESCE),
        ),
        strict=True,
    )
)


def cuts_of_truths(schema: Schema, truths: Sequence[Truth]) -> list[set[float]]:
    """For each column, the breaks of all tests."""
    found: list[set[float]] = [set() for _ in schema]
    for truth in truths:
        for leaf in leaves(truth):
            if isinstance(leaf, ColumnTest):
                found[leaf.position].update(leaf.breaks)
    return found


def cut_columns(schema: Schema, truths: Sequence[Truth]) -> tuple[list[NDArray[np.float64]], Cuts]:
    """For each column, the sorted breaks of all tests; as arrays, and as the kernels' ``Cuts``."""
    cuts = [np.array(sorted(each), dtype=np.float64) for each in cuts_of_truths(schema, truths)]
    sizes = [
        len(column.values) if isinstance(column, Discrete) else len(each) + 1
        for column, each in zip(schema, cuts, strict=True)
    ]
    return cuts, Cuts(
        nulls=np.array(sizes, dtype=np.int64),
        cuts=np.concatenate([np.empty(0), *cuts]),
        cut_starts=starts_of([len(each) for each in cuts]),
        discrete=np.array([isinstance(column, Discrete) for column in schema]),
    )


def depth_of(truths: Sequence[Truth]) -> int:
    """The largest stack size of the programs of comparisons."""
    depths = [
        max(_number_depth(leaf.left), 1 + _number_depth(leaf.right))
        for truth in truths
        for leaf in leaves(truth)
        if isinstance(leaf, Comparison)
    ]
    return max(depths, default=2)


def compiled(
    schema: Schema,
    truths: Sequence[Truth],
    queries: NDArray[np.int64],
    cuts: Sequence[NDArray[np.float64]],
) -> Clauses:
    """Compile expressions to programs.

    Args:
        schema: The schema.
        truths: The expressions.
        queries: The number of the query of each expression.
        cuts: The cut points of each column, sorted; they include all breaks of tests.
    """
    made = _Compiler(schema, cuts)
    for number, truth in enumerate(truths):
        made.add(number, truth)
    return made.finish(queries)


class _Compiler:
    def __init__(self, schema: Schema, cuts: Sequence[NDArray[np.float64]]) -> None:
        self.schema = schema
        self.cuts = cuts
        self.roots: list[int] = []
        self.rising: list[bool] = []
        self.begun = 0
        self.nodes: list[tuple[int, int, int, int]] = []
        self.tests: dict[ColumnTest, int] = {}
        self.tables: list[NDArray[np.uint8]] = []
        self.size = 0
        self.comparisons: dict[Comparison, int] = {}
        self.compared: list[Comparison] = []
        self.number_starts = [0]
        self.numbers: list[tuple[int, int, float]] = []
        # For each column: predicate, whether its value is compared, segments, linear comparison.
        self.entries: list[list[tuple[int, bool, list[tuple[int, int]], int]]] = [
            [] for _ in schema
        ]

    def add(self, number: int, truth: Truth) -> None:
        """Add one predicate."""
        self.begun = before = len(self.nodes)
        self.roots.append(self._node(truth, kernels.MET, kernels.MISSED))
        new = self.nodes[before:]
        self.rising.append(not _has_truth_check(truth))
        valued: set[int] = set()
        tests: dict[int, list[NDArray[np.uint8]]] = {}
        for leaf in leaves(truth):
            if isinstance(leaf, Comparison):
                valued |= columns_of_number(leaf.left) | columns_of_number(leaf.right)
            elif isinstance(leaf, ColumnTest):
                tests.setdefault(leaf.position, []).append(self._truths(leaf))
        for column in sorted(columns_of_truth(truth)):
            segments = [] if column in valued else _runs(np.stack(tests[column]))
            line = self._line(column, new) if column in valued else -1
            self.entries[column].append((number, column in valued, segments, line))

    def _line(self, column: int, nodes: list[tuple[int, int, int, int]]) -> int:
        """The comparison that uses a column, if there is just one and it is linear; else -1."""
        found: set[int] = set()
        for _, _, leaf, _ in nodes:
            if leaf == column:
                return -1
            if leaf < 0 and column in _columns_of(self.compared[-1 - leaf]):
                found.add(-1 - leaf)
        if len(found) != 1:
            return -1
        (number,) = found
        comparison = self.compared[number]
        degrees = {_degree(side, column) for side in (comparison.left, comparison.right)}
        return number if max(degrees) == 1 else -1

    def _node(self, truth: Truth, met: int, missed: int) -> int:
        """Add the nodes of an expression, and return the first.

        Args:
            truth: The expression.
            met: The node to go to if the expression is true.
            missed: The node to go to otherwise.
        """
        if isinstance(truth, ConstantTruth):
            return met if truth.truth == TRUE else missed
        if isinstance(truth, And):
            for part in reversed(truth.parts):
                met = self._node(part, met, missed)
            return met
        if isinstance(truth, Or):
            for part in reversed(truth.parts):
                missed = self._node(part, met, missed)
            return missed
        if isinstance(truth, Not):
            return self._contrary(truth.part, met, missed)
        if isinstance(truth, HasTruth):
            if truth.truth == UNKNOWN:
                false = self._node(contrary(truth.part), missed, met)
                return self._node(truth.part, missed, false)
            inner = truth.part if truth.truth == TRUE else contrary(truth.part)
            return self._node(inner, met, missed)
        if isinstance(truth, ColumnTest):
            self.nodes.append((missed, met, truth.position, self._test(truth)))
        else:
            self.nodes.append((missed, met, -1 - self._comparison(truth), 0))
        if len(self.nodes) - self.begun > MAX_NODES:
            raise WorkloadError(
                "a condition is too involved: IS NULL within IS NULL, a program of more than "
                f"{MAX_NODES:,} steps"
            )
        return len(self.nodes) - 1

    def _contrary(self, part: Truth, met: int, missed: int) -> int:
        """Negation of an expression that has no simpler negated form."""
        if isinstance(part, HasTruth):  # which is never unknown
            return self._node(part, missed, met)
        known = expect_type(Comparison, part)
        contrary = Comparison(CONTRARY[known.operator], known.left, known.right)
        return self._node(contrary, met, missed)

    def _truths(self, test: ColumnTest) -> NDArray[np.uint8]:
        """For each atom of a test's column, the truth value of the test."""
        column = self.schema.columns[test.position]
        if isinstance(column, Discrete):
            size = len(column.values)
            table = list(test.truths) * (size if len(test.truths) == 1 else 1)
        else:
            atoms = [-np.inf, *self.cuts[test.position].tolist()]
            table = [truth_at(test, start) for start in atoms]
        return np.array([*table, *[test.null] * column.nullable], dtype=np.uint8)

    def _test(self, test: ColumnTest) -> int:
        """The start of the table of a test."""
        if test not in self.tests:
            self.tests[test] = self.size
            self.tables.append((self._truths(test) == TRUE).astype(np.uint8))
            self.size += len(self.tables[-1])
        return self.tests[test]

    def _comparison(self, comparison: Comparison) -> int:
        if comparison not in self.comparisons:
            self.comparisons[comparison] = len(self.comparisons)
            self.compared.append(comparison)
            self._number(comparison.left)
            self._number(comparison.right)
            self.number_starts.append(len(self.numbers))
        return self.comparisons[comparison]

    def _number(self, number: Number) -> None:
        if isinstance(number, ColumnValue):
            self.numbers.append((kernels.VALUE, number.position, number.factor))
        elif isinstance(number, Constant):
            self.numbers.append((kernels.CONSTANT, 0, number.number))
        else:
            for part in number.parts:
                self._number(part)
            self.numbers.append((OPERATORS[number.operator], 0, 0.0))

    def finish(self, queries: NDArray[np.int64]) -> Clauses:
        """The programs of all predicates, as arrays."""
        flat = [entry for entries in self.entries for entry in entries]
        segments = [segment for _, _, each, _ in flat for segment in each]
        operators = [COMPARISONS.index(each.operator) for each in self.comparisons]
        compared = np.zeros((len(self.comparisons), len(self.schema)), dtype=np.bool_)
        for number, each in enumerate(self.comparisons):
            compared[number, [*_columns_of(each)]] = 1
        return Clauses(
            queries=np.asarray(queries, dtype=np.int64),
            roots=np.array(self.roots, dtype=np.int64),
            nodes=np.array(self.nodes, dtype=np.int32).reshape(-1, 4),
            tables=np.concatenate([np.empty(0, "u1"), *self.tables]),
            operators=np.array(operators, dtype=np.int64),
            number_starts=np.array(self.number_starts, dtype=np.int64),
            number_codes=np.array([each[0] for each in self.numbers], dtype=np.int64),
            number_columns=np.array([each[1] for each in self.numbers], dtype=np.int64),
            constants=np.array([each[2] for each in self.numbers], dtype=np.float64),
            compared=compared,
            entry_starts=starts_of([len(each) for each in self.entries]),
            entries=np.array([each[0] for each in flat], dtype=np.int64),
            valued=np.array([each[1] for each in flat], dtype=np.bool_),
            rising=np.array(self.rising, dtype=np.bool_),
            segment_starts=starts_of([len(each[2]) for each in flat]),
            firsts=np.array([low for low, _ in segments], dtype=np.int64),
            lasts=np.array([high for _, high in segments], dtype=np.int64),
            lines=np.array([each[3] for each in flat], dtype=np.int64),
            valued_columns=np.array(
                [any(valued for _, valued, _, _ in each) for each in self.entries], dtype=np.bool_
            ),
        )


def _columns_of(comparison: Comparison) -> set[int]:
    return columns_of_number(comparison.left) | columns_of_number(comparison.right)


def _degree(number: Number, column: int) -> int:
    """0 if an expression does not depend on a column, 1 if it is linear in it, more otherwise."""
    if column not in columns_of_number(number):
        return 0
    if isinstance(number, Arithmetic):
        degrees = [_degree(part, column) for part in number.parts]
        if number.operator in ("+", "-"):
            return max(degrees)
        if number.operator == "*":
            return sum(degrees)
        return degrees[0] if number.operator == "/" and degrees[1] == 0 else 2
    return 1


def _has_truth_check(truth: Truth) -> bool:
    if isinstance(truth, And | Or):
        return any(_has_truth_check(part) for part in truth.parts)
    return isinstance(truth, HasTruth) or (isinstance(truth, Not) and _has_truth_check(truth.part))


def _runs(tables: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Runs of atoms for which all tests have the same truth values."""
    changes = np.flatnonzero((tables[:, 1:] != tables[:, :-1]).any(axis=0)) + 1
    edges = [0, *changes.tolist(), tables.shape[1]]
    return list(itertools.pairwise(edges))


def _number_depth(number: Number) -> int:
    if isinstance(number, Arithmetic):
        return max(place + _number_depth(part) for place, part in enumerate(number.parts))
    return 1
