"""An Arrow record batch to one numeric row matrix and back, row by row."""

from private_gsd.data.encoding.encoder import Encoder, OnInvalid
from private_gsd.data.encoding.problems import Problems

__all__ = ["Encoder", "OnInvalid", "Problems"]
