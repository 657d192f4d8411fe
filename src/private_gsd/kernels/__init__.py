"""Numba loops: arrays in, arrays out, no validation. One file a family of queries."""
