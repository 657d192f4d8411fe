"""Numbers: do synthetic numeric columns keep their shape?

    python -m benchmarks.numbers --data FILE.csv|census [--data …] --out FOLDER
        [--epsilons 0.23 1 3] [--seeds 5] [--jobs 2] [--system NAME] [--make-only]
        [--figures FOLDER]

Makes synthetic tables by default settings and compares them with the real one, column by column.
Tables that stand in the folder are not made again, and all tables in the folder are compared,
whichever system made them: ``--system before`` with an older version of the package on PYTHONPATH
makes tables to compare with, and ``benchmarks/numbers/other_systems.py`` those of other systems.
With ``--figures``, the tables of the first seed at ε = 1 are drawn, as SVG files. Models are tested
on the real rows. The noise is seeded; a release would not be private.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.numbers.datasets import name_of
from benchmarks.numbers.making import Run, make, score


def found_runs(data: str, folder: Path) -> list[Run]:
    """The runs whose tables stand in the folder."""
    found = []
    for path in sorted(folder.glob(f"{name_of(data)}-*.parquet")):
        system, epsilon, seed = path.stem.removeprefix(f"{name_of(data)}-").rsplit("-", 2)
        found.append(Run(data, system, float(epsilon), int(seed)))
    return found


def main() -> None:
    """Make, compare and report."""
    parser = argparse.ArgumentParser(description="Do numeric columns keep their shape?")
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.23, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--system", default="ours")
    parser.add_argument("--make-only", action="store_true")
    parser.add_argument("--figures", type=Path)
    options = parser.parse_args()
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    wanted = itertools.product(range(options.seeds), options.epsilons, options.data)
    runs = [Run(data, options.system, epsilon, seed) for seed, epsilon, data in wanted]
    everything(make, runs, folder, options.jobs)
    if options.make_only:
        return
    from benchmarks.numbers.reporting import report

    for data in options.data if options.figures else []:
        from benchmarks.numbers.drawing import draw

        drawn = [each for each in found_runs(data, folder) if (each.epsilon, each.seed) == (1, 0)]
        draw(data, drawn, folder, options.figures / f"numbers_{name_of(data)}.svg")
    made = [run for data in options.data for run in found_runs(data, folder)]
    everything(score, made, folder, options.jobs)
    report([json.loads(run.path(folder).with_suffix(".scores.json").read_text()) for run in made])


def everything(do: Any, runs: list[Run], folder: Path, jobs: int) -> None:
    """Do something with all runs, in processes of their own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for done in [pool.submit(do, run, folder) for run in runs]:
            done.result()


if __name__ == "__main__":
    main()
