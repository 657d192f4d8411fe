"""Choices: the user's parameters, checked; and what is decided for the user, from public facts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.data.sources import open_source
from private_gsd.errors import (
    BudgetError,
    LedgerError,
    ProjectionError,
    SchemaError,
    SourceError,
    WorkloadError,
)
from private_gsd.measurements.knowledge import Knowledge
from private_gsd.mechanisms.defaults import (
    check_knowledge,
    check_projector,
    choose_mechanism,
    choose_rows,
    choose_specs,
    numbers_first,
)
from private_gsd.mechanisms.forecast import Forecast, require_memory
from private_gsd.mechanisms.one_shot import OneShot
from private_gsd.mechanisms.registry import check_conversion, conversion_of, mechanism_of
from private_gsd.privacy.budget import Budget, RhoBudget
from private_gsd.privacy.ledger import Ledger
from private_gsd.privacy.measuring import MAX_RECORDS
from private_gsd.projection.projectors import projector_of
from private_gsd.projection.protocol import MOST_ROWS
from private_gsd.runs.release_run import require_ledger
from private_gsd.runs.settings import MOST_SEED, MOST_THREADS, RunSettings
from private_gsd.schema import Schema
from private_gsd.sql.rules import check_rules
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.mentions import unmentioned_columns
from private_gsd.workloads.serialisation import dump_workload
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.data.encoding import OnInvalid
    from private_gsd.measurements.knowledge import KnowledgeOf
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.projection import Projector

# The δ with which a budget is checked where its own is not known yet.
STAND_IN_DELTA = 1e-9


class UnmeasuredWarning(UserWarning):
    """No query of the workload depends on some columns."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of a synthesizer as values. All that can be checked without data is checked.

    Attributes:
        schema: The public schema.
        budget: The privacy budget.
        workload: The target workload, or the names of its parts; None for the program's choice.
        mechanism: How the budget is spent; None for the program's choice.
        projector: What makes a table of the measurements.
        rows: The number of rows of the synthetic table; None for the program's choice.
        knowledge: What is known beside the measurements.
        random_state: The seed of the projection.
        threads: The number of threads; all cores by default.
    """

    schema: Schema
    budget: Budget
    workload: Workload | Sequence[str] | None
    mechanism: Mechanism | None
    projector: Projector
    rows: int | None
    knowledge: KnowledgeOf
    random_state: int
    threads: int | None

    @classmethod
    def of(
        cls,
        schema: Any,
        budget: Any,
        *,
        epsilon: Any = None,
        workload: Any = None,
        mechanism: Any = "auto",
        projector: Any = "gsd",
        rows: Any = None,
        knowledge: Any = None,
        random_state: Any = 0,
        threads: Any = None,
    ) -> Parameters:
        """The values that the parameters of a ``Synthesizer`` stand for; refuses what is wrong."""
        _check_schema(schema)
        parameters = cls(
            schema=schema,
            budget=_budget_of(budget, epsilon),
            workload=[workload] if isinstance(workload, str) else workload,
            mechanism=mechanism_of(mechanism),
            projector=projector_of(projector),
            rows=rows_of(rows, projector_of(projector)),
            knowledge=_knowledge_of(knowledge, schema),
            random_state=whole("random_state", random_state, 0, MOST_SEED),
            threads=None if threads is None else whole("threads", threads, 1, MOST_THREADS),
        )
        parameters._check_budget()
        parameters._check_projector()
        parameters.check_workload()
        return parameters

    def _check_budget(self) -> None:
        conversion = self.budget.conversion or conversion_of(self.mechanism)
        # With some δ, if it is not known yet: the rest is checked all the same.
        delta = STAND_IN_DELTA if self.budget.delta is None else self.budget.delta
        RhoBudget.from_epsilon(self.budget.epsilon, delta, conversion)
        check_conversion(conversion, self.mechanism)

    def _check_projector(self) -> None:
        known, projector = self.knowledge.knowledge, self.projector
        if self.schema.constraints and not projector.keeps_rules:
            raise WorkloadError(
                f"projector {projector.name!r} does not keep a schema's rules; use 'gsd', or leave "
                "them out"
            )
        if (known.public_counts or known.derived_statistics) and not projector.takes_knowledge:
            raise WorkloadError(
                f"projector {projector.name!r} takes neither public counts nor derived statistics; "
                "use 'gsd', or leave them out"
            )

    def check_workload(self) -> None:
        """Refuse a target workload that cannot be measured; the program's choice can."""
        if self.workload is not None:
            self.target_of(self.workload)

    def target_of(self, given: Workload | Sequence[str]) -> Workload:
        """A target workload, if it can be saved, measured and projected."""
        target = given if isinstance(given, Workload) else workload_of(self.schema, given)
        if target.schema != self.schema:
            raise WorkloadError("the workload is of another schema than the synthesizer")
        dump_workload(target)  # what cannot be saved is found now
        mechanism = self.mechanism_for(target)
        candidates, external = mechanism.candidates(target), self.knowledge.external_workload
        check_knowledge(self.knowledge, mechanism, candidates)
        fitted = mechanism.projected(candidates)
        self.projector.check(fitted if external is None else fitted + external)
        return target

    def mechanism_for(self, target: Workload) -> Mechanism:
        """The user's mechanism, or the choice for a target workload.

        Where the target workload is the program's choice, fine histograms of numbers come first,
        unless the user named the one-shot mechanism. Derived statistics with conditions on numbers
        need the cut points of the target workload.
        """
        mechanism = self.mechanism or choose_mechanism(target)
        stated = self.workload is not None or type(self.mechanism) is OneShot
        if stated or self.knowledge.cut_numbers:
            return mechanism
        return numbers_first(mechanism, target)

    def account(
        self, ledger: Any, dataset: str, *, create_ledger: bool = False
    ) -> RhoBudget | None:
        """The terms of a dataset in a ledger that is there: they must be those of the budget.

        Args:
            ledger: The ledger file; None for a ledger of the run's own.
            dataset: The name of the dataset in it.
            create_ledger: Whether the ledger may be made.
        """
        if not isinstance(ledger, str | Path | None):
            raise LedgerError(f"ledger must be a path, not {ledger!r:.80}")
        if ledger is None:
            if create_ledger:
                raise LedgerError("create_ledger goes with ledger: name the file to make")
            return None
        if not Path(ledger).exists():
            if not create_ledger:
                require_ledger(Path(ledger), dataset)
            return None
        with Ledger(ledger, create=False, read_only=True) as opened:
            account = opened.account(dataset)
        for name, known in (
            ("neighbours", account.neighbours),
            ("conversion", account.budget.conversion),
            ("delta", account.budget.delta),
        ):
            stated = getattr(self.budget, name)
            if stated is not None and stated != known:
                raise LedgerError(
                    f"{ledger}: dataset {dataset!r} has {name} {known!r}, not {stated!r}; what is "
                    "spent on it is stated on these terms"
                )
        where = f"{ledger}: dataset {dataset!r} has"
        check_conversion(account.budget.conversion, self.mechanism, where)
        return account.budget


