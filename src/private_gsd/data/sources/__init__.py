"""Sources: tables of any kind as streams of Arrow record batches that can be read repeatedly."""

from private_gsd.data.sources.postgres import PostgresQuery
from private_gsd.data.sources.source import LeftOutWarning, Source, open_source

__all__ = ["LeftOutWarning", "PostgresQuery", "Source", "open_source"]
