"""Ablations: Algorithm 1 as it stands in the paper, with other settings, all else alike.

The questions are all pairs of categorical columns and every categorical column by every number's
tree: of the employment task these are 10,570, which is what the paper's table of this study counts.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd import GeneticSearch, Measurements, Sweep, evolve
from private_gsd.counting.comparison import share_errors
from private_gsd.counting.exact import count
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from experiments.data import Data
    from experiments.experiment import Row

PAIRS = ("categorical:2", "tree:2")


@lru_cache(maxsize=1)
def counted(data: Data) -> Sweep:
    """The exact counts, for all runs of this process."""
    return Sweep(data.schema, data.table, workload_of(data.schema, PAIRS))


@lru_cache(maxsize=4)
def measured(data: Data, epsilon: float, seed: int) -> Measurements:
    """Noisy answers, with seeded noise."""
    (run,) = counted(data).run(
        [epsilon],
        seeds=[seed],
        settings=[{"rows": 1, "projector": "gsd:generations=0"}],
        insecure=True,
        n_jobs=1,
    )
    return run.measurements


def searched(data: Data, epsilon: float, seed: int, **settings: Any) -> list[Row]:
    """One search with Algorithm 1: its errors, and how long the processor worked at it.

    The search has one thread: on an idle machine this is the time that it takes, and on a busy one
    it does not count what others take.
    """
    noisy = measured(data, epsilon, seed)
    config = GeneticSearch.paper(**settings)
    evolve(noisy, replace(config, generations=0), seed=seed, threads=1)  # loads the kernels
    begin = time.process_time()
    found = evolve(noisy, config, seed=seed, threads=1)
    took = time.process_time() - begin
    workload = noisy.workload
    made = count(workload, found.matrix) / len(found.matrix)
    true = count(workload, data.matrix) / len(data.matrix)
    errors = share_errors(true, made)
    return [
        {
            "queries": workload.size,
            "mean": errors.mean,
            "max": errors.max,
            "l2_of_loss": float(np.sqrt(((noisy.shares - made) ** 2).sum())),
            "search_seconds": took,
            "generations_run": found.generations,
            "reason": found.reason,
        }
    ]
