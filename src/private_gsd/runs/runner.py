"""Running: a mechanism on a release and a ledger, each step paid for once, and told of."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.data.encoding import Encoder
from private_gsd.errors import LedgerError
from private_gsd.measurements.derived_statistics import Statistic
from private_gsd.measurements.knowledge import kinds_beside, supplemented
from private_gsd.mechanisms import COUNTING_STEP, Run, is_picky, measurable, planned_units, rehearse
from private_gsd.mechanisms import run as run_mechanism
from private_gsd.privacy.accountant import require_same
from private_gsd.privacy.ledger.ledger import Account, Ledger
from private_gsd.privacy.ledger.reservations import LedgerRun
from private_gsd.privacy.noise import InsecureSeededNoise, SecureNoise
from private_gsd.privacy.record import release_record
from private_gsd.projection import projector_of
from private_gsd.projection.constraints import first_table
from private_gsd.system.interruptions import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms import Mechanism
    from private_gsd.privacy.budget import Conversion, RhoBudget
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.runs.release import Release
    from private_gsd.schema import Schema
    from private_gsd.workloads import Neighbours

    Matrix = NDArray[np.float64]
    # What is being done, and how far: rows that went by, counts that have their noise, or the
    # progress of a search.
    Tell = Callable[[str, Any], object]

# How many counts get their noise between two words about it.
DRAWN_AT_ONCE = 2**16


@dataclass(frozen=True)
class StepAccountant:
    """Pays for one step of a run, once."""

    run: LedgerRun
    step: str
    interruptions: Remembered

    @property
    def conversion(self) -> Conversion:
        """The dataset's."""
        return self.run.ledger.account(self.run.dataset).budget.conversion

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """The charge's number, new or old; nothing is paid after Ctrl-C."""
        self.interruptions.check()
        require_same(self.run.ledger.account(self.run.dataset).neighbours, neighbours)
        return str(self.run.charge(self.step, units, mechanism, groups).id)


