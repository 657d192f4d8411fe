"""Given columns: how well the others go with them, on the simulated census.

    python -m benchmarks.given

A release of 40,000 people (ε = 1, all pairs, N' = 4,000), and other people of whom some columns are
given: everybody, women over 60, and people under 25. The mean error of all pairs against all real
people of that kind: of the rows that ``sample_given`` makes, and of as many real rows. The noise is
seeded; a release would not be private.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from private_gsd import Synthesizer, datasets
from private_gsd.counting.exact import count
from private_gsd.data.encoding import Encoder
from private_gsd.workloads.specs import workload_of

NAMES = ["region", "sex", "age", "marital", "education", "employment", "hours", "income"]
NAMES += ["children", "tenure"]
WORKLOAD = ["categorical:2", "tree:2", "numeric:2"]
GIVEN = [["sex", "age"], ["sex", "age", "region", "marital"]]
GIVEN += [["sex", "age", "education", "employment", "income"]]


def main() -> None:
    """Measure and report."""
    schema = datasets.census_schema().select(NAMES)
    encoder = Encoder(schema)
    workload = workload_of(schema, WORKLOAD)
    people, others = (
        datasets.census(rows, seed=seed).select(NAMES).combine_chunks().to_batches()[0]
        for rows, seed in ((40_000, 3), (4_000, 9))
    )
    synth = Synthesizer(schema, 1.0, workload=WORKLOAD, rows=4000).fit(
        people, insecure_noise_seed=1
    )
    female = float(list(schema["sex"].values).index("female"))  # type: ignore[attr-defined]
    table = Table("who", "rows", "given", "sample_given", "real rows")
    errors = []
    kinds: dict[str, Callable[[NDArray[np.float64]], NDArray[np.bool_]]] = {
        "everybody": lambda m: m[:, 2] >= 0,
        "women over 60": lambda m: (m[:, 1] == female) & (m[:, 2] > 60),
        "under 25": lambda m: m[:, 2] < 25,
    }
    for name, kind in kinds.items():
        real, given = encoder.encode(people), encoder.encode(others)
        mine = kind(given)
        real, given = real[kind(real)], np.ascontiguousarray(given[mine])
        truth = count(workload, np.asfortranarray(real)) / len(real)
        for columns in GIVEN:
            rows = others.filter(mine.tolist()).select(columns)
            whole = synth.sample_given(rows).combine_chunks().to_batches()[0]
            found = [
                float(np.abs(count(workload, np.asfortranarray(m)) / len(m) - truth).mean())
                for m in (encoder.encode(whole), given)
            ]
            errors.append(found)
            texts = (f"{each:.5f}" for each in found)
            table.add_row(name, f"{len(given):,}", ", ".join(columns), *texts)
    table.add_row("mean", "", "", *(f"{each:.5f}" for each in np.mean(errors, axis=0)))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
