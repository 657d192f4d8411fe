"""Proofs that no row meets some conditions and misses others; the method is not complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_gsd.sql.expressions import FALSE, TRUE, UNKNOWN
from private_gsd.sql.narrowing import narrowed, wanted
from private_gsd.sql.regions import Region
from private_gsd.sql.rules import rules_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth


class Proofs:
    """Proofs about some conditions on the rows that a schema and its rules allow.

    Args:
        schema: The public schema.
        truths: The conditions.
    """

    def __init__(self, schema: Schema, truths: Sequence[Truth]) -> None:
        self._box = {place: Region.of(column) for place, column in enumerate(schema)}
        self._rules = rules_of(schema).needed
        self._met = [wanted(truth, frozenset({TRUE})) for truth in truths]
        self._missed = [wanted(truth, frozenset({FALSE, UNKNOWN})) for truth in truths]

    def no_row(self, met: Sequence[int] = (), missed: Sequence[int] = ()) -> bool:
        """Whether it is proven that no row meets some conditions and misses some others.

        Args:
            met: The numbers of conditions that are true.
            missed: The numbers of conditions that are false or unknown.
        """
        conditions = [self._met[place] for place in met]
        conditions += [self._missed[place] for place in missed]
        return narrowed([*conditions, *self._rules], self._box) is None
