"""Contradictions: public counts that no table can have, found before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from private_gsd.errors import WorkloadError
from private_gsd.sql.proofs import Proofs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth

# The largest number of public counts that are compared in pairs.
MAX_COMPARED = 100


@dataclass(frozen=True)
class Contradictions:
    """Public counts, compared with each other.

    Counts are refused only if they are proven to be impossible: the count of a condition exceeds
    that of a condition that it implies, or the counts of disjoint conditions exceed that of a
    condition that contains them all, or the counts of conditions that together contain every row
    are too small. Counts that are impossible for another reason are not detected.

    Attributes:
        schema: The public schema.
        counts: For each condition, the number of rows that meet it.
        truths: The conditions, parsed.
    """

    schema: Schema
    counts: Mapping[str, int]
    truths: tuple[Truth, ...]

    def check(self) -> None:
        """Refuse counts that no table can have, whatever its number of rows."""
        for place, number in enumerate(self._numbers):
            if number and self._proofs.nobody([place]):
                raise WorkloadError(
                    f"no row that the schema allows meets {self._words([place])}, whose public "
                    f"count is {number:,}"
                )
        for whole in self._places:
            parts = [place for place in self._places if self._within[place][whole]]
            self._check_parts(parts, self._numbers[whole], [whole])

    def check_rows(self, rows: int) -> None:
        """Refuse counts that no table with this number of rows can have."""
        self._check_parts(list(self._places), rows, [])
        for one in self._places:
            for other in range(one):
                found = self._numbers[one] + self._numbers[other]
                if found < rows and self._proofs.nobody([], [other, one]):
                    raise self._too_few([other, one], found, rows, [])

    def _check_parts(self, parts: list[int], size: int, whole: list[int]) -> None:
        """Check that counts of disjoint conditions do not exceed that of one that contains them.

        Args:
            parts: The positions of conditions that imply the containing condition.
            size: The count of the containing condition, or the number of rows of the table.
            whole: The position of the containing condition; empty for the whole table.
        """
        ordered = sorted(parts, key=lambda place: -self._numbers[place])
        seen = set()
        for first in ordered:
            chosen = [first]
            for place in ordered:
                if all(self._apart[place][other] for other in chosen):
                    chosen.append(place)
            if frozenset(chosen) in seen:
                continue
            seen.add(frozenset(chosen))
            found = sum(self._numbers[place] for place in chosen)
            if found > size:
                raise self._too_many(chosen, found, size, whole)
            if found < size and self._proofs.nobody(whole, chosen):
                raise self._too_few(chosen, found, size, whole)

    def _too_many(self, parts: list[int], found: int, size: int, whole: list[int]) -> WorkloadError:
        what = (
            f"has {found:,} rows and is a part of"
            if len(parts) == 1
            else f"exclude each other, have {found:,} rows together and are parts of"
        )
        return self._contradiction(parts, what, size, whole)

    def _too_few(self, parts: list[int], found: int, size: int, whole: list[int]) -> WorkloadError:
        what = (
            f"has {found:,} rows and leaves out no row of"
            if len(parts) == 1
            else f"have {found:,} rows together and leave out no row of"
        )
        return self._contradiction(parts, what, size, whole)

    def _contradiction(
        self, parts: list[int], what: str, size: int, whole: list[int]
    ) -> WorkloadError:
        where = self._words(whole) if whole else "the table"
        return WorkloadError(
            f"the public counts contradict each other: {self._words(parts)} {what} {where}, which "
            f"has {size:,}; correct one of them"
        )

    def _words(self, places: list[int]) -> str:
        """A few of the conditions, in words."""
        names = list(self.counts)
        listed = [f"{names[place]!r:.80}" for place in places[:3]]
        listed += [f"{len(places) - 3:,} more"] if len(places) > 3 else []
        return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)

    @cached_property
    def _numbers(self) -> list[int]:
        return list(self.counts.values())

    @cached_property
    def _places(self) -> range:
        return range(len(self.truths) if len(self.truths) <= MAX_COMPARED else 0)

    @cached_property
    def _proofs(self) -> Proofs:
        return Proofs(self.schema, self.truths)

    @cached_property
    def _within(self) -> list[list[bool]]:
        """For each condition, the others that it is proven to imply."""
        return [
            [one != other and self._proofs.nobody([one], [other]) for other in self._places]
            for one in self._places
        ]

    @cached_property
    def _apart(self) -> list[list[bool]]:
        """For each condition, the others that it is proven to be disjoint from."""
        return [
            [one != other and self._proofs.nobody([one, other]) for other in self._places]
            for one in self._places
        ]