@dataclass(frozen=True)
class Choices:
    """What is decided for a user, from public facts alone.

    Attributes:
        parameters: The user's parameters.
        account: The budget of the dataset in a ledger, whose δ and conversion count; None where
            there is no ledger yet.
    """

    parameters: Parameters
    account: RhoBudget | None = None

    @cached_property
    def public(self) -> bool:
        """Whether the number of records is public."""
        return self.parameters.budget.neighbours == "replace-one"

    def budget(self, n_records: int) -> RhoBudget:
        """What may be spent; the number of records counts only where it is public."""
        stated = self.parameters.budget
        if self.account is not None:
            stated = replace(stated, delta=self.account.delta, conversion=self.account.conversion)
        known = n_records if self.public else None
        return stated.resolve(n_records=known, conversion=conversion_of(self.parameters.mechanism))

    def target(self, n_records: int | None) -> Workload:
        """The user's target workload, or one chosen by the public number of records."""
        parameters = self.parameters
        if parameters.workload is not None:
            target = parameters.target_of(parameters.workload)
            _warn_of_unmeasured(parameters.mechanism_for(target).candidates(target))
            return target
        if not n_records or not self.public:
            return parameters.target_of(default_specs(parameters.schema))
        return parameters.target_of(
            choose_specs(parameters.schema, self.budget(n_records), n_records)
        )

    def candidates(self, target: Workload) -> Workload:
        """The candidate queries, if there is memory for a table of them."""
        found = self.parameters.mechanism_for(target).candidates(target)
        require_memory(found, self.parameters.rows or 1)
        return found

    def rows(self, target: Workload, budget: RhoBudget, n_records: int) -> int:
        """The number of rows of the synthetic table."""
        if self.parameters.rows is not None:
            return self.parameters.rows
        mechanism = self.parameters.mechanism_for(target)
        return choose_rows(mechanism, target, budget, n_records if self.public else None)

    def settings(
        self,
        target: Workload,
        n_records: int,
        *,
        dataset: str = "table",
        on_invalid: OnInvalid = "error",
        insecure_noise_seed: int | None = None,
    ) -> RunSettings:
        """The settings of a run, all decided.

        Args:
            target: The target workload.
            n_records: The number of records of the table.
            dataset: The name of the dataset in the ledger.
            on_invalid: What to do with values outside the schema.
            insecure_noise_seed: The seed of noise that is not private.
        """
        parameters, budget = self.parameters, self.budget(n_records)
        return RunSettings(
            budget=replace(parameters.budget, delta=budget.delta, conversion=budget.conversion),
            mechanism=self._checked_mechanism(target),
            projector=parameters.projector,
            knowledge=parameters.knowledge.knowledge,
            rows=self.rows(target, budget, n_records),
            random_state=parameters.random_state,
            dataset=dataset,
            on_invalid=on_invalid,
            insecure_noise_seed=insecure_noise_seed,
            # What the release shows must not depend on a number that is private.
            n_records=n_records if self.public else None,
        )

    def forecast(self, n_records: int, *, guessed: bool) -> Forecast:
        """What a run would measure, and how well.

        Args:
            n_records: The number of records of the table.
            guessed: Whether that is a guess.
        """
        target, budget = self.target(n_records), self.budget(n_records)
        return Forecast(
            self.candidates(target),
            self._checked_mechanism(target),
            budget,
            self.parameters.budget.neighbours,
            n_records,
            self.rows(target, budget, n_records),
            target,
            guessed,
        )

    def expected(self, data: Any, expected_records: Any) -> int:
        """The number of records that a plan may know."""
        if expected_records is not None:
            return whole("expected_records", expected_records, 1, MAX_RECORDS)
        if not self.public:
            raise BudgetError(
                "under add-remove neighbours the number of records is private, and a plan must not "
                "show it; give a public guess instead: --expected-records N (expected_records=N)"
            )
        if data is None:
            raise SourceError(
                "a plan needs the table, for its number of records, or --expected-records N "
                "(expected_records=N)"
            )
        source = open_source(data, self.parameters.schema)
        found = source.count()
        if found is None:
            raise SourceError(f"{source.name} can be read only once; plan with a table or a file")
        if not found:
            raise SourceError(f"{source.name}: the table has no rows")
        return found

    def _checked_mechanism(self, target: Workload) -> Mechanism:
        """The mechanism, if the projector can make tables of what it measures."""
        parameters = self.parameters
        mechanism = parameters.mechanism_for(target)
        external = parameters.knowledge.external_workload
        check_projector(parameters.projector, mechanism, mechanism.candidates(target), external)
        return mechanism


