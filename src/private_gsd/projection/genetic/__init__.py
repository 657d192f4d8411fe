"""The genetic search for a synthetic table whose answers match the measurements."""

from private_gsd.projection.genetic.config import GeneticSearch
from private_gsd.projection.genetic.evolve import Evolution, evolve, prepare
from private_gsd.projection.watch import SearchState

__all__ = ["Evolution", "GeneticSearch", "SearchState", "evolve", "prepare"]
