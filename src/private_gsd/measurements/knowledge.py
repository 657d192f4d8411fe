"""Knowledge: public counts, derived statistics and external measurements that a table must match.

Public counts are exact and cost no budget. External measurements are weighted by their variances.
Derived statistics are computed from the measurements, and are as private as these. The ledger does
not cover public counts and external measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import MeasurementError, WorkloadError
from private_gsd.measurements.derived_statistics import Statistic, check_derivable, derive
from private_gsd.measurements.measurements import Measurements
from private_gsd.measurements.public_counts import check_counts, require_possible, whole_counts
from private_gsd.measurements.summed_histograms import summed_histograms
from private_gsd.schema import Numeric
from private_gsd.sql.expressions import columns_of_truth
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import Sums, Workload, predicates
from private_gsd.workloads.sums import Part

if TYPE_CHECKING:
    from private_gsd.schema import Schema

# The noise scale of public counts is that of the best measurement divided by this.
SHARPER = 10.0


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Knowledge that a table must match in addition to the measurements of a run.

    >>> Knowledge(public_counts={"sex = 'F'": 1200}, derived_statistics=["median(age)"])
    Knowledge(public_counts={"sex = 'F'": 1200}, derived_statistics=('median(age)',))

    Attributes:
        public_counts: Conditions in SQL, and the exact number of records that meet each. They cost
            no budget. You claim that they are public: the privacy guarantee does not cover them.
        derived_statistics: Statistics that the table should match, such as "median(age)",
            "quantile(income, 0.9)", "mean(age) WHERE sex = 'F'" or "share(married) WHERE age < 30".
            They are estimated from the measurements and cost no budget.
        external_measurements: Measurements that were made elsewhere (see
            ``Measurements.from_marginals``), weighted by their variances. The privacy guarantee
            does not cover them.
    """

    public_counts: Mapping[str, int] = field(default_factory=dict)
    derived_statistics: Sequence[str] = ()
    external_measurements: Sequence[Measurements] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "public_counts", whole_counts(self.public_counts))
        texts = self.derived_statistics
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise WorkloadError(f"derived_statistics is a list of texts, not {texts!r:.80}")
        object.__setattr__(self, "derived_statistics", tuple(texts))
        external = self.external_measurements
        for each in external if isinstance(external, list | tuple) else [external]:
            if not isinstance(each, Measurements):
                raise MeasurementError(
                    "external_measurements is a list of Measurements, and one is "
                    f"{type(each).__name__}"
                )
        object.__setattr__(self, "external_measurements", tuple(external))

    def __repr__(self) -> str:
        given = {
            "public_counts": self.public_counts,
            "derived_statistics": self.derived_statistics,
            "external_measurements": self.external_measurements,
        }
        return (
            f"Knowledge({', '.join(f'{name}={value!r}' for name, value in given.items() if value)})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Knowledge):
            return NotImplemented
        mine, theirs = self.external_measurements, other.external_measurements
        return (
            self.to_dict() == other.to_dict()
            and len(mine) == len(theirs)
            and all(one is another for one, another in zip(mine, theirs, strict=True))
        )

    def __hash__(self) -> int:
        return hash((frozenset(self.public_counts.items()), self.derived_statistics))

    def __bool__(self) -> bool:
        return bool(self.public_counts or self.derived_statistics or self.external_measurements)

    def of(self, schema: Schema) -> KnowledgeOf:
        """The knowledge, checked against a schema."""
        check_counts(schema, self.public_counts)
        statistics = tuple(Statistic.read(schema, text) for text in self.derived_statistics)
        return KnowledgeOf(schema, self, statistics, joined(schema, self.external_measurements))

    def to_dict(self) -> dict[str, Any]:
        """The public counts and derived statistics, for JSON."""
        return {
            "public_counts": dict(self.public_counts),
            "derived_statistics": list(self.derived_statistics),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], external: Measurements | None) -> Knowledge:
        """The knowledge that ``to_dict`` wrote, with external measurements saved beside it."""
        return cls(**saved, external_measurements=() if external is None else (external,))


