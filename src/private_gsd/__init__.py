"""Differentially private synthetic tables with mixed columns, made by a genetic algorithm."""

from private_gsd import workloads
from private_gsd.counting.exact import ExactCounts, QueryErrors, exact_counts, query_errors
from private_gsd.data import datasets
from private_gsd.data.encoding import Encoder
from private_gsd.data.sources import LeftOutWarning, PostgresQuery, Source, open_source
from private_gsd.evaluation import Evaluation, evaluate
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.uncounted import UncountedWarning
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.runs.release import Release
from private_gsd.schema import (
    Boolean,
    Categorical,
    Column,
    Date,
    Datetime,
    Integer,
    Real,
    Schema,
)
from private_gsd.synthesis.sweep import Sweep
from private_gsd.synthesis.synthesizer import Synthesizer

__version__ = "0.1.0"

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Date",
    "Datetime",
    "Encoder",
    "Evaluation",
    "ExactCounts",
    "GeneticSearch",
    "Integer",
    "LeftOutWarning",
    "Measurements",
    "PostgresQuery",
    "QueryErrors",
    "Real",
    "Release",
    "Schema",
    "Source",
    "Sweep",
    "Synthesizer",
    "UncountedWarning",
    "datasets",
    "evaluate",
    "evolve",
    "exact_counts",
    "open_source",
    "query_errors",
    "workloads",
]
