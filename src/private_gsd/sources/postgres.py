"""Tables in PostgreSQL: a query, read through ADBC as a stream of record batches.

A pass over the table is one statement, and PostgreSQL answers a statement from one snapshot: rows
that others add, change or remove meanwhile are not seen. The session is read-only. What the address
says about users and passwords is shown nowhere and kept nowhere.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from private_gsd.errors import SourceError, require
from private_gsd.sources.memory import Table, quote_name, slices
from private_gsd.sources.restoring import restore_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema

SCHEMES = ("postgresql://", "postgres://")
# Types that arrive as what they are. All others arrive as text, and the schema says what it means:
# a numeric with all its digits, a char without the blanks that fill it up, an enum by its name.
NATIVE = {
    *("bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar"),
    *("date", "timestamp", "timestamptz"),
}


class PostgresQuery:
    """A query to a PostgreSQL server, to be read as a table.

    >>> PostgresQuery("postgresql://clerk:secret@db.example/census", "SELECT * FROM person")
    <PostgresQuery postgresql://db.example/census>

    Args:
        uri: The server: ``postgresql://user@host:port/database``. A password is better left to
            ``PGPASSWORD`` or a password file than put here.
        query: A SELECT; its columns are the table's.
    """

    def __init__(self, uri: str, query: str) -> None:
        if not isinstance(uri, str) or not uri.startswith(SCHEMES):
            raise SourceError("a PostgreSQL address begins with postgresql://")
        if not isinstance(query, str) or not query.strip():
            raise SourceError(f"{public_name(uri)}: needs a query, such as SELECT * FROM person")
        self._uri = uri
        self.query = query.strip().removesuffix(";")
        self.name = public_name(uri)

    def __repr__(self) -> str:
        return f"<PostgresQuery {self.name}>"

    def __getstate__(self) -> object:
        raise TypeError("the address of a server may hold a password, and is not written")

    def connect(self) -> Any:
        """A connection."""
        dbapi = require(
            "adbc_driver_postgresql.dbapi", what="Reading from PostgreSQL", extra="postgres"
        )
        with self.readable():
            connection = dbapi.connect(self._uri, autocommit=True)
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SET default_transaction_read_only = on")
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turn the driver's errors into ours, without what must not be shown."""
        manager = require("adbc_driver_manager", what="Reading from PostgreSQL", extra="postgres")
        try:
            yield
        except (manager.Error, pa.ArrowException, OSError) as error:
            text = str(error).partition("\n\nQuery was:")[0]
            for secret in _secrets(self._uri):
                text = text.replace(secret, "…")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            # Details may quote a row, as those of a value that cannot be cast do.
            shown = [line for line in lines if not line.startswith(("DETAIL", "CONTEXT", "LINE"))]
            message = " ".join(shown)[:300] or type(error).__name__
            raise SourceError(f"{self.name}: cannot be read: {message}") from None


class PostgresTable(Table):
    """The result of a query."""

    def __init__(self, data: PostgresQuery) -> None:
        self._data = data
        self.name = data.name
        with self._reading("*", " LIMIT 0") as cursor:
            self._schema = cursor.fetch_arrow_table().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches, from one snapshot."""
        selected = ", ".join(self._column(name) for name in columns)
        with self._reading(selected) as cursor:
            for batch in cursor.fetch_record_batch():
                yield from slices(batch, batch_rows)

    def count(self) -> int:
        """The number of rows, counted by the server."""
        with self._reading("count(*)") as cursor:
            return int(cursor.fetchone()[0])

    def restore(self, table: pa.Table, schema: Schema) -> pa.Table:  # noqa: ARG002
        """A PyArrow table in the types that came."""
        kinds = [
            pa.field(field.name, pa.string() if _kind(field) not in NATIVE else field.type)
            for field in self._schema
        ]
        return restore_arrow(table, pa.schema(kinds))

    @contextmanager
    def _reading(self, what: str, end: str = "") -> Iterator[Any]:
        """A cursor with something of the query's result."""
        data = self._data
        with data.connect() as connection, data.readable(), connection.cursor() as cursor:
            # On lines of its own: the query may end in a comment.
            cursor.execute(f"SELECT {what} FROM (\n{data.query}\n) AS asked{end}")
            yield cursor

    def _column(self, name: str) -> str:
        native = _kind(self._schema.field(name)) in NATIVE
        return quote_name(name) + ("" if native else f"::text AS {quote_name(name)}")


def is_postgres(data: object) -> bool:
    """Whether something is the address of a PostgreSQL server."""
    return isinstance(data, str) and data.startswith(SCHEMES)


def public_name(uri: str) -> str:
    """An address without users, passwords and options."""
    try:
        parts = urlsplit(uri)
        where = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "postgresql://…"
    return f"postgresql://{where}{port}{parts.path}"


def _secrets(uri: str) -> list[str]:
    """What of an address must not be shown."""
    try:
        parts = urlsplit(uri)
        options = parse_qs(parts.query)
    except ValueError:
        return [uri]
    found = [uri, parts.password or "", parts.query]
    for name in ("password", "sslpassword", "passfile"):
        found += options.get(name, [])
    return [each for secret in found for each in {secret, unquote(secret)} if each]


def _kind(field: pa.Field) -> str:
    return str((field.metadata or {}).get(b"POSTGRESQL:type", b"").decode())
