"""The executor: does the steps that a mechanism yields. It pays, draws, saves, resumes, reports.

Every step is looked for in the checkpoint first. What stands there was drawn and committed before,
and is used as it is, if the ledger knows it. What is missing is paid for, drawn, and saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from private_gsd.errors import LedgerError, MeasurementError
from private_gsd.measurements.measurements import measure
from private_gsd.mechanisms.base import plan_run, reserved_for_counting
from private_gsd.mechanisms.steps import Measure, Project, Select, SelectFarthest, Table
from private_gsd.privacy.measuring import release_n_records
from private_gsd.privacy.selection import (
    Selection,
    select_by_distance,
    select_farthest,
    select_groups,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Mechanism, Task
    from private_gsd.mechanisms.steps import Step
    from private_gsd.privacy.measuring import NoisyRecordCount
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.runs.checkpoint import Checkpoint
    from private_gsd.runs.payments import Payments
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

# The step that measures the number of records, and its stream of seeded noise.
COUNTING = "number of records"
COUNTING_STREAM = 2**31


class Outcome(NamedTuple):
    """What a run comes to.

    Attributes:
        measurements: All that was measured.
        table: The synthetic table, encoded.
        unspent: What was planned and not spent, where the run ended early, in units.
    """

    measurements: Measurements
    table: Matrix
    unspent: int


@dataclass
class Executor:
    """Does the steps of one run.

    Attributes:
        task: What the mechanism is to do. Its budget is that of the whole run.
        exact: Gives the exact counts of some queries, or of those that the mechanism counts first
            if None is given; called only where data is needed.
        payments: Pays for the steps.
        checkpoint: What the run has done so far.
        noise: Gives the noise of a step, by the step's stream.
        project: Makes a table of measurements, from a table to start from, by the table's number.
        initial_table: Gives a random table that keeps the schema's rules, by what was measured.
    """

    task: Task
    exact: Callable[[Workload | None], ExactCounts]
    payments: Payments
    checkpoint: Checkpoint
    noise: Callable[[int], NoiseSource]
    project: Callable[[Measurements, Matrix | None, int], Matrix]
    initial_table: Callable[[Measurements | None], Matrix]
    _n_records: NoisyRecordCount | None = field(default=None, init=False)
    _measured: Measurements | None = field(default=None, init=False)
    _selections: list[list[int]] = field(default_factory=list, init=False)
    # How many groups were measured, and how many selections made, by the steps so far.
    _groups: int = field(default=0, init=False)
    _selected: int = field(default=0, init=False)
    _selected_privately: bool = field(default=True, init=False)
    _spent: int = field(default=0, init=False)
    _table: Table | None = field(default=None, init=False)

    def run(self, mechanism: Mechanism) -> Outcome:
        """Do all steps of a mechanism, from the first that is not done."""
        planned = plan_run(mechanism, self.task).total
        counting, rest = reserved_for_counting(self.task)
        self._measured = self.checkpoint.measurements()
        self._selections = self.checkpoint.selections()
        if not self.task.records_are_public:
            self._n_records = self._count_records(counting)
        task = replace(self.task, budget=rest, paid=self.payments.paid)
        if self._n_records is not None:
            task = replace(task, n_records=self._n_records.n_records)
        steps = mechanism.steps(task)
        result: Any = None
        try:
            while True:
                result = self._do(steps.send(result))
        except StopIteration:
            pass
        if self._groups != self._num_measured or self._selected != len(self._selections):
            raise MeasurementError("the selections and the measurements do not fit together")
        if self._measured is None or self._table is None:
            raise MeasurementError("nothing was measured, and so there is no table")
        return Outcome(self._measured, self._table.matrix, planned - self._spent)

    def _do(self, step: Step) -> Any:
        if isinstance(step, Measure):
            return self._measure(step)
        if isinstance(step, Select | SelectFarthest):
            return self._select(step)
        if isinstance(step, Project):
            self._table = self._project(step)
            return self._table
        self._table = Table(partial(self.initial_table, self._measured_so_far))
        return self._table

    @property
    def _measured_so_far(self) -> Measurements | None:
        """What the steps so far have measured; a checkpoint may have more."""
        if self._measured is None or not self._groups:
            return None
        return self._measured.select(range(self._groups))

    @property
    def _num_measured(self) -> int:
        return 0 if self._measured is None else self._measured.workload.num_groups

    def _count_records(self, units: int) -> NoisyRecordCount:
        """The number of records, measured where it is not public."""
        self._spent += units
        known = self.checkpoint.n_records()
        if known is not None:
            self._check_committed(COUNTING, units, "n_records", last=True)
            return known
        if self._measured is not None or self._selections:
            raise MeasurementError("the number of rows is gone, and what was made of it is there")
        known = release_n_records(
            self.exact(None),
            units,
            accountant=self.payments.accountant(COUNTING),
            noise=self.noise(COUNTING_STREAM),
            neighbours=self.task.neighbours,
        )
        self.checkpoint.save_n_records(known, partial(self.payments.commit, COUNTING))
        return known

    def _measure(self, step: Measure) -> Measurements:
        """All that was measured up to this step."""
        self._spent += sum(step.units)
        before, self._groups = self._groups, self._groups + len(step.groups)
        if self._measured is not None and self._num_measured > before:
            if self._num_measured < self._groups:
                raise MeasurementError("the selections and the measurements do not fit together")
            last = self._num_measured == self._groups
            self._check_committed(step.name, sum(step.units), "measurements", last=last)
            return self._measured if last else self._measured.select(range(self._groups))
        if self._selected != len(self._selections):
            raise MeasurementError("the selections and the measurements do not fit together")
        if self._measured is None and self.checkpoint.table(0) is not None:
            raise MeasurementError("the measurements are gone, and a table of them is there")
        new = measure(
            self.exact(step.workload),
            Selection(step.groups, self._selected_privately) if self._selected else step.groups,
            step.units,
            accountant=self.payments.accountant(step.name),
            noise=self.noise(step.stream),
            neighbours=self.task.neighbours,
            n_records=self._n_records,
        )
        self._measured = new if self._measured is None else self._measured + new
        commit = partial(self.payments.commit, step.name)
        self.checkpoint.save_measurements(self._measured, commit)
        return self._measured

    def _select(self, step: Select | SelectFarthest) -> list[int]:
        """The groups that were or are selected."""
        noise = self.noise(step.stream)
        if self._selected < len(self._selections):
            self._spent += step.units
            groups = self._selections[self._selected]
            self._selected += 1
            known = range(
                step.candidates
                if isinstance(step, SelectFarthest)
                else (step.workload or self.task.workload).num_groups
            )
            if len(groups) != step.size or any(group not in known for group in groups):
                raise MeasurementError("the selections do not fit the run")
            last = self._selected == len(self._selections)
            self._check_committed(step.name, step.units, "selections", last=last)
            self._selected_privately &= noise.private
            return groups
        draw = self._selection_of(step, noise)
        if draw is None:
            return []
        if self._groups != self._num_measured:
            raise MeasurementError("the selections and the measurements do not fit together")
        self._spent += step.units
        chosen = draw()
        self._selected_privately &= chosen.private
        self._selections = [*self._selections, list(chosen.groups)]
        self._selected += 1
        commit = partial(self.payments.commit, step.name)
        self.checkpoint.save_selections(self._selections, commit)
        return list(chosen.groups)

    def _selection_of(
        self, step: Select | SelectFarthest, noise: NoiseSource
    ) -> Callable[[], Selection] | None:
        """Pays for a selection and draws it; None where no candidate is left."""
        known = None if self._n_records is None else self._n_records.n_records
        given: dict[str, Any] = {
            "accountant": self.payments.accountant(step.name),
            "noise": noise,
            "neighbours": self.task.neighbours,
        }
        if isinstance(step, SelectFarthest):
            parts = ((self.exact(part.workload), *part[1:]) for part in step.parts())
            return lambda: select_farthest(parts, known, step.size, step.units, **given)
        candidates = step.candidates()
        if not candidates.groups:
            return None
        if candidates.distance:
            given |= {"weights": candidates.weights, "penalties": candidates.penalties}
        score = select_by_distance if candidates.distance else select_groups

        def draw() -> Selection:
            exact = self.exact(step.workload)
            records = exact.n_records if known is None else known
            answers = candidates.answers()
            return score(exact, answers, records, candidates.groups, step.size, step.units, **given)

        return draw

    def _project(self, step: Project) -> Table:
        """The table of the checkpoint, a new one, or a placeholder for one that is not needed."""
        made = self.checkpoint.table(step.number)
        if made is not None:
            return Table(lambda: made)
        if self._groups < self._num_measured:
            return Table(partial(_gone, step.number))
        if self._measured is None:
            raise MeasurementError("nothing was measured yet, and so no table can be made")
        start = None if step.start is None else step.start.matrix
        table = self.project(self._measured, start, step.number)
        self.checkpoint.save_table(step.number, table)
        return Table(lambda: table)

    def _check_committed(self, name: str, units: int, kind: str, *, last: bool) -> None:
        """Refuse a step whose charge the ledger does not have, with the same units and digest.

        Args:
            name: The name of the step.
            units: What the step costs.
            kind: What it drew, see ``Checkpoint.digest``.
            last: Whether it was the last to save this kind of thing.
        """
        digest = self.payments.committed(name)
        if digest is None or (last and digest != self.checkpoint.digest(kind)):
            raise LedgerError(
                f"{self.payments.name}: does not know what paid for the {kind} of this run; the "
                "ledger or the release is an older copy, or was changed, and the run cannot resume"
            )
        if self.payments.paid(name) != units:
            raise LedgerError(
                f"{self.payments.name}: the step {name!r} was paid for with another budget; the "
                "run cannot resume"
            )


def _gone(number: int) -> Matrix:
    raise MeasurementError(f"table {number} of the run is gone: the run cannot resume")
