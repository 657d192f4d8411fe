"""Mechanisms: how a budget is spent, in steps that each pay before and keep after."""

from private_gsd.mechanism.adaptive import adaptive_units
from private_gsd.mechanism.candidates import SELECTIVE, is_picky, measurable, single_columns
from private_gsd.mechanism.mechanisms import (
    COUNTING_STEP,
    count_and_rest,
    expected,
    planned_units,
    run,
)
from private_gsd.mechanism.terms import (
    Checkpoint,
    EndedEarlyWarning,
    Expected,
    Mechanism,
    Name,
    Outcome,
    Run,
    Split,
)

__all__ = [
    "COUNTING_STEP",
    "SELECTIVE",
    "Checkpoint",
    "EndedEarlyWarning",
    "Expected",
    "Mechanism",
    "Name",
    "Outcome",
    "Run",
    "Split",
    "adaptive_units",
    "count_and_rest",
    "expected",
    "is_picky",
    "measurable",
    "planned_units",
    "run",
    "single_columns",
]
