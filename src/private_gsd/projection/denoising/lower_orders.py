"""Lower orders: marginals of fewer columns, summed from measured marginals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.measurements.measurements import Measurements
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.layout import marginal_tables
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import MarginalTable

    Shares = NDArray[np.float64]
    Features = tuple[Feature, ...]

# Largest absolute value of shares; also of scales divided by the number of records.
LARGEST_SHARE = 1e6


def has_marginals(workload: Workload) -> bool:
    """Whether a workload has any marginals."""
    return any(family.marginals for family in workload.families)


def queries_of_marginals(workload: Workload) -> NDArray[np.bool_]:
    """For every query, whether it belongs to a marginal."""
    return np.concatenate(
        [np.full(family.size, bool(family.marginals)) for family in workload.families]
    )


def marginals_alone(measured: Measurements) -> Measurements:
    """The measurements of the marginals alone, with a schema without rules."""
    families = measured.workload.families
    groups = np.concatenate(
        [np.full(len(family.group_sizes), bool(family.marginals)) for family in families]
    )
    schema = replace(measured.workload.schema, constraints=())
    largest = LARGEST_SHARE * float(measured.n_records)
    marginals = [each for family in families for each in family.marginals]
    return Measurements(
        Workload(schema, (Marginals(schema, marginals),)),
        np.clip(measured.counts[queries_of_marginals(measured.workload)], -largest, largest),
        np.clip(measured.scales[groups], measured.n_records / LARGEST_SHARE, largest),
        measured.n_records,
        ("",) * len(marginals),
        measured.private,
        measured.neighbours,
    )


def complete_tables(workload: Workload) -> list[MarginalTable]:
    """The tables of all marginals in which every row has a cell."""
    tables = marginal_tables(workload)
    return [table for table in tables if not any(each.has_gap for each in table.features)]


def largest_order(tables: Sequence[MarginalTable]) -> int:
    """The largest number of columns of a table."""
    return max((len(table.features) for table in tables), default=0)


def is_wide(table: MarginalTable) -> bool:
    """Whether a table has interactions of several kinds: of many columns, or of numbers."""
    number = len(table.features)
    return number > 3 or (number == 3 and any(feature.breaks for feature in table.features))


def split(tables: Sequence[MarginalTable], answers: Shares) -> list[Shares]:
    """The answers of each table."""
    return [table.of(answers) for table in tables]


def cell_variance(measured: Measurements, table: MarginalTable) -> float:
    """The variance of the noise on the cells of a table, as shares."""
    return float(measured.scales[table.group] / measured.n_records) ** 2


def summed_to(
    measured: Measurements, tables: Sequence[MarginalTable], order: int, answers: Shares
) -> Measurements:
    """Tables of a lower order: means of sums of the given tables, weighted by inverse variances.

    Sums of a wide table are left out where its columns are in other tables. They have far more
    noise, and of other cells they hide more than they say.

    Args:
        measured: The measurements; their scales give the variances.
        tables: The complete tables of these measurements.
        order: The largest number of columns of the result's tables.
        answers: The answers that are summed.
    """
    cells: dict[Features, Shares] = {}
    precisions: dict[Features, float] = {}
    known: set[tuple[int, ...]] = set()
    for table in sorted(tables, key=is_wide):
        variance = cell_variance(measured, table)
        for features, sums, summands in _sums(table, answers, order):
            places = tuple(sorted(feature.position for feature in features))
            if not is_wide(table):
                known.add(places)
            elif places in known:
                continue
            precision = 1 / (variance * summands)
            cells[features] = cells.get(features, 0.0) + sums * precision
            precisions[features] = precisions.get(features, 0.0) + precision
    schema = measured.workload.schema
    return Measurements(
        Workload(schema, (Marginals(schema, [Marginal((features,)) for features in cells]),)),
        np.concatenate([(cells[f] / precisions[f]).ravel() for f in cells]) * measured.n_records,
        measured.n_records / np.sqrt(np.array(list(precisions.values()))),
        measured.n_records,
        ("",) * len(cells),
        measured.private,
        measured.neighbours,
    )


def _sums(
    table: MarginalTable, answers: Shares, order: int
) -> Iterator[tuple[Features, Shares, float]]:
    """The sums of a table to fewer columns, and the number of cells in each sum."""
    everything = range(len(table.features))
    for places in itertools.combinations(everything, min(order, len(table.features))):
        rest = tuple(place for place in everything if place not in places)
        features = tuple(table.features[place] for place in places)
        summands = math.prod(table.features[place].size for place in rest)
        yield features, table.of(answers).sum(axis=rest), summands
