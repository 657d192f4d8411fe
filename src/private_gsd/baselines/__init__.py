"""Rivals of the genetic search, behind the same door: RAP, RAP++, GEM and graphical models."""

from private_gsd.baselines.projector import Projection, Projector
from private_gsd.baselines.registry import NAMES, projector_of

__all__ = ["NAMES", "Projection", "Projector", "projector_of"]
