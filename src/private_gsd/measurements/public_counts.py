"""Public counts: conditions in SQL, and the known number of rows that meet each."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.measurements.contradictions import Contradictions
from private_gsd.privacy.measuring import MAX_RECORDS
from private_gsd.sql.parsing import parse_predicate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth


def whole_counts(counts: Any) -> dict[str, int]:
    """Public counts with Python integers; anything but whole numbers of rows is refused."""
    if not isinstance(counts, dict):
        raise WorkloadError(f"public counts are given as {{condition: rows}}, not {counts!r:.80}")
    for condition, number in counts.items():
        if not isinstance(condition, str):
            raise WorkloadError(
                f"a public count is of a condition in SQL, not of {condition!r:.80}"
            )
        whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not whole or not 0 <= number <= MAX_RECORDS:
            raise WorkloadError(
                f"the public count of {condition!r:.80} must be a whole number of rows"
            )
    return {condition: int(number) for condition, number in counts.items()}


def check_counts(schema: Schema, counts: Mapping[str, int]) -> None:
    """Refuse conditions that the schema does not allow, and counts that contradict each other."""
    known: dict[Truth, str] = {}
    for condition in counts:
        truth = parse_predicate(schema, condition)
        if truth in known:
            raise WorkloadError(f"{known[truth]!r:.80} and {condition!r:.80} ask for the same rows")
        known[truth] = condition
    Contradictions(schema, counts, tuple(known)).check()


def require_possible(schema: Schema, counts: Mapping[str, int], n_records: int) -> None:
    """Refuse counts that no table with this public number of records can have."""
    for condition, number in counts.items():
        if number > n_records:
            raise WorkloadError(
                f"the public count of {condition!r:.80} is {number:,}, and the table has "
                f"{n_records:,} rows"
            )
    truths = tuple(parse_predicate(schema, condition) for condition in counts)
    Contradictions(schema, counts, truths).check_rows(n_records)


def read_public_counts(path: Path) -> dict[str, int]:
    """Public counts from a CSV file with the columns condition and count."""
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
        raise WorkloadError(f"{path}: holds no public counts")
    return found
