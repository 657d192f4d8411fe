"""Steps: what a mechanism yields. Whoever executes them pays, saves, resumes and reports.

A mechanism is a generator of steps. It yields what is to be done next and is sent the result, which
was made now or stands in a checkpoint: a run that died is repeated from its first step, and only
what is missing is done. So a mechanism draws no random numbers, and decides by public facts and by
results alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """Measure query groups with Gaussian noise.

    Attributes:
        name: The name of the step in the ledger.
        groups: The numbers of the groups.
        units: The budget of each group.
        stream: Which of the run's streams of seeded noise the step has.
        workload: The queries that the groups are of, where the run found them; None for the
            candidate queries of the task.
    """

    name: str
    groups: tuple[int, ...]
    units: tuple[int, ...]
    stream: int
    workload: Workload | None = None


class Candidates(NamedTuple):
    """What a selection is made from. All of it is public or was paid for.

    Attributes:
        groups: The numbers of the groups; none, where nothing is left to select.
        answers: Gives what is known so far as the answers to all queries, as shares.
        distance: Whether the score is the L1 distance of a group; else its largest error.
        weights: The weight of each group in its score; 1 by default.
        penalties: What is taken off each distance, in rows; 0 by default.
    """

    groups: Sequence[int]
    answers: Callable[[], NDArray[np.float64]]
    distance: bool = False
    weights: Sequence[int] | None = None
    penalties: Sequence[float] | None = None


@dataclass(frozen=True)
class Select:
    """Select query groups by noisy top-k.

    Attributes:
        name: The name of the step in the ledger.
        candidates: Gives what to select from; called only where the selection is made now.
        size: The number of groups to select.
        units: The budget of the selection.
        stream: Which of the run's streams of seeded noise the step has.
        workload: The queries that the groups are of; see ``Measure``.
    """

    name: str
    candidates: Callable[[], Candidates]
    size: int
    units: int
    stream: int
    workload: Workload | None = None


class SelectionPart(NamedTuple):
    """A part of the candidates of a selection, each of which is a group of the workload.

    Attributes:
        workload: The queries.
        answers: What is known so far as the answers to all queries, as shares.
        floors: For each query, the distance in rows that does not count.
    """

    workload: Workload
    answers: NDArray[np.float64]
    floors: NDArray[np.float64]


@dataclass(frozen=True)
class SelectFarthest:
    """Select query groups of several workloads by one noisy top-k of their distances.

    Attributes:
        name: The name of the step in the ledger.
        parts: Gives what to select from, part by part; called only where the selection is made now.
        candidates: The number of groups of all parts.
        size: The number of groups to select.
        units: The budget of the selection.
        stream: Which of the run's streams of seeded noise the step has.
    """

    name: str
    parts: Callable[[], Iterator[SelectionPart]]
    candidates: int
    size: int
    units: int
    stream: int


@dataclass(frozen=True)
class Project:
    """Make a synthetic table of all that was measured.

    Attributes:
        number: Which of the run's tables it is.
        start: The table to start from.
    """

    number: int
    start: Table | None = None


@dataclass(frozen=True)
class InitialTable:
    """Draw a table of independent values that keeps the schema's rules.

    Values have the distributions of the columns, where these were measured, and are uniform
    elsewhere.
    """


class Table:
    """A synthetic table of a run, read only where a step needs it.

    Args:
        read: Gives the encoded rows.
    """

    def __init__(self, read: Callable[[], Matrix]) -> None:
        self._read = read

    @cached_property
    def matrix(self) -> Matrix:
        """The encoded rows."""
        return self._read()


Step = Measure | Select | SelectFarthest | Project | InitialTable
Steps = Generator[Step, Any, None]


def measure(
    name: str,
    groups: Sequence[int],
    units: Sequence[int],
    *,
    stream: int,
    workload: Workload | None = None,
) -> Generator[Step, Any, Measurements]:
    """Yield a measurement; returns all that was measured so far."""
    measured: Measurements = yield Measure(name, tuple(groups), tuple(units), stream, workload)
    return measured


def select(
    name: str, candidates: Callable[[], Candidates], *, size: int = 1, units: int, stream: int
) -> Generator[Step, Any, list[int]]:
    """Yield a selection; returns the groups, none where no candidate is left."""
    groups: list[int] = yield Select(name, candidates, size, units, stream)
    return groups


def select_farthest(
    name: str,
    parts: Callable[[], Iterator[SelectionPart]],
    *,
    candidates: int,
    size: int,
    units: int,
    stream: int,
) -> Generator[Step, Any, list[int]]:
    """Yield a selection across parts; returns the groups, numbered through all parts."""
    groups: list[int] = yield SelectFarthest(name, parts, candidates, size, units, stream)
    return groups


def project(number: int, start: Table | None = None) -> Generator[Step, Any, Table]:
    """Yield a projection; returns the table."""
    table: Table = yield Project(number, start)
    return table


def initial_table() -> Generator[Step, Any, Table]:
    """Ask for a random table that keeps the schema's rules, and return it."""
    table: Table = yield InitialTable()
    return table
