"""The text of a predicate: clean errors, hints to quote a name, and no word of the parser's own."""

from __future__ import annotations

import logging

import pytest

from private_gsd.errors import WorkloadError
from private_gsd.schema import Boolean, Categorical, Integer, Schema
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.predicate_text import column_named, quiet

SCHEMA = Schema(
    [
        Integer("age", lower=0, upper=99),
        Integer("hours per week", lower=0, upper=99),
        Categorical("marital-status", values=["single", "married"]),
        Integer("tax.rate", lower=0, upper=99),
        Boolean("select"),
        Boolean('a "b"'),
    ]
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hours per week > 40", '"hours per week"'),
        ("age < 3 AND (hours per week IS NULL)", '"hours per week"'),
        ("Hours Per Week > 40", '"hours per week"'),
        ("`hours per week` > 40", '"hours per week"'),
        ("'hours per week' > 40", '"hours per week"'),
        ("marital-status = 'single'", '"marital-status"'),
        ("tax.rate > 3", '"tax.rate"'),
        ("select OR age < 3", '"select"'),
    ],
)
def test_a_name_that_needs_quotes_is_shown_with_them(text: str, name: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_predicate(SCHEMA, text)
    first = str(caught.value).splitlines()[0]
    assert first.endswith(f"; write the name of the column in double quotes: {name}")


def test_quoted_names_are_understood_and_hints_stay_away_from_other_errors() -> None:
    for name in SCHEMA.names:
        quoted = name.replace('"', '""')
        parse_predicate(SCHEMA, f'"{quoted}" IS NOT NULL')
        assert column_named(SCHEMA, f'"{quoted}"', "a test").name == name
    for text in ("age <", "agee < 3", '"hours per week" <', "sqrt(age) < 3", "unselected"):
        with pytest.raises(WorkloadError) as caught:
            parse_predicate(SCHEMA, text)
        assert "double quotes" not in str(caught.value)


@pytest.mark.parametrize("name", ["hours per week", "marital-status", "tax.rate", "select"])
def test_a_column_by_its_bare_name(name: str) -> None:
    with pytest.raises(WorkloadError, match=f'a test: .*in double quotes: "{name}"'):
        column_named(SCHEMA, name, "a test")


NOISY = [
    "SET x",
    "ALTER TABLE x",
    "age -> '$[[' = 3",
    "age < 'x",
    "age < 3 /*",
    "CREATE TABLE",
    "age @@ 3 OR \x1b[31mage < 3",
    "SELECT * FROM t QUALIFY",
    "list_filter([1], x -> x > 1)",
]


@pytest.mark.parametrize("text", NOISY)
def test_the_parser_says_nothing_by_itself(
    text: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(WorkloadError) as caught:
        parse_predicate(SCHEMA, text)
    with caplog.at_level(logging.DEBUG), pytest.raises(WorkloadError):
        column_named(SCHEMA, text, "a test")
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    first, *pointing = str(caught.value).splitlines()
    assert first.isprintable()
    assert len(pointing) in (0, 2)
    assert all(line.isprintable() for line in pointing)
    assert "sqlglot" not in first.lower()
    assert "tokeniz" not in first.lower()


def test_other_users_of_the_parser_are_still_heard(caplog: pytest.LogCaptureFixture) -> None:
    with quiet():
        logging.getLogger("sqlglot").warning("ours")
    logging.getLogger("sqlglot").warning("theirs")
    assert [record.message for record in caplog.records] == ["theirs"]
