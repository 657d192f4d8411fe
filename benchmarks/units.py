"""Units of protection: error by the number of rows that are taken, and the cost of taking them.

python -m benchmarks.units error
python -m benchmarks.units scale [--rows 50000000]

Simulated visits. A patient has 1 to 30 of them; those who have many are older, sicker and in other
wards, so that what patients are like on average is not what visits are like on average. The errors
are those of all pairs of columns, measured at once with ε = 1 for a patient, before any denoising.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.measure import peak_mb
from private_gsd import (
    Categorical,
    Integer,
    LocalAccountant,
    RhoBudget,
    Schema,
    SecureNoise,
    Unit,
    allocate,
    exact_counts,
    measure,
    workloads,
)
from private_gsd.counting.comparison import shares_of
from private_gsd.schema.neighbours import relation_of
from private_gsd.workloads import Workload

WARDS = [f"ward {number}" for number in range(12)]
REASONS = [f"reason {number}" for number in range(40)]
COLUMNS = [
    Categorical("sex", values=["f", "m"]),
    Categorical("ward", values=WARDS),
    Categorical("reason", values=REASONS),
    Integer("age", lower=0, upper=99),
    Integer("month", lower=1, upper=12),
    Integer("nights", lower=0, upper=29),
]
MOST = 30
DELTA = 1e-10


def visits(units: int, seed: int, first: int = 0) -> pa.Table:
    """The visits of some patients, in the order of the months."""
    rng = np.random.default_rng([seed, first])
    sick = rng.beta(1.5, 4.0, units)
    sizes = 1 + rng.binomial(MOST - 1, sick)
    ids = np.repeat(np.arange(first, first + units), sizes)
    rows = len(ids)
    ill = sick[ids - first]
    sex = rng.random(units)[ids - first] < 0.5
    age = np.clip(100 * rng.beta(2, 2, units)[ids - first] * (0.5 + ill), 0, 99)
    ward = np.minimum(rng.beta(1 + 3 * ill, 2, rows) * len(WARDS), len(WARDS) - 1)
    reason = np.minimum(rng.beta(1 + 4 * ill, 3, rows) * len(REASONS), len(REASONS) - 1)
    month = rng.integers(1, 13, rows)
    order = np.argsort(month, kind="stable")
    table = pa.table(
        {
            "patient": ids,
            "sex": np.where(sex, "m", "f"),
            "ward": pa.DictionaryArray.from_arrays(ward.astype(np.int8), WARDS).dictionary_decode(),
            "reason": pa.DictionaryArray.from_arrays(
                reason.astype(np.int8), REASONS
            ).dictionary_decode(),
            "age": age.astype(np.int64),
            "month": month,
            "nights": np.minimum(rng.geometric(0.5 - 0.4 * ill), 30) - 1,
        }
    )
    return table.take(pa.array(order))


def asked(unit: Unit | None) -> Workload:
    """All pairs of columns."""
    schema = Schema(COLUMNS, unit=unit)
    tens = [(low, low + 9) for low in range(0, 100, 10)]
    few = [(number, number) for number in range(6)] + [(6, 29)]
    columns: dict[str, Any] = {
        **dict.fromkeys(("sex", "ward", "reason"), ...),
        "age": tens,
        "month": [(number, number) for number in range(1, 13)],
        "nights": few,
    }
    return workloads.range_marginals(schema, columns, 2)


def measured(workload: Workload, table: pa.Table, rho: float) -> np.ndarray:
    """The noisy shares of all pairs, measured at once."""
    exact = exact_counts(workload, table)
    budget = RhoBudget.from_rho(rho, DELTA, "gdp")
    accountant = LocalAccountant(budget, relation_of("replace-one", workload.schema.unit_column))
    units = [group.units for group in allocate(workload, budget).groups]
    made = measure(
        exact,
        range(workload.num_groups),
        units,
        accountant=accountant,
        noise=SecureNoise(),
        n_records=exact.n_records,  # its own noise is far smaller than that of a cell
    )
    return made.shares


def distance(workload: Workload, one: np.ndarray, other: np.ndarray) -> float:
    """The mean total variation distance of a pair of columns."""
    sums = np.add.reduceat(np.abs(one - other), workload.offsets[:-1])
    return float(sums.mean() / 2)


def error(units: int, seed: int) -> None:
    """The error of all pairs, against visits and against patients, by K and weighting."""
    table = visits(units, seed)
    plain = table.drop_columns(["patient"])
    rho = RhoBudget.from_epsilon(1.0, DELTA, "gdp").rho
    of_rows = shares_of(exact_counts(asked(None), plain))
    of_units = shares_of(exact_counts(asked(Unit("patient", MOST)), table))
    print(f"{units:,} patients, {len(table):,} visits, epsilon 1, delta {DELTA}")
    print("K, weighting, distance from visits, of it bounding; from patients, of it bounding")
    workload = asked(None)
    by_hand = measured(workload, plain, rho / MOST**2)
    far = [distance(workload, by_hand, truth) for truth in (of_rows, of_units)]
    print(f"{MOST}, by hand: all rows, rho / {MOST}², {far[0]:.4f}, 0; {far[1]:.4f}, -")
    for most in (1, 2, 5, 10, 20, 30):
        for weighting in ("units", "rows"):
            workload = asked(Unit("patient", most, weighting))
            known = shares_of(exact_counts(workload, table))
            noisy = measured(workload, table, rho)
            far = [
                distance(workload, each, truth)
                for truth in (of_rows, of_units)
                for each in (noisy, known)
            ]
            print(
                f"{most}, {weighting}, {far[0]:.4f}, {far[1]:.4f}; {far[2]:.4f}, {far[3]:.4f}",
                flush=True,
            )


def scale(rows: int, folder: Path, mode: str) -> None:
    """Count all pairs of a table of so many rows, and ten rows a patient, from Parquet."""
    units = rows // 10
    files = folder / f"visits-{rows}"
    if not files.exists():
        files.mkdir()
        begun, made = 0, 0
        while made < rows:
            part = visits(50_000, 1, begun)
            pa.parquet.write_table(part, files / f"{begun}.parquet")
            begun, made = begun + 50_000, made + len(part)
        print(f"{made:,} rows of {begun:,} patients in {len(list(files.iterdir()))} files")
    del units
    unit = Unit("patient", 8) if mode == "units" else None
    begun_at, wall = time.process_time(), time.perf_counter()
    exact = exact_counts(asked(unit), files)
    spent = time.process_time() - begun_at
    print(
        f"{mode}: {exact.n_records:,} records, {spent:,.0f} s of processor time, "
        f"{time.perf_counter() - wall:,.0f} s, peak {peak_mb():,.0f} MB"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["error", "scale"])
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--mode", choices=["units", "plain"], default="units")
    options = parser.parse_args()
    if options.what == "error":
        error(options.units, options.seed)
    else:
        scale(options.rows, options.folder, options.mode)


if __name__ == "__main__":
    main()