def _warn_of_unmeasured(workload: Workload) -> None:
    """Warn of columns that no query of a user's own workload depends on."""
    names = unmentioned_columns(workload)
    if names:
        some = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        warnings.warn(
            f"no query of the workload depends on {some}: the synthetic values of "
            f"{'this column' if len(names) == 1 else 'these columns'} will be uniform; add "
            "'categorical:1' or 'tree:1' to measure single columns, or leave the workload out",
            UnmeasuredWarning,
            stacklevel=4,
        )


def _check_schema(schema: Any) -> None:
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema must be a Schema, not {type(schema).__name__}")
    if schema.drafted:
        raise SchemaError(
            "the schema is a draft: its values and bounds were learned from the data, and a "
            "release would disclose them; replace them by public knowledge, and delete the line "
            "'drafted = true'"
        )
    check_rules(schema)


def rows_of(rows: Any, projector: Projector) -> int | None:
    """The number of rows, given as one or as a setting of the projector."""
    if rows is not None:
        rows = whole("rows", rows, 1, MOST_ROWS, ProjectionError)
    named: int | None = getattr(projector, "rows", None)  # a setting of some projectors
    if named is not None and rows not in (None, named):
        raise ProjectionError(f"rows is {rows:,}, and the projector's is {named:,}; give one")
    return rows if named is None else named


def _budget_of(budget: Any, epsilon: Any) -> Budget:
    """The budget, given as one or by its ε."""
    if budget is not None and epsilon is not None:
        raise BudgetError("give budget or epsilon, not both: epsilon is the ε of a budget")
    if isinstance(budget, Budget):
        return budget
    if budget is None and epsilon is None:
        raise BudgetError("a budget is needed: epsilon=1.0, or budget=Budget(epsilon=1.0, …)")
    return Budget(epsilon if budget is None else budget)


def _knowledge_of(knowledge: Any, schema: Schema) -> KnowledgeOf:
    """What is known of tables of the schema."""
    if knowledge is not None and not isinstance(knowledge, Knowledge):
        raise WorkloadError(
            "knowledge must be a Knowledge(public_counts=…, derived_statistics=…, "
            f"external_measurements=…), not {knowledge!r:.80}"
        )
    return (knowledge or Knowledge()).of(schema)
