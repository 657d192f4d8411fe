"""Mechanisms: how a budget is spent, in steps that each pay before and keep after."""

from private_gsd.mechanisms.adaptive import adaptive_units
from private_gsd.mechanisms.base import (
    Checkpoint,
    EndedEarlyWarning,
    Expected,
    Mechanism,
    Name,
    Outcome,
    Run,
    Split,
)
from private_gsd.mechanisms.candidates import (
    AT_ONCE,
    SELECTIVE,
    is_picky,
    measurable,
    single_columns,
)
from private_gsd.mechanisms.mechanisms import (
    COUNTING_STEP,
    check_noise,
    conversion_of,
    count_and_rest,
    expected,
    planned_units,
    run,
)
from private_gsd.mechanisms.one_shot import plan_of
from private_gsd.mechanisms.rehearsal import rehearse

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
