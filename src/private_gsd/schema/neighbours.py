"""The neighbouring relation: in which record two neighbouring datasets may differ."""

from typing import Literal

# One record is replaced by another, or one record is added or removed.
Neighbours = Literal["replace-one", "add-remove"]
