"""Choices: what is decided for the user, from public facts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from private_gsd.counting.of_units import read_ids
from private_gsd.data.sources import open_source
from private_gsd.errors import BudgetError, SourceError, WorkloadError
from private_gsd.mechanisms.base import Task
from private_gsd.mechanisms.defaults import (
    check_projector,
    choose_joint,
    choose_pairs,
    choose_rows,
    choose_specs,
    default_rows,
    drowns_pairs,
    numbers_first,
    too_many_pairs,
)
from private_gsd.mechanisms.forecast import Forecast, require_memory
from private_gsd.mechanisms.registry import conversion_of
from private_gsd.mechanisms.strongest_pairs import StrongestPairs
from private_gsd.privacy.measuring import MAX_RECORDS
from private_gsd.runs.settings import RunSettings
from private_gsd.schema.neighbours import records_are_public, relation_of
from private_gsd.workloads.checks import whole
from private_gsd.workloads.mentions import unmentioned_columns
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from private_gsd.data.encoding import OnInvalid
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.synthesis.parameters import Parameters
    from private_gsd.workloads import Workload


class UnmeasuredWarning(UserWarning):
    """No query of the workload depends on some columns."""


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
        parameters = self.parameters
        return records_are_public(parameters.budget.neighbours, parameters.schema.unit)

    @property
    def relation(self) -> str:
        """The neighbouring relation, with the unit of protection."""
        parameters = self.parameters
        return relation_of(parameters.budget.neighbours, parameters.schema.unit_column)

    def budget(self, n_records: int) -> RhoBudget:
        """What may be spent; the number of records counts only where it is public."""
        stated = self.parameters.budget
        if self.account is not None:
            stated = replace(stated, delta=self.account.delta, conversion=self.account.conversion)
        known = n_records if self.public else None
        if known is None and stated.delta is None and stated.neighbours == "replace-one":
            raise BudgetError(
                "give a delta: by default it is 1 / N², and where each row of a unit counts "
                "(weighting = 'rows') the number of rows is private"
            )
        return stated.resolve(n_records=known, conversion=conversion_of(self.parameters.mechanism))

    def for_records(self, n_records: int | None) -> Choices:
        """These choices; with the strongest pairs of many columns, or the joint table of few.

        Args:
            n_records: The number of records; None where it is private, or not known yet.
        """
        selecting = self._with_strongest_pairs(n_records)
        return self._with_joint(n_records) if selecting is self else selecting

    def _with_joint(self, n_records: int | None) -> Choices:
        """These choices; with the joint table of all columns, where it is worth it.

        Where the user names neither workload, mechanism nor column for models, and the projector
        denoises.

        Args:
            n_records: The number of records; None where it is private, or not known yet.
        """
        parameters = self.parameters
        if (
            parameters.workload is not None
            or parameters.mechanism is not None
            or parameters.for_models is not None
            or not parameters.projector.finds_interactions
            or (self.public and not n_records)
        ):
            return self
        known, budget = n_records if self.public else None, self.budget(n_records or 0)
        target = self.target(n_records)
        task = Task(target, target, budget, parameters.budget.neighbours, n_records=known)
        found = choose_joint(target, task)
        if found is None:
            return self
        return replace(self, parameters=replace(parameters, mechanism=found))

    def _with_strongest_pairs(self, n_records: int | None) -> Choices:
        """These choices; where a table has too many columns for all pairs, the strongest ones.

        Where the user names neither workload nor mechanism, and nothing stands against a selection:
        a conversion for Gaussian noise alone, or derived statistics, which must follow from what
        is measured in any case.

        Args:
            n_records: The number of records; None where it is private, or not known yet.
        """
        parameters = self.parameters
        stated = parameters.budget.conversion or (self.account and self.account.conversion)
        if (
            parameters.workload is not None
            or parameters.mechanism is not None
            or parameters.knowledge.knowledge.derived_statistics
            or stated == "gdp"
        ):
            return self
        schema, mechanism = parameters.schema, StrongestPairs()
        if parameters.for_models is not None:
            if too_many_pairs(schema):
                raise WorkloadError(
                    f"for_models={parameters.for_models!r} measures all pairs of columns, and this "
                    "schema has too many; name a workload of some columns, or leave it out"
                )
            return self
        if n_records and self.public:
            selecting = replace(parameters, mechanism=mechanism)
            budget = Choices(selecting, self.account).budget(n_records)
            if not drowns_pairs(schema, budget, n_records):
                return self
            mechanism = choose_pairs(schema, budget, n_records)
        elif not too_many_pairs(schema):
            return self
        specs = default_specs(schema, 1)
        found = numbers_first(mechanism, workload_of(schema, specs))
        return replace(self, parameters=replace(parameters, workload=specs, mechanism=found))

    def target(self, n_records: int | None) -> Workload:
        """The user's target workload, or one chosen by the public number of records."""
        parameters = self.parameters
        if parameters.workload is not None:
            target = parameters.target_of(parameters.workload)
            _warn_of_unmeasured(parameters.mechanism_for(target).candidates(target))
            return target
        if not n_records or not self.public:
            return parameters.target_of(default_specs(parameters.schema))
        specs = choose_specs(parameters.schema, self.budget(n_records), n_records)
        if parameters.for_models is not None and specs == default_specs(parameters.schema, 1):
            specs = default_specs(parameters.schema, 2)
        return parameters.target_of(specs)

    def candidates(self, target: Workload) -> Workload:
        """The candidate queries, if there is memory for a table of them."""
        found = self.parameters.mechanism_for(target).candidates(target)
        require_memory(found, self.parameters.rows or 1)
        return found

    def rows(self, target: Workload, budget: RhoBudget, n_records: int) -> tuple[int, int]:
        """The number of rows of the synthetic table, and of those that are fitted; others are new.

        Args:
            target: The target workload.
            budget: What may be spent.
            n_records: The number of records, or a guess.
        """
        parameters = self.parameters
        mechanism, rows = parameters.mechanism_for(target), parameters.rows
        fitted = choose_rows(mechanism, target, budget, n_records if self.public else None)
        if not parameters.projector.takes_new_rows(target):
            return rows or fitted, rows or fitted
        rows = rows or default_rows(fitted, n_records)
        return rows, min(rows, fitted)

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
            # What the release shows must not depend on a number that is private.
            rows=self.rows(target, budget, n_records)[0] if self.public else parameters.rows,
            random_state=parameters.random_state,
            dataset=dataset,
            on_invalid=on_invalid,
            insecure_noise_seed=insecure_noise_seed,
            n_records=n_records if self.public else None,
        )

    def forecast(self, n_records: int, *, guessed: bool) -> Forecast:
        """What a run would measure, and how well.

        Args:
            n_records: The number of records of the table.
            guessed: Whether that is a guess.
        """
        chosen = self.for_records(n_records if self.public else None)
        target, budget = chosen.target(n_records), chosen.budget(n_records)
        rows, fitted = chosen.rows(target, budget, n_records)
        return Forecast(
            chosen.candidates(target),
            chosen._checked_mechanism(target),
            budget,
            self.parameters.budget.neighbours,
            n_records,
            rows,
            target,
            guessed,
            fitted,
        )

    def expected(self, data: Any, expected_records: Any) -> int:
        """The number of records that a plan may know."""
        if expected_records is not None:
            return whole("expected_records", expected_records, 1, MAX_RECORDS)
        if not self.public:
            relation = self.parameters.budget.neighbours
            why = (
                f"under {relation} neighbours"
                if relation != "replace-one"
                else "where each row of a unit counts (weighting = 'rows')"
            )
            raise BudgetError(
                f"{why} the number of records is private, and a plan must not "
                "show it; give a public guess instead: --expected-records N (expected_records=N)"
            )
        if data is None:
            raise SourceError(
                "a plan needs the table, for its number of records, or --expected-records N "
                "(expected_records=N)"
            )
        source = open_source(data, self.parameters.schema)
        if self.parameters.schema.unit is not None and not source.once:
            return read_ids(source).units
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
