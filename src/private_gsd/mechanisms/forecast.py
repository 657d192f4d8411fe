"""Forecast: what a run would measure, how well and how long it would take. Nothing is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from private_gsd.mechanisms.base import Plan, Task, noise_scales, plan_run, reserved_for_counting
from private_gsd.mechanisms.joined_categories import MOST_CATEGORIES
from private_gsd.privacy.budget import units_to_rho
from private_gsd.privacy.measuring import records_sensitivity
from private_gsd.privacy.noise import gaussian_scale
from private_gsd.projection.denoising.denoise import sampled_rows
from private_gsd.schema import Categorical
from private_gsd.system.markup import html_table
from private_gsd.system.memory import BASE, require_room

if TYPE_CHECKING:
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.workloads import Neighbours, Workload


# What is shown of a group, and how many groups are.
HEADERS = ("group", "queries", "rho", "noise, rows", "mean error", "largest")
SHOWN = 12
# The number of sweeps over the tables that the Gibbs sampler draws, about. Two tables are drawn at
# a time, and a sweep of theirs takes half as long as one of the search.
DENOISING_SWEEPS = 42
# Seconds that denoising takes for a group, whatever the number of rows.
GROUP_SECONDS = 2e-3
# Seconds that one value and one of its tables take in a sweep, where columns have so many cells.
LOOK_SECONDS = 7e-9
LOOK_CELLS = 10
# How many noisy counts OpenDP draws in a second on one core (benchmarks.noise).
NOISE_RATE = 90_000
# The number of sweeps over new rows: a Gibbs sweep, and coordinate sweeps until they settle.
NEW_ROWS_SWEEPS = 4


def require_memory(workload: Workload, rows: int) -> None:
    """Refuse a synthetic table that does not fit into memory.

    Args:
        workload: The candidate queries.
        rows: The number of rows of the synthetic table.
    """
    require_room(
        rows,
        _base(workload),
        _row(workload),
        "a synthetic table",
        "take at most {fits} rows (--rows), or a larger machine",
    )


def _base(workload: Workload) -> float:
    return BASE + 60 * workload.size


def _row(workload: Workload) -> float:
    """Bytes of a synthetic row: 24 a value were measured while it is searched for and written.

    Texts are written out for every row in the end.
    """
    texts = [
        max(len(str(value).encode()) for value in column.values)
        for column in workload.schema
        if isinstance(column, Categorical)
    ]
    return 28 * len(workload.schema) + sum(texts)


class GroupForecast(NamedTuple):
    """What measuring one group would give.

    Attributes:
        name: The group in words.
        queries: How many queries it has.
        rho: Its part of the budget.
        noise: The standard deviation of the noise on each of its counts, in rows.
        error: The mean error of one of its answers as measured, as a share of the rows. What the
            search makes of all answers together is usually better.
        largest: The largest error among its answers, about.
    """

    name: str
    queries: int
    rho: float
    noise: float
    error: float
    largest: float

    def texts(self) -> tuple[str, ...]:
        """The figures in words, below ``HEADERS``."""
        return (
            self.name,
            f"{self.queries:,}",
            f"{self.rho:.3g}",
            f"{self.noise:,.4g}",
            f"{self.error:.3%}",
            f"{self.largest:.2%}",
        )


@dataclass(frozen=True)
class Forecast:
    """A run before it is made.

    Attributes:
        workload: The candidate queries: the target workload, and with some mechanisms its parts.
        mechanism: The mechanism.
        budget: The budget.
        neighbours: The neighbour relation.
        n_records: The number of records of the table, which is public, or a public guess.
        rows: The number of synthetic rows.
        target: The target workload.
        guessed: Whether the number of records is a guess.
        fitted: The number of rows that are fitted, where the others are new rows; all by default.
    """

    workload: Workload
    mechanism: Mechanism
    budget: RhoBudget
    neighbours: Neighbours
    n_records: int
    rows: int
    target: Workload
    guessed: bool = False
    fitted: int | None = None

    @cached_property
    def plan(self) -> Plan:
        """What the mechanism would do."""
        return plan_run(self.mechanism, self._task)

    @property
    def _task(self) -> Task:
        records = self.n_records
        return Task(self.workload, self.target, self.budget, self.neighbours, n_records=records)

    @property
    def records(self) -> str:
        """What counts are of, in words: records, units, or rows that are taken of units."""
        unit = self.workload.schema.unit
        if unit is None:
            return "records"
        return "rows that are taken of units" if unit.rows_count else "units"

    @property
    def groups(self) -> list[GroupForecast]:
        """Every group; where groups are selected, as it would be if it were selected."""
        units = self.plan.units
        scales = noise_scales(self._task, units).tolist()
        contributions = self.workload.max_contributions.tolist()
        return [
            GroupForecast(
                self.workload.describe(group),
                int(queries),
                units_to_rho(units[group]),
                scales[group],
                # How far from zero a normal variable is on average, and the largest of many.
                scales[group] / contributions[group] * math.sqrt(2 / math.pi) / self.n_records,
                scales[group]
                / contributions[group]
                * math.sqrt(2 * math.log(2 * int(queries)))
                / self.n_records,
            )
            for group, queries in enumerate(self.workload.group_sizes)
            if units[group]
        ]

    @property
    def noisiest(self) -> list[GroupForecast]:
        """The groups, the most noise first; among equals, those with the most queries."""
        return sorted(self.groups, key=lambda group: (-group.noise, -group.queries))

    @property
    def projections(self) -> int:
        """The number of projections of the run; of AIM, the largest."""
        return self.plan.projections

    @property
    def selection_summary(self) -> str:
        """How groups are selected, in words; nothing where all are measured."""
        settings, pairs = self.mechanism.selection_settings, self.plan.pairs
        words = self.mechanism.selection_summary.format(
            projections=self.projections, noise=self.selecting, pairs=pairs, **settings
        )
        if pairs is not None and pairs.joined:
            some = ", ".join(pairs.joined[:10]) + (", …" if len(pairs.joined) > 10 else "")
            words += f". In pairs, rare categories of {some} are joined"
        if pairs is not None and pairs.left_out:
            words += f". {pairs.left_out:,} pairs of too many cells are left out"
        return words

    @property
    def joint_summary(self) -> str:
        """What the joint table of all columns is, in words; nothing where it is not measured."""
        joint = self.plan.joint
        if joint is None:
            return ""
        return (
            f"After the others, all {joint.columns} columns are measured together, in a table of "
            f"{joint.cells:,} cells, with noise of {joint.noise:,.3g} rows"
        )

    @property
    def selecting(self) -> float:
        """The scale of the noise that selecting adds to an error in rows; 0 for one-shot."""
        return self.plan.selection_noise

    @property
    def counting(self) -> float:
        """The noise on the number of records; 0 where that is public."""
        units, _ = reserved_for_counting(self._task)
        square = records_sensitivity(self.workload)
        return gaussian_scale(square, units, self.budget.conversion) if units else 0.0

    @property
    def seconds(self) -> float:
        """About how long noise and searches take on one core, within a factor of two or three.

        Noise is drawn for every count that is measured. Some twenty sweeps score every value of the
        fitted table by every table, prefix and halfspace that its column is in. New rows are swept
        some four times. See docs/benchmarks.md.
        """
        looks = sum(family.search_cost for family in self.workload.families)
        # A search fits what was measured so far: where groups are selected, few of all.
        share = min(self.plan.fitted_groups / self.workload.num_groups, 1.0)
        more_counts, more_looks = self._selected_pairs
        looks, counts = looks * share + more_looks, self.workload.size * share + more_counts
        fitted = min(self.rows, self.fitted or self.rows)
        row_sweeps = 20 * fitted
        if any(family.marginals for family in self.workload.families):
            row_sweeps += DENOISING_SWEEPS * self._sampled_rows
        row_sweeps *= self.projections
        row_sweeps += NEW_ROWS_SWEEPS * (self.rows - fitted)
        each = 0.1 + GROUP_SECONDS * self.plan.fitted_groups
        return counts / NOISE_RATE + each * self.projections + row_sweeps * looks * LOOK_SECONDS

    @property
    def _selected_pairs(self) -> tuple[float, float]:
        """About how many counts selected pairs have, and how many looks a sweep takes for them."""
        pairs = self.plan.pairs
        if pairs is None:
            return 0.0, 0.0
        sizes = [
            min(table[0].size, MOST_CATEGORIES)
            for family in self.workload.families
            for marginal in family.marginals
            for table in marginal.tables
        ]
        cells = sum(sizes) / len(sizes)
        return pairs.size * cells**2, 2.0 * pairs.size * max(cells / LOOK_CELLS, 1.0)

    @property
    def _sampled_rows(self) -> int:
        """The number of rows of the tables that the Gibbs sampler draws."""
        orders = [
            len(features)
            for family in self.workload.families
            for marginal in family.marginals
            for features in marginal.tables
        ]
        noise = min(group.error for group in self.groups) / math.sqrt(2 / math.pi)
        return sampled_rows(noise, max(orders) if self.plan.pairs is None else 2)

    @property
    def bytes(self) -> float:
        """About how much memory the run takes."""
        return _base(self.workload) + self.rows * _row(self.workload)

    def _repr_html_(self) -> str:
        worst = self.noisiest[:SHOWN]
        return html_table(
            f"Plan: {self.workload.size:,} queries in {self.workload.num_groups:,} groups, "
            f"{self.mechanism.name}, epsilon = {self.budget.epsilon:.4g}; {len(worst)} groups "
            "with the most noise",
            HEADERS,
            [group.texts() for group in worst],
        )

    def document(self) -> dict[str, object]:
        """For JSON."""
        return {
            "n_records": self.n_records,
            "n_records_is_a_guess": self.guessed,
            "queries": self.workload.size,
            "groups": [group._asdict() for group in self.groups],
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "rho": self.budget.rho,
            "neighbours": self.neighbours,
            "unit": self.workload.schema.unit_column,
            "mechanism": self.mechanism.name,
            "projections": self.projections,
            "selection_noise_rows": self.selecting,
            "pairs": None if self.plan.pairs is None else self.plan.pairs._asdict(),
            "joint": None if self.plan.joint is None else self.plan.joint._asdict(),
            "count_noise_rows": self.counting,
            "synthetic_rows": self.rows,
            "seconds": self.seconds,
            "bytes": self.bytes,
        }
