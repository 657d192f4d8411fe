"""The synthesizer: a table, a public schema and a budget in; a private synthetic table out."""

from __future__ import annotations

import inspect
import secrets
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.counting.exact import TableCounts
from private_gsd.data.sources import Source, open_source
from private_gsd.data.sources.restoring import to_arrow
from private_gsd.data.units.choosing import UnitKey
from private_gsd.errors import LedgerError, NotFittedError, ReleaseError
from private_gsd.privacy.unledgered_fits import UnledgeredFit, remember, warn_if_repeated
from private_gsd.runs.release import Release
from private_gsd.runs.release_run import ReleaseRun, ledger_beside
from private_gsd.runs.run_folder import RunFolder
from private_gsd.runs.runner import Runner
from private_gsd.runs.settings import MOST_SEED, check_dataset
from private_gsd.runs.temporary_release import TemporaryRelease
from private_gsd.synthesis.choices import Choices
from private_gsd.synthesis.parameters import Parameters
from private_gsd.synthesis.sampling import fill_columns, sampled
from private_gsd.system.file_systems import is_within
from private_gsd.system.progress import Progress, shown
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.data.encoding import OnInvalid
    from private_gsd.measurements.knowledge import Knowledge
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.mechanisms.forecast import Forecast
    from private_gsd.privacy.budget import Budget
    from private_gsd.projection import Projector
    from private_gsd.schema import Schema
    from private_gsd.workloads import Workload


