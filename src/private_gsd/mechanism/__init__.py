"""Mechanisms: how a budget is spent, in steps that each pay before and keep after."""

from private_gsd.mechanism.adaptive import adaptive_units
from private_gsd.mechanism.candidates import (
    AT_ONCE,
    SELECTIVE,
    is_picky,
    measurable,
    single_columns,
)
from private_gsd.mechanism.mechanisms import (
    COUNTING_STEP,
    check_noise,
    conversion_of,
    count_and_rest,
    expected,
    planned_units,
    run,
)
from private_gsd.mechanism.one_shot import plan_of
from private_gsd.mechanism.rehearsing import rehearse
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
    "AT_ONCE",
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
    "check_noise",
    "conversion_of",
    "count_and_rest",
    "expected",
    "is_picky",
    "measurable",
    "plan_of",
    "planned_units",
    "rehearse",
    "run",
    "single_columns",
]
