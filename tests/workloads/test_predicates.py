"""Predicates: what SQL says, counted as a database counts it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Adaptive,
    Categorical,
    GeneticSearch,
    Measurements,
    Schema,
    Synthesizer,
    datasets,
    evolve,
    exact_counts,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.data.encoding import Encoder
from private_gsd.errors import WorkloadError
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import Predicates, predicates, read_predicates
from private_gsd.workloads.predicates import disjoint, most_at_once
from private_gsd.workloads.serialisation import dump_workload, load_workload
from tests.sql.people import SCHEMA
from tests.workloads.random_sql import leaf, predicates_of

pytestmark = pytest.mark.worker("large")

CENSUS = datasets.census_schema()


def rows_of(schema: Schema, rows: int, seed: int) -> pa.Table:
    columns = columns_of(schema, [np.empty(0)] * len(schema))
    return pa.Table.from_batches([Encoder(schema).decode(random_table(columns, rows, seed))])


def in_duckdb(table: pa.Table, texts: list[str]) -> list[int]:
    """The same texts, run as SQL."""
    found: list[int] = []
    with duckdb.connect() as connection:
        connection.register("asked", table)
        for start in range(0, len(texts), 50):
            counts = ", ".join(f"count(*) FILTER (WHERE {t}\n)" for t in texts[start : start + 50])
            [row] = connection.execute(f"SELECT {counts} FROM asked").fetchall()
            found += row
    return found


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_thousands_of_predicates_count_as_in_duckdb(seed: int) -> None:
    for schema, table in ((CENSUS, datasets.census(700, seed=seed)), (SCHEMA, None)):
        rows = rows_of(schema, 700, seed) if table is None else table
        texts = predicates_of(schema, 700, seed, compared=0.2)
        workload = predicates(schema, texts)
        exact = exact_counts(workload, rows)
        assert exact.counts.tolist() == in_duckdb(rows, texts)
        # And no less when the search counts them.
        matrix = Encoder(schema).encode(rows.combine_chunks().to_batches()[0])
        np.testing.assert_array_equal(count(workload, matrix), exact.counts)


SAID = [
    "age < 30 AND pay > 500",
    "job IN ('a', 'b') OR hours > 2 * age",
    "ended >= begun + 30",
    "ended - begun > 365",
    "seen > begun",
    "seen >= begun + INTERVAL '36' HOUR",
    "seen - begun > INTERVAL '2' WEEK",
    "begun < '2022-06-15'",
    "seen < TIMESTAMP '2022-06-15 12:30:00'",
    "seen BETWEEN '2021-01-01' AND '2021-12-31 23:59:59'",
    'job = "other job"',
    'NOT (job = "other job")',
    'job <> "other job"',
    'job < "other job"',
    "code > 5",
    "code IN (3, 7)",
    "job LIKE '%s'",
    "job LIKE '_'",
    "job NOT LIKE '_'",
    "NOT job LIKE '%s'",
    "job LIKE '%t%s'",
    "job LIKE '%%'",
    "job LIKE ''",
    "hours / age > 1 AND (hours > 0 OR age > 0)",
    "NOT (hours / age < 5) AND (hours > 0 OR age > 0)",
    "pay / 0 > 1",
    "pay < 0.1 + 0.2",
    "((age > hours) IS NULL) IS NULL",
    "((age > hours AND owner) IS NULL) IS FALSE",
    "begun < DATE '2020-01-01' + NULL",
    "job < '(((((((((((((((((((((((((((((((((((((((((((((((((((((((((('",
    "job = 'it''s'",
    "owner",
    "NOT owner",
    "owner = FALSE",
    "owner IS NOT TRUE",
    "(owner AND age > 3) IS NULL",
    "NOT (age > 3 AND hours > age)",
    "(age > hours) IS NOT FALSE",
    "age IS NULL OR hours IS NOT NULL",
    "coalesce(age, hours) > 40",
    "coalesce(age, 0) + coalesce(hours, 0) > 60",
    "abs(age - hours) <= 5",
    "age / 2 > hours",
    "-age < -50",
    "age > 10.5",
    "age = 10.5",
    "age <> 10.5",
    "age IN (1, 2, 3, 200)",
    "age NOT IN (1, 2)",
    "age > 1e3 OR age < -5",
    "30 < age",
    "pay = 100.5",
    "pay <= 99.9",
    "TRUE",
    "NOT TRUE",
    "NULL",
    "age = NULL",
    "1 < 2",
    "AGE < 30 and Hours > 3",
    "age < 30 -- and a remark",
]


def test_what_can_be_said() -> None:
    rows = rows_of(SCHEMA, 2000, 5)
    found = exact_counts(predicates(SCHEMA, SAID), rows)
    assert found.counts.tolist() == in_duckdb(rows, SAID)


WRONG = [
    ("agee < 3", "the schema has no column 'agee' (did you mean 'age'?)", 0),
    ("pay > 3 AND agee < 3", "the schema has no column 'agee'", 12),
    ("age < 'x'", "is not supported", 6),
    ("job = 'aa'", "'aa' is no value of column 'job'", 6),
    ("job = 3", "column 'job' is compared with texts in single quotes, not with 3", 6),
    ("code = '3'", "column 'code' is compared with whole numbers", 7),
    ("owner = 'yes'", "column 'owner' is compared with TRUE and FALSE", 8),
    ("age", "column 'age' is integer, not a condition", 0),
    ("age <", "not SQL that can be understood", 4),
    ("age < 3 AND (pay > 5 OR", "not SQL that can be understood", None),
    ("DROP TABLE person", "is not supported", None),
    ("age < 3; DROP TABLE person", "expected one condition, found 2", None),
    ("age IN (SELECT 1)", "is not supported", None),
    ("EXISTS (SELECT 1)", "is not supported", None),
    ("lower(job) = 'a'", "'LOWER(job)' is not supported", None),
    ("sum(age) > 3", "'SUM(age)' is not supported", None),
    ("age::int > 3", "is not supported", None),
    ("t.age > 3", "name the column alone, without a table", None),
    ("begun < 3", "column 'begun' is date; give a date such as '2020-12-31'", 8),
    ("begun < 'soon'", "'soon' is no date such as 2020-12-31", 8),
    ("begun + hours > 3", "a moment (begun + hours) cannot be compared with a number (3)", 0),
    ("seen + 3 > begun", "a moment and a number cannot be joined with +", None),
    ("seen > begun + INTERVAL '1' MONTH", "an interval is of weeks, days", None),
    ("age = job", "cannot be compared", None),
    ("job LIKE 3", "is not supported", None),
    ("age LIKE '3'", "holds no texts for LIKE to look at", None),
    ("abs(begun) > 3", "a moment has no sign", None),
    ("coalesce(age, begun) > 3", "of one sort", None),
    ("begun = '2020-01-15 12:00'", "holds days, without a time of day", 8),
    ("begun < '20200115'", "is no date such as 2020-12-31", 8),
    ("begun < DATE '9999-12-31' + 1", "beyond the years 1 to 9999", None),
    ("job ILIKE 'a%'", "is not supported", None),
    ("job LIKE 'a' ESCAPE 'b'", "is not supported", None),
    ("age < " + "1+" * 600 + "1", "nested too deeply", None),
]


@pytest.mark.parametrize(("text", "message", "place"), WRONG)
def test_what_is_wrong_is_pointed_at(text: str, message: str, place: int | None) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_predicate(SCHEMA, text)
    told = str(caught.value)
    assert message in told
    if place is not None:
        _, shown, arrow = told.splitlines()
        assert arrow == " " * (2 + place) + "^"
        assert shown.strip().startswith(text[:10])


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1000 + "age < 3" + ")" * 1000,
        "NOT " * 5000 + "owner",
        "age < 3" + " AND age < 3" * 5000,
        "job = '" + "x" * 1_000_000 + "'",
        "-" * 3000 + "age < 3",
        "age < " + "1" * 9000,
        "age < " + "(1+" * 49 + "1" + ")" * 49,
        "a" * 9000,
        "'" * 9000,
        "/*" * 4000,
        ";" * 9000,
        "age IN (" + ", ".join("1" for _ in range(4000)) + ")",
        "age < 3 OR " * 700 + "age < 3",
        "\x00age < 3",
        "age \udcff < 3",
    ],
)
def test_bad_sql_is_answered(text: str) -> None:
    """With a short error or a count; none of these takes more than a few seconds."""
    try:
        found = exact_counts(predicates(SCHEMA, [text]), rows_of(SCHEMA, 10, 1))
        assert 0 <= found.counts[0] <= 10
    except WorkloadError as error:
        assert len(str(error)) < 600


def test_no_text() -> None:
    for bad in ("", "  ", 3, None):
        with pytest.raises(WorkloadError, match="the predicate must be a text"):
            parse_predicate(SCHEMA, bad)  # type: ignore[arg-type]
    wrong: list[Any] = ["age < 3", [], [[]], [["age < 3"], []]]
    for each in wrong:
        with pytest.raises(WorkloadError):
            predicates(SCHEMA, each)
    with pytest.raises(WorkloadError, match="predicate 2: in the predicate"):
        predicates(SCHEMA, ["age < 3", "agee < 3"])


# Sensitivity


def test_partitions_are_recognised() -> None:
    parts = ["age < 18", "age BETWEEN 18 AND 64", "age > 64", "age IS NULL"]
    crossed = [f"({one}) AND ({two})" for one in parts for two in ("owner", "NOT owner")]
    overlapping = ["age < 30", "age < 40", "pay > 3", "job = 'a'"]
    workload = predicates(SCHEMA, [parts, crossed, overlapping, "age < 3"])
    assert workload.squared_sensitivities().tolist() == [2, 2, 4, 1]
    assert workload.squared_sensitivities("add-remove").tolist() == [1, 1, 4, 1]
    truths = [parse_predicate(SCHEMA, text) for text in ("age < 3", "age > hours", "job = 'a'")]
    assert not disjoint(truths[0], truths[1])
    assert most_at_once([*truths, truths[0]]) == 4


@given(st.integers(0, 10_000))
def test_neighbours_never_differ_by_more(seed: int) -> None:
    """Random groups, random rows: the proven bound is never exceeded."""
    rng = random.Random(seed)
    groups = [
        [leaf(SCHEMA, rng, 0.2) for _ in range(rng.randint(1, 5))],
        ["age < 20", "age BETWEEN 20 AND 50", "age > 50 AND owner", "age > 50 AND NOT owner"],
    ]
    workload = predicates(SCHEMA, groups)
    columns = columns_of(SCHEMA, [np.empty(0)] * len(SCHEMA))
    rows = random_table(columns, 40, seed)
    met = np.array([count(workload, row[None, :], threads=1) for row in rows])
    for name in ("replace-one", "add-remove"):
        squares = workload.squared_sensitivities(name)
        for group, (start, end) in enumerate(
            zip(workload.offsets, workload.offsets[1:], strict=False)
        ):
            mine = met[:, start:end]
            changes = mine[:, None] - mine[None] if name == "replace-one" else mine
            assert (changes**2).sum(axis=-1).max() <= squares[group]


# The rest of the way


def test_they_are_saved_and_selected_and_joined() -> None:
    workload = predicates(SCHEMA, ["age < 3", ["age < 9", "age >= 9"]]) + predicates(
        SCHEMA, ["pay > 3"]
    )
    [family] = workload.families
    assert isinstance(family, Predicates)
    assert workload.group_sizes.tolist() == [1, 2, 1]
    assert workload.select([1, 2]).query(2) == "pay > 3"
    assert workload.describe(1) == "age < 9 and 1 more"
    table = rows_of(SCHEMA, 300, 2)
    again = load_workload(SCHEMA, *dump_workload(workload))
    assert [again.query(index) for index in range(4)] == [workload.query(i) for i in range(4)]
    adaptive = Synthesizer(SCHEMA, 1.0, workload=workload, mechanism=Adaptive(epochs=3), rows=50)
    released = adaptive.fit(table).release_.workload
    assert {released.describe(group) for group in range(released.num_groups)} <= {
        workload.describe(group) for group in range(workload.num_groups)
    }


@pytest.mark.parametrize("algorithm", ["fast", "paper"])
def test_a_table_is_found_that_answers_alike(algorithm: Any) -> None:
    """Predicates of all sorts, without noise to speak of."""
    texts = [*SAID[:30], *predicates_of(SCHEMA, 60, 3, compared=0.3)]
    workload = predicates(SCHEMA, texts)
    table = rows_of(SCHEMA, 400, 9)
    exact = exact_counts(workload, table)
    measured = Measurements(
        workload,
        exact.counts.astype(np.float64),
        np.ones(len(texts)),
        exact.n_records,
        ("",) * len(texts),
        private=False,
    )
    config = GeneticSearch(rows=200, algorithm=algorithm, generations=400)
    found = evolve(measured, config, seed=1)
    shares = count(workload, found.matrix) / 200
    start = random_table(columns_of(SCHEMA, [np.empty(0)] * len(SCHEMA)), 200, 1)
    before = np.abs(count(workload, start) / 200 - exact.counts / exact.n_records).mean()
    after = np.abs(shares - exact.counts / exact.n_records).mean()
    assert after < (0.004 if algorithm == "fast" else 0.9 * before)


def test_the_same_table_on_any_number_of_threads() -> None:
    workload = predicates(SCHEMA, predicates_of(SCHEMA, 60, 3, compared=0.3))
    exact = exact_counts(workload, rows_of(SCHEMA, 400, 9))
    measured = Measurements(
        workload, exact.counts.astype(float), np.ones(60), 400, ("",) * 60, private=False
    )
    one, two = (evolve(measured, GeneticSearch(rows=300), seed=1, threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.matrix, two.matrix)


def test_a_file_of_them(tmp_path: Path) -> None:
    path = tmp_path / "queries.sql"
    path.write_text(
        "-- ages, which exclude each other\nage < 18\nage BETWEEN 18 AND 64;\nage > 64\n\n"
        "pay > 100 -- the rich\njob = 'a' AND pay > 50\n"
    )
    workload = read_predicates(SCHEMA, path)
    assert workload.group_sizes.tolist() == [3, 1, 1]
    assert workload.squared_sensitivities().tolist() == [2, 1, 1]
    path.write_text("age < 3\n\nagee < 3\n")
    with pytest.raises(WorkloadError, match=r"queries.sql, line 3: in the predicate, at"):
        read_predicates(SCHEMA, path)
    path.write_text("-- nothing\n")
    with pytest.raises(WorkloadError, match="holds no condition"):
        read_predicates(SCHEMA, path)
    path.write_bytes(b"age < 3 \xff")
    with pytest.raises(WorkloadError, match="not UTF-8"):
        read_predicates(SCHEMA, path)
    with pytest.raises(WorkloadError, match="cannot be read"):
        read_predicates(SCHEMA, tmp_path / "nowhere.sql")
    assert workloads.predicates is predicates


def test_likeness_takes_bounded_time() -> None:
    schema = Schema([Categorical("c", values=("a" * 400, "b"))])
    found = parse_predicate(schema, "c LIKE '" + "%a" * 200 + "%b'")
    assert found.truths == (0, 0)  # type: ignore[union-attr]


def test_null_of_null_of_null_is_a_short_program() -> None:
    text = "(" * 20 + "(age > hours)" + " IS NULL)" * 20
    rows = rows_of(SCHEMA, 50, 1)
    assert exact_counts(predicates(SCHEMA, [text]), rows).counts.tolist() == in_duckdb(rows, [text])
    assert parse_predicate(SCHEMA, "age < 5; -- young") == parse_predicate(SCHEMA, "age < 5")
    grown = "age > hours"
    for _ in range(16):
        grown = f"((age > hours AND {grown}) IS NULL)"
    with pytest.raises(WorkloadError, match="too involved"):
        exact_counts(predicates(SCHEMA, [grown]), rows)
