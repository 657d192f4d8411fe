"""Contradictions: counts that no table can have are refused, and those of a table never are."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from private_gsd import Knowledge, Synthesizer, datasets
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.measurements.public_counts import check_counts, require_possible
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.projection.constraints import first_table
from private_gsd.schema import Schema
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import predicates
from tests.sql.people import SCHEMA as MIXED
from tests.workloads.random_sql import predicates_of

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "hours"])
TABLE = datasets.census(400, seed=1).select(SCHEMA.names)


def checked(schema: Schema, counts: dict[str, int]) -> dict[str, int]:
    check_counts(schema, counts)
    return counts


@pytest.mark.parametrize(
    ("counts", "rows", "words"),
    [
        (
            {"sex = 'female'": 100, "sex = 'female' AND age < 30": 200},
            None,
            "\"sex = 'female' AND age < 30\" has 200 rows and is a part of \"sex = 'female'\"",
        ),
        (
            {"age < 30": 5, "age < 20": 6},
            None,
            "'age < 20' has 6 rows and is a part of 'age < 30', which has 5; correct one",
        ),
        (
            {"sex = 'female'": 300, "sex = 'male'": 200},
            400,
            "exclude each other, have 500 rows together and are parts of the table, which has 400",
        ),
        (
            {"sex = 'female'": 300, "sex = 'male'": 20},
            400,
            "have 320 rows together and leave out no row of the table, which has 400",
        ),
        (
            {"age < 20": 100, "age BETWEEN 20 AND 60": 200, "age > 60": 101},
            400,
            "'age < 20' exclude each other, have 401 rows",
        ),
        (
            {"age >= 18": 100, "age < 65": 200},  # they overlap
            400,
            "'age >= 18' and 'age < 65' have 300 rows together and leave out no row of the table",
        ),
        (
            {"sex = 'male' AND age < 9": 3, "sex = 'male' AND age >= 9": 4, "sex = 'male'": 8},
            None,
            "have 7 rows together and leave out no row of \"sex = 'male'\", which has 8",
        ),
        (
            {"sex = 'male' AND age < 9": 5, "sex = 'male' AND age > 9": 4, "sex = 'male'": 8},
            None,
            "have 9 rows together and are parts of \"sex = 'male'\", which has 8",
        ),
        (
            {"age < 0": 1},
            None,
            "meets 'age < 0', whose public count is 1",
        ),
        ({"age < 5 AND age > 7": 1}, None, "no row that the schema allows meets"),
        ({"age >= 0": 399}, 400, "has 399 rows and leaves out no row of the table, which has 400"),
        ({"age + hours < 9": 9, "age + hours < 8 AND sex = 'male'": 10}, None, "is a part of"),
    ],
)
def test_counts_that_no_table_has(counts: dict[str, int], rows: int | None, words: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        checked(SCHEMA, counts)
        if rows is not None:
            require_possible(SCHEMA, counts, rows)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "counts",
    [
        {"sex = 'female'": 100, "age < 30": 350},
        {"sex = 'female'": 100, "sex = 'female' AND age < 30": 100},
        {"sex = 'female'": 100, "sex = 'male'": 300},
        {"age < 0": 0},
        {"hours < 20": 100, "hours >= 20": 100},  # the rest is null
        {"age < 20": 100, "age > 20": 299},
        {f"age = {age}": 1 for age in range(99)},
        {f"age = {age} AND sex = 'male'": 1 for age in range(99)} | {"sex = 'male'": 101},
    ],
)
def test_counts_that_a_table_may_have(counts: dict[str, int]) -> None:
    require_possible(SCHEMA, checked(SCHEMA, counts), 400)


@pytest.mark.parametrize("seed", range(12))
def test_the_counts_of_a_table_are_never_refused(seed: int) -> None:
    """Random conditions on random rows: 360 counts in groups of 30, all of them true."""
    texts = predicates_of(MIXED, 30, seed)
    meanings = {parse_predicate(MIXED, text): text for text in texts}  # two may mean the same
    texts = list(meanings.values())
    assert len(texts) > 20
    rows = first_table(MIXED, 3 if seed % 2 else 200, seed)
    counts = count(predicates(MIXED, texts), rows).tolist()
    counts = dict(zip(texts, counts, strict=True))
    require_possible(MIXED, checked(MIXED, counts), len(rows))


def test_wrong_counts_of_a_table_are_often_refused() -> None:
    """A partition of random columns, one of whose counts is one too many or too few."""
    rng = random.Random(0)
    rows = first_table(SCHEMA, 400, 0)
    for _ in range(20):
        cuts = sorted(rng.sample(range(1, 90), 3))
        parts = [f"age < {cuts[0]}", f"age >= {cuts[2]}"]
        parts += [f"age >= {low} AND age < {high}" for low, high in itertools.pairwise(cuts)]
        numbers = count(predicates(SCHEMA, parts), rows).tolist()
        counts = dict(zip(parts, numbers, strict=True))
        require_possible(SCHEMA, checked(SCHEMA, counts), 400)
        wrong = rng.choice(parts)
        counts[wrong] += rng.choice([-1, 1]) if counts[wrong] else 1
        with pytest.raises(WorkloadError, match="contradict each other"):
            require_possible(SCHEMA, checked(SCHEMA, counts), 400)


def test_a_rule_and_a_count() -> None:
    ruled = Schema(SCHEMA.columns, ["NOT (age < 15 AND marital = 'married')"])
    with pytest.raises(WorkloadError, match="no row that the schema allows meets"):
        checked(ruled, {"age < 10 AND marital = 'married'": 3})


def test_nothing_is_spent_on_them(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    for counts in ({"age < 30": 5, "age < 20": 6}, {"sex = 'male'": 1, "sex = 'female'": 2}):
        with pytest.raises(WorkloadError, match="contradict each other"):
            Synthesizer(SCHEMA, 1.0, knowledge=Knowledge(public_counts=counts)).fit(
                TABLE, ledger=ledger, create_ledger=True, release=tmp_path / "r"
            )
        assert not (tmp_path / "r").exists()
        if ledger.exists():
            with Ledger(ledger, read_only=True) as opened:
                assert not opened.charges("table")
