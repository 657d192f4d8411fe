"""Choices: what a user stated, checked; and what is decided for the user, from public facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.data.sources import open_source
from private_gsd.errors import (
    BudgetError,
    LedgerError,
    MeasurementError,
    SchemaError,
    SourceError,
    WorkloadError,
)
from private_gsd.measurements.knowledge import Knowledge
from private_gsd.mechanisms.defaults import (
    check_projector,
    choose_mechanism,
    choose_rows,
    choose_specs,
)
from private_gsd.mechanisms.forecast import Forecast, require_memory
from private_gsd.mechanisms.one_shot import Layered
from private_gsd.mechanisms.registry import check_conversion, conversion_of
from private_gsd.privacy.budget import Budget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.measuring import MAX_ROWS
from private_gsd.runs.release_run import require_ledger
from private_gsd.runs.settings import (
    MOST_NOISE_SEED,
    MOST_SEED,
    MOST_THREADS,
    RunSettings,
    check_dataset,
)
from private_gsd.schema import Schema
from private_gsd.sql.rules import check_rules
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.serialisation import dump_workload
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from private_gsd.measurements.knowledge import KnowledgeOf
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.projection import Projector
