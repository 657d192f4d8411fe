"""The synthesizer: a table, a public schema and a budget in; a private synthetic table out."""

from __future__ import annotations

import inspect
import secrets
import shutil
import tempfile
import weakref
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from private_gsd.counting.exact import exact_counts
from private_gsd.data.encoding import OnInvalid
from private_gsd.data.sources import Source, open_source
from private_gsd.data.sources.restoring import to_arrow
from private_gsd.errors import (
    BudgetError,
    GsdError,
    LedgerError,
    ReleaseError,
    SchemaError,
    SourceError,
    WorkloadError,
)
from private_gsd.measurements.derived_statistics import Statistic, check_derivable
from private_gsd.measurements.knowledge import check_totals, join_outside, require_possible
from private_gsd.mechanisms import (
    SELECTIVE,
    Mechanism,
    check_noise,
    conversion_of,
    measurable,
    single_columns,
)
from private_gsd.mechanisms.defaults import check_fits, choose_mechanism, choose_rows, choose_specs
from private_gsd.mechanisms.forecast import Forecast, require_memory
from private_gsd.privacy.budget import RhoBudget, default_delta
from private_gsd.privacy.ledger.ledger import Ledger, check_line
from private_gsd.privacy.ledger.reservations import LedgerRun
from private_gsd.privacy.measuring import MAX_ROWS
from private_gsd.privacy.uncounted import Fit, count, warn_if_again
from private_gsd.projection import projector_of
from private_gsd.projection.genetic import GeneticSearch
from private_gsd.runs.release import Release
from private_gsd.runs.runner import Runner, require_ledger
from private_gsd.schema import Schema
from private_gsd.sql.rules import check_rules
from private_gsd.synthesis.sampling import fill_columns, sampled
from private_gsd.workloads import Neighbours, Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.serialisation import dump_workload
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.runs.runner import Tell


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
        delta: By default the ledger's, or 1/N², N the number of rows, which is public.
        workload: The questions: a workload, or names such as "categorical:2". By default the
            budget and the number of rows decide, which are public: single columns, pairs or triples
            (see ``choose_specs``). Under "add-remove", pairs.
        mechanism: "one-shot", "layered", "adaptive", "mst", "aim" (see ``Mechanism``), or "auto":
            one-shot, or layered where three columns or more are asked together.
        epochs: Of the adaptive mechanism.
        groups: Of the adaptive mechanism, selected in an epoch.
        split: Of the adaptive mechanism, how much goes to selecting.
        rows: How many rows the synthetic table has, N' in the paper. By default 5,000, and up to
            20,000 where there is so little noise that more are of use (see ``choose_rows``).
        projector: What makes a table of the measurements: "gsd", the genetic search, or one of its
            rivals, "rap", "rap++", "gem" or "pgm", with settings after a colon, as in
            "rap:iterations=200" (see docs/baselines.md).
        random_state: Of the search; privacy does not depend on it.
        ledger: The ledger file to charge, which 'private-gsd ledger create' has made. By default
            each fit has one of its own, beside its release, and nobody adds up what several spend
            on the same table; a second fit of a process on the same data warns of it.
        create_ledger: Whether to make the ledger where there is none, with the budget of this fit
            as the total that may ever be spent on the dataset.
        dataset: The dataset's name in the ledger.
        release: The folder of the release; by default a temporary one (see ``Release.save``).
        neighbours: "replace-one", which makes the number of rows public, or "add-remove", where a
            share of the budget measures it, and ``delta`` must be given.
        conversion: From (ε, δ) to ρ: "zcdp", "paper", or "gdp", which takes 5 % less noise
            (unless that is below 5 rows) and is of mechanisms with Gaussian noise alone, one-shot
            and layered. By default the ledger's, or "gdp" for these, or "zcdp".
        totals: Public totals that the table is to have, ``{"sex = 'F'": 1200}``: exact, free, and
            your claim that they are public.
        derived: Statistics that the table is to have as measured, such as "median(age)",
            "quantile(income, 0.9)", "mean(age) WHERE sex = 'F'" or "share(married) WHERE age < 30";
            they follow from what is measured, and cost nothing.
        evidence: Measurements made elsewhere, to be used by their variances beside ours.
        on_invalid: What to do with values outside the schema, "error" or "coerce".
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
        rows: int | None = None,
        random_state: int = 0,
        ledger: str | Path | None = None,
        create_ledger: bool = False,
        dataset: str = "table",
        release: str | Path | None = None,
        neighbours: str = "replace-one",
        conversion: str | None = None,
        totals: Mapping[str, int] | None = None,
        derived: Sequence[str] = (),
        evidence: Sequence[Measurements] = (),
        on_invalid: str = "error",
        threads: int | None = None,
        insecure_noise_seed: int | None = None,
        projector: str = "gsd",
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
        self.create_ledger = create_ledger
        self.dataset = dataset
        self.folder = release
        self.neighbours = neighbours
        self.conversion = conversion
        self.totals = totals
        self.derived = derived
        self.evidence = evidence
        self.on_invalid = on_invalid
        self.threads = threads
        self.insecure_noise_seed = insecure_noise_seed
        self.projector = projector
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
            tell: Told of progress: "opened" and the number of rows, where that is known without
                reading; "answering" and how many more rows went by; "measuring" and how many
                counts, of how many, have their noise; "searching" and its progress.
        """
        self._check()
        if self.workload is not None:
            self._workload(self.workload)  # what is wrong with it is found before anything is read
        folder = None if self.folder is None else Path(self.folder)
        if folder is not None:
            Release(folder).check_free()
        inside = Path(self.ledger or ".").resolve().parents
        if folder is not None and self.ledger is not None and folder.resolve() in inside:
            raise LedgerError(
                f"{self.ledger}: is in the release, and would leave with it; keep it elsewhere"
            )
        self._check_terms()
        source = open_source(data, self.schema)
        public = self.neighbours == "replace-one"
        workload = self._workload(self.workload or self._specs(source.count() if public else None))
        require_memory(measurable(self._mechanism(), workload), self.rows or 1)
        exact = self._answer(measurable(self._mechanism(), workload), source, tell)
        budget = self._budget(exact.rows)
        if self.neighbours == "replace-one":
            require_possible(self.schema, self.totals or {}, exact.rows)
        fit = Fit.of(source._given, self.schema.names, budget, self.neighbours)
        uncounted = self.ledger is None and self.insecure_noise_seed is None
        if uncounted:
            warn_if_again(fit)
        release = Release(folder or Path(tempfile.mkdtemp(prefix="private-gsd-")) / "release")
        temporary = None
        if folder is None:
            temporary = weakref.finalize(
                release, shutil.rmtree, release.folder.parent, ignore_errors=True
            )
        chosen = self._choose(workload)
        settings = {
            **{name: getattr(self, name) for name in SAVED},
            "mechanism": chosen.name,
            "rows": self._rows(chosen, workload, budget, exact.rows),
            "epochs": chosen.epochs,
            "groups": chosen.groups,
            "delta": budget.delta,
            "conversion": budget.conversion,
            # What the release shows must not depend on a number that is private.
            "people": exact.rows if self.neighbours == "replace-one" else None,
        }
        run = {
            "run": secrets.token_hex(8),
            "ledger": str(Path(self.ledger or _ledger_of(release)).absolute()),
            "data": str(Path(data).absolute()) if isinstance(data, str | Path) else None,
            "opened": False,  # whether its ledger may hold charges
            "own_ledger": self.ledger is None,
            "creates_ledger": self.ledger is None or self.create_ledger,
        }
        with release.locked():
            release.begin(settings, run, workload, join_outside(self.schema, self.evidence))
            try:
                self._runner(settings["rows"], tell).run(release, chosen, budget, lambda: exact)
            except BaseException as error:
                # Nothing that was paid for is thrown away, and nothing else is left lying about.
                if not _has_begun(release, self.dataset):
                    release.discard()
                else:
                    if uncounted:
                        count(fit)
                    if temporary is not None:
                        temporary.detach()
                    error.add_note(f"go on with: private-gsd resume {release.folder}")
                raise
        if uncounted:
            count(fit)
        self._release, self._source, self._temporary = release, source, temporary
        return self

    def plan(self, data: Any = None, *, expected_rows: int | None = None) -> Forecast:
        """What ``fit`` would measure and how well, before anything is spent.

        Of the table only the number of rows is looked at, which is public under "replace-one".
        Under "add-remove" it is not, and ``expected_rows`` must be given: the forecast is then as
        public as that guess.

        Args:
            data: Anything that ``open_source`` takes; not looked at where ``expected_rows`` is
                given, and may then be left out.
            expected_rows: About how many rows the table has, from public knowledge.
        """
        self._check()
        people = self._expected(data, expected_rows)
        budget = self._budget(people)
        asked = self._workload(self.workload or self._specs(people))
        mechanism = self._choose(asked)
        require_memory(measurable(mechanism, asked), self.rows or 1)
        return Forecast(
            measurable(mechanism, asked),
            mechanism,
            budget,
            self.neighbours,  # type: ignore[arg-type]
            people,
            self._rows(mechanism, asked, budget, people),
            asked,
            expected_rows is not None,
        )

    def _expected(self, data: Any, expected_rows: int | None) -> int:
        """The number of rows that a plan may know."""
        if expected_rows is not None:
            return whole("expected_rows", expected_rows, 1, MAX_ROWS)
        if self.neighbours != "replace-one":
            raise BudgetError(
                "under add-remove neighbours the number of rows is private, and a plan must not "
                "show it; give a public guess instead: --expected-rows N (expected_rows=N)"
            )
        if data is None:
            raise SourceError(
                "a plan needs the table, for its number of rows, or --expected-rows N "
                "(expected_rows=N)"
            )
        source = open_source(data, self.schema)
        people = source.count()
        if people is None:
            raise SourceError(f"{source.name} can be read only once; plan with a table or a file")
        if not people:
            raise SourceError(f"{source.name}: the table has no rows")
        return people

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
        ledger: str | Path | None = None,
        rows: int | None = None,
        threads: int | None = None,
        tell: Tell | None = None,
    ) -> Synthesizer:
        """Go on with a run that was killed; nothing is spent twice.

        Args:
            folder: The release.
            data: The table, where the run still needs it and was not given a path.
            ledger: Where the ledger is, if it was moved. It must be that one, not an older copy.
            rows: Another number of rows of the synthetic table. What was measured stays as it is.
            threads: How many to use; all cores by default.
            tell: Told of progress.
        """
        release = Release.load(folder)
        settings = release.settings
        missing = [name for name in (*SAVED, "people") if name not in settings]
        missing += ["rows"] if settings.get("rows") is None else []
        if missing:
            raise ReleaseError(f"{release.folder}: release.json is damaged: no {missing[0]!r}")
        synth = cls(release.schema, **{name: settings[name] for name in SAVED}, release=folder)
        synth.threads = threads
        if rows is not None:
            if release.finished:
                raise ReleaseError(
                    f"{release.folder}: has its synthetic table already; 'private-gsd sample "
                    f"{release.folder} --rows' draws more or fewer rows from it"
                )
            synth.rows = rows
        synth._check()
        synth._release = release
        if release.finished:
            return synth
        number = int(synth.rows or settings["rows"])
        require_memory(measurable(synth._mechanism(), release.workload), number)
        budget = RhoBudget.from_epsilon(synth.epsilon, settings["delta"], synth.conversion)  # type: ignore[arg-type]

        @cache
        def exact() -> ExactCounts:
            again = release.run["data"] if data is None else data
            if again is None:
                raise ReleaseError(
                    f"{release.folder}: the run still needs the table; give it again"
                )
            synth._source = open_source(again, release.schema)
            asked = measurable(synth._mechanism(), release.workload)
            found = synth._answer(asked, synth._source, tell)
            if settings["people"] not in (None, found.rows):
                raise ReleaseError(
                    f"{release.folder}: the table has another number of rows than the one that the "
                    "run began with"
                )
            return found

        with release.locked():
            moved = None if ledger is None else Path(ledger).absolute()
            if number != settings["rows"]:
                release.change_rows(number)
            synth._runner(number, tell).run(release, synth._mechanism(), budget, exact, moved)
        return synth

    def sample(self, number: int | None = None, *, where: str | None = None) -> Any:
        """Rows of the synthetic table, as the kind of frame that was fitted.

        As many as it has, by default. Fewer are drawn from it without replacement. For more, the
        whole table is taken as often as it goes in, and the rest is drawn: no row is new. Types,
        categories and the order of columns come from the schema.

        Args:
            number: How many rows.
            where: A condition in SQL; only rows that meet it are taken.
        """
        if number is not None:
            number = whole("number", number, 1, 2**31 - 1)
        table = sampled(self.release, number, self.random_state, where)
        return self._as_given(table)

    def sample_given(self, given: Any) -> Any:
        """Synthetic values of all other columns around given ones, row by row.

        Nothing is spent. What is given is kept as it is, and is not protected by anything.

        Args:
            given: A table of some of the columns; anything that ``open_source`` takes.
        """
        table = fill_columns(self.release, given, seed=self.random_state, threads=self.threads)
        return self._as_given(table)

    def _as_given(self, table: pa.Table) -> Any:
        """Synthetic rows as the kind of frame that was fitted, in types of the schema alone."""
        if self._source is None:
            return to_arrow(table, self.release.schema)
        return self._source.restore(table)

    def _mechanism(self) -> Mechanism:
        return Mechanism(
            name="layered" if self.mechanism == "auto" else self.mechanism,  # type: ignore[arg-type]
            epochs=self.epochs,
            groups=self.groups,
            split=self.split,  # type: ignore[arg-type]
        )

    def _workload(self, given: Workload | Sequence[str]) -> Workload:
        workload = given if isinstance(given, Workload) else workload_of(self.schema, given)
        if workload.schema != self.schema:
            raise WorkloadError("the workload is of another schema than the synthesizer")
        dump_workload(workload)  # what cannot be saved is found now
        asked = everything = measurable(self._mechanism(), workload)
        if self.mechanism in SELECTIVE:  # single columns are all that is sure to be measured
            asked = everything.select(range(single_columns(everything)))
        if self._evidence() is not None:
            asked, everything = asked + self._evidence(), everything + self._evidence()
        check_derivable(asked, [Statistic.read(self.schema, text) for text in self.derived])
        projector_of(self.projector).check(everything)
        return workload

    def _evidence(self) -> Workload | None:
        """What was measured elsewhere."""
        found = [replace(each.workload, schema=self.schema) for each in self.evidence]
        return sum(found[1:], start=found[0]) if found else None

    def _specs(self, rows: int | None) -> list[str]:
        """The names of the questions, from public facts alone."""
        if not rows or self.neighbours != "replace-one":
            return default_specs(self.schema)
        return choose_specs(self.schema, self._budget(rows), rows)

    def _choose(self, workload: Workload) -> Mechanism:
        """The mechanism, where the choice is ours from public facts alone."""
        named = choose_mechanism(workload) if self.mechanism == "auto" else self._mechanism()
        check_fits(self.projector, measurable(named, workload), named, self._evidence())
        return named

    def _check_terms(self) -> RhoBudget | None:
        """Whether a ledger that is there has the dataset on our terms; and its budget."""
        if self.ledger is None:
            return None
        if not Path(self.ledger).exists():
            if not self.create_ledger:
                require_ledger(Path(self.ledger), self.dataset)
            return None
        with Ledger(self.ledger, create=False, read_only=True) as ledger:
            account = ledger.account(self.dataset)
        for name, known in (
            ("neighbours", account.neighbours),
            ("conversion", account.budget.conversion),
            ("delta", account.budget.delta),
        ):
            asked = getattr(self, name)
            if asked is not None and asked != known:
                raise LedgerError(
                    f"{self.ledger}: dataset {self.dataset!r} has {name} {known!r}, not {asked!r}; "
                    "what is spent on it is stated on these terms"
                )
        where = f"{self.ledger}: dataset {self.dataset!r} has"
        check_noise(account.budget.conversion, self.mechanism, where)
        return account.budget

    def _budget(self, rows: int) -> RhoBudget:
        """The budget, at the ledger's delta; the number of rows counts only where it is public."""
        known = self._check_terms()
        conversion = self.conversion or conversion_of(self.mechanism)
        delta = None if self.delta is None else float(self.delta)
        if known is not None:
            conversion, delta = known.conversion, known.delta
        if delta is None:
            if self.neighbours != "replace-one":
                raise BudgetError(
                    "give a delta: by default it is 1 / rows², and under add-remove neighbours the "
                    "number of rows is private"
                )
            delta = default_delta(rows)
        return RhoBudget.from_epsilon(self.epsilon, delta, conversion)  # type: ignore[arg-type]

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
        check_rules(self.schema)
        mechanism = self._mechanism()
        self.epochs, self.groups = mechanism.epochs, mechanism.groups
        projector_of(self.projector)
        if self.rows is not None:
            self.rows = GeneticSearch(rows=self.rows).rows
        self.random_state = whole("random_state", self.random_state, 0, 2**31 - 1)
        if self.threads is not None:
            self.threads = whole("threads", self.threads, 1, 1024)
        if self.insecure_noise_seed is not None:
            seed = whole("insecure_noise_seed", self.insecure_noise_seed, 0, 2**63 - 1)
            self.insecure_noise_seed = seed
        if self.on_invalid not in get_args(OnInvalid):
            raise SchemaError(f"on_invalid must be 'error' or 'coerce', not {self.on_invalid!r}")
        if self.neighbours not in get_args(Neighbours):
            words = " or ".join(repr(each) for each in get_args(Neighbours))
            raise BudgetError(f"neighbours must be {words}, not {self.neighbours!r}")
        # With some delta, if it is not known yet: the rest is checked all the same.
        stand_in = 1e-9 if self.delta is None else self.delta
        conversion = conversion_of(self.mechanism) if self.conversion is None else self.conversion
        RhoBudget.from_epsilon(self.epsilon, stand_in, conversion)  # type: ignore[arg-type]
        check_noise(conversion, self.mechanism)
        self.epsilon = float(self.epsilon)
        check_line(self.dataset, "dataset")
        self.totals = check_totals(self.schema, self.totals or {})
        if not isinstance(self.derived, list | tuple):
            raise WorkloadError(f"derived is a list of statistics, not {self.derived!r:.80}")
        self.derived = tuple(self.derived)
        for text in self.derived:
            Statistic.read(self.schema, text)
        join_outside(self.schema, self.evidence)
        named = projector_of(self.projector).name
        if named != "gsd" and (self.schema.constraints or self.totals or self.derived):
            raise WorkloadError(
                f"projector {self.projector!r} keeps no rules, and matches neither totals nor "
                "derived statistics; use 'gsd', or leave them out"
            )
        if self.create_ledger and self.ledger is None:
            raise LedgerError("create_ledger goes with ledger: name the file to make")
        for name in ("ledger", "folder"):
            if not isinstance(getattr(self, name), str | Path | None):
                raise ReleaseError(f"{name} must be a path, not {getattr(self, name)!r}")

    def _rows(
        self, mechanism: Mechanism, workload: Workload, budget: RhoBudget, people: int
    ) -> int:
        """How many synthetic rows, where the choice is ours from public facts alone."""
        if self.rows is not None:
            return self.rows
        public = people if self.neighbours == "replace-one" else None
        return choose_rows(mechanism, workload, budget, public)

    def _runner(self, rows: int, tell: Tell | None) -> Runner:
        return Runner(
            dataset=self.dataset,
            neighbours=self.neighbours,  # type: ignore[arg-type]
            rows=rows,
            random_state=self.random_state,
            threads=self.threads,
            insecure_noise_seed=self.insecure_noise_seed,
            totals=dict(self.totals or {}),
            derived=tuple(self.derived),
            tell=tell or _not_told,
            projector=self.projector,
        )

    def _answer(self, workload: Workload, source: Source, tell: Tell | None) -> ExactCounts:
        tell = tell or _not_told
        tell("opened", source.rows)
        return exact_counts(
            workload,
            source,
            on_invalid=self.on_invalid,  # type: ignore[arg-type]
            threads=self.threads,
            progress=lambda rows: tell("answering", rows),
        )


# What a release must know of the settings to go on.
SAVED = (
    *("epsilon", "delta", "mechanism", "epochs", "groups", "split", "rows", "random_state"),
    *("dataset", "neighbours", "conversion", "on_invalid", "insecure_noise_seed", "projector"),
    *("totals", "derived"),
)


def _ledger_of(release: Release) -> Path:
    """Where the ledger of a run is that was given none: beside its folder, not to be handed on."""
    return release.folder.with_name(release.folder.name + ".ledger.db")


def _has_begun(release: Release, dataset: str) -> bool:
    """Whether a run may hold or have spent anything."""
    facts = release.run
    if not facts["opened"]:
        return False
    try:
        with Ledger(facts["ledger"], create=False, read_only=True) as ledger:
            return LedgerRun(ledger, dataset, facts["run"], "").begun
    except GsdError:
        return True


def _not_told(what: str, now: object) -> None:
    """Nobody wants to know."""
