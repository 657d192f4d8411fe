"""Evidence: what is known beside our own measurements, as more targets of the search.

Public totals are exact and cost nothing; measurements made elsewhere count by their variances;
derived targets follow from what was measured, and are as private as that. Totals and measurements
made elsewhere are not covered by our ledger.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import MeasurementError, WorkloadError
from private_gsd.measurements.contradictions import Totals
from private_gsd.measurements.derived_statistics import derive
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.measuring import MAX_ROWS
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import Sums, Workload, predicates
from private_gsd.workloads.sums import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from private_gsd.measurements.derived_statistics import Statistic
    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth

# Totals count as if their noise were so much less than that of the best measurement.
SHARPER = 10.0


def check_totals(schema: Schema, totals: Any) -> dict[str, int]:
    """Public totals: conditions in SQL, and how many rows meet each."""
    if not isinstance(totals, dict):
        raise WorkloadError(f"totals are given as {{condition: rows}}, not {totals!r:.80}")
    for condition, number in totals.items():
        if not isinstance(condition, str):
            raise WorkloadError(f"a total is of a condition in SQL, not of {condition!r:.80}")
        whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not whole or not 0 <= number <= MAX_ROWS:
            raise WorkloadError(f"the total of {condition!r:.80} must be a whole number of rows")
    known: dict[Truth, str] = {}
    for condition in totals:
        truth = parse_predicate(schema, condition)
        if truth in known:
            raise WorkloadError(f"{known[truth]!r:.80} and {condition!r:.80} ask for the same rows")
        known[truth] = condition
    found = {condition: int(number) for condition, number in totals.items()}
    Totals(schema, found, tuple(known)).check()
    return found


def require_possible(schema: Schema, totals: Mapping[str, int], rows: int) -> None:
    """Refuse totals that a table of so many rows cannot have, where that number is public."""
    for condition, number in totals.items():
        if number > rows:
            raise WorkloadError(
                f"the total of {condition!r:.80} is {number:,}, and the table has {rows:,} rows"
            )
    truths = tuple(parse_predicate(schema, condition) for condition in totals)
    Totals(schema, totals, truths).check_rows(rows)


def read_totals(path: Path) -> dict[str, int]:
    """Public totals from a CSV file with the columns condition and count."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None or set(reader.fieldnames) != {"condition", "count"}:
                raise WorkloadError(f"{path}: the columns must be condition and count")
            found: dict[str, int] = {}
            for line, row in enumerate(reader, start=2):
                number, condition = (row["count"] or "").strip(), (row["condition"] or "").strip()
                sound = number.isascii() and number.isdigit() and len(number) <= 15
                if not sound or not condition or None in row:  # None: more cells than columns
                    raise WorkloadError(
                        f"{path}, line {line}: expected a condition and a whole number of rows, "
                        f"such as \"sex = 'F'\",1200"
                    )
                if condition in found:
                    raise WorkloadError(f"{path}, line {line}: {condition!r} stands there twice")
                found[condition] = int(number)
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise WorkloadError(f"{path}: is no CSV file: {error}") from None
    if not found:
        raise WorkloadError(f"{path}: holds no totals")
    return found


def join_outside(schema: Schema, outside: Sequence[Any]) -> Measurements | None:
    """Measurements made elsewhere, as one; each of the same columns."""
    total: Measurements | None = None
    for each in outside:
        if not isinstance(each, Measurements):
            raise MeasurementError(f"evidence is given as Measurements, not {type(each).__name__}")
        if each.workload.schema.columns != schema.columns:
            raise MeasurementError("evidence must be about the columns of the schema, all of them")
        same = replace(each, workload=replace(each.workload, schema=schema))
        if total is not None:
            same = resized(same, total.rows)
            same = replace(same, neighbours=total.neighbours)
        total = same if total is None else total + same
    return total


def resized(measured: Measurements, rows: int) -> Measurements:
    """The same shares, as counts of a table of another size; their noise, too."""
    ratio = rows / measured.rows
    return replace(
        measured, counts=measured.counts * ratio, scales=measured.scales * ratio, rows=rows
    )


def kinds_beside(
    schema: Schema,
    totals: Mapping[str, int],
    outside: Measurements | None,
    statistics: Sequence[Statistic],
) -> Workload | None:
    """Queries of all kinds that ``supplemented`` adds to measurements, as far as that is known."""
    found = [] if outside is None else [outside.workload]
    if statistics:
        found.append(Workload(schema, (Sums(schema, [[Part(1, None)]]),)))
    if totals:
        found.append(predicates(schema, list(totals)[:1]))
    return sum(found[1:], start=found[0]) if found else None


def supplemented(
    measured: Measurements,
    totals: Mapping[str, int],
    outside: Measurements | None,
    statistics: Sequence[Statistic],
) -> Measurements:
    """Our measurements, and all that is known beside them.

    Args:
        measured: Ours.
        totals: Public totals.
        outside: Measurements made elsewhere.
        statistics: What to derive from both.
    """
    found = measured
    if outside is not None:
        same = resized(outside, measured.rows)
        found = found + replace(same, neighbours=measured.neighbours)
    targets = derive(found, statistics) if statistics else None
    if targets is not None:
        found = found + targets
    if totals:
        workload = predicates(measured.workload.schema, list(totals))
        sharpest = float((measured.scales / measured.workload.units).min())
        found = found + Measurements(
            workload,
            np.array(list(totals.values()), dtype=np.float64),
            np.full(len(totals), sharpest / SHARPER),
            measured.rows,
            ("",) * len(totals),
            measured.private,
            measured.neighbours,
        )
    return found
