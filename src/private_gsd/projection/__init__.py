"""Projection: from noisy measurements to a synthetic table with similar answers."""

from private_gsd.projection.projectors import NAMES, projector_of
from private_gsd.projection.protocol import Projection, Projector

__all__ = ["NAMES", "Projection", "Projector", "projector_of"]
