"""Derived statistics: medians, quantiles, means and shares that are estimated from measurements.

Derived statistics cost no budget, since they are computed from noisy answers alone. Each statistic
becomes one more query for the search: a sum that should be zero, with a variance that follows from
the noisy answers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import MeasurementError, WorkloadError, expect_type
from private_gsd.measurements.marginal_estimates import (
    ColumnEstimate,
    column_estimate,
    mask_of,
    tables_of,
)
from private_gsd.measurements.measurements import Measurements
from private_gsd.schema import Numeric
from private_gsd.schema.neighbours import records_are_public
from private_gsd.sql.expressions import TRUE, ConstantTruth, both, columns_of_truth
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.predicate_text import column_named, is_unicode
from private_gsd.workloads import Sums, Workload
from private_gsd.workloads.conditions import literal
from private_gsd.workloads.layout import QueryLayout
from private_gsd.workloads.sums import STEPS, Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth

    Vector = NDArray[np.float64]

FORMS = (
    "median(COLUMN), quantile(COLUMN, P), mean(COLUMN) or share(CONDITION), and then perhaps "
    "WHERE CONDITION"
)
# The resolution of shares and quantiles (parts of 1), and of means (parts of a step).
FINE = 1000
FINER = 16
MAX_LENGTH = 10_000
# Groups whose noisy count is below this many standard deviations of its noise are not used.
LEAST = 3.0


@dataclass(frozen=True)
class Statistic:
    """A statistic of the rows that meet a condition.

    Attributes:
        kind: "quantile", "mean" or "share".
        text: The text that the user wrote.
        column: The column of a quantile or a mean.
        level: The level of a quantile.
        event: The condition of a share.
        where: The condition that rows must meet; empty for none.
    """

    kind: str
    text: str
    column: str = ""
    level: float = 0.5
    event: str = ""
    where: str = ""

    @classmethod
    def read(cls, schema: Schema, text: str) -> Statistic:
        """A statistic from its text, checked against the schema."""
        found = None
        if isinstance(text, str) and len(text) <= MAX_LENGTH and is_unicode(text):
            found = re.match(r"\s*(median|quantile|mean|share)\s*\(", text, re.IGNORECASE)
        if found is None:
            raise WorkloadError(f"{text!r:.80} is no statistic; write {FORMS}")
        kind = found[1].lower()
        end = _closing(text, found.end())
        rest = re.fullmatch(r"\)\s*(?:where\b(.+))?;?\s*", text[end:], re.IGNORECASE | re.DOTALL)
        if end < 0 or rest is None:
            raise WorkloadError(f"{text!r:.80} is no statistic; write {FORMS}")
        inner, where = (_bare(each) for each in (text[found.end() : end], rest[1] or ""))
        if where:
            parse_predicate(schema, where)
        if kind == "share":
            parse_predicate(schema, inner)
            return cls("share", text, event=inner, where=where)
        name, _, level = inner.rpartition(",") if kind == "quantile" else (inner, "", "0.5")
        column = column_named(schema, name.strip(), f"{text!r:.80}")
        if not isinstance(column, Numeric):
            raise WorkloadError(f"{text!r:.80}: column {column.name!r} holds no numbers")
        try:
            number = float(level)
        except ValueError:
            number = math.nan
        if not 1 / FINE <= number <= 1 - 1 / FINE:
            raise WorkloadError(f"{text!r:.80}: a quantile is between 0.001 and 0.999")
        return cls("mean" if kind == "mean" else "quantile", text, column.name, number, where=where)


def _closing(text: str, start: int) -> int:
    """The position of the parenthesis that closes the one before ``start``, outside quotes."""
    depth, quote = 1, ""
    for place in range(start, len(text)):
        sign = text[place]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        else:
            depth += (sign == "(") - (sign == ")")
            if depth == 0:
                return place
    return -1


def _bare(condition: str) -> str:
    """A condition that can be put in parentheses: no semicolon, and a line end after a comment."""
    bare = condition.strip().rstrip(";").strip()
    return bare + "\n" if "--" in bare else bare


def derive(measured: Measurements, statistics: Sequence[Statistic]) -> Measurements | None:
    """The statistics as measurements of sums; None if no statistic has enough rows.

    Args:
        measured: The noisy answers.
        statistics: The statistics; those with too few rows are left out.
    """
    terms = [_term(measured, each) for each in statistics]
    found = [term for term in terms if term is not None]
    if not found:
        return None
    schema = measured.workload.schema
    return Measurements(
        Workload(schema, (Sums(schema, [parts for parts, _ in found]),)),
        np.zeros(len(found)),
        np.array([scale for _, scale in found]),
        measured.n_records,
        ("",) * len(found),
        measured.private,
        measured.neighbours,
    )


def check_derivable(workload: Workload, statistics: Sequence[Statistic]) -> None:
    """Refuse statistics that cannot be estimated from the queries of a workload."""
    groups = workload.num_groups
    # Any answers serve, as long as every cell has enough rows.
    stand_in = Measurements(
        workload,
        np.full(workload.size, 1e6),
        np.ones(groups),
        10**6,
        ("",) * groups,
        private=False,
    )
    derive(stand_in, statistics)


def _term(measured: Measurements, statistic: Statistic) -> tuple[list[Part], float] | None:
    """The parts of a sum that should be zero, and the standard deviation of its noise."""
    schema = measured.workload.schema
    known = _estimate(measured, statistic)
    where = statistic.where
    if statistic.kind == "share":
        inside, base, deviation = known
        if base <= LEAST * deviation(0.0):
            return None
        share = min(max(inside / base, 0.0), 1.0)
        if deviation(share) == 0:  # the share is 0 or 1 for every table
            return None
        event = f"({statistic.event})" + (f" AND ({where})" if where else "")
        return _parts(FINE, None, event, share * FINE, where), FINE * deviation(share)
    column = expect_type(Numeric, schema[statistic.column])
    estimate: ColumnEstimate = known
    total = float(estimate.counts.sum())
    if total <= LEAST * estimate.deviation(np.ones(len(estimate.counts))):
        return None
    name = '"' + column.name.replace('"', '""') + '"'
    present = f"{name} IS NOT NULL" + (f" AND ({where})" if where else "")
    if statistic.kind == "quantile":
        at, weights = estimate.quantile(statistic.level)
        level = float(np.clip(weights @ estimate.counts / total, 0.0, 1.0))
        below = f"{name} < {literal(column, at)}" + (f" AND ({where})" if where else "")
        # The position of a value within its segment is not known.
        part = weights * (1 - weights)
        somewhere = float((np.sqrt(part) * estimate.counts).sum()) / 2
        scale = FINE * math.hypot(estimate.deviation(weights - level), somewhere)
        return _parts(FINE, None, below, level * FINE, present), scale
    low, high = column.bounds
    middles = (estimate.middles - low) * STEPS / (high - low)
    mean = float(np.clip(middles @ estimate.counts / total, 0, STEPS))
    # The position of a value within its segment is not known.
    unknown = (
        estimate.widths * STEPS / (high - low) / math.sqrt(12) * np.maximum(estimate.counts, 0)
    )
    scale = math.hypot(estimate.deviation(middles - mean), float(np.sqrt((unknown**2).sum())))
    if estimate.summed is not None:
        steps, noise = estimate.summed
        mean = float(np.clip(steps / total, 0, STEPS))
        scale = math.hypot(noise, mean * estimate.deviation(np.ones(len(estimate.counts))))
    return _parts(FINER, statistic.column, where, mean * FINER, present), FINER * scale


def _parts(factor: int, column: str | None, one: str, other: float, base: str) -> list[Part]:
    found = [Part(factor, column, one)]
    if round(other):
        found.append(Part(-round(other), None, base))
    return found


def _estimate(measured: Measurements, statistic: Statistic) -> Any:
    """An estimate of a statistic from measured tables; an error if no table determines it."""
    schema = measured.workload.schema
    where = parse_predicate(schema, statistic.where) if statistic.where else ConstantTruth(TRUE)
    if statistic.kind == "share":
        event = both([parse_predicate(schema, statistic.event), where])
        return _share(measured, statistic, event, where)
    position = schema.names.index(statistic.column)
    found: list[tuple[tuple[float, ...], Vector, Vector]] = []
    for features, counts, scale in tables_of(measured):
        mask = mask_of(schema, features, where, position)
        if mask is None:
            continue
        own = [feature.position for feature in features].index(position)
        others = tuple(axis for axis in range(len(features)) if axis != own)
        sizes = mask.sum(axis=others, dtype=np.float64)
        cells = np.where(mask, counts, 0.0).sum(axis=others)
        segments = len(features[own].breaks) + 1  # the cell after the last one is null
        found.append((features[own].breaks, cells[:segments], scale**2 * sizes[:segments]))
    if not found:
        columns = [schema.names[place] for place in {position, *columns_of_truth(where)}]
        raise MeasurementError(
            f"{statistic.text!r} does not follow from the workload: no table of "
            f"{' x '.join(sorted(columns))} is measured whose cells tell it; measure one, such as "
            f"tree:{len(columns)}"
        )
    column = schema.columns[position]
    public = records_are_public(measured.neighbours, schema.unit)
    if not statistic.where and not column.nullable and public:
        # Every row is in some segment, and the number of rows is public.
        exact = min(float(variances.min()) for _, _, variances in found) * 1e-4
        found.append(((), np.array([float(measured.n_records)]), np.array([exact])))
        return column_estimate(column, found, _summed(measured, statistic), public=1)
    return column_estimate(column, found, _summed(measured, statistic))


def _share(measured: Measurements, statistic: Statistic, event: Truth, where: Truth) -> Any:
    """The estimated rows of the event and of the base, and the deviation of a share.

    The estimate uses the one table whose base has the least variance.
    """
    schema = measured.workload.schema
    best = None
    for features, counts, scale in tables_of(measured):
        base, inside = (mask_of(schema, features, truth) for truth in (where, event))
        if base is None or inside is None:
            continue
        if best is None or scale**2 * base.sum() < best[2] ** 2 * best[1].sum():
            best = (inside, base, scale, counts)
    if best is None:
        columns = sorted(schema.names[p] for p in columns_of_truth(event) | columns_of_truth(where))
        raise MeasurementError(
            f"{statistic.text!r} does not follow from the workload: no table of "
            f"{' x '.join(columns)} is measured whose cells tell it"
        )
    inside, base, scale, counts = best

    def deviation(share: float) -> float:
        return float(scale * np.sqrt((base * ((inside & base) - share) ** 2).sum()))

    return float(counts[inside].sum()), float(counts[base].sum()), deviation


def _summed(measured: Measurements, statistic: Statistic) -> tuple[float, float] | None:
    """The sum of a column and its noise, if this very sum was measured."""
    wanted = Part(1, statistic.column, statistic.where)
    for each in QueryLayout.of(measured.workload.families).sums:
        if each.parts == (wanted,):
            group = int(np.searchsorted(measured.workload.offsets, each.query))
            return float(measured.counts[each.query]), float(measured.scales[group])
    return None
