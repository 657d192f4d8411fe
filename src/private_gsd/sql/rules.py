"""Rules: conditions that every synthetic row meets; a search for rows that meet them all.

A rule is broken where it is false, as with SQL's CHECK: where a null leaves it unknown it is met.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import SchemaError, WorkloadError
from private_gsd.sql.evaluating import number_of, truth_of
from private_gsd.sql.expressions import (
    TRUE,
    ColumnValue,
    Comparison,
    columns_of_number,
    columns_of_truth,
    leaves,
)
from private_gsd.sql.narrowing import PASSES, narrowed, passing, wanted
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.regions import Region

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth
    from private_gsd.sql.narrowing import Box

# The number of boxes that are searched for a row, or for a proof that there is none.
PATIENCE = 3000
# The number of rows of random values, each narrowing the next, that are tried before boxes are.
DIVES = 20
TRIES = 3


class UndecidedError(Exception):
    """Neither a row nor a proof was found."""


@dataclass(frozen=True)
class Rules:
    """Rules of a schema.

    Attributes:
        schema: The schema.
        texts: The rules, as written.
        truths: For each rule, whether it is met; never unknown.
    """

    schema: Schema
    texts: tuple[str, ...]
    truths: tuple[Truth, ...]
    _needed: tuple[Truth, ...] = field(repr=False)

    @property
    def columns(self) -> list[tuple[int, ...]]:
        """The columns of each rule."""
        return [tuple(sorted(columns_of_truth(truth))) for truth in self.truths]

    @property
    def blocks(self) -> list[tuple[int, ...]]:
        """Sets of columns that rules connect, directly or through other columns."""
        blocks: list[set[int]] = []
        for columns in self.columns:
            mine = set(columns)
            apart = []
            for block in blocks:
                if block & mine:
                    mine |= block
                else:
                    apart.append(block)
            blocks = [*apart, mine] if mine else apart
        return [tuple(sorted(block)) for block in blocks]

    def some(self, places: Sequence[int]) -> Rules:
        """Some of the rules."""
        return Rules(
            self.schema,
            tuple(self.texts[place] for place in places),
            tuple(self.truths[place] for place in places),
            tuple(self._needed[place] for place in places),
        )

    def broken(self, row: Sequence[float]) -> list[str]:
        """The rules that an encoded row breaks; slow, the reference for the kernels."""
        return [
            text
            for text, truth in zip(self.texts, self.truths, strict=True)
            if truth_of(truth, row) != TRUE
        ]

    def find(
        self,
        rng: np.random.Generator,
        given: Mapping[int, float] | None = None,
        patience: int = PATIENCE,
    ) -> NDArray[np.float64] | None:
        """A random encoded row that meets all rules; None where there is none.

        Args:
            rng: The random number generator.
            given: The values that some columns must have; NaN is null.
            patience: The number of boxes to search.

        Raises:
            UndecidedError: If the search ended without a row and without a proof.
        """
        box = {place: Region.of(column) for place, column in enumerate(self.schema)}
        for place, value in (given or {}).items():
            box[place] = box[place].just(value)
        tied = {place for columns in self.columns for place in columns}
        for _ in range(DIVES):
            found = self._dive(box, tied, rng)
            if found is not None:
                return found
        return _Search(self, rng, patience).find(box)

    def _dive(
        self, box: Box, tied: set[int], rng: np.random.Generator
    ) -> NDArray[np.float64] | None:
        """Give each column in turn a random value that the columns before it allow."""
        left = narrowed(self.needed, box)
        if left is None:
            return None
        for place in rng.permutation(sorted(tied)).tolist():
            if left[place].single:
                continue
            for _ in range(TRIES):
                after = narrowed(self.needed, {**left, place: left[place].pick(rng)})
                if after is not None:
                    left = after
                    break
            else:
                return None
        return self._row(left, rng)

    def _row(self, box: Box, rng: np.random.Generator) -> NDArray[np.float64] | None:
        """A row of a box whose columns have one value each, if it meets the rules."""
        row = [box[place].draw(rng) for place in range(len(self.schema))]
        for _ in range(len(self.truths) + 1):
            broken = [truth for truth in self.truths if truth_of(truth, row) != TRUE]
            if not broken:
                return np.array(row)
            if not any(_solve(truth, row, box) for truth in broken):
                break
        return None

    @property
    def needed(self) -> list[Truth]:
        """Conditions that narrow the columns; each holds wherever its rule is met."""
        return list(self._needed)


def _solve(rule: Truth, row: list[float], box: Box) -> bool:
    """Solve an equation of a rule for one of its columns, if the box leaves that column free."""
    for leaf in leaves(rule):
        if not isinstance(leaf, Comparison) or leaf.operator not in ("=", "<>"):
            continue
        for place in sorted(columns_of_number(leaf.left) | columns_of_number(leaf.right)):
            before, region = row[place], box[place]
            if region.pieces and region.pieces[0][0] == region.pieces[-1][1]:
                continue
            for value in _roots(leaf, place, row, region.grid):
                row[place] = value
                if region.holds(value) and truth_of(rule, row) == TRUE:
                    return True
            row[place] = before
    return False


def _roots(equation: Comparison, place: int, row: list[float], grid: float) -> Iterator[float]:
    """Values of a column that may solve an equation that is linear in the column."""
    for side, other in ((equation.left, equation.right), (equation.right, equation.left)):
        if isinstance(side, ColumnValue) and side.position == place:
            yield _on_grid(number_of(other, row) / side.factor, grid)
    ends = []
    for point in (0.0, 1.0):
        trial = [*row[:place], point, *row[place + 1 :]]
        ends.append(number_of(equation.left, trial) - number_of(equation.right, trial))
    slope = ends[1] - ends[0]
    if slope and math.isfinite(slope) and math.isfinite(ends[0]):
        root = -ends[0] / slope
        yield from (_on_grid(root * (1 + step * 1.1e-16), grid) for step in range(-4, 5))


def _on_grid(number: float, grid: float) -> float:
    return round(number * grid) / grid if grid and math.isfinite(number) else number


class _Search:
    """A search through boxes, each cut in two; a search that ends is a proof."""

    def __init__(self, rules: Rules, rng: np.random.Generator, patience: int) -> None:
        self.rules = rules
        self.rng = rng
        self.left = patience
        self.tied = {place for columns in rules.columns for place in columns}

    def find(self, box: Box) -> NDArray[np.float64] | None:
        boxes = [box]
        missed = False  # whether a box that is nearly a point had no row, without a proof
        while boxes:
            if self.left == 0:
                raise UndecidedError
            self.left -= 1
            after = narrowed(self.rules.needed, boxes.pop())
            if after is None:
                continue
            open_ = [place for place in sorted(self.tied) if not after[place].single]
            for _ in range(TRIES):
                row = self.rules._row(after, self.rng)
                if row is not None:
                    return row
            if not open_:
                missed |= any(not after[place].grid for place in self.tied)
                continue
            place = open_[int(self.rng.integers(len(open_)))]
            halves = list(after[place].halves())
            if self.rng.random() < 0.5:
                halves.reverse()
            boxes += [{**after, place: half} for half in halves]
        if missed:
            raise UndecidedError
        return None


@lru_cache(maxsize=64)
def rules_of(schema: Schema) -> Rules:
    """The rules of a schema, parsed.

    Args:
        schema: The schema.
    """
    truths = []
    for number, text in enumerate(schema.constraints, start=1):
        try:
            truths.append(parse_predicate(schema, text, f"rule {number} of constraints"))
        except WorkloadError as error:
            raise SchemaError(str(error)) from None
    kept = tuple(passing(truth) for truth in truths)
    return Rules(
        schema, tuple(schema.constraints), kept, tuple(wanted(truth, PASSES) for truth in truths)
    )


@lru_cache(maxsize=64)
def check_rules(schema: Schema) -> Rules:
    """The rules of a schema, if some row meets them all.

    The error names a set of rules that no row meets together, none of them superfluous.
    """
    rules = rules_of(schema)
    places = list(range(len(rules.texts)))
    proven = _fails(rules, places)
    if proven is None:
        return rules
    for place in list(places):  # without it, do the others still fail?
        others = [each for each in places if each != place]
        again = _fails(rules, others, PATIENCE // 10) if others else None
        if again is not None and again >= proven:
            places = others
    words = "\n".join(f"  {place + 1}: {rules.texts[place]}" for place in places)
    if proven:
        what = "no row can meet this rule" if len(places) == 1 else "no row can meet these rules"
        what += "" if len(places) == 1 else " together"
    else:
        what = "no row was found that meets these rules, in a long search"
    raise SchemaError(f"constraints: {what}; change or remove one:\n{words}")


def _fails(rules: Rules, places: list[int], patience: int = PATIENCE) -> bool | None:
    """Whether some rules fail: True if proven, False if no row was found; None if there is one."""
    some = rules.some(places)
    try:
        found = some.find(np.random.default_rng(0), patience=patience)
        return True if found is None else None
    except UndecidedError:
        return False
