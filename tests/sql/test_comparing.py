"""Comparisons: what a column is compared with, and how a number is read beside categories."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from private_gsd import workloads
from private_gsd.counting.exact import exact_counts
from private_gsd.errors import SchemaError, WorkloadError
from private_gsd.measurements.public_counts import check_counts
from private_gsd.schema import Boolean, Categorical, Column, Integer, Real, Schema
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.rules import check_rules

# A column of 0 and 1 in every form, and how it writes them.
NULLABLE: Any = {"nullable": True}
SMOKERS: dict[str, tuple[Column, Any, Any]] = {
    "whole numbers": (Categorical("smoker", values=[0, 1], **NULLABLE), 0, 1),
    "texts": (Categorical("smoker", values=["0", "1"], **NULLABLE), "0", "1"),
    "decimals": (Categorical("smoker", values=["0.0", "1.0"], **NULLABLE), "0.0", "1.0"),
    "padded": (Categorical("smoker", values=["00", "01", "x"], **NULLABLE), "00", "01"),
    "boolean": (Boolean("smoker", nullable=True), False, True),
    "true first": (Categorical("smoker", values=[True, False], **NULLABLE), False, True),
    "integer": (Integer("smoker", lower=0, upper=1, nullable=True), 0, 1),
    "real": (Real("smoker", lower=0, upper=1, nullable=True), 0.0, 1.0),
}


@pytest.mark.parametrize("name", SMOKERS)
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        *(("smoker = 1", 2), ("1 = smoker", 2), ("smoker = 1.0", 2), ("smoker = (1)", 2)),
        *(("smoker = 0", 1), ("smoker <> 1", 1), ("smoker IN (0, 1)", 3), ("NOT smoker = 0", 2)),
    ],
)
def test_a_number_is_the_one_value_that_it_names(name: str, text: str, rows: int) -> None:
    """In a condition, a rule, a public count and a workload; as DuckDB counts it."""
    column, no, yes = SMOKERS[name]
    schema = Schema([column])
    table = pa.table({"smoker": pa.array([no, yes, yes, None], column.arrow_type)})
    workload = workloads.predicates(schema, [text])
    assert exact_counts(workload, table).counts.tolist() == [rows]
    check_counts(schema, {text: rows})
    rules = check_rules(Schema([column], constraints=[text]))
    assert rules.truths
    if name != "padded":  # DuckDB reads all values as numbers, or none
        with duckdb.connect() as connection:
            connection.register("people", table)
            found = connection.execute(f"SELECT count(*) FROM people WHERE {text}").fetchall()
        assert found == [(rows,)]


def test_booleans_are_ordered_as_their_numbers() -> None:
    schema = Schema([Boolean("smoker")])
    assert parse_predicate(schema, "smoker > 0") == parse_predicate(schema, "smoker")
    assert parse_predicate(schema, "smoker < 1") == parse_predicate(schema, "NOT smoker")
    assert parse_predicate(schema, "smoker BETWEEN 0 AND 1") == parse_predicate(
        schema, "smoker OR NOT smoker"
    )


@pytest.mark.parametrize(
    ("values", "text", "message"),
    [
        (["1", "01", "2"], "smoker = 1", "1 may be '1' or '01' of column 'smoker'"),
        (["1", "2"], "smoker = 3", "3 is no value of column 'smoker': '1', '2'"),
        (["1", "2"], "smoker = -1", "-1 is no value of column 'smoker'"),
        (["1", "2"], "smoker > 1", "is compared with texts in single quotes, not with 1"),
        (["a", "b"], "smoker = 1", "is compared with texts in single quotes, not with 1"),
        (["1e3", "2"], "smoker = 1000", "1000 is no value of column 'smoker'"),
        ([0, 1], "smoker = 2", "2 is no value of column 'smoker': 0, 1"),
        ([0, 1], "smoker = '1'", "is compared with whole numbers, not with '1'"),
        ([False, True], "smoker = 2", "TRUE and FALSE, or 1 and 0, not with 2"),
        ([False, True], "smoker = 0.5", "TRUE and FALSE, or 1 and 0, not with 0.5"),
    ],
)
def test_a_number_that_names_no_value_or_several(
    values: list[Any], text: str, message: str
) -> None:
    columns = [Categorical("smoker", values=values)]
    with pytest.raises(WorkloadError) as caught:
        parse_predicate(Schema(columns), text)
    assert message in str(caught.value)
    with pytest.raises(SchemaError, match="rule 1 of constraints"):
        Schema(columns, constraints=[text])


def test_every_digit_of_a_code_counts() -> None:
    """Codes longer than a float is exact for."""
    codes = [9007199254740992, 9007199254740993, 12345678901234567]
    for values in (codes, [str(code) for code in codes]):
        schema = Schema([Categorical("code", values=values)])
        for place, code in enumerate(codes):
            truths = tuple(2 * (each == place) for each in range(len(codes)))
            assert parse_predicate(schema, f"code = {code}").truths == truths  # type: ignore[union-attr]
        with pytest.raises(WorkloadError, match="9007199254740991 is no value"):
            parse_predicate(schema, "code = 9007199254740991")
