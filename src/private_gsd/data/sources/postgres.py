"""Tables in PostgreSQL: a query, read through ADBC as a stream of record batches.

A pass over the table is one statement, and PostgreSQL answers a statement from one snapshot: it
ignores rows that are added, changed or removed meanwhile. The session is read-only. The user and
the password of an address are never printed or stored.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.data.sources.source_table import SourceTable, quote_name, slices
from private_gsd.errors import SourceError, UnreadableError, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Types that are read as they are. All others are read as text, which the schema gives a type: a
# numeric with all of its digits, a char without its padding, an enum by its name.
NATIVE = {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar"}
MOMENTS = {"date", "timestamp", "timestamptz"}

# Only addresses in which the end of the password is unambiguous, so that no part of a password is
# printed as the host.
ADDRESS = re.compile(
    r"postgres(?:ql)?://"
    r"(?:[^/?#@\s]*@)?"  # user and password
    r"(?P<hosts>[^/?#@\s]*)"
    r"(?P<database>/[^/?#@\s]*)?"
    r"(?:\?(?:[\w.-]+=[^&?#@\s]*)(?:&[\w.-]+=[^&?#@\s]*)*)?",
    re.IGNORECASE,
)
ADVICE = (
    "the address of the server is not understood, and not shown here; write "
    "postgresql://user@host:port/database, with %40 for @, %2F for /, %3F for ? and %23 for #"
)
# Messages for failed connections; those of the driver may quote parts of the address.
CONNECTING = {
    "Connection refused": "no server answers there",
    "could not translate host name": "the host is not known",
    "password authentication failed": "user or password is wrong",
    "no password supplied": "the server wants a password; set PGPASSWORD, or use a password file",
    "does not exist": "the server does not know this user or database",
    "No such file or directory": "no server answers there",
    "timeout expired": "the server did not answer in time",
    "pg_hba.conf": "the server does not let this user in from here",
    "SSL": "no encrypted connection could be made",
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
        if not is_address(uri):
            raise SourceError("a PostgreSQL address begins with postgresql://")
        parts = ADDRESS.fullmatch(uri)
        if parts is None or not uri.isprintable():
            raise SourceError(ADVICE)
        self.name = f"postgresql://{parts['hosts']}{parts['database'] or ''}"
        if not isinstance(query, str) or not query.strip():
            raise SourceError(f"{self.name}: needs a query, such as SELECT * FROM person")
        try:
            query.encode()
        except UnicodeEncodeError:
            raise SourceError(f"{self.name}: the query is not text that can be sent") from None
        scheme, _, rest = uri.partition("://")
        self._uri = f"{scheme.lower()}://{rest}"
        self.query = query.strip().removesuffix(";")

    def __repr__(self) -> str:
        return f"<PostgresQuery {self.name}>"

    def __getstate__(self) -> object:
        raise TypeError("the address of a server may hold a password, and is not written")

    def connect(self) -> Any:
        """Open a read-only connection."""
        dbapi = require(
            "adbc_driver_postgresql.dbapi", what="Reading from PostgreSQL", extra="postgres"
        )
        manager = _manager()
        try:
            connection = dbapi.connect(self._uri, autocommit=True)
        except (manager.Error, OSError) as error:
            told = [words for sign, words in CONNECTING.items() if sign in str(error)]
            reason = told[0] if told else "no connection could be made; is the address right?"
            raise SourceError(f"{self.name}: cannot be read: {reason}") from None
        try:
            with self.readable(), connection.cursor() as cursor:
                cursor.execute("SET default_transaction_read_only = on")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turn the driver's errors into an ``UnreadableError`` with a message of one line."""
        manager = _manager()
        try:
            yield
        except (manager.Error, pa.ArrowException, OSError) as error:
            text = str(error).partition("\n\nQuery was:")[0].replace(self._uri, "…")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            shown = [line for line in lines if not line.startswith(("DETAIL", "CONTEXT", "LINE"))]
            message = " ".join(shown)[:300] or type(error).__name__
            raise UnreadableError(f"{self.name}: cannot be read: {message}") from None


class PostgresTable(SourceTable):
    """The result of a query."""

    reads = "a PostgresQuery"

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is a PostgresQuery."""
        return isinstance(data, PostgresQuery)

    def __init__(self, data: PostgresQuery) -> None:
        self._data = data
        self.name = data.name
        with self._reading("*", " LIMIT 0") as cursor:
            self._schema = cursor.fetch_arrow_table().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names and types of all columns."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches, from one snapshot."""
        selected = ", ".join(self._column(name) for name in columns)
        with self._reading(selected) as cursor:
            for batch in cursor.fetch_record_batch():
                yield from slices(batch, batch_rows)

    def count(self) -> int:
        """The number of rows, counted by the server."""
        with self._reading("count(*)") as cursor:
            return int(cursor.fetchone()[0])

    @contextmanager
    def _reading(self, what: str, end: str = "") -> Iterator[Any]:
        """A cursor with the result of a SELECT from the query.

        Args:
            what: The expressions to select.
            end: The end of the statement.
        """
        data = self._data
        with data.connect() as connection, data.readable(), connection.cursor() as cursor:
            # The query has lines of its own, since it may end in a comment.
            cursor.execute(f"SELECT {what} FROM (\n{data.query}\n) AS asked{end}")
            yield cursor

    def _column(self, name: str) -> str:
        quoted, kind = quote_name(name), _kind(self._schema.field(name))
        if kind in NATIVE:
            return quoted
        if kind in MOMENTS:  # Arrow has no infinity; use moments outside all bounds
            far = f"CASE WHEN {quoted} > '2000-01-01' THEN '9999-12-31' ELSE '0001-01-01' END"
            return (
                f"CASE WHEN coalesce(isfinite({quoted}), true) THEN {quoted} "
                f"ELSE ({far})::{kind} END AS {quoted}"
            )
        # A numeric NaN is read as null, like a floating-point NaN.
        text = f"nullif({quoted}::text, 'NaN')" if kind == "numeric" else f"{quoted}::text"
        return f"{text} AS {quoted}"


def is_address(data: object) -> bool:
    """Whether something is the address of a PostgreSQL server."""
    return isinstance(data, str) and data.lower().startswith(("postgresql://", "postgres://"))


def refuse_addresses(data: str) -> None:
    """Refuse text that looks like the address of a server, without printing it."""
    if re.match(r"[A-Za-z][\w+.-]*://", data) or re.search(r"\bpassword\s*=", data, re.IGNORECASE):
        raise SourceError(
            "this looks like the address of a server, and so is not shown here; only PostgreSQL's "
            "are understood (postgresql://…), together with a query"
        )


def _manager() -> Any:
    return require("adbc_driver_manager", what="Reading from PostgreSQL", extra="postgres")


def _kind(field: pa.Field) -> str:
    return str((field.metadata or {}).get(b"POSTGRESQL:type", b"").decode())
