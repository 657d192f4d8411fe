"""End to end: a CSV to a synthetic CSV, by phase.

    python -m benchmarks.endtoend

30,000 rows of the simulated census (24 mixed columns), default settings, ε = 1, on all cores.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.csv

from benchmarks.measure import Result, measure, report
from private_gsd import Synthesizer, datasets

ROWS = 30_000


def prepared() -> Path:
    """A CSV, and compiled kernels."""
    folder = Path(tempfile.mkdtemp())
    table = datasets.census(ROWS)
    pyarrow.csv.write_csv(table, folder / "census.csv")
    Synthesizer(datasets.census_schema(), 1.0, rows=50).fit(table.slice(0, 500))
    return folder


def everything(folder: Path) -> tuple[int, dict[str, Any]]:
    """From CSV to CSV; the phases end when the next one is first told of."""
    begin = time.perf_counter()
    ends: dict[str, float] = {}

    def tell(what: str, now: Any) -> None:  # noqa: ARG001
        ends[what] = time.perf_counter()
        ends.setdefault(f"{what} began", time.perf_counter())

    synth = Synthesizer(datasets.census_schema(), epsilon=1.0).fit(folder / "census.csv", tell=tell)
    fitted = time.perf_counter()
    pyarrow.csv.write_csv(synth.release.synthetic, folder / "synthetic.csv")
    end = time.perf_counter()
    phases = {
        "read, check, encode, answer": ends["answering"] - begin,
        "pay, draw noise, keep, begin the search": ends["searching began"] - ends["answering"],
        "search": ends["searching"] - ends["searching began"],
        "release": fitted - ends["searching"],
        "write CSV": end - fitted,
    }
    return ROWS, phases


def main() -> None:
    """Measure and report."""
    whole = measure("CSV to synthetic CSV", everything, prepared, cores=2, repeats=3)
    phases = [
        Result(f"  {name}", ROWS, seconds, whole.peak_mb) for name, seconds in whole.details.items()
    ]
    report("30,000 rows x 24 columns, default settings, two cores", [whole, *phases])


if __name__ == "__main__":
    main()
