"""Tables in Spark, which are counted on the cluster (see ``counting.on_spark``)."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.data.sources.restoring import to_arrow
from private_gsd.data.sources.source_table import SourceTable, first_line
from private_gsd.errors import SourceError, UnreadableError, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema


class SparkFrame(SourceTable):
    """A Spark data frame.

    Attributes:
        frame: The frame.
    """

    reads = "a Spark DataFrame"
    name = "the Spark DataFrame"

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is a Spark DataFrame."""
        module = type(data).__module__
        return module.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")

    def __init__(self, data: Any) -> None:
        self.frame = data

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names of all columns; their types are known after the values are read."""
        return pa.schema([(name, pa.null()) for name in self.frame.columns])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Refused: a Spark frame is counted on the cluster, and not read here."""
        raise SourceError(
            f"{self.name} is counted where it is, and not read here; for this, take a part of it "
            "(frame.limit(…).toPandas()), or write it to Parquet"
        )

    def count(self) -> int:
        """The number of rows."""
        with self.readable():
            return int(self.frame.count())

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """The table as a Spark frame of the same session; local times stay without a time zone."""
        types = require("pyspark.sql.pandas.types", what="Giving back a frame", extra="spark")
        table = to_arrow(table, schema)
        # The types are explicit; by default they would depend on settings of the session.
        kinds = types.from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        return self.frame.sparkSession.createDataFrame(table, kinds)

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turn Spark's errors into an ``UnreadableError`` with one line."""
        errors = require("pyspark.errors", what="Reading from Spark", extra="spark")
        java = require("py4j.protocol", what="Reading from Spark", extra="spark")
        try:
            yield
        except errors.PythonException as error:
            # The exception's name alone, since its message may quote a value.
            lines = [
                line for line in str(error).splitlines() if re.match(r"[\w.]+(Error|Exc)", line)
            ]
            reason = lines[-1].partition(":")[0] if lines else "an error"
            raise UnreadableError(f"{self.name} cannot be read: {reason} in a task") from None
        except errors.PySparkException as error:
            raise UnreadableError(f"{self.name} cannot be read: {first_line(error)}") from None
        except java.Py4JError:
            raise UnreadableError(
                f"{self.name} cannot be read: a task failed; Spark's log says why"
            ) from None


def zone_of(name: str) -> str:
    """A session's time zone by a name that Arrow knows; Spark also accepts GMT+1 and Z."""
    if name in ("Z", "UT", "GMT0"):
        return "UTC"
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
    if offset is None:
        return name
    return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"


def quoted(name: str) -> str:
    """A quoted column name for Spark."""
    return "`" + name.replace("`", "``") + "`"
