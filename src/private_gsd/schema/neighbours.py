"""The neighbouring relation: in which unit of protection two neighbouring datasets may differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from private_gsd.schema.unit import Unit

# One unit is replaced by another, or one unit is added or removed. A unit is a record, or all
# records with the same id where the schema names a unit.
Neighbours = Literal["replace-one", "add-remove"]


def relation_of(neighbours: str, unit: str | None) -> str:
    """The neighbouring relation with its unit, in words that differ for each of them.

    Args:
        neighbours: The neighbouring relation.
        unit: The column with the ids of units; None where the unit is a record.

    >>> relation_of("replace-one", None), relation_of("add-remove", "patient_id")
    ('replace-one', "add-remove of units by 'patient_id'")
    """
    return neighbours if unit is None else f"{neighbours} of units by {unit!r}"


def records_are_public(neighbours: str, unit: Unit | None) -> bool:
    """Whether the number that counts are compared with is the same for all neighbours.

    It is the number of records; where each unit counts one, the number of units. Where each row of
    a unit counts one, it is the number of rows that are taken, which no relation makes public.
    """
    return neighbours == "replace-one" and (unit is None or not unit.rows_count)
