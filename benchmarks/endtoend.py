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

from benchmarks.measure import Phases, Result, measure, report
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
    """From CSV to CSV, by the first and the last report of each phase."""
    begin = time.perf_counter()
    seen = Phases()
    synth = Synthesizer(datasets.census_schema(), epsilon=1.0)
    synth.fit(folder / "census.csv", progress=seen)
    fitted = time.perf_counter()
    pyarrow.csv.write_csv(synth.release_.synthetic, folder / "synthetic.csv")
    end = time.perf_counter()
    phases = {
        "read, check, encode, count": seen.last["counting"] - begin,
        "pay, draw noise, save, denoise": seen.first["searching"] - seen.last["counting"],
        "search": seen.seconds("searching"),
        "release": fitted - seen.last["searching"],
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
