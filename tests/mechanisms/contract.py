"""The contract of mechanisms: a class of tests that every mechanism's tests inherit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from private_gsd import Adaptive, Categorical, Mechanism, Schema, workloads
from private_gsd.counting.exact import ExactCounts, count
from private_gsd.measurements.measurements import Measurements
from private_gsd.mechanisms.base import Plan, Task, plan_run
from private_gsd.mechanisms.candidates import scopes_of
from private_gsd.mechanisms.registry import conversion_of, mechanism_from_dict
from private_gsd.privacy.budget import GAUSSIANS, RhoBudget
from private_gsd.runs.executor import Executor, Outcome
from private_gsd.workloads import Workload
from tests.runs.stops import Moments, SavedCheckpoint, Stopped, WatchedNoise, WatchedPayments

SIZES = (2, 3, 2)
SCHEMA = Schema(
    [
        Categorical(name, values=[str(value) for value in range(size)])
        for name, size in zip("abc", SIZES, strict=True)
    ]
)
TARGET = workloads.categorical_marginals(SCHEMA, 3) + workloads.categorical_marginals(SCHEMA, 2)
ROWS = 40


def drawn(rows: int, *seeds: int) -> NDArray[np.float64]:
    """A table of independent, uniform values."""
    return np.random.default_rng(seeds).integers(0, SIZES, (rows, len(SIZES))).astype(np.float64)


def projected(
    measured: Measurements, start: NDArray[np.float64] | None, number: int
) -> NDArray[np.float64]:
    """A table that depends on all that a projection is given."""
    seeds = [number, int(abs(measured.counts).sum())]
    table = drawn(ROWS, *seeds, 0 if start is None else int(start.sum()))
    if start is not None:
        table[::2] = start[::2]
    return table


class Watched:
    """Runs of one mechanism on one small table, stopped and resumed.

    Args:
        mechanism: The mechanism.
        neighbours: The neighbour relation.
        limited: Whether a projector takes no more than one marginal of several columns.
        target: The target workload.
        table: The encoded table.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        neighbours: Any,
        *,
        limited: bool,
        target: Workload = TARGET,
        table: NDArray[np.float64] | None = None,
    ) -> None:
        self.mechanism = mechanism
        workload = mechanism.candidates(target)

        def why_infeasible(groups: Workload, share: float = 1.0) -> str | None:
            del share
            several = [scope for scope in scopes_of(groups) if len(scope) > 1]
            return "too many" if len(several) > 1 else None

        self.task = Task(
            workload,
            target,
            RhoBudget.from_epsilon(0.3, 1e-6, conversion_of(mechanism)),
            neighbours,
            why_infeasible if limited else None,
        )
        if table is None:
            table = drawn(500, 7)
            table[:, 1] = np.where(table[:, 0] == 1, 2, table[:, 1])
        self.table = table
        first = mechanism.counted_first(workload)
        self.exact = ExactCounts(first, len(table), count(first, table))
        self.payments = WatchedPayments(self.task.budget)
        self.checkpoint = SavedCheckpoint(Moments())
        self.projections = 0
        self.starts = 0
        self.streams: dict[int, str] = {}

    @property
    def plan(self) -> Plan:
        """What the mechanism would do."""
        return plan_run(self.mechanism, self.task)

    def run(self, kill_at: int | None = None) -> Outcome:
        """Run, or resume, until a moment."""
        self.payments.moments = self.checkpoint.moments = Moments(kill_at)
        self.payments.drawing = None
        return Executor(
            task=self.task,
            exact=self._count,
            payments=self.payments,
            checkpoint=self.checkpoint,
            noise=lambda stream: WatchedNoise(self.payments, stream, self.streams),
            project=self._project,
            initial_table=lambda _: drawn(ROWS, 1),
        ).run(self.mechanism)

    def _count(self, more: Workload | None) -> ExactCounts:
        if more is None:
            return self.exact
        return ExactCounts(more, len(self.table), count(more, self.table))

    def _project(self, measured: Any, start: Any, number: int) -> NDArray[np.float64]:
        self.projections += 1
        self.starts += start is not None
        return projected(measured, start, number)


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two runs came to the same, to the bit."""
    mine, yours = one.measurements, other.measurements
    return (
        np.array_equal(one.table, other.table, equal_nan=True)
        and np.array_equal(mine.counts, yours.counts)
        and np.array_equal(mine.scales, yours.scales)
        and (mine.n_records, mine.charges, mine.private, one.unspent)
        == (yours.n_records, yours.charges, yours.private, other.unspent)
    )


@pytest.mark.filterwarnings("ignore::private_gsd.mechanisms.base.EndedEarlyWarning")
@pytest.mark.parametrize("limited", [False, True], ids=["all", "limited"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
class MechanismContract:
    """What holds for every mechanism. Subclasses have a fixture ``mechanism``."""

    watched: type[Watched] = Watched

    def test_what_is_planned_is_spent(
        self, mechanism: Mechanism, neighbours: Any, limited: bool
    ) -> None:
        """Or left unspent, where a run ended early; and no noise is drawn that is not paid for."""
        watched = self.watched(mechanism, neighbours, limited=limited)
        plan = watched.plan
        outcome = watched.run()
        assert plan.total <= watched.task.budget.units
        assert watched.payments.spent + outcome.unspent == plan.total
        if not limited:
            # Nothing but what is left over where a budget is split.
            assert outcome.unspent <= 1e-9 * plan.total
            assert plan.total > 0.99 * watched.task.budget.units
        assert len(plan.units) == watched.task.workload.num_groups
        assert 1 <= watched.projections <= plan.projections
        assert mechanism.warm_start == (watched.starts > 0)
        # All that was charged was drawn and committed, and each step had noise of its own.
        assert set(watched.payments.commits) == set(watched.payments.charges)
        assert sorted(watched.streams.values()) == sorted(watched.payments.charges)
        assert {int(each) for each in outcome.measurements.charges} <= set(
            range(len(watched.payments.charges))
        )
        assert outcome.measurements.private is False

    def test_a_run_stopped_at_any_moment_resumes_as_if_it_was_not(
        self, mechanism: Mechanism, neighbours: Any, limited: bool
    ) -> None:
        """The same to the bit; nothing is paid twice, and nothing is committed twice."""
        whole = self.watched(mechanism, neighbours, limited=limited)
        expected = whole.run()
        moments = whole.payments.moments.passed
        assert moments >= 4
        for kill_at in range(moments):
            stopped = self.watched(mechanism, neighbours, limited=limited)
            with pytest.raises(Stopped):
                stopped.run(kill_at)
            assert same(stopped.run(), expected), kill_at
            assert stopped.payments.charges == whole.payments.charges
            assert stopped.payments.commits == whole.payments.commits

    def test_a_run_that_is_done_is_done(
        self, mechanism: Mechanism, neighbours: Any, limited: bool
    ) -> None:
        """To resume it draws nothing, pays nothing and makes no table."""
        watched = self.watched(mechanism, neighbours, limited=limited)
        expected = watched.run()
        projections = watched.projections
        watched.exact = cast("ExactCounts", None)  # nobody looks at the data
        assert same(watched.run(), expected)
        assert watched.payments.moments.passed == 0
        assert watched.projections == projections

    def test_the_conversion_holds_for_its_noise(
        self, mechanism: Mechanism, neighbours: Any, limited: bool
    ) -> None:
        watched = self.watched(mechanism, neighbours, limited=limited)
        watched.run()
        kinds = {kind for _, kind, _ in watched.payments.charges.values()}
        assert mechanism.gaussian_noise_only == (kinds <= set(GAUSSIANS))

    def test_its_settings_are_a_value(
        self, mechanism: Mechanism, neighbours: Any, limited: bool
    ) -> None:
        del neighbours, limited
        again = mechanism_from_dict(json.loads(json.dumps(mechanism.to_dict())))
        assert again == mechanism
        assert hash(again) == hash(mechanism)
        assert mechanism != Adaptive(epochs=77)
        with pytest.raises(AttributeError):
            mechanism.name = "other"  # type: ignore[misc]
        assert replace(mechanism) == mechanism  # type: ignore[type-var]
