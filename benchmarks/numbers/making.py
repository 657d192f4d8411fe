"""Synthetic tables of the benchmark: one Parquet file for each table, system, budget and seed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from benchmarks.numbers.datasets import name_of, table_of

DELTA = 1e-9


class Run(NamedTuple):
    """One synthetic table.

    Attributes:
        data: The real table.
        system: The name of the system that makes it.
        epsilon: The ε of its budget.
        seed: The seed of the noise and of the search.
    """

    data: str
    system: str
    epsilon: float
    seed: int

    def path(self, folder: Path) -> Path:
        """The file of the synthetic table."""
        return folder / f"{name_of(self.data)}-{self.system}-{self.epsilon:g}-{self.seed}.parquet"


def make(run: Run, folder: Path) -> None:
    """Make a synthetic table by default settings, with seeded noise; a finished one is kept.

    Args:
        run: The run.
        folder: The folder of the tables.
    """
    from private_gsd import Synthesizer

    path = run.path(folder)
    if path.exists():
        return
    schema, table = table_of(run.data)
    synth = Synthesizer(schema, run.epsilon, random_state=run.seed)
    begin, cpu = time.perf_counter(), time.process_time()
    synth.fit(table, insecure_noise_seed=run.seed)
    seconds = time.perf_counter() - begin, time.process_time() - cpu
    made = synth.sample()
    if hasattr(made, "to_arrow"):
        made = made.to_arrow()
    path.with_suffix(".json").write_text(json.dumps(seconds))
    unfinished = path.with_suffix(".part")
    pq.write_table(made, unfinished)
    unfinished.rename(path)


def score(run: Run, folder: Path) -> None:
    """Compare one synthetic table with the real one; a finished comparison is kept."""
    from benchmarks.numbers.scores import read, scores

    path = run.path(folder)
    target = path.with_suffix(".scores.json")
    if not path.exists() or (target.exists() and target.stat().st_mtime > path.stat().st_mtime):
        return
    schema, table = table_of(run.data)
    found = scores(schema, read(table, schema), read(path, schema), run.seed)
    target.write_text(json.dumps({**run._asdict(), **found}))
