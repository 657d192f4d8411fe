"""Checks of projectors' settings: whole numbers of at least 1, and numbers above 0."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from private_gsd.errors import ProjectionError
from private_gsd.workloads.checks import any_number, whole

MOST = 2**24
# Largest learning rate; beyond it losses overflow.
LARGEST = 10.0


def check_settings(projector: Any) -> None:
    """Refuse settings that make no sense; numbers of any type become Python numbers."""
    for each in fields(projector):
        value = getattr(projector, each.name)
        if isinstance(each.default, int):
            found: float = whole(each.name, value, 1, MOST, ProjectionError)
        else:
            found = any_number(value)
            if not 0 < found <= LARGEST:
                raise ProjectionError(
                    f"{each.name} must be a number above 0 and at most {LARGEST:g}, not "
                    f"{value!r:.50}"
                )
        object.__setattr__(projector, each.name, found)
