"""The synthesizer: a table, a public schema and a budget in; a private synthetic table out."""

from __future__ import annotations

import inspect
import secrets
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from private_gsd.answering import answer
from private_gsd.encoding import Encoder, Invalid
from private_gsd.errors import BudgetError, LedgerError, ReleaseError, SchemaError, WorkloadError
from private_gsd.genetic import GeneticConfig, evolve
from private_gsd.genetic.domain import columns_of, random_table
from private_gsd.mechanism import Mechanism, Run, choose, planned_units
from private_gsd.mechanism import run as run_mechanism
from private_gsd.privacy.accountant import LedgerAccountant
from private_gsd.privacy.budget import Budget, default_delta, units_to_rho
from private_gsd.privacy.ledger import Ledger, check_line
from private_gsd.privacy.mechanisms import InsecureSeededNoise, SecureNoise
from private_gsd.release import Release
from private_gsd.schema import Schema
from private_gsd.sources import Source, open_source
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.serial import dump_workload
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from private_gsd.answering import ExactAnswers
    from private_gsd.genetic import Progress
    from private_gsd.measurement import Measurements
    from private_gsd.privacy.mechanisms import NoiseSource

    Matrix = NDArray[np.float64]
    # What is being done, and how far: rows that went by, or the progress of a search.
    Tell = Callable[[str, Any], object]


@dataclass(frozen=True)
class StepAccountant:
    """Pays for one step of a run, once: a step that was paid for before the run died is not again.

    One charge stands for one release still. All that a run learns is kept before it is used or
    shown, so that what was drawn and not kept died with the process; what it may have left on the
    disk is removed before the next draw; what was kept is marked in the ledger and never drawn
    again; and neither two processes nor two copies of the folder draw for one run.
    """

    ledger: Ledger
    dataset: str
    run: str
    release: Release

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """The charge's number, new or old."""
        for paid in self.ledger.charges(self.dataset):
            if paid.run == self.run:
                if (paid.units, paid.mechanism, paid.groups) != (units, mechanism, tuple(groups)):
                    raise BudgetError(
                        f"run {self.run!r} has paid for something else before; its release was "
                        "changed, and cannot go on"
                    )
                if self.ledger.is_kept(paid.id):
                    raise ReleaseError(
                        f"{self.release.folder}: what {self.run!r} paid for was drawn and kept, "
                        "and is gone; to draw it again would be to release it twice for one charge"
                    )
                self.release.check_place()
                return str(paid.id)
        accountant = LedgerAccountant(self.ledger, self.dataset, self.run)
        return accountant.charge(units, mechanism, groups, neighbours)


