"""Tables in Spark, which are counted on the cluster (see ``counting.on_spark``)."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.data.sources.restoring import to_arrow
from private_gsd.data.sources.source_table import SourceTable, first_line
from private_gsd.data.sources.spark_tasks import TIMEOUT, TaskWatch
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
        with self.readable():
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
        """Watch the jobs of a block, and turn errors into an ``UnreadableError`` of one line."""
        errors = require("pyspark.errors", what="Reading from Spark", extra="spark")
        java = require("py4j.protocol", what="Reading from Spark", extra="spark")
        watch = None
        try:
            watch = TaskWatch(self.frame.sparkSession)
            with watch.watching():
                yield
        except (errors.PySparkException, java.Py4JError, ConnectionError) as error:
            if watch is not None and watch.cancelled:
                reason = (
                    f"its tasks waited for {watch.seconds:g} seconds, and none ran; see that Spark "
                    "has workers with enough cores and memory for an executor, and try again "
                    f"({TIMEOUT} sets another number of seconds)"
                )
            elif isinstance(error, errors.PythonException):
                reason = _in_a_task(str(error))
            elif isinstance(error, errors.PySparkException):
                reason = first_line(error)
            elif isinstance(error, java.Py4JJavaError):
                reason = "a task failed, or lost its executor, too often; Spark's log says why"
            else:
                reason = "the session of Spark has ended; begin another, and try again"
            raise UnreadableError(f"{self.name} cannot be read: {reason}") from None


def _in_a_task(message: str) -> str:
    """What an error in a Python of an executor was; but for modules, its text may quote a value."""
    names = re.findall(r"^([\w.]+(?:Error|Exc)\w*)(?::|$)", message, re.MULTILINE)
    reason = f"{names[-1] if names else 'an error'} in a task"
    missing = re.search(r"^ModuleNotFoundError: No module named '([\w.]+)'$", message, re.MULTILINE)
    if missing is None:
        return reason
    return f"{reason}: executors have no {missing[1]}, and need private-gsd and its dependencies"


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
