"""Encoding of Arrow record batches as numeric row matrices, and decoding."""

from private_gsd.data.encoding.encoder import Encoder, OnInvalid
from private_gsd.data.encoding.problems import Problems

__all__ = ["Encoder", "OnInvalid", "Problems"]
