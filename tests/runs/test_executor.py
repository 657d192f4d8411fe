"""The executor: uses what is done, pays for what is missing, refuses what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from private_gsd import LedgerError, MeasurementError, Mechanism
from private_gsd.mechanisms.base import Plan, Task
from private_gsd.mechanisms.steps import (
    Candidates,
    Steps,
    initial_table,
    measure,
    project,
    select,
)
from tests.mechanisms.contract import Watched, drawn
from tests.runs.stops import Stopped

UNITS = 1000


@dataclass(frozen=True)
class Scripted(Mechanism):
    """A mechanism of given steps, which spends what they say."""

    script: Callable[[Task], Steps]
    total: int = 4 * UNITS

    name: ClassVar[str] = "scripted"

    def steps(self, task: Task) -> Steps:
        """Those that were given."""
        return self.script(task)

    def plan(self, task: Task) -> Plan:
        """As was said."""
        return Plan(self.total, [UNITS] * task.workload.num_groups, 3, 1.0, 1.0)


def watched(script: Callable[[Task], Steps], neighbours: str = "replace-one") -> Watched:
    return Watched(Scripted(script), neighbours, limited=False)


def two_rounds(task: Task) -> Steps:
    """A table is made, and what it answers worst is measured."""
    yield from measure("first", [0], [UNITS], stream=0)
    table = yield from project(0)
    answers = np.full(task.workload.size, 0.1)
    groups = yield from select(
        "select", lambda: Candidates([1, 2, 3], lambda: answers), units=UNITS, stream=1
    )
    yield from measure("second", groups, [2 * UNITS], stream=2)
    yield from project(1, table)


def test_steps_are_done_in_order() -> None:
    run = watched(two_rounds)
    outcome = run.run()
    assert [(name, units) for name, (units, _, _) in run.payments.charges.items()] == [
        ("first", UNITS),
        ("select", UNITS),
        ("second", 2 * UNITS),
    ]
    assert outcome.measurements.workload.num_groups == 2
    assert outcome.unspent == 0
    [[selected]] = run.checkpoint.selections()
    assert outcome.measurements.workload.describe(1) == run.task.workload.describe(selected)


def test_data_is_asked_for_only_where_it_is_needed() -> None:
    """A run that has measured everything makes its last table without the data."""
    run = watched(two_rounds)
    expected = run.run()
    moments = run.payments.moments.passed
    again = watched(two_rounds)
    with pytest.raises(Stopped):
        again.run(moments - 2)  # before the last table is saved
    again.exact = None  # type: ignore[assignment]
    np.testing.assert_array_equal(again.run().table, expected.table)


def test_a_selection_from_nothing_costs_nothing() -> None:
    def script(task: Task) -> Steps:
        yield from measure("first", [0], [UNITS], stream=0)
        answers = np.zeros(task.workload.size)
        groups = yield from select(
            "select", lambda: Candidates([], lambda: answers), units=UNITS, stream=1
        )
        assert groups == []
        yield from project(0)

    run = watched(script)
    assert run.run().unspent == 3 * UNITS
    assert list(run.payments.charges) == ["first"]
    assert run.checkpoint.selections() == []


def test_a_mechanism_begins_with_a_random_table() -> None:
    def script(task: Task) -> Steps:
        table = yield from initial_table()
        np.testing.assert_array_equal(table.matrix, drawn(40, 1))
        yield from measure("first", [0], [UNITS], stream=0)
        yield from project(0, table)

    run = watched(script)
    assert run.run().table.shape == (40, 3)


def nothing(task: Task) -> Steps:
    del task
    yield from initial_table()


def only_measured(task: Task) -> Steps:
    del task
    yield from measure("first", [0], [UNITS], stream=0)


def projected_first(task: Task) -> Steps:
    del task
    yield from project(0)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (nothing, "nothing was measured, and so there is no table"),
        (only_measured, "nothing was measured, and so there is no table"),
        (projected_first, "nothing was measured yet, and so no table can be made"),
    ],
)
def test_a_run_without_measurements_or_a_table(script: Any, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        watched(script).run()


def damaged(change: Callable[[Watched], Any], neighbours: str = "replace-one") -> Watched:
    """A run that is done, and changed since."""
    run = watched(two_rounds, neighbours)
    run.run()
    change(run)
    return run


@pytest.mark.parametrize("step", ["first", "select", "second"])
def test_what_the_ledger_does_not_know_is_not_used(step: str) -> None:
    run = damaged(lambda run: run.payments.commits.pop(step))
    with pytest.raises(LedgerError, match="does not know what paid for the"):
        run.run()


@pytest.mark.parametrize("kind", ["selections", "measurements"])
def test_what_was_changed_is_not_used(kind: str) -> None:
    run = damaged(lambda run: run.checkpoint.digests.update({kind: "other"}))
    with pytest.raises(LedgerError, match=f"does not know what paid for the {kind}"):
        run.run()


@pytest.mark.parametrize("step", ["first", "select", "second"])
def test_another_price_is_refused(step: str) -> None:
    def change(run: Watched) -> None:
        _, kind, groups = run.payments.charges[step]
        run.payments.charges[step] = (1, kind, groups)

    with pytest.raises(LedgerError, match=f"the step '{step}' was paid for with another budget"):
        damaged(change).run()


def test_measurements_that_are_gone_are_not_drawn_again() -> None:
    def lose(run: Watched) -> None:
        run.checkpoint.measured = None

    with pytest.raises(MeasurementError, match="do not fit together"):
        damaged(lose).run()

    def script(task: Task) -> Steps:
        del task
        yield from measure("first", [0], [UNITS], stream=0)
        yield from project(0)

    run = watched(script)
    run.run()
    lose(run)
    with pytest.raises(MeasurementError, match="the measurements are gone, and a table of them is"):
        run.run()


def test_selections_that_are_gone_are_not_drawn_again() -> None:
    run = damaged(lambda run: run.checkpoint.selections().clear())
    with pytest.raises(MeasurementError, match="do not fit together"):
        run.run()


@pytest.mark.parametrize("wrong", [[99], [1, 2], [-1]])
def test_selections_that_do_not_fit(wrong: list[int]) -> None:
    run = damaged(lambda run: run.checkpoint.selections().__setitem__(0, wrong))
    with pytest.raises(MeasurementError, match="the selections do not fit the run"):
        run.run()


def test_more_than_the_mechanism_does_is_refused() -> None:
    run = damaged(lambda run: run.checkpoint.selections().append([2]))
    with pytest.raises(MeasurementError, match="do not fit together"):
        run.run()


def test_a_number_of_records_that_is_gone_is_not_drawn_again() -> None:
    run = watched(two_rounds, "add-remove")
    expected = run.run()
    assert next(iter(run.payments.charges)) == "number of records"
    assert run.checkpoint.n_records() is not None
    np.testing.assert_array_equal(run.run().table, expected.table)
    fresh = type(run.checkpoint)(run.payments.moments)
    fresh.measured = run.checkpoint.measured
    run.checkpoint = fresh
    with pytest.raises(MeasurementError, match="is gone, and what was made of it is there"):
        run.run()


def test_a_table_that_is_gone_is_missed_only_where_it_is_read() -> None:
    """A resumed run passes by tables that later ones replaced."""

    def script(task: Task, *, reads: bool = False) -> Steps:
        del task
        table = None
        first = None
        for number in range(4):
            yield from measure(f"{number}", [number], [UNITS], stream=number)
            table = yield from project(number, table)
            first = first or table
        if reads and first is not None:
            _ = first.matrix

    run = watched(script)
    expected = run.run()
    assert run.checkpoint.table(0) is None
    np.testing.assert_array_equal(run.run().table, expected.table)
    run.mechanism = Scripted(lambda task: script(task, reads=True))
    with pytest.raises(MeasurementError, match="table 0 of the run is gone"):
        run.run()