class Synthesizer:
    """Makes private synthetic tables. It has the methods of a scikit-learn estimator.

    >>> from private_gsd import datasets
    >>> schema = datasets.census_schema().select(["sex", "age", "marital"])
    >>> synth = Synthesizer(schema, epsilon=1.0, rows=200)
    >>> synth
    <Synthesizer epsilon=1.0, not fitted>
    >>> synth.fit(datasets.census(1000).select(schema.names)).sample(5).num_rows
    5

    Args:
        schema: The public schema.
        budget: The privacy budget: a ``Budget``, or a number for its ε.
        epsilon: The ε of the budget, where no ``budget`` is given.
        workload: The target workload: a workload, or names such as "categorical:2". By default
            single columns, pairs or triples, as the budget and the public number of records allow.
        mechanism: How the budget is spent: a ``Mechanism``, or the name of one, such as "adaptive".
            With "auto" the program chooses by the columns, the budget and the number of records.
        projector: What makes a table from the measurements: a ``Projector``, such as
            ``GeneticSearch()``, or the name of one with settings after a colon, as in
            "rap:iterations=200".
        rows: The number of rows of the synthetic table, N' in the paper. By default as many as
            there are records, up to 100,000, but at least 5,000.
        knowledge: What is known beside the measurements: public counts, derived statistics,
            external measurements.
        random_state: The seed of the projection; privacy does not depend on it.
        threads: The number of threads; all cores by default.
        for_models: The column that models trained on the table will predict: its marginals with
            other columns get half of the budget of all others, and are denoised less.

    Attributes:
        release_: The release that ``fit`` made.
    """

    release_: Release

    def __init__(
        self,
        schema: Schema,
        budget: Budget | float | None = None,
        *,
        epsilon: float | None = None,
        workload: Workload | Sequence[str] | str | None = None,
        mechanism: Mechanism | str = "auto",
        projector: Projector | str = "gsd",
        rows: int | None = None,
        knowledge: Knowledge | None = None,
        random_state: int = 0,
        threads: int | None = None,
        for_models: str | None = None,
    ) -> None:
        self.schema = schema
        self.budget = budget
        self.epsilon = epsilon
        self.workload = workload
        self.mechanism = mechanism
        self.projector = projector
        self.rows = rows
        self.knowledge = knowledge
        self.random_state = random_state
        self.threads = threads
        self.for_models = for_models
        self._source: Source | None = None
        self._parameters()

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The parameters, by name."""
        signature = inspect.signature(type(self).__init__)
        return {name: getattr(self, name) for name in list(signature.parameters)[1:]}

    def set_params(self, **parameters: Any) -> Synthesizer:
        """Change parameters; all stay as they were if one of them is refused."""
        known = self.get_params()
        for name in parameters:
            if name not in known:
                raise ReleaseError(f"no parameter is called {name!r}; there are {', '.join(known)}")
        type(self)(**{**known, **parameters})
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        epsilon = self.epsilon if self.budget is None else self.budget
        epsilon = getattr(epsilon, "epsilon", epsilon)
        fitted = repr(self.release_) if "release_" in self.__dict__ else "not fitted"
        return f"<Synthesizer epsilon={epsilon!r}, {fitted}>"

    def __getattr__(self, name: str) -> Any:
        if name == "release_":
            raise NotFittedError("there is no release yet: call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        # Without the source, which is the sensitive table; a temporary folder ends with this.
        state = {**self.__dict__, "_source": None}
        if "release_" in state:
            state["release_"] = state["release_"].files()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "release_" in state:
            self.release_ = TemporaryRelease()
            self.release_.write_files(state["release_"])

    def fit(
        self,
        data: Any,
        *,
        ledger: str | Path | None = None,
        create_ledger: bool = False,
        dataset: str = "table",
        release: str | Path | None = None,
        on_invalid: OnInvalid = "error",
        insecure_noise_seed: int | None = None,
        progress: bool | Progress | None = None,
    ) -> Synthesizer:
        """Spend the budget on a table, and make a synthetic table.

        Args:
            data: The table: anything that ``open_source`` takes.
            ledger: The ledger file to charge, which 'private-gsd ledger create' has made. By
                default each fit has one of its own, beside its release, and nobody adds up what
                several fits spend; a second fit of a process on the same data warns of it.
            create_ledger: Whether to make the ledger where there is none, with the budget of this
                fit as the total that may ever be spent on the dataset.
            dataset: The name of the dataset in the ledger.
            release: The folder of the release; by default a temporary one (see ``Release.save``).
            on_invalid: What to do with values outside the schema, "error" or "coerce".
            insecure_noise_seed: For tests: a seed of noise; its release is said not to be private.
            progress: Whether to draw a bar; or a function of what is being done, how much of it is
                done, and how much there is. By default a bar says when kernels are compiled.
        """
        check_dataset(dataset, on_invalid, insecure_noise_seed)
        parameters, folder = self._parameters(), _free_folder(release, ledger)
        account = parameters.account(ledger, dataset, create_ledger=create_ledger)
        choices = Choices(parameters, account)
        source = open_source(data, parameters.schema)
        with shown(progress) as report:
            key = UnitKey.of(parameters.schema.unit, insecure_noise_seed)
            counts = TableCounts(
                source,
                again=True,
                on_invalid=on_invalid,
                threads=self.threads,
                progress=report,
                unit_key=key,
            )
            choices = choices.for_records(known := counts.records() if choices.public else None)
            target, parameters = choices.target(known), choices.parameters
            workload, mechanism = choices.candidates(target), parameters.mechanism_for(target)
            counts.again = not mechanism.counts_at_once(workload)
            exact = counts(mechanism.counted_first(workload))
            budget = choices.budget(exact.n_records)
            if choices.public:
                parameters.knowledge.check_records(exact.n_records)
            fit = UnledgeredFit.of(
                source.given, parameters.schema.read_names, budget, choices.relation
            )
            unledgered = ledger is None and insecure_noise_seed is None
            if unledgered:
                warn_if_repeated(fit)
            settings = choices.settings(
                target,
                exact.n_records,
                dataset=dataset,
                on_invalid=on_invalid,
                insecure_noise_seed=insecure_noise_seed,
            )
            made = TemporaryRelease() if folder is None else Release(folder)
            run = ReleaseRun(RunFolder(made.folder), Runner(settings, target, self.threads, report))
            facts = {
                "run": secrets.token_hex(8),
                "ledger": str(Path(ledger or ledger_beside(made)).absolute()),
                "data": str(Path(data).absolute()) if isinstance(data, str | Path) else None,
                "opened": False,  # whether its ledger may hold charges
                "own_ledger": ledger is None,
                "creates_ledger": ledger is None or create_ledger,
                "unit_key": key and key.hexadecimal,
            }
            with run.release.locked():
                run.release.begin(settings, facts, target, parameters.knowledge.external)
                try:
                    run.run(lambda more: exact if more is None else counts(more))
                    self.release_, self._source = made, source
                except BaseException as error:
                    # What was paid for stays; nothing else is left behind.
                    if not run.has_begun:
                        run.release.discard()
                    else:
                        if unledgered:
                            remember(fit)
                        made.persist()
                        error.add_note(f"resume with: private-gsd resume {made.folder}")
                    raise
        if unledgered:
            remember(fit)
        return self

    def plan(
        self,
        data: Any = None,
        *,
        expected_records: int | None = None,
        ledger: str | Path | None = None,
        dataset: str = "table",
    ) -> Forecast:
        """What ``fit`` would measure and how well, before anything is spent.

        Of the table only the number of records is looked at, which is public under "replace-one".
        Under "add-remove" ``expected_records`` must be given: the forecast is as public as that.

        Args:
            data: The table, as for ``fit``; not looked at where ``expected_records`` is given.
            expected_records: About how many records the table has, from public knowledge.
            ledger: The ledger whose δ and conversion the fit would have.
            dataset: The name of the dataset in the ledger.
        """
        parameters = self._parameters()
        choices = Choices(parameters, parameters.account(ledger, dataset))
        n_records = choices.expected(data, expected_records)
        return choices.forecast(n_records, guessed=expected_records is not None)

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        data: Any = None,
        *,
        ledger: str | Path | None = None,
        rows: int | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> Synthesizer:
        """Resume a run that was killed; nothing is spent twice.

        Args:
            folder: The folder of the release.
            data: The table, where the run still needs it and was not given a path.
            ledger: Where the ledger is, if it was moved. It must be that one, not an older copy.
            rows: Another number of rows of the synthetic table. What was measured stays as it is.
            threads: The number of threads; all cores by default.
            progress: Whether to draw a bar; or a function, as for ``fit``.
        """
        release = RunFolder.load(folder)
        settings = release.settings
        if rows is not None and release.finished:
            raise ReleaseError(
                f"{release.folder}: has its synthetic table already; 'private-gsd sample "
                f"{release.folder} --rows' draws more or fewer rows from it"
            )
        synth = cls(
            release.schema,
            settings.budget,
            mechanism=settings.mechanism,
            projector=settings.projector,
            rows=settings.rows if rows is None else rows,
            knowledge=settings.knowledge,
            random_state=settings.random_state,
            threads=threads,
        )
        synth.release_ = Release(folder)
        if release.finished:
            return synth
        if rows is not None:
            settings = replace(settings, rows=(rows := whole("rows", rows, 1, MOST_SEED)))
        with shown(progress) as report:
            runner = Runner(settings, release.workload, threads, report)

            @cache
            def counts() -> TableCounts:
                again = release.run["data"] if data is None else data
                if again is None:
                    raise ReleaseError(
                        f"{release.folder}: the run still needs the table; give it again"
                    )
                source = synth._source = open_source(again, release.schema)
                return TableCounts(
                    source,
                    again=True,
                    on_invalid=settings.on_invalid,
                    threads=threads,
                    progress=report,
                    unit_key=release.unit_key,
                )

            @cache
            def exact(more: Workload | None) -> ExactCounts:
                found = counts()(more or settings.mechanism.counted_first(runner.workload))
                if settings.n_records not in (None, found.n_records):
                    what = "the table has another number of rows than the run began with"
                    raise ReleaseError(f"{release.folder}: {what}")
                return found

            with release.locked():
                if rows is not None:
                    runner.check()
                    release.change_rows(rows)
                ReleaseRun(release, runner).run(exact, Path(ledger).absolute() if ledger else None)
        return synth

    def sample(
        self, n: int | None = None, *, where: str | None = None, random_state: int | None = None
    ) -> Any:
        """Rows of the synthetic table, as the type of frame that was fitted.

        All rows by default. Fewer are drawn from them without replacement. For more, all of them
        come first, and then new rows with the same answers. Types, categories and the order of
        columns come from the schema.

        Args:
            n: The number of rows.
            where: A condition in SQL; only rows that meet it are taken.
            random_state: The seed of the drawing; that of the synthesizer by default.
        """
        seed = self.random_state if random_state is None else random_state
        seed = whole("random_state", seed, 0, MOST_SEED, ReleaseError)
        n = None if n is None else whole("n", n, 1, MOST_SEED, ReleaseError)
        return self._as_given(sampled(self.release_, n, seed, where))

    def sample_given(self, given: Any) -> Any:
        """Synthetic values of all other columns around given ones, row by row; nothing is spent.

        What is given stays as it is, and is not protected by anything.

        Args:
            given: A table of some of the columns; anything that ``open_source`` takes.
        """
        return self._as_given(fill_columns(self.release_, given, seed=self.random_state))

    def _as_given(self, table: pa.Table) -> Any:
        """Synthetic rows as the type of frame that was fitted, in types of the schema alone."""
        if self._source is None:
            return to_arrow(table, self.release_.schema)
        return self._source.restore(table)

    def _parameters(self) -> Parameters:
        """The parameters, checked, as the values that they stand for."""
        return Parameters.of(**self.get_params())


def _free_folder(release: str | Path | None, ledger: str | Path | None) -> Path | None:
    """The folder of a release, if one was named: free, and without the ledger in it."""
    if not isinstance(release, str | Path | None):
        raise ReleaseError(f"release must be a path, not {release!r:.80}")
    if release is None:
        return None
    Release(folder := Path(release)).check_free()
    if isinstance(ledger, str | Path) and is_within(Path(ledger), folder):
        raise LedgerError(
            f"{ledger}: is in the release, and would be published with it; put it elsewhere"
        )
    return folder
