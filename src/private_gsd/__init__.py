"""Differentially private synthetic tables with mixed columns, made by a genetic algorithm.

Everything that users type is here. A name is imported from its module when it is first used: a
program starts at once, and loads what it needs.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from private_gsd import workloads as workloads
    from private_gsd.counting.comparison import QueryErrors as QueryErrors
    from private_gsd.counting.comparison import query_errors as query_errors
    from private_gsd.counting.exact import ExactCounts as ExactCounts
    from private_gsd.counting.exact import exact_counts as exact_counts
    from private_gsd.data import datasets as datasets
    from private_gsd.data.encoding import Encoder as Encoder
    from private_gsd.data.sources import LeftOutWarning as LeftOutWarning
    from private_gsd.data.sources import PostgresQuery as PostgresQuery
    from private_gsd.data.sources import Source as Source
    from private_gsd.data.sources import open_source as open_source
    from private_gsd.errors import BudgetError as BudgetError
    from private_gsd.errors import DataError as DataError
    from private_gsd.errors import GsdError as GsdError
    from private_gsd.errors import LedgerError as LedgerError
    from private_gsd.errors import MeasurementError as MeasurementError
    from private_gsd.errors import MissingExtraError as MissingExtraError
    from private_gsd.errors import NotCommittedError as NotCommittedError
    from private_gsd.errors import NotFittedError as NotFittedError
    from private_gsd.errors import ProjectionError as ProjectionError
    from private_gsd.errors import ReleaseError as ReleaseError
    from private_gsd.errors import SchemaError as SchemaError
    from private_gsd.errors import SourceError as SourceError
    from private_gsd.errors import UnreadableError as UnreadableError
    from private_gsd.errors import WorkloadError as WorkloadError
    from private_gsd.evaluation import Evaluation as Evaluation
    from private_gsd.evaluation import evaluate as evaluate
    from private_gsd.evaluation import write_report as write_report
    from private_gsd.measurements.knowledge import Knowledge as Knowledge
    from private_gsd.measurements.measurements import Measurements as Measurements
    from private_gsd.measurements.measurements import measure as measure
    from private_gsd.mechanisms import AIM as AIM
    from private_gsd.mechanisms import MST as MST
    from private_gsd.mechanisms import Adaptive as Adaptive
    from private_gsd.mechanisms import EndedEarlyWarning as EndedEarlyWarning
    from private_gsd.mechanisms import JointLast as JointLast
    from private_gsd.mechanisms import Layered as Layered
    from private_gsd.mechanisms import Mechanism as Mechanism
    from private_gsd.mechanisms import NumbersFirst as NumbersFirst
    from private_gsd.mechanisms import OneShot as OneShot
    from private_gsd.mechanisms import StrongestPairs as StrongestPairs
    from private_gsd.mechanisms.forecast import Forecast as Forecast
    from private_gsd.privacy.accountant import LedgerAccountant as LedgerAccountant
    from private_gsd.privacy.accountant import LocalAccountant as LocalAccountant
    from private_gsd.privacy.allocation import allocate as allocate
    from private_gsd.privacy.budget import Budget as Budget
    from private_gsd.privacy.budget import RhoBudget as RhoBudget
    from private_gsd.privacy.budget import default_delta as default_delta
    from private_gsd.privacy.budget import epsilon_of as epsilon_of
    from private_gsd.privacy.ledger import Ledger as Ledger
    from private_gsd.privacy.noise import SecureNoise as SecureNoise
    from private_gsd.privacy.tradeoff import largest_powers as largest_powers
    from private_gsd.privacy.unledgered_fits import UncountedWarning as UncountedWarning
    from private_gsd.projection import Projector as Projector
    from private_gsd.projection.baselines import GEM as GEM
    from private_gsd.projection.baselines import PGM as PGM
    from private_gsd.projection.baselines import RAP as RAP
    from private_gsd.projection.baselines import RAPPlusPlus as RAPPlusPlus
    from private_gsd.projection.genetic import GeneticSearch as GeneticSearch
    from private_gsd.projection.genetic import evolve as evolve
    from private_gsd.runs.release import Release as Release
    from private_gsd.schema import Boolean as Boolean
    from private_gsd.schema import Categorical as Categorical
    from private_gsd.schema import Column as Column
    from private_gsd.schema import Date as Date
    from private_gsd.schema import Datetime as Datetime
    from private_gsd.schema import Integer as Integer
    from private_gsd.schema import Real as Real
    from private_gsd.schema import Schema as Schema
    from private_gsd.schema import Unit as Unit
    from private_gsd.synthesis.choices import UnmeasuredWarning as UnmeasuredWarning
    from private_gsd.synthesis.smartnoise import GsdSynthesizer as GsdSynthesizer
    from private_gsd.synthesis.sweep import Sweep as Sweep
    from private_gsd.synthesis.synthesizer import Synthesizer as Synthesizer
    from private_gsd.workloads.marginal_constructors import SkippedWarning as SkippedWarning

__version__ = "0.1.0"

# The names of each module.
_NAMES = {
    name: module
    for module, names in {
        "counting.comparison": "QueryErrors query_errors",
        "counting.exact": "ExactCounts exact_counts",
        "data.encoding": "Encoder",
        "data.sources": "LeftOutWarning PostgresQuery Source open_source",
        "errors": (
            "BudgetError DataError GsdError LedgerError MeasurementError MissingExtraError "
            "NotCommittedError NotFittedError ProjectionError ReleaseError SchemaError SourceError "
            "UnreadableError WorkloadError"
        ),
        "evaluation": "Evaluation evaluate write_report",
        "measurements.knowledge": "Knowledge",
        "measurements.measurements": "Measurements measure",
        "mechanisms.forecast": "Forecast",
        "mechanisms": (
            "AIM MST Adaptive EndedEarlyWarning JointLast Layered Mechanism NumbersFirst OneShot "
            "StrongestPairs"
        ),
        "privacy.accountant": "LedgerAccountant LocalAccountant",
        "privacy.allocation": "allocate",
        "privacy.budget": "Budget RhoBudget default_delta epsilon_of",
        "privacy.ledger": "Ledger",
        "privacy.noise": "SecureNoise",
        "privacy.tradeoff": "largest_powers",
        "privacy.unledgered_fits": "UncountedWarning",
        "projection": "Projector",
        "projection.baselines": "GEM PGM RAP RAPPlusPlus",
        "projection.genetic": "GeneticSearch evolve",
        "runs.release": "Release",
        "schema": "Boolean Categorical Column Date Datetime Integer Real Schema Unit",
        "synthesis.choices": "UnmeasuredWarning",
        "synthesis.smartnoise": "GsdSynthesizer",
        "synthesis.sweep": "Sweep",
        "synthesis.synthesizer": "Synthesizer",
        "workloads.marginal_constructors": "SkippedWarning",
    }.items()
    for name in names.split()
}
_MODULES = {"datasets": "data.datasets", "workloads": "workloads"}

__all__ = sorted([*_NAMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found: Any = importlib.import_module(f"private_gsd.{_MODULES[name]}")
    elif name in _NAMES:
        found = getattr(importlib.import_module(f"private_gsd.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module 'private_gsd' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
