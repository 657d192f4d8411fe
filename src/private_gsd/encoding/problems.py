"""Problems: values outside the schema, counted per column, with a few examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from private_gsd.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from private_gsd.schema import Column

MAX_EXAMPLES = 5
_MAX_EXAMPLE_LENGTH = 40


@dataclass
class ColumnProblems:
    """What is wrong with one column."""

    column: Column
    outside: int = 0
    nulls: int = 0
    examples: list[str] = field(default_factory=list)

    def describe(self) -> list[str]:
        """One line for each sort of trouble."""
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
    """Everything that was found wrong with a table so far."""

    def __init__(self) -> None:
        self._columns: dict[str, ColumnProblems] = {}

    def __bool__(self) -> bool:
        return bool(self._columns)

    def add_outside(self, column: Column, array: pa.Array, rows: NDArray[np.bool_]) -> None:
        """Note the values in those rows as outside the schema."""
        found = self._of(column)
        found.outside += int(rows.sum())
        if len(found.examples) < MAX_EXAMPLES:
            for value in array.take(rows.nonzero()[0][:1000]).unique().to_pylist():
                example = repr(value) if isinstance(value, str) else str(value)
                if len(example) > _MAX_EXAMPLE_LENGTH:
                    example = example[: _MAX_EXAMPLE_LENGTH - 1] + "…"
                if example not in found.examples and len(found.examples) < MAX_EXAMPLES:
                    found.examples.append(example)

    def add_nulls(self, column: Column, count: int) -> None:
        """Note nulls in a column that has none."""
        self._of(column).nulls += count

    def merge(self, other: Problems) -> None:
        """Add what another pass found."""
        for name, theirs in other._columns.items():
            ours = self._columns.setdefault(name, ColumnProblems(theirs.column))
            ours.outside += theirs.outside
            ours.nulls += theirs.nulls
            fresh = [example for example in theirs.examples if example not in ours.examples]
            ours.examples = (ours.examples + fresh)[:MAX_EXAMPLES]

    def _of(self, column: Column) -> ColumnProblems:
        return self._columns.setdefault(column.name, ColumnProblems(column))

    def error(self, source: str = "the table") -> DataError:
        """The error to raise, which names every column."""
        lines = [line for problems in self._columns.values() for line in problems.describe()]
        return DataError(
            f"{source} does not fit the schema:\n  "
            + "\n  ".join(lines)
            + "\nCorrect the table, or widen the schema from public knowledge, or read with "
            'invalid="coerce" (on the command line: --invalid coerce), which moves numbers to the '
            "nearest bound and unknown values to null or to the column's other."
        )
