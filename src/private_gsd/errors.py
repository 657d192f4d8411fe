"""Every error that private-gsd raises for a person to read.

                              exit code
    GsdError                      1      anything else
    ├── SchemaError               3      the schema, or one of its rules, is wrong
    ├── SourceError               4      the table cannot be opened or read
    │   └── UnreadableError       4      … for a reason that lies in its rows
    ├── DataError                 5      the table was read, and holds values outside the schema
    ├── MissingExtraError         6      an optional dependency is not installed
    ├── WorkloadError             7      the queries make no sense, or are too many
    ├── BudgetError               8      the privacy budget makes no sense, or is spent
    ├── LedgerError               9      the ledger cannot be opened, read or written
    │   └── NotCommittedError     9      … because another process measures for the same charge
    ├── MeasurementError         10      measurements are missing, torn or of another table
    ├── ProjectionError          11      the projection cannot do what it was given to do
    └── ReleaseError             12      a release folder cannot be read, written or resumed
        └── NotFittedError       12      … because there is none yet

Messages name the file, the column and the value, and say what to do next. The command line prints
them without a traceback and ends with the exit code; 2 is a misused option, 130 an interruption.

Messages are for the steward, and no part of what is published. Those that depend on the rows of the
table, or quote them, end in a line that says so (``confidential``).
"""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

CONFIDENTIAL = "This message depends on the data and may quote it: it is confidential."


class GsdError(Exception):
    """The base of all errors that private-gsd raises on purpose.

    Attributes:
        exit_code: How the command line ends.
        confidential: Whether the message depends on the rows of the table.
    """

    exit_code = 1
    confidential = False

    def __str__(self) -> str:
        # The name of a file may hold bytes that are not text, and it is named nevertheless.
        message = super().__str__().encode("utf-8", "backslashreplace").decode()
        quoted = CONFIDENTIAL in message  # the message of another error is passed on
        return f"{message}\n{CONFIDENTIAL}" if self.confidential and not quoted else message


class SchemaError(GsdError):
    """A schema, or one of its rules, is not well formed or does not fit its use."""

    exit_code = 3


class SourceError(GsdError):
    """A table could not be opened or read."""

    exit_code = 4


class UnreadableError(SourceError):
    """The rows of a table could not be read."""

    confidential = True


class DataError(GsdError):
    """A table holds values that its schema does not allow."""

    exit_code = 5
    confidential = True


class MissingExtraError(GsdError, ImportError):
    """An optional dependency is needed and is not installed."""

    exit_code = 6

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional dependency that is not installed. "
            f"Install it with: pip install 'private-gsd[{extra}]'"
        )
        self._given = what, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class WorkloadError(GsdError):
    """A workload cannot be made of this schema, or is too large."""

    exit_code = 7


class BudgetError(GsdError):
    """A privacy budget makes no sense, or is spent."""

    exit_code = 8


class LedgerError(GsdError):
    """A ledger cannot be opened, read or written."""

    exit_code = 9


class NotCommittedError(LedgerError):
    """A measurement may not be committed: another process measures for the same charge."""


class MeasurementError(GsdError):
    """Measurements cannot be read, written or joined."""

    exit_code = 10


class ProjectionError(GsdError):
    """A projection from measurements to a table cannot do what it was given to do."""

    exit_code = 11


class ReleaseError(GsdError):
    """A release folder cannot be read, written or resumed."""

    exit_code = 12


class NotFittedError(ReleaseError, AttributeError):
    """A synthesizer has made no release yet."""


# Users find all of them in ``private_gsd``, and tracebacks say so.
for _each in (
    *(GsdError, SchemaError, SourceError, UnreadableError, DataError, MissingExtraError),
    *(WorkloadError, BudgetError, LedgerError, NotCommittedError, MeasurementError),
    *(ProjectionError, ReleaseError, NotFittedError),
):
    _each.__module__ = "private_gsd"


def require(module: str, *, what: str, extra: str) -> Any:
    """Import an optional module, or say how to install it.

    Args:
        module: The module to import.
        what: What needs it, as the subject of a sentence ("Reading YAML").
        extra: The extra of private-gsd that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, extra) from error


def expect_type(expected: type[T], value: object) -> T:
    """A value that must be of a type by now; ``python -O`` would leave out an assertion."""
    if not isinstance(value, expected):
        raise TypeError(f"expected {expected.__name__}, found {type(value).__name__}")
    return value


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt word: empty, or " (did you mean 'age'?)".

    >>> did_you_mean("agee", ["age", "sex"])
    " (did you mean 'age'?)"
    >>> did_you_mean("income", ["age", "sex"])
    ''
    """
    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
