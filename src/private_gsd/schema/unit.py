"""The unit of protection: whose rows are protected together, where that is not a single row."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

from private_gsd.errors import SchemaError, did_you_mean

# What a kept row weighs: one, or one divided by the number of kept rows of its unit.
Weighting = Literal["units", "rows"]
# What a row without an id is: refused, or a unit of its own.
NullIds = Literal["refuse", "own"]

# The most rows that may be taken of one unit.
MOST_ROWS = 1000
# Up to this many rows of a unit, the weight of a unit is a common multiple of all numbers of rows.
MOST_EXACT = 16


@dataclass(frozen=True)
class Unit:
    """The unit of protection: all rows with the same id, of which some are taken.

    >>> Unit("patient_id", at_most=8)
    Unit(column='patient_id', at_most=8, weighting='units', null_ids='refuse')

    Attributes:
        column: The column with the id of the unit. It is neither measured nor published.
        at_most: The most rows that are taken of one unit, K; of more, so many are chosen at random.
        weighting: What a row counts. With "units" each unit counts one, whatever the number of its
            rows: each of k rows counts 1/k. With "rows" each row that is taken counts one.
        null_ids: What a row without an id is: refused, or a unit of its own ("own"). An empty text
            is no id.
    """

    column: str
    at_most: int
    weighting: Weighting = "units"
    null_ids: NullIds = "refuse"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(f"unit: column must be the name of a column, not {self.column!r:.80}")
        whole = isinstance(self.at_most, int) and not isinstance(self.at_most, bool)
        if not whole or not 1 <= self.at_most <= MOST_ROWS:
            raise SchemaError(
                f"unit: at_most is the most rows that are taken of one unit, a whole number from 1 "
                f"to {MOST_ROWS:,}, not {self.at_most!r:.80}"
            )
        for name, kind in (("weighting", Weighting), ("null_ids", NullIds)):
            value = getattr(self, name)
            if value not in get_args(kind):
                listed = " or ".join(map(repr, get_args(kind)))
                raise SchemaError(f"unit: {name} must be {listed}, not {value!r:.80}")

    @property
    def in_words(self) -> str:
        """The unit, and what of it is counted, in words."""
        counts = "each of them counts one" if self.rows_count else "each unit counts one"
        return (
            f"all rows with the same {self.column!r}, of which at most {self.at_most:,} are taken; "
            f"{counts}"
        )

    @property
    def rows_count(self) -> bool:
        """Whether each row counts one, and a unit as many as it has rows."""
        return self.weighting == "rows" and self.at_most > 1

    @property
    def most(self) -> int:
        """The most that a unit counts: K where each row counts one, else 1."""
        return self.at_most if self.rows_count else 1

    @cached_property
    def weight(self) -> int:
        """The weight of a unit in whole numbers, W: counts are in W-ths of a unit; 1 for rows.

        Of few rows it is the least common multiple of 1, …, K. More rows share W as evenly as whole
        numbers can, so that counts of any table fit into 64 bits.
        """
        return 1 if self.rows_count else math.lcm(*range(1, min(self.at_most, MOST_EXACT) + 1))

    def weights(self, rows: int) -> list[int]:
        """The weights of the rows of a unit that has so many, the first chosen first.

        They are whole numbers, and add up to W. Where W is no multiple of the number of rows, the
        rows that were chosen first, at random, have one more.

        >>> Unit("id", at_most=4).weights(3), Unit("id", at_most=4, weighting="rows").weights(3)
        ([4, 4, 4], [1, 1, 1])
        """
        if self.rows_count:
            return [1] * rows
        share, rest = divmod(self.weight, rows)
        return [share + (place < rest) for place in range(rows)]

    @classmethod
    def from_dict(cls, keys: Any) -> Unit:
        """Build a unit from its keys in a schema file."""
        if not isinstance(keys, dict):
            raise SchemaError(
                f"unit: expected a table of keys, column and at_most, not {keys!r:.80}"
            )
        known = [field.name for field in fields(cls)]
        for key in keys:
            if key not in known:
                raise SchemaError(
                    f"unit: unknown key {key!r}; a unit takes {', '.join(known)}"
                    f"{did_you_mean(key, known)}"
                )
        missing = [name for name in ("column", "at_most") if name not in keys]
        if missing:
            raise SchemaError(
                f"unit: {' and '.join(missing)} missing; a unit needs the column of its ids and "
                "the most rows that are taken of one unit, from public knowledge"
            )
        return cls(**keys)

    def to_dict(self) -> dict[str, Any]:
        """The keys of the unit for a schema file, without defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
