"""Errors: the tree that the module describes is the tree of its classes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import pytest

import private_gsd
from private_gsd import errors
from private_gsd.errors import (
    CONFIDENTIAL,
    DataError,
    GsdError,
    MissingExtraError,
    SchemaError,
    SourceError,
    did_you_mean,
    expect_type,
    require,
)

LINE = re.compile(r"^    ([ │├└─]*)(\w+) +(\d+) +\S")


def described() -> Iterator[tuple[str, str | None, int]]:
    """Each class of the tree in the docstring, the class above it, and its exit code."""
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = LINE.match(line)
        if found:
            depth = len(found[1]) // 4
            del above[depth:]
            yield found[2], above[-1] if above else None, int(found[3])
            above.append(found[2])


def classes(base: type[GsdError] = GsdError) -> Iterator[type[GsdError]]:
    yield base
    for each in base.__subclasses__():
        if each.__module__ == "private_gsd":
            yield from classes(each)


def test_the_tree_of_the_docstring_is_the_tree_of_the_classes() -> None:
    found = {
        (each.__name__, None if each is GsdError else each.__bases__[0].__name__, each.exit_code)
        for each in classes()
    }
    assert set(described()) == found
    assert len(list(described())) == len(found)
    assert {each.__module__ for each in classes()} == {"private_gsd"}


def test_exit_codes_tell_errors_apart() -> None:
    """A subclass ends like its base; 2 is a misused option."""
    direct = [each.exit_code for each in classes() if each.__bases__[0] in (Exception, GsdError)]
    assert len(set(direct)) == len(direct)
    assert 2 not in direct


def test_errors_that_users_may_catch_are_public() -> None:
    internal = {"NotCommittedError", "UnreadableError"}
    names = {each.__name__ for each in classes()} - internal
    assert names <= set(private_gsd.__all__)


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: kind.__name__)
def test_what_depends_on_the_rows_says_so_once(kind: type[GsdError]) -> None:
    error = MissingExtraError("Reading", "x") if kind is MissingExtraError else kind("words")
    assert str(error).count(CONFIDENTIAL) == int(kind.confidential)
    if kind.confidential:
        assert str(error) == f"words\n{CONFIDENTIAL}"
        assert str(kind(str(error))).count(CONFIDENTIAL) == 1
    assert str(SchemaError(str(error))) == str(error)


def test_names_that_are_not_text_are_shown() -> None:
    assert str(SourceError("bad \udcff.csv: no such file")) == r"bad \udcff.csv: no such file"


@pytest.mark.parametrize("error", [DataError("words"), MissingExtraError("Reading", "x")])
def test_an_error_survives_pickle(error: GsdError) -> None:
    """A worker process hands it over."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_a_missing_extra_is_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"Reading needs .* pip install 'private-gsd\[x\]'"):
        require("no_such_module_at_all", what="Reading", extra="x")
    assert require("json", what="Reading", extra="x").__name__ == "json"


def test_types_are_expected_without_assertions() -> None:
    assert expect_type(int, 3) == 3
    with pytest.raises(TypeError, match="expected int, found str"):
        expect_type(int, "3")


def test_a_hint_for_a_misspelt_word() -> None:
    assert did_you_mean("agee", ["age", "sex"]) == " (did you mean 'age'?)"
    assert did_you_mean("income", ["age", "sex"]) == ""