class ToldNoise:
    """Noise of a source, drawn in pieces so that somebody can be told how far it is.

    Args:
        noise: The source.
        tell: Told how many counts have got their noise, and how many are to.
    """

    def __init__(self, noise: NoiseSource, tell: Callable[[int, int], object]) -> None:
        self._noise = noise
        self._tell = tell
        self.private = noise.private

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """As the source has it."""
        parts = []
        for start in range(0, len(counts), DRAWN_AT_ONCE):
            self._tell(start, len(counts))
            parts.append(self._noise.gaussian(counts[start : start + DRAWN_AT_ONCE], scale))
        return np.concatenate(parts)

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """As the source has it."""
        return self._noise.top_k(scores, k, scale)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs mechanisms; its settings are those of ``Synthesizer``."""

    dataset: str
    neighbours: Neighbours
    rows: int
    random_state: int
    threads: int | None
    insecure_noise_seed: int | None
    totals: dict[str, int]
    derived: tuple[str, ...]
    tell: Tell
    projector: str = "gsd"

    def run(
        self,
        release: Release,
        mechanism: Mechanism,
        budget: RhoBudget,
        exact: Callable[[], ExactCounts],
        moved: Path | None = None,
    ) -> None:
        """Run, or go on with, what a release says; it is locked.

        Args:
            release: The release, begun.
            mechanism: How the budget is spent.
            budget: The budget.
            exact: Gives the exact answers, where they are needed.
            moved: Where the ledger is, if it is no longer where it was.
        """
        release.check_inputs()
        facts = release.run
        workload = release.workload
        outside = release.outside()
        statistics = [Statistic.read(workload.schema, text) for text in self.derived]

        def project(measured: Measurements, start: Matrix | None, number: int) -> Matrix:
            known = supplemented(measured, self.totals, outside, statistics)
            # A resumed run may have more or fewer.
            if start is not None and len(start) != self.rows:
                start = np.resize(start, (self.rows, start.shape[1]))
            return self._project(known, start, number)

        projector = projector_of(self.projector)
        projector.check(workload)  # what it needs may be gone since the run began

        everything = measurable(mechanism, workload)

        def why_infeasible(groups: list[int], share: float = 1.0) -> str | None:
            asked = everything.select(groups)
            asked = asked if outside is None else asked + outside.workload
            return projector.why_infeasible(asked, share)

        beside = None if outside is None else outside.workload
        picky = is_picky(projector, mechanism, everything, beside)
        # Whatever is wrong with loading or compiling is found before anything is paid for.
        rehearse(
            mechanism,
            everything,
            lambda some: projector.prepare(some, rows=self.rows),
            kinds_beside(workload.schema, self.totals, outside, statistics),
        )
        path = moved or Path(facts["ledger"])
        if release.folder.resolve() in path.resolve().parents:
            raise LedgerError(
                f"{path}: is in the release, and would leave with it; keep the ledger elsewhere"
            )
        if facts["opened"] and not path.exists():
            raise LedgerError(
                f"{path}: the ledger that the run has paid is gone; put it back, or say where it "
                "is with --ledger"
            )
        # Whose ledger it is: the run's own, unless another was named before the first was opened.
        own = facts.get("own_ledger") is True and (moved is None or facts["opened"])
        makes = own or facts.get("creates_ledger") is True
        first = Account(self.dataset, budget, self.neighbours, 0)
        if moved is not None or not makes:
            require_ledger(path, self.dataset)
        created = first if moved is None and makes else False
        interruptions = Remembered()
        with interruptions.listening(), Ledger(path, create=created) as ledger:
            run = LedgerRun(ledger, self.dataset, facts["run"], secrets.token_hex(8))
            account = ledger.account(self.dataset)
            require_same(account.neighbours, self.neighbours)
            terms = (account.budget.delta, account.budget.conversion)
            if terms != (budget.delta, budget.conversion):
                raise LedgerError(
                    f"{path}: dataset {self.dataset!r} has delta {terms[0]!r} and the {terms[1]} "
                    f"conversion, not {budget.delta!r} and {budget.conversion}; if nothing was "
                    "released through this ledger, remove it"
                )
            planned = planned_units(mechanism, everything, budget, self.neighbours)
            release.note(opened=True)
            run.begin(planned, seeded=self.insecure_noise_seed is not None)
            if moved is not None:
                release.note(ledger=str(path), own_ledger=own)
            release.tidy(run.kept_at)
            measured, table, unspent = run_mechanism(
                mechanism,
                Run(
                    workload=everything,
                    asked=workload,
                    budget=budget,
                    exact=exact,
                    pay=lambda step: StepAccountant(run, step, interruptions),
                    paid=run.paid,
                    keep=run.keep,
                    check=lambda steps, kind: _check(run, release, steps, kind),
                    noise=self._noise,
                    project=project,
                    begin=lambda: self._random_table(release.schema),
                    checkpoint=release,
                    neighbours=self.neighbours,
                    why_infeasible=why_infeasible if picky else None,
                ),
            )
            if len(table) != self.rows:  # it was made before the run was resumed with others
                table = project(measured, None, 0)
            mine = run.charges()
            if sum(charge.units for charge in mine) + unspent != planned or not (
                set(measured.charges) <= {str(charge.id) for charge in mine}
            ):
                raise LedgerError(f"{path}: does not know what paid for these measurements")
            if unspent:  # others may have it; the run has come to its end
                run.give_back()
            record = release_record(
                ledger.privacy_record(self.dataset),
                self._claims(outside),
                alone=own and len(mine) == len(ledger.charges(self.dataset)),
            )
        release.finish(Encoder(release.schema).decode(table), record)

    def _claims(self, outside: Measurements | None) -> dict[str, Any]:
        """What was taken for known beside our measurements; epsilon does not cover it."""
        return {
            "public_totals": self.totals,
            "outside_groups": 0 if outside is None else outside.workload.num_groups,
            "outside_private": None if outside is None else outside.private,
            "derived": list(self.derived),
        }

    def _noise(self, step: int) -> NoiseSource:
        noise: NoiseSource = SecureNoise(self.threads)
        if self.insecure_noise_seed is not None:
            seeds = np.random.SeedSequence([self.insecure_noise_seed, step])
            noise = InsecureSeededNoise(int(seeds.generate_state(1)[0]))
        if step == COUNTING_STEP:
            return noise
        return ToldNoise(noise, lambda done, total: self.tell("measuring", (done, total)))

    def _random_table(self, schema: Schema) -> Matrix:
        """What an adaptive run begins with: values drawn without preference."""
        return first_table(schema, self.rows, self.random_state)

    def _project(self, measured: Measurements, start: Matrix | None, number: int) -> Matrix:
        found = projector_of(self.projector).project(
            measured,
            rows=self.rows,
            seed=self.random_state * 2**20 + number,
            start=start,
            threads=self.threads,
            callback=lambda now: self.tell("searching", now),
        )
        if found.reason == "interrupted":
            raise KeyboardInterrupt
        return found.matrix


def require_ledger(path: Path, dataset: str) -> None:
    """Refuse a ledger that is not there: only who says so makes one."""
    if not path.exists():
        raise LedgerError(
            f"{path}: no such ledger; if the name is right, make it first, with a total for all "
            f"releases of the dataset: private-gsd ledger create {shlex.quote(str(path))} "
            f"--dataset {shlex.quote(dataset)} --epsilon TOTAL --delta DELTA; or say "
            "--create-ledger (create_ledger=True) for one whose total is the budget of this release"
        )


def _check(run: LedgerRun, release: Release, steps: list[str], kind: str) -> None:
    """Whether the ledger knows what a release has learned, and knows nothing newer."""
    digests = [run.kept(step) for step in steps]
    if None in digests or (digests and digests[-1] != release.digest(kind)):
        raise LedgerError(
            f"{run.ledger.path}: does not know what paid for the {kind} in {release.folder}; one "
            "of the two is an older copy, or was changed, and the run cannot go on"
        )
