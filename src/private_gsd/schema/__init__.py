"""What is publicly known about a table: names, kinds, categories, bounds, precision, rules."""

from private_gsd.schema.columns import (
    Boolean,
    Categorical,
    Column,
    Discrete,
    Integer,
    Numeric,
    Real,
)
from private_gsd.schema.schema import Schema
from private_gsd.schema.temporal import Date, Datetime
from private_gsd.schema.unit import Unit

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Date",
    "Datetime",
    "Discrete",
    "Integer",
    "Numeric",
    "Real",
    "Schema",
    "Unit",
]
