"""Tables in Spark: counted where they are, by ``private_gsd.spark``, and never brought here."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.errors import SourceError, require
from private_gsd.sources.memory import Table, first_line
from private_gsd.sources.restoring import restore_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema


class SparkFrame(Table):
    """A Spark data frame.

    Attributes:
        frame: The frame.
    """

    name = "the Spark DataFrame"

    def __init__(self, data: Any) -> None:
        self.frame = data

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names of all columns; types are known only once the values are read."""
        return pa.schema([(name, pa.null()) for name in self.frame.columns])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Not from here."""
        raise SourceError(
            f"{self.name} is counted where it is, and not read here; for this, take a part of it "
            "(frame.limit(…).toPandas()), or write it to Parquet"
        )

    def count(self) -> int:
        """The number of rows."""
        with self.readable():
            return int(self.frame.count())

    def restore(self, table: pa.Table, schema: Schema) -> Any:  # noqa: ARG002
        """A Spark frame in the types that came, where every value fits them."""
        arrow = require("pyspark.sql.pandas.types", what="Giving back a frame", extra="spark")
        functions = require("pyspark.sql.functions", what="Giving back a frame", extra="spark")
        session = self.frame.sparkSession
        zone = zone_of(session.conf.get("spark.sql.session.timeZone"))
        came = {field.name: field.dataType for field in self.frame.schema}
        kinds = [arrow.to_arrow_type(came[name], timezone=zone) for name in table.column_names]
        columns = [
            _at(column, kind, zone) for column, kind in zip(table.columns, kinds, strict=True)
        ]
        wanted = pa.schema(list(zip(table.column_names, kinds, strict=True)))
        restored = restore_arrow(pa.table(columns, names=table.column_names), wanted)
        frame = session.createDataFrame(restored)
        return frame.select(
            *(
                functions.col(quoted(name)).cast(came[name]).alias(name)
                if restored.schema.field(name).type == kind
                else functions.col(quoted(name))
                for name, kind in zip(restored.column_names, kinds, strict=True)
            )
        )

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turn Spark's errors into ours, in one line."""
        errors = require("pyspark.errors", what="Reading from Spark", extra="spark")
        java = require("py4j.protocol", what="Reading from Spark", extra="spark")
        try:
            yield
        except errors.PythonException as error:
            # The last line of a traceback; what it says of a value is left out.
            lines = [
                line for line in str(error).splitlines() if re.match(r"[\w.]+(Error|Exc)", line)
            ]
            reason = lines[-1].partition(":")[0] if lines else "an error"
            raise SourceError(f"{self.name} cannot be read: {reason} in a task") from None
        except errors.PySparkException as error:
            raise SourceError(f"{self.name} cannot be read: {first_line(error)}") from None
        except java.Py4JError:
            raise SourceError(
                f"{self.name} cannot be read: a task failed; Spark's log says why"
            ) from None


def zone_of(name: str) -> str:
    """A session's time zone by a name that Arrow knows, too: Spark takes GMT+1, UTC+01:00, Z."""
    if name in ("Z", "UT", "GMT0"):
        return "UTC"
    offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
    if offset is None:
        return name
    return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"


def quoted(name: str) -> str:
    """A column's name, as Spark takes it whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def _at(column: pa.ChunkedArray, kind: pa.DataType, zone: str) -> pa.ChunkedArray:
    """What a clock shows as the moment when the session's does, where Spark wants moments."""
    if pa.types.is_timestamp(kind) and kind.tz is not None and column.type.tz is None:
        return pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="earliest")
    return column
