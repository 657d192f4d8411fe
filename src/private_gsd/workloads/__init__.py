"""Queries: marginals, prefixes, halfspaces, predicates, sums and functions, joined by ``+``."""

from private_gsd.schema.neighbours import Neighbours
from private_gsd.workloads.conjunctions import Conjunctions, random_prefixes
from private_gsd.workloads.family import Family
from private_gsd.workloads.functions import Functions, functions
from private_gsd.workloads.halfspaces import Halfspaces, random_halfspaces
from private_gsd.workloads.marginal_constructors import (
    SkippedWarning,
    categorical_marginals,
    range_marginals,
    tree_marginals,
)
from private_gsd.workloads.marginals import Marginals
from private_gsd.workloads.predicates import Predicates, predicates, read_predicates
from private_gsd.workloads.sums import Sums, sums
from private_gsd.workloads.workload import CELL_LIMIT, Workload

__all__ = [
    "CELL_LIMIT",
    "Conjunctions",
    "Family",
    "Functions",
    "Halfspaces",
    "Marginals",
    "Neighbours",
    "Predicates",
    "SkippedWarning",
    "Sums",
    "Workload",
    "categorical_marginals",
    "functions",
    "predicates",
    "random_halfspaces",
    "random_prefixes",
    "range_marginals",
    "read_predicates",
    "sums",
    "tree_marginals",
]
