"""Problems: values outside the schema, counted per column, with a few examples.

The report does not depend on the order of the rows and the number of threads: the examples are the
first in alphabetical order, not the first that were found.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from private_gsd.errors import DataError
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.schema import Column

MAX_EXAMPLES = 5
NUMBER_OR_DATE = re.compile(r"[\d.+:eET -]*\d[\d.+:eET -]*")
_MAX_EXAMPLE_LENGTH = 40


@dataclass
class ColumnProblems:
    """The problems of one column."""

    column: Column
    outside: int = 0
    nulls: int = 0
    examples: list[str] = field(default_factory=list)

    def add_examples(self, examples: list[str]) -> None:
        """Add examples; the first few in alphabetical order are used."""
        self.examples = sorted({*self.examples, *examples})[:MAX_EXAMPLES]

    def describe(self) -> list[str]:
        """One line for each kind of problem."""
        lines = []
        if self.outside:
            some = "e.g. " if self.outside > len(self.examples) else ""
            noun = "value is" if self.outside == 1 else "values are"
            lines.append(
                f"column {self.column.name!r}: {self.outside:,} {noun} not {self.column.expected}: "
                f"{some}{', '.join(self.examples)}"
            )
        if self.nulls:
            noun = "null" if self.nulls == 1 else "nulls"
            lines.append(
                f"column {self.column.name!r}: {self.nulls:,} {noun}, "
                "but the column is not nullable (nullable = true allows them)"
            )
        return lines


class Problems:
    """The problems of a table.

    Attributes:
        coerced: For each column, the number of values that were moved into its domain.
    """

    def __init__(self) -> None:
        self._columns: dict[str, ColumnProblems] = {}
        self.coerced: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._columns)

    def add_outside(self, column: Column, array: pa.Array, rows: NDArray[np.bool_]) -> None:
        """Record the values of some rows as outside the schema."""
        found = self._of(column)
        found.outside += int(rows.sum())
        found.add_examples(_shown(column, array.take(pa.array(rows.nonzero()[0]))))

    def add_nulls(self, column: Column, count: int) -> None:
        """Record nulls in a column that is not nullable."""
        self._of(column).nulls += count

    def add_coerced(self, column: Column, count: int) -> None:
        """Record values that were moved into the domain."""
        self.coerced[column.name] = self.coerced.get(column.name, 0) + count

    def merge(self, other: Problems) -> None:
        """Add the problems of another pass."""
        for name, theirs in other._columns.items():
            ours = self._columns.setdefault(name, ColumnProblems(theirs.column))
            ours.outside += theirs.outside
            ours.nulls += theirs.nulls
            ours.add_examples(theirs.examples)
        for name, count in other.coerced.items():
            self.coerced[name] = self.coerced.get(name, 0) + count

    def _of(self, column: Column) -> ColumnProblems:
        return self._columns.setdefault(column.name, ColumnProblems(column))

    def error(self, source: str = "the table") -> DataError:
        """The error to raise, which names every column."""
        lines = [line for _, each in sorted(self._columns.items()) for line in each.describe()]
        return DataError(
            f"{source} does not fit the schema:\n  "
            + "\n  ".join(lines)
            + "\nCorrect the table, or widen the schema from public knowledge, or read with "
            'on_invalid="coerce" (on the command line: --on-invalid coerce), which moves numbers '
            "to the nearest bound and unknown values to null or to the column's other."
        )


def _shown(column: Column, array: pa.Array) -> list[str]:
    """Values as text, also if Python cannot represent them, such as a date in the year 500,000.

    Numbers and dates are printed in the same way whether they were stored as such or as text.
    """
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    with suppress(pa.ArrowNotImplementedError):
        array = array.unique()
    try:
        texts = [_quoted(column, value) for value in array.to_pylist()]
    except (ValueError, OverflowError, ArithmeticError):
        texts = [str(value) for value in array.cast(pa.string()).to_pylist()]
    shorter = [
        text if len(text) <= _MAX_EXAMPLE_LENGTH else text[: _MAX_EXAMPLE_LENGTH - 1] + "…"
        for text in texts
    ]
    return list(dict.fromkeys(shorter))


def _quoted(column: Column, value: object) -> str:
    """A value as text, in quotes unless it is a number or a date."""
    if not isinstance(value, str):
        return str(value)
    bare = not isinstance(column, Discrete) and NUMBER_OR_DATE.fullmatch(value)
    return value if bare else repr(value)
