"""Parameters: what the user of a synthesizer says, checked without data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.errors import (
    BudgetError,
    LedgerError,
    SchemaError,
    WorkloadError,
    did_you_mean,
)
from private_gsd.measurements.knowledge import Knowledge
from private_gsd.mechanisms.defaults import check_knowledge, choose_mechanism, numbers_first
from private_gsd.mechanisms.one_shot import OneShot, with_column
from private_gsd.mechanisms.registry import (
    check_conversion,
    conversion_of,
    mechanism_for_models,
    mechanism_of,
)
from private_gsd.privacy.budget import Budget, RhoBudget
from private_gsd.privacy.ledger import Ledger
from private_gsd.projection.genetic import GeneticSearch
from private_gsd.projection.projectors import projector_of, rows_of
from private_gsd.runs.release_run import require_ledger
from private_gsd.runs.settings import MOST_SEED, MOST_THREADS
from private_gsd.schema import Schema
from private_gsd.sql.rules import check_rules
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.serialisation import dump_workload
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.measurements.knowledge import KnowledgeOf
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.projection import Projector

# The δ with which a budget is checked where its own is not known yet.
STAND_IN_DELTA = 1e-9


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
        for_models: The column that models will predict; None for none.
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
    for_models: str | None = None

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
        for_models: Any = None,
    ) -> Parameters:
        """The values that the parameters of a ``Synthesizer`` stand for; refuses what is wrong."""
        _check_schema(schema)
        projector = projector_of(projector)
        if for_models is not None and isinstance(projector, GeneticSearch):
            projector = replace(projector, for_models=for_models)
        parameters = cls(
            schema=schema,
            budget=_budget_of(budget, epsilon),
            workload=[workload] if isinstance(workload, str) else workload,
            mechanism=mechanism_of(mechanism),
            projector=projector,
            rows=rows_of(rows, projector),
            knowledge=_knowledge_of(knowledge, schema),
            random_state=whole("random_state", random_state, 0, MOST_SEED),
            threads=None if threads is None else whole("threads", threads, 1, MOST_THREADS),
            for_models=for_models,
        )
        parameters._check_unit()
        parameters._check_for_models()
        parameters._check_budget()
        parameters._check_projector()
        parameters.check_workload()
        return parameters

    def _check_unit(self) -> None:
        """Refuse what a unit of protection does not go with."""
        if self.schema.unit is not None and self.knowledge.knowledge.public_counts:
            raise WorkloadError(
                "public counts are of rows, and a table with a unit of protection is measured by "
                "units, or by a part of its rows; leave public counts out, or the unit"
            )

    def _check_for_models(self) -> None:
        if self.for_models is None:
            return
        names = self.schema.names
        if self.for_models not in names:
            hint = did_you_mean(str(self.for_models), names)
            some = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
            raise WorkloadError(
                f"for_models is the column that models will predict, and the schema has no "
                f"{self.for_models!r:.80}{hint}; it has {some}"
            )
        mechanism_for_models(self.mechanism or OneShot(), self.for_models)

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
        if self.for_models is not None and not with_column(target, self.for_models).any():
            raise WorkloadError(
                f"for_models={self.for_models!r} has less noise on marginals of this column with "
                "others, and the workload has none; add 'categorical:2' or 'tree:2', or leave the "
                "workload out"
            )
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
        if self.for_models is not None:
            mechanism = mechanism_for_models(mechanism, self.for_models)
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
        unit = self.schema.unit_column
        if unit != account.unit:
            has, wants = (
                "a record" if each is None else f"all records with the same {each!r}"
                for each in (account.unit, unit)
            )
            raise LedgerError(
                f"{ledger}: dataset {dataset!r} protects {has}, and the schema names {wants} as "
                "the unit of protection; what is spent on it is stated for that unit"
            )
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