@dataclass(frozen=True, eq=False)
class KnowledgeOf:
    """Knowledge of tables of one schema.

    Attributes:
        schema: The public schema.
        knowledge: The knowledge.
        statistics: The derived statistics, parsed.
        external: The external measurements, as one; None if there are none.
    """

    schema: Schema
    knowledge: Knowledge
    statistics: tuple[Statistic, ...]
    external: Measurements | None

    @property
    def external_workload(self) -> Workload | None:
        """The queries of the external measurements."""
        return None if self.external is None else self.external.workload

    @cached_property
    def workload(self) -> Workload | None:
        """Queries of every family that ``supplement`` will add, known before any measurement."""
        found = [] if self.external is None else [self.external.workload]
        if self.statistics:
            found.append(Workload(self.schema, (Sums(self.schema, [[Part(1, None)]]),)))
        if self.knowledge.public_counts:
            found.append(predicates(self.schema, list(self.knowledge.public_counts)[:1]))
        return sum(found[1:], start=found[0]) if found else None

    @property
    def cut_numbers(self) -> set[int]:
        """The numeric columns in conditions of derived statistics, which need cut points there."""
        return {
            place
            for statistic in self.statistics
            for text in (statistic.event, statistic.where)
            if text
            for place in columns_of_truth(parse_predicate(self.schema, text))
            if isinstance(self.schema.columns[place], Numeric)
        }

    def check(self, certain: Workload) -> None:
        """Refuse derived statistics that cannot be estimated from the measured queries.

        Args:
            certain: The queries that the mechanism measures in any case.
        """
        external = self.external_workload
        check_derivable(certain if external is None else certain + external, self.statistics)

    def check_records(self, n_records: int) -> None:
        """Refuse public counts that no table with this number of records can have."""
        require_possible(self.schema, self.knowledge.public_counts, n_records)

    def supplement(self, measured: Measurements) -> Measurements:
        """Add external measurements, derived statistics and public counts to the measurements."""
        found = measured
        if self.external is not None:
            same = resized(self.external, measured.n_records)
            found = found + replace(same, neighbours=measured.neighbours)
        statistics = derive(found, self.statistics) if self.statistics else None
        if statistics is not None:
            found = found + statistics
        counts = self.knowledge.public_counts
        if counts:
            sharpest = float((measured.scales / measured.workload.max_contributions).min())
            found = found + Measurements(
                predicates(measured.workload.schema, list(counts)),
                np.array(list(counts.values()), dtype=np.float64),
                np.full(len(counts), sharpest / SHARPER),
                measured.n_records,
                ("",) * len(counts),
                measured.private,
                measured.neighbours,
            )
        return found

    def claims(self) -> dict[str, Any]:
        """The knowledge that was used, for the privacy record; ε does not cover it."""
        external = self.external
        return {
            "public_counts": dict(self.knowledge.public_counts),
            "external_groups": 0 if external is None else external.workload.num_groups,
            "external_private": None if external is None else external.private,
            "derived_statistics": list(self.knowledge.derived_statistics),
        }


def joined(schema: Schema, external: Sequence[Measurements]) -> Measurements | None:
    """External measurements as one object; each must have the columns of the schema.

    Histograms become marginals of coarse cells: within cells, those of the run itself decide.
    """
    total: Measurements | None = None
    for each in external:
        if each.workload.schema.columns != schema.columns:
            raise MeasurementError(
                "external measurements must be about the columns of the schema, all of them"
            )
        same = summed_histograms(replace(each, workload=replace(each.workload, schema=schema)))
        if total is not None:
            same = resized(same, total.n_records)
            same = replace(same, neighbours=total.neighbours)
        total = same if total is None else total + same
    return total


def resized(measured: Measurements, n_records: int) -> Measurements:
    """Measurements with the same shares and noise, scaled to another number of records."""
    ratio = n_records / measured.n_records
    return replace(
        measured,
        counts=measured.counts * ratio,
        scales=measured.scales * ratio,
        n_records=n_records,
    )
