"""The paper's baselines as projectors: RAP, RAP++, GEM and graphical models (PGM)."""

from private_gsd.projection.baselines.gem import GEM
from private_gsd.projection.baselines.pgm import PGM
from private_gsd.projection.baselines.rap import RAP
from private_gsd.projection.baselines.rap_plus_plus import RAPPlusPlus

__all__ = ["GEM", "PGM", "RAP", "RAPPlusPlus"]
