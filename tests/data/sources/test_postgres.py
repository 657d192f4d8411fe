"""PostgreSQL: one snapshot, no secrets, and types that mean what they mean there."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as dbapi
import numpy as np
import pyarrow as pa
import pytest

from private_gsd import (
    Categorical,
    Date,
    Datetime,
    Integer,
    PostgresQuery,
    Real,
    Schema,
    Synthesizer,
    datasets,
    exact_counts,
    open_source,
)
from private_gsd.cli import options
from private_gsd.errors import DataError, MissingExtraError, SourceError
from private_gsd.workloads import categorical_marginals, tree_marginals
from tests.cli.running import run
from tests.data.sources.test_contract import ingest

pytestmark = [pytest.mark.slow, pytest.mark.worker("engines")]

SCHEMA = datasets.census_schema().select(["sex", "age"])


def execute(uri: str, *statements: str) -> None:
    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def test_a_table_that_changes_is_read_from_one_snapshot(postgres: str) -> None:
    """A writer moves everyone from one value to another, row by row, while the table is read."""
    rows = 200_000
    execute(
        postgres,
        "DROP TABLE IF EXISTS moving",
        "CREATE TABLE moving AS SELECT 'female' AS sex, (n % 100)::int8 AS age "
        f"FROM generate_series(1, {rows}) AS n",
    )
    source = open_source(PostgresQuery(postgres, "SELECT * FROM moving"), SCHEMA)
    batches = source.batches(1000)
    first = next(batches)
    # The read has begun. All that follows is committed before it ends.
    execute(
        postgres,
        "UPDATE moving SET sex = 'male'",
        "INSERT INTO moving SELECT 'male', 7 FROM generate_series(1, 5000)",
        "DELETE FROM moving WHERE age < 50",
    )
    seen = [first, *batches]
    assert sum(batch.num_rows for batch in seen) == rows
    assert {value for batch in seen for value in batch["sex"].unique().to_pylist()} == {"female"}
    # And the next pass sees what is there now.
    assert source.count() == rows // 2


def test_writers_all_the_while(postgres: str) -> None:
    """Every row that leaves and comes back is counted once."""
    rows = 50_000
    execute(
        postgres,
        "DROP TABLE IF EXISTS swapping",
        "CREATE TABLE swapping AS SELECT n, "
        "CASE WHEN n % 2 = 0 THEN 'female' ELSE 'male' END AS sex "
        f"FROM generate_series(1, {rows}) AS n",
    )
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            # One leaves, one comes: the numbers of both stay the same in every snapshot.
            execute(
                postgres,
                f"DELETE FROM swapping WHERE n = {number}",
                f"INSERT INTO swapping SELECT {number}, "
                f"'{'female' if number % 2 == 0 else 'male'}'",
            )

    writer = threading.Thread(target=swap)
    writer.start()
    try:
        workload = categorical_marginals(SCHEMA.select(["sex"]), k=1)
        for _ in range(5):
            found = exact_counts(workload, PostgresQuery(postgres, "SELECT sex FROM swapping"))
            assert found.counts.tolist() == [rows // 2, rows // 2]
    finally:
        stop.set()
        writer.join()


def test_types_of_its_own(postgres: str) -> None:
    execute(
        postgres,
        "DROP TABLE IF EXISTS kinds",
        "DROP TYPE IF EXISTS mood",
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        "CREATE TABLE kinds (a char(5), b numeric(12, 2), c mood, d int2, e date, f float4)",
        "INSERT INTO kinds VALUES ('x', 12.50, 'sad', 3, '2020-02-29', 1.5), "
        "('yy', NULL, 'glad', 4, '2020-03-01', 2.5)",
    )
    schema = Schema(
        [
            Categorical("a", values=["x", "yy"]),
            Real("b", lower=0, upper=100, decimals=2, nullable=True),
            Categorical("c", values=["glad", "sad"]),
            Integer("d", lower=0, upper=9),
            Date("e", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31)),
            Real("f", lower=0, upper=9),
        ]
    )
    source = open_source(PostgresQuery(postgres, "SELECT * FROM kinds;"), schema)
    [matrix] = source.encoded()
    assert matrix[:, [0, 2, 3, 5]].tolist() == [[0, 1, 3, 1.5], [1, 0, 4, 2.5]]
    assert matrix[0, 1] == 12.5
    assert np.isnan(matrix[1, 1])
    given = Synthesizer(schema, 1.0, rows=5, workload=["categorical:1"]).fit(source)
    back = given.sample()
    assert isinstance(back, pa.Table)
    assert back.schema == schema.arrow_schema


SECRET = "s3cr3t-pass"


def test_secrets_are_shown_and_kept_nowhere(postgres: str, tmp_path: Path) -> None:
    ingest(postgres, "people", datasets.census(300).select(SCHEMA.names))
    host = postgres.partition("host=")[2]
    uri = f"postgresql://postgres:{SECRET}@/postgres?host={host}&application_name=x"
    query = PostgresQuery(uri, "SELECT * FROM people")
    folder = tmp_path / "release"
    synth = Synthesizer(SCHEMA, 1.0, rows=20).fit(query, release=folder)
    source = open_source(query, SCHEMA)
    shown = [repr(query), str(query), query.name, repr(source), source.name, repr(synth)]
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    for text in shown:
        assert SECRET not in text
        assert host not in text
    with pytest.raises(TypeError, match="password"):
        pickle.dumps(query)
    assert json.loads((folder / "run.json").read_text())["data"] is None


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://clerk:{SECRET}@127.0.0.1:1/db",
        f"POSTGRESQL://clerk:{SECRET}@127.0.0.1:1/db",
        f"postgres://clerk@127.0.0.1:1/db?password={SECRET}",
        f"postgresql://clerk:{SECRET}@[::1/db",
        f"postgresql://clerk:{SECRET}@127.0.0.1:notaport/db",
        f"postgresql://clerk:{SECRET}@nowhere.invalid/db?connect_timeout=1",
        f"postgresql://127.0.0.1:1/db?nonsense={SECRET}",
        f"postgresql://127.0.0.1:1/db?{SECRET}=1",
        f"postgresql://127.0.0.1:1/db?password=x&{SECRET}=1",
    ],
)
def test_servers_that_cannot_be_reached(uri: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^postgresql://\S+: cannot be read: ") as caught:
        open_source(PostgresQuery(uri, "SELECT 1"), SCHEMA)
    assert SECRET not in str(caught.value)
    assert "clerk" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://clerk:1234/{SECRET}@localhost/db",
        f"postgresql://clerk:p@{SECRET}@localhost:1/db",
        f"postgresql://clerk:s@{SECRET}@localhost:1,localhost:2/db",
        f"postgresql://clerk:{SECRET}#x@localhost/db",
        f"postgresql://clerk:{SECRET}?x@localhost/db",
        f"postgresql://localhost/db?password=abc&{SECRET}",
        f"postgresql://localhost:1/db:{SECRET}@x",
        f"postgresql://localhost:1/db/{SECRET}",
        f"postgresql://clerk:{SECRET} @localhost/db",
        f"postgresql://clerk:{SECRET}\udcff@localhost/db",
        f"postgresql+psycopg://clerk:{SECRET}@localhost/db",
        f"mysql://clerk:{SECRET}@localhost/db",
        f"host=db user=clerk password={SECRET}",
        f"host=db user=clerk PASSWORD = '{SECRET}'",
    ],
)
def test_addresses_that_leave_a_doubt_are_not_shown(uri: str) -> None:
    for query in ("SELECT 1", None):
        with pytest.raises(SourceError, match=r"not shown here") as told:
            open_source(options.table_of(uri, query), SCHEMA)
        assert SECRET not in str(told.value)
        assert "clerk" not in str(told.value)
    with pytest.raises(SourceError, match=r"not shown here|begins with postgresql://") as caught:
        open_source(PostgresQuery(uri, "SELECT 1"))
    assert SECRET not in str(caught.value)


def test_users_that_the_server_does_not_know(postgres: str) -> None:
    host = postgres.partition("host=")[2]
    with pytest.raises(SourceError, match="does not know this user or database") as caught:
        open_source(PostgresQuery(f"postgresql://clerk:{SECRET}@/postgres?host={host}", "SELECT 1"))
    assert "clerk" not in str(caught.value)


def test_what_arrow_does_not_have(postgres: str) -> None:
    """Infinite moments are beyond all bounds, and a numeric that is no number is null."""
    execute(
        postgres,
        "DROP TABLE IF EXISTS odd",
        "CREATE TABLE odd (d date, t timestamp, z timestamptz, n numeric, f float8)",
        "INSERT INTO odd VALUES ('infinity', 'infinity', 'infinity', 'NaN', 'NaN'), "
        "('-infinity', '-infinity', '-infinity', 1.5, 1.5), (NULL, NULL, NULL, NULL, NULL), "
        "('2020-05-05', '2020-05-05', '2020-05-05 UTC', 2, 2)",
    )
    day = {"lower": dt.date(2000, 1, 1), "upper": dt.date(2030, 1, 1), "nullable": True}
    moment = {"lower": dt.datetime(2000, 1, 1), "upper": dt.datetime(2030, 1, 1), "nullable": True}
    schema = Schema(
        [
            Date("d", **day),  # type: ignore[arg-type]
            Datetime("t", **moment),  # type: ignore[arg-type]
            Datetime("z", **moment, timezone="UTC"),  # type: ignore[arg-type]
            Real("n", lower=0, upper=9, nullable=True),
            Real("f", lower=0, upper=9, nullable=True),
        ]
    )
    source = open_source(PostgresQuery(postgres, "SELECT * FROM odd"), schema)
    with pytest.raises(DataError, match=r"column 'd': 2 values .*: 0001-01-01, 9999-12-31"):
        list(source.encoded())
    [matrix] = source.encoded(on_invalid="coerce")
    for position in range(3):
        low, high = schema.columns[position].bounds
        assert matrix[:2, position].tolist() == [high, low]
        assert np.isnan(matrix[2, position])
        assert low < matrix[3, position] < high
    np.testing.assert_array_equal(matrix[:, 3], matrix[:, 4])
    assert np.isnan(matrix[0, 3])


def test_queries_that_go_wrong(postgres: str) -> None:
    for query, message in (
        ("SELECT nope FROM pg_class", 'column "nope" does not exist'),
        ("SELEKT 1", "syntax error"),
        ("SELECT 1 AS age, 1/0 AS sex", "division by zero"),
        ("SELECT 1) AS a; DROP TABLE pg_class; --", "syntax error|cannot insert multiple commands"),
    ):
        with pytest.raises(SourceError, match=message):
            list(open_source(PostgresQuery(postgres, query)).batches())
    with pytest.raises(SourceError, match="needs a query"):
        PostgresQuery(postgres, " ")
    with pytest.raises(SourceError, match="begins with postgresql://"):
        PostgresQuery("mysql://x", "SELECT 1")
    with pytest.raises(SourceError, match="not text that can be sent"):
        PostgresQuery(postgres, "SELECT '\udcff'")
    with pytest.raises(SourceError, match="needs a query"):
        open_source(postgres)


def test_a_value_in_an_error_of_the_server_is_not_shown(postgres: str) -> None:
    """As far as the server tells it in its details; what its first line says is its own."""
    execute(postgres, "DROP TABLE IF EXISTS texts", "CREATE TABLE texts AS SELECT 1 AS age")
    query = PostgresQuery(postgres, "SELECT * FROM texts\nWHERE age = 'x'::int")
    with pytest.raises(SourceError) as caught:
        open_source(query)
    assert "LINE" not in str(caught.value)


def test_nothing_is_written(postgres: str) -> None:
    execute(
        postgres,
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept (age int8)",
        "CREATE OR REPLACE FUNCTION sneaky() RETURNS int8 LANGUAGE sql AS "
        "'INSERT INTO kept VALUES (1) RETURNING age'",
    )
    with pytest.raises(SourceError, match="read-only transaction"):
        list(open_source(PostgresQuery(postgres, "SELECT sneaky() AS age")).batches())


def test_the_driver_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(MissingExtraError, match="postgres"):
        open_source(PostgresQuery("postgresql://x/y", "SELECT 1"))


def test_the_whole_job_on_the_command_line(postgres: str, tmp_path: Path) -> None:
    ingest(postgres, "person", datasets.census(400).select(SCHEMA.names))
    SCHEMA.write(tmp_path / "schema.toml")
    asked: tuple[Any, ...] = (postgres, "--query", "SELECT sex, age FROM person")
    common = (*asked, "--schema", "schema.toml", "--epsilon", "1")
    out, _ = run("plan", *common, cwd=tmp_path)
    assert "400 records" in out
    words = ("--rows", "50", "-o", "o.csv", "--ledger", "l.db", "--create-ledger", "--release", "r")
    out, err = run("synthesize", *common, *words, cwd=tmp_path)
    assert "dataset 'table'" in out
    run("resume", "r", *asked, cwd=tmp_path)
    out, _ = run("schema", "check", "schema.toml", *asked, cwd=tmp_path)
    assert "all 400 rows" in out
    assert "host=" not in out
    out, _ = run("schema", "draft", *asked, cwd=tmp_path)
    assert "female" in out
    _, err = run("plan", *common[3:], "table.csv", "--query", "x", cwd=tmp_path, code=2)
    assert "--query goes with" in err
    _, err = run("plan", postgres, *common[3:], cwd=tmp_path, code=4)
    assert "needs a query" in err


def test_answers_are_the_same_as_the_servers(postgres: str) -> None:
    """Each query, said in SQL, counts the same in PostgreSQL."""
    table = datasets.census(1000).select(SCHEMA.names)
    ingest(postgres, "person", table)
    workload = tree_marginals(SCHEMA, k=2, depth=2)
    found = exact_counts(workload, PostgresQuery(postgres, "SELECT * FROM person"))
    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        for index in range(workload.size):
            cursor.execute(f"SELECT count(*) FROM person WHERE {workload.query(index)}")
            [count] = cursor.fetchone()
            assert count == found.counts[index]
