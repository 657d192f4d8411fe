"""Functions: queries that are Python functions of a row, called for many rows at once.

Functions can express any query, and are much slower than the other families: the search calls them
for every batch of rows that it tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.schema import Date, Datetime, Discrete, Real
from private_gsd.workloads.checks import position_of
from private_gsd.workloads.family import SingleQueries
from private_gsd.workloads.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads.family import Arrays

Function = Callable[["Rows"], Any]

TRIAL_ROWS = 200
# The number of rows of each counted batch that are also passed one by one.
ALONE_ROWS = 16


class Rows(Mapping[str, "NDArray[Any]"]):
    """Some rows of a table, as they are passed to a function: an array for each column, by name.

    Columns of categories are arrays of their values, with None for null; numbers are float64, with
    NaN; dates and moments are datetime64, with NaT.
    """

    def __init__(self, schema: Schema, matrix: NDArray[np.float64]) -> None:
        self._schema = schema
        self._matrix = matrix

    def __getitem__(self, name: str) -> NDArray[Any]:
        position = position_of(self._schema, name)
        column = self._schema.columns[position]
        values = self._matrix[:, position]
        null = np.isnan(values)
        if isinstance(column, Discrete):
            known = np.array([*column.values, None], dtype=object)
            return known[np.where(null, len(column.values), values).astype(np.int64)]
        if isinstance(column, Date | Datetime):
            whole = np.where(null, np.iinfo(np.int64).min, values).astype(np.int64)
            return whole.view(f"datetime64[{column.unit}]")
        return values.copy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema.names)

    def __len__(self) -> int:
        return len(self._schema)

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self._matrix)


class Functions(SingleQueries):
    """Queries that are Python functions, each in a group of its own."""

    name: ClassVar[str] = "functions"
    title: ClassVar[str] = "Python functions"

    def __init__(self, schema: Schema, tests: Mapping[str, Function]) -> None:
        self.schema = schema
        self.tests = dict(tests)
        self._names = tuple(self.tests)

    @property
    def size(self) -> int:
        """The number of queries."""
        return len(self.tests)

    def select(self, groups: NDArray[np.int64]) -> Functions:
        """The family of some of the functions."""
        chosen = [self._names[group] for group in groups.tolist()]
        return Functions(self.schema, {name: self.tests[name] for name in chosen})

    def describe(self, group: int) -> str:
        """The function's name."""
        return f"function {self._names[group]!r}"

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Count rows, and check that each row is judged by itself, as the sensitivity requires."""
        state += self._met_alone(matrix, ALONE_ROWS).sum(axis=0)

    def _met_alone(self, matrix: NDArray[np.float64], alone: int) -> NDArray[np.bool_]:
        """``met``, after checking that no result depends on other rows of the batch.

        The functions are called again for the rows in random order in two parts, and for some rows
        one by one.

        Args:
            matrix: The rows.
            alone: The number of rows that are also passed one by one.
        """
        met = self.met(matrix)
        order = np.random.default_rng().permutation(len(matrix))
        company = [*np.array_split(order, 2), *np.split(order[:alone], len(order[:alone]) or 1)]
        for part in company:
            again = self.met(matrix[part])
            for place, name in enumerate(self._names):
                if (again[:, place] != met[part, place]).any():
                    raise WorkloadError(
                        f"function {name!r} judges a row by other rows, or not always alike; "
                        "a query must look at one row at a time"
                    )
        return met

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """Refused: code is not saved."""
        raise WorkloadError(
            "queries that are Python functions cannot be saved; use another kind of query"
        )

    def met(self, matrix: NDArray[np.float64]) -> NDArray[np.bool_]:
        """For each row of a matrix and each function, whether the row meets the query.

        Errors of a function are not shown in detail, since they could reveal the rows.
        """
        met = np.zeros((len(matrix), len(self.tests)), dtype=np.bool_)
        if not len(matrix):
            return met
        rows = Rows(self.schema, matrix)
        for place, (name, test) in enumerate(self.tests.items()):
            try:
                found = test(rows)
                fits = _problem(found, len(matrix)) is None
            except Exception:
                fits = False
            if not fits:
                raise WorkloadError(
                    f"function {name!r} failed, or did not give a true or false for each row; "
                    "try it on rows of your own"
                ) from None
            met[:, place] = found
        return met


def _problem(found: Any, rows: int) -> str | None:
    """A description of a wrong result of a function; None if the result is right."""
    if not isinstance(found, np.ndarray) or np.ma.isMaskedArray(found):
        return type(found).__name__
    if found.dtype != np.bool_ or found.shape != (rows,):
        return f"{found.dtype} of shape {found.shape}"
    return None


def functions(schema: Schema, tests: Mapping[str, Function]) -> Workload:
    """Queries that are Python functions of a row.

    A function gets many rows at once, as arrays by column name (see ``Rows``), and returns a
    boolean for each row. It must judge each row by itself alone. Such queries cannot be saved with
    measurements, and make the search slow: use ``predicates`` where possible.

    >>> from private_gsd import Integer, Schema, workloads
    >>> schema = Schema([Integer("hours", lower=0, upper=99), Integer("pay", lower=0, upper=999)])
    >>> workloads.functions(schema, {"poor": lambda rows: rows["pay"] < 8 * rows["hours"]})
    <Workload of 1 queries in 1 groups: functions>

    Args:
        schema: The public schema.
        tests: The functions by name.
    """
    if not isinstance(tests, Mapping) or not tests:
        raise WorkloadError("give some functions by their names, as in {'rich': function}")
    for name, test in tests.items():
        if not isinstance(name, str) or not callable(test):
            raise WorkloadError(f"give functions by their names; {name!r} is {test!r:.50}")
    family = Functions(schema, tests)
    # Try the functions on random rows, so that the details of an error can be shown.
    trial = _trial(schema)
    for name, test in family.tests.items():
        for some in (trial, trial[:1]):
            problem = _problem(test(Rows(schema, some)), len(some))
            if problem is not None:
                raise WorkloadError(
                    f"function {name!r} must give an array with a true or false for each row; "
                    f"for {len(some)} rows it gave {problem}"
                )
    family._met_alone(trial, len(trial))
    return Workload(schema, (family,))


def _trial(schema: Schema) -> NDArray[np.float64]:
    """Random rows of the schema's domain."""
    rng = np.random.default_rng(0)
    matrix = np.empty((TRIAL_ROWS, len(schema)))
    for position, column in enumerate(schema):
        low, high = column.bounds
        values = low + rng.random(TRIAL_ROWS) * (high - low)
        if isinstance(column, Real):
            values = values if column.decimals is None else np.round(values, column.decimals)
        else:
            values = np.rint(values)
        if column.nullable:
            values[rng.random(TRIAL_ROWS) < 0.2] = np.nan
        matrix[:, position] = values
    return matrix
