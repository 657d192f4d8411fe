"""Choices: what a user stated, checked; and what is decided for the user, from public facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
