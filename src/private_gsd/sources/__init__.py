"""Anything tabular as a stream of Arrow record batches that can be read again."""

from private_gsd.sources.source import LeftOutWarning, Source, open_source

__all__ = ["LeftOutWarning", "Source", "open_source"]