class Synthesizer:
    """Makes private synthetic tables.

    >>> from private_gsd import datasets
    >>> schema = datasets.census_schema().select(["sex", "age", "marital"])
    >>> synth = Synthesizer(schema, epsilon=1.0, rows=200)
    >>> synth.fit(datasets.census(1000).select(schema.names)).sample(5).num_rows
    5

    Args:
        schema: The public schema.
        epsilon: The budget, with ``delta``.
        delta: By default 1/N², N the number of rows, which is public.
        workload: The questions: a workload, or names such as "categorical:2"; by default all pairs
            of discrete columns, and every discrete column by every number.
        mechanism: "one-shot", "adaptive" (see ``Mechanism``), or "auto", which chooses from the
            workload, the budget and the number of rows alone (see ``choose``).
        epochs: Of the adaptive mechanism.
        groups: Of the adaptive mechanism, selected in an epoch.
        split: Of the adaptive mechanism, how much goes to selecting.
        rows: How many rows the synthetic table has, N' in the paper.
        random_state: Of the search; privacy does not depend on it.
        ledger: The ledger file to charge. By default each fit has one of its own, and nobody adds
            up what several spend on the same table.
        dataset: The dataset's name in it. A ledger that does not exist yet is made, with this
            budget as the total that may ever be spent on the dataset.
        release: The folder of the release; by default a temporary one (see ``Release.save``).
        conversion: From (ε, δ) to ρ, "tight" or "paper".
        invalid: What to do with values outside the schema, "error" or "coerce".
        threads: How many to use; all cores by default.
        insecure_noise_seed: For tests: noise from a seed. The release says that it is not private.
    """

    def __init__(
        self,
        schema: Schema,
        epsilon: float,
        *,
        delta: float | None = None,
        workload: Workload | Sequence[str] | None = None,
        mechanism: str = "auto",
        epochs: int = 25,
        groups: int = 1,
        split: str = "half",
        rows: int = 2000,
        random_state: int = 0,
        ledger: str | Path | None = None,
        dataset: str = "table",
        release: str | Path | None = None,
        conversion: str = "tight",
        invalid: str = "error",
        threads: int | None = None,
        insecure_noise_seed: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.workload = workload
        self.mechanism = mechanism
        self.epochs = epochs
        self.groups = groups
        self.split = split
        self.rows = rows
        self.random_state = random_state
        self.ledger = ledger
        self.dataset = dataset
        self.folder = release
        self.conversion = conversion
        self.invalid = invalid
        self.threads = threads
        self.insecure_noise_seed = insecure_noise_seed
        self._release: Release | None = None
        self._source: Source | None = None
        self._temporary: Any = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The settings, by name."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, "folder" if name == "release" else name) for name in names}

    def set_params(self, **settings: Any) -> Synthesizer:
        """Change settings."""
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise ReleaseError(f"no setting is called {name!r}; there are {', '.join(known)}")
            setattr(self, "folder" if name == "release" else name, value)
        return self

    def __getstate__(self) -> dict[str, Any]:
        # The source holds the sensitive table, and a release may be a temporary folder.
        return {**self.__dict__, "_source": None, "_release": None, "_temporary": None}

    @property
    def release(self) -> Release:
        """The release that ``fit`` made."""
        if self._release is None:
            raise ReleaseError("there is no release yet: call fit first")
        return self._release

    def fit(self, data: Any, *, tell: Tell | None = None) -> Synthesizer:
        """Spend the budget on a table, and make a synthetic one.

        Args:
            data: Anything that ``open_source`` takes.
            tell: Told of progress: "answering" and a number of rows, "searching" and its
                progress.
        """
        self._check()
        given = default_specs(self.schema) if self.workload is None else self.workload
        workload = given if isinstance(given, Workload) else workload_of(self.schema, given)
        if workload.schema != self.schema:
            raise WorkloadError("the workload is of another schema than the synthesizer")
        dump_workload(workload)  # what cannot be saved is found now
        folder = None if self.folder is None else Path(self.folder)
        if folder is not None:
            Release(folder).check_free()
        if self.ledger is not None and Path(self.ledger).exists():
            with Ledger(self.ledger, create=False, read_only=True) as ledger:
                account = ledger.account(self.dataset)
            if account.neighbours != "replace-one":
                raise LedgerError(f"{self.ledger}: {self.dataset!r} is for other neighbours")
        source = open_source(data, self.schema)
        exact = self._answer(workload, source, tell)
        delta = default_delta(exact.rows) if self.delta is None else float(self.delta)
        budget = Budget.from_epsilon(self.epsilon, delta, self.conversion)  # type: ignore[arg-type]
        release = Release(folder or Path(tempfile.mkdtemp(prefix="private-gsd-")) / "release")
        temporary = None
        if folder is None:
            temporary = weakref.finalize(
                release, shutil.rmtree, release.folder.parent, ignore_errors=True
            )
        chosen = self._mechanism()
        if self.mechanism == "auto":
            chosen = choose(workload, budget, exact.rows, chosen.split)
        settings = {
            **{name: getattr(self, name) for name in SAVED},
            "mechanism": chosen.name,
            "epochs": chosen.epochs,
            "groups": chosen.groups,
            "delta": delta,
            "people": exact.rows,
        }
        run = {
            "run": secrets.token_hex(8),
            "ledger": None if self.ledger is None else str(Path(self.ledger).absolute()),
            "data": str(Path(data).absolute()) if isinstance(data, str | Path) else None,
            "creates": False,  # whether the run makes its ledger
            "opened": False,  # whether it has one that may hold charges
        }
        with release.locked():
            release.begin(settings, run, workload)
            try:
                self._run(release, chosen, budget, lambda: exact, tell)
            except BaseException as error:
                # Nothing that was paid for is thrown away, and nothing else is left lying about.
                if not release.run["opened"]:
                    release.discard()
                else:
                    if temporary is not None:
                        temporary.detach()
                    error.add_note(f"go on with: private-gsd resume {release.folder}")
                raise
        self._release, self._source, self._temporary = release, source, temporary
        return self

    def keep_folder(self) -> None:
        """Do not remove a temporary release when this process ends."""
        if self._temporary is not None:
            self._temporary.detach()

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        data: Any = None,
        *,
        threads: int | None = None,
        tell: Tell | None = None,
    ) -> Synthesizer:
        """Go on with a run that was killed; nothing is spent twice.

        Args:
            folder: The release.
            data: The table, where the run still needs it and was not given a path.
            threads: How many to use; all cores by default.
            tell: Told of progress.
        """
        release = Release.load(folder)
        settings = release.settings
        missing = [name for name in (*SAVED, "people") if name not in settings]
        if missing:
            raise ReleaseError(f"{release.folder}: release.json is damaged: no {missing[0]!r}")
        synth = cls(release.schema, **{name: settings[name] for name in SAVED}, release=folder)
        synth.threads = threads
        synth._check()
        synth._release = release
        if release.complete:
            return synth
        budget = Budget.from_epsilon(synth.epsilon, settings["delta"], synth.conversion)  # type: ignore[arg-type]

        @cache
        def exact() -> ExactAnswers:
            again = release.run["data"] if data is None else data
            if again is None:
                raise ReleaseError(
                    f"{release.folder}: the run still needs the table; give it again"
                )
            synth._source = open_source(again, release.schema)
            found = synth._answer(release.workload, synth._source, tell)
            if found.rows != settings["people"]:
                raise ReleaseError(
                    f"{release.folder}: the table has another number of rows than the one that the "
                    "run began with"
                )
            return found

        with release.locked():
            synth._run(release, synth._mechanism(), budget, exact, tell)
        return synth

    def sample(self, number: int | None = None) -> Any:
        """Rows of the synthetic table, as the kind of frame that was fitted.

        As many as it has, by default. Fewer are drawn from it without replacement. For more, the
        whole table is taken as often as it goes in, and the rest is drawn: no row is new.
        """
        table = sampled(self.release, number, self.random_state)
        return table if self._source is None else self._source.restore(table)

    def _mechanism(self) -> Mechanism:
        return Mechanism(
            name="one-shot" if self.mechanism == "auto" else self.mechanism,  # type: ignore[arg-type]
            epochs=self.epochs,
            groups=self.groups,
            split=self.split,  # type: ignore[arg-type]
        )

    def _check(self) -> None:
        """Refuse what makes no sense, before anything is read, made or spent."""
        if not isinstance(self.schema, Schema):
            raise SchemaError(f"schema must be a Schema, not {type(self.schema).__name__}")
        if self.schema.drafted:
            raise SchemaError(
                "the schema is a draft: its values and bounds were learned from the data, and a "
                "release would disclose them; replace them by public knowledge, and delete the "
                "line 'drafted = true'"
            )
        mechanism = self._mechanism()
        self.epochs, self.groups = mechanism.epochs, mechanism.groups
        self.rows = GeneticConfig(rows=self.rows).rows
        self.random_state = whole("random_state", self.random_state, 0, 2**31 - 1)
        if self.threads is not None:
            self.threads = whole("threads", self.threads, 1, 1024)
        if self.insecure_noise_seed is not None:
            seed = whole("insecure_noise_seed", self.insecure_noise_seed, 0, 2**63 - 1)
            self.insecure_noise_seed = seed
        if self.invalid not in get_args(Invalid):
            raise SchemaError(f"invalid must be 'error' or 'coerce', not {self.invalid!r}")
        # With some delta, if it is not known yet: the rest is checked all the same.
        stand_in = 1e-9 if self.delta is None else self.delta
        Budget.from_epsilon(self.epsilon, stand_in, self.conversion)  # type: ignore[arg-type]
        self.epsilon = float(self.epsilon)
        check_line(self.dataset, "dataset")
        for name in ("ledger", "folder"):
            if not isinstance(getattr(self, name), str | Path | None):
                raise ReleaseError(f"{name} must be a path, not {getattr(self, name)!r}")

    def _answer(self, workload: Workload, source: Source, tell: Tell | None) -> ExactAnswers:
        def went_by(rows: int) -> None:
            if tell is not None:
                tell("answering", rows)

        return answer(
            workload,
            source,
            invalid=self.invalid,  # type: ignore[arg-type]
            threads=self.threads,
            progress=went_by,
        )

    def _run(
        self,
        release: Release,
        mechanism: Mechanism,
        budget: Budget,
        exact: Callable[[], ExactAnswers],
        tell: Tell | None,
    ) -> None:
        """Run, or go on with, what a release says; it is locked."""
        release.tidy()
        run = release.run
        workload = release.workload
        path = Path(run["ledger"] or release.folder / "ledger.db")
        if not path.exists():
            if run["opened"]:
                raise LedgerError(f"{path}: the ledger that the run has paid is gone")
            release.note(creates=True)
        with Ledger(path) as ledger:
            if release.run["creates"] and not run["opened"]:
                ledger.add_dataset(self.dataset, budget)  # the same again is no error
            mine = [c for c in ledger.charges(self.dataset) if c.run.startswith(run["run"])]
            needed = planned_units(mechanism, workload, budget) - sum(c.units for c in mine)
            account = ledger.account(self.dataset)
            if needed > account.remaining:
                raise BudgetError(
                    f"{path}: dataset {self.dataset!r}: the run will need rho "
                    f"{units_to_rho(needed):.6g}, and rho {units_to_rho(account.remaining):.6g} "
                    "remains. Nothing was charged or released. Measure less, or with more noise"
                )
            release.note(opened=True)
            measured, table = run_mechanism(
                mechanism,
                Run(
                    workload=workload,
                    budget=budget,
                    exact=exact,
                    pay=lambda step: StepAccountant(
                        ledger, self.dataset, f"{run['run']} {step}", release
                    ),
                    kept=lambda step: _mark(ledger, self.dataset, f"{run['run']} {step}"),
                    noise=self._noise,
                    project=lambda measured, start, number: self._project(
                        measured, start, number, tell
                    ),
                    begin=self._random_table,
                    checkpoint=release,
                ),
            )
            mine = [c for c in ledger.charges(self.dataset) if c.run.startswith(run["run"])]
            paid = sum(charge.units for charge in mine)
            if paid != planned_units(mechanism, workload, budget) or not (
                set(measured.charges) <= {str(charge.id) for charge in mine}
            ):
                raise LedgerError(f"{path}: does not know what paid for these measurements")
            record = ledger.privacy_record(self.dataset)
        release.finish(Encoder(release.schema).decode(table), record)

    def _noise(self, step: int) -> NoiseSource:
        if self.insecure_noise_seed is None:
            return SecureNoise(self.threads)
        seeds = np.random.SeedSequence([self.insecure_noise_seed, step])
        return InsecureSeededNoise(int(seeds.generate_state(1)[0]))

    def _random_table(self) -> Matrix:
        """What an adaptive run begins with: values drawn without preference."""
        columns = columns_of(self.schema, [np.empty(0)] * len(self.schema))
        return random_table(columns, self.rows, self.random_state)

    def _project(
        self, measured: Measurements, start: Matrix | None, number: int, tell: Tell | None
    ) -> Matrix:
        def watch(now: Progress) -> None:
            if tell is not None:
                tell("searching", now)

        found = evolve(
            measured,
            GeneticConfig(rows=self.rows),
            seed=self.random_state * 2**20 + number,
            start=start,
            threads=self.threads,
            callback=watch,
        )
        if found.reason == "interrupted":
            raise KeyboardInterrupt
        return found.matrix


def _mark(ledger: Ledger, dataset: str, run: str) -> None:
    """Note in the ledger that what a step learned is kept."""
    for charge in ledger.charges(dataset):
        if charge.run == run:
            ledger.mark_kept(charge.id)


# What a release must know of the settings to go on.
SAVED = (
    *("epsilon", "delta", "mechanism", "epochs", "groups", "split", "rows", "random_state"),
    *("dataset", "conversion", "invalid", "insecure_noise_seed"),
)


def sampled(release: Release, number: int | None, random_state: int) -> pa.Table:
    """Rows of a release's synthetic table; see ``Synthesizer.sample``."""
    table = release.synthetic
    if number is None:
        return table
    number = whole("number", number, 1, 2**31 - 1)
    rng = np.random.default_rng(random_state)
    rest = np.sort(rng.permutation(table.num_rows)[: number % table.num_rows])
    return pa.concat_tables([table] * (number // table.num_rows) + [table.take(pa.array(rest))])
