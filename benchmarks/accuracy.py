"""Accuracy: errors of our defaults beside every rival's, at the same budget.

    python -m benchmarks.accuracy --data FILE --out FILE [--part marginals|mixed]
        [--epsilons …] [--seeds 5] [--systems …] [--jobs 2] [--minutes M] [--device]
    python -m benchmarks.accuracy --report FILE [--figure FILE.svg]

``marginals``: all pairs and all triples of discrete columns; mean and largest error of the answers,
as shares of the rows. ``mixed``: all pairs of columns of any kind, measured on four fifths of the
rows; errors of the answers and of 2,000 random prefixes and 2,000 random halfspaces that nobody
measured, and the macro F1 of logistic regressions of three columns, trained on the synthetic rows
and tested on the last fifth.

Noise is calibrated equally for all: δ = 1/N², and the least noise that is known to do, by the curve
of Gaussians where all noise is Gaussian and that of zCDP for systems that select; replace-one
neighbours, or ``--neighbours add-remove``. It is seeded, so that anyone gets the same figures; a
release would not be private. A finished run is a line of the file, and is not run again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from private_gsd.system.operating_system import cores

EPSILONS = (0.07, 0.23, 0.52, 0.74, 1.0)
PARTS = {"marginals": ("categorical:2", "categorical:3"), "mixed": ("pairs",)}
HOLDOUT = 5  # one row in so many is held out for the models
UNSEEN = 2000
# The search as in the paper.
PAPER = "gsd:denoise=false,weights=equal"
# The paper's sizes of tables for each; 0 is as many rows as the data has.
SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "ours": [{"mechanism": "auto"}],
    # For models of each of the three columns in turn; the F1 of its models alone counts.
    "ours, for models": [{"mechanism": "auto", "for_models": place} for place in range(3)],
    # What somebody who knows the true answers could choose by hand.
    "ours, by hand": [
        {"mechanism": "one-shot", "rows": 2000},
        {"mechanism": "one-shot", "rows": 20_000},
        {"mechanism": "layered", "rows": 20_000},
        {"mechanism": "adaptive", "epochs": 10, "rows": 5000},
        {"mechanism": "adaptive", "epochs": 25, "rows": 5000},
        {"mechanism": "mst", "rows": 5000},
        {"mechanism": "one-shot", "projector": "gsd:denoise=false", "rows": 5000},
    ],
    "GSD, one-shot": [{"projector": PAPER, "rows": 2000}],
    "GSD, adaptive": [
        {"mechanism": "adaptive", "epochs": t, "projector": PAPER, "rows": 2000}
        for t in (10, 25, 50)
    ],
    "RP": [{"projector": "rap", "rows": 50_000}],
    "GN": [{"projector": "gem", "rows": 50_000}],
    "PGM+EM": [{"mechanism": "adaptive", "epochs": 10, "projector": "pgm", "rows": 0}],
    "MST": [{"mechanism": "mst", "projector": "pgm", "rows": 0}],
    "AIM": [{"mechanism": "aim", "projector": "pgm", "rows": 0}],
}
OURS, FOR_MODELS, BY_HAND = "ours", "ours, for models", "ours, by hand"
NEIGHBOURS = ("replace-one", "add-remove")


@lru_cache(maxsize=2)
def tables(data: str, part: str) -> tuple[Any, Any, Any]:
    """The schema, the rows that are measured and those held out, encoded."""
    from private_gsd import Schema
    from private_gsd.evaluation.table_sample import sample_table

    schema = Schema.read(f"benchmarks/schemas/{Path(data).stem}.toml")
    matrix = sample_table(data, schema, limit=2**31).sample
    mixed = part == "mixed"
    out = np.arange(len(matrix)) % HOLDOUT == 0 if mixed else np.zeros(len(matrix), bool)
    return schema, matrix[~out], matrix[out]


@lru_cache(maxsize=2)
def counted(data: str, part: str, workload: str, neighbours: str) -> Any:
    """The exact counts, for all runs of this process."""
    from private_gsd import Encoder, Sweep
    from private_gsd.privacy.budget import default_delta
    from private_gsd.workloads.specs import default_specs, workload_of

    schema, matrix, _ = tables(data, part)
    specs = default_specs(schema, 2) if workload == "pairs" else [workload]
    return Sweep(
        schema,
        Encoder(schema).decode(matrix),
        workload_of(schema, specs),
        delta=default_delta(len(matrix)),
        neighbours=neighbours,  # type: ignore[arg-type]
    )


def sweep_of(run: dict[str, Any]) -> Any:
    """The sweep that a run is one of."""
    neighbours = run.get("neighbours", NEIGHBOURS[0])
    return counted(run["data"], run["part"], run["workload"], neighbours)


def predicted(run: dict[str, Any]) -> str | None:
    """The column that the models of a run predict, where it is for models of one."""
    from private_gsd.evaluation.metrics.machine_learning import default_targets

    place = run["settings"].get("for_models")
    schema, matrix, _ = tables(run["data"], run["part"])
    return None if place is None else default_targets(schema, matrix)[place]


def settings_of(run: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run, as a sweep takes them."""
    from private_gsd import GeneticSearch
    from private_gsd.mechanisms.defaults import choose_mechanism, choose_rows
    from private_gsd.mechanisms.registry import (
        conversion_of,
        mechanism_for_models,
        mechanism_with,
    )
    from private_gsd.privacy.budget import RhoBudget

    settings = dict(run["settings"])
    sweep = sweep_of(run)
    rows = len(tables(run["data"], run["part"])[1])
    mechanism, epochs = settings.pop("mechanism", "one-shot"), settings.pop("epochs", None)
    if mechanism == "auto":
        chosen, column = choose_mechanism(sweep.workload), predicted(run)
        if column is not None:
            chosen = mechanism_for_models(chosen, column)
        budget = RhoBudget.from_epsilon(run["epsilon"], sweep.delta, conversion_of(chosen))
        public = None if run.get("neighbours") == "add-remove" else rows
        fitted = choose_rows(chosen, sweep.workload, budget, public)
        return {
            "mechanism": chosen,
            "rows": fitted,
            "projector": GeneticSearch(for_models=column),
        }
    settings["rows"] = settings["rows"] or rows
    return {**settings, "mechanism": mechanism_with(mechanism, epochs=epochs)}


def perform(run: dict[str, Any]) -> dict[str, Any]:
    """One run, in a process of its own."""
    from private_gsd import LeftOutWarning

    warnings.simplefilter("ignore", LeftOutWarning)
    begin, cpu = time.perf_counter(), time.process_time()
    (made,) = sweep_of(run).run(
        [run["epsilon"]],
        seeds=[run["seed"]],
        settings=[settings_of(run)],
        insecure=True,
        evaluate=True,
        n_jobs=1,
    )
    found = {"mean": made.errors.mean, "max": made.errors.max}
    column = predicted(run)
    if column is not None:
        found = learned(run, made.matrix, [column])
    elif run["part"] == "mixed":
        found |= unseen(run, made.matrix)
    seconds = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
    return {**run, **found, **seconds}


def unseen(run: dict[str, Any], made: Any) -> dict[str, Any]:
    """Errors of queries that nobody measured, and scores of models."""
    from private_gsd.counting.exact import count
    from private_gsd.evaluation.metrics.machine_learning import default_targets
    from private_gsd.workloads import random_halfspaces, random_prefixes

    schema, matrix, _ = tables(run["data"], run["part"])
    found: dict[str, Any] = {}
    for name, make in (("prefixes", random_prefixes), ("halfspaces", random_halfspaces)):
        queries = make(schema, UNSEEN, seed=1)
        errors = np.abs(count(queries, matrix) / len(matrix) - count(queries, made) / len(made))
        found |= {f"{name} mean": float(errors.mean()), f"{name} max": float(errors.max())}
    return found | learned(run, made, default_targets(schema, matrix))


def learned(run: dict[str, Any], made: Any, targets: list[str]) -> dict[str, Any]:
    """Scores of models of some columns."""
    from private_gsd.evaluation.metrics.classifiers import MODELS
    from private_gsd.evaluation.metrics.machine_learning import learn

    schema, matrix, holdout = tables(run["data"], run["part"])
    found: dict[str, Any] = {}
    for task in learn(schema, made, matrix, holdout, targets, seed=run["seed"]):
        for score in task.scores:
            if score.model == MODELS[0]:
                found[f"F1 {task.target} {score.trained_on}"] = score.f1_macro
    return found


def key(run: dict[str, Any]) -> str:
    """What tells a run from others."""
    parts = ("part", "workload", "system", "settings", "epsilon", "seed")
    named = [Path(run["data"]).stem, run.get("neighbours", NEIGHBOURS[0])]
    return json.dumps([*named, *(run[name] for name in parts)])


def planned(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All runs, those of the first seed first."""
    return [
        {
            "data": options.data,
            "part": options.part,
            "neighbours": options.neighbours,
            "workload": workload,
            "system": system,
            "settings": settings,
            "epsilon": epsilon,
            "seed": seed,
        }
        for seed in range(options.seeds)
        for workload in PARTS[options.part]
        for epsilon in options.epsilons
        for system in options.systems
        if system != FOR_MODELS or options.part == "mixed"
        for settings in SYSTEMS[system]
    ]


def read(path: str) -> list[dict[str, Any]]:
    """The runs that are done."""
    if not Path(path).exists():
        return []
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line]


def run_all(options: argparse.Namespace) -> None:
    """Run what is not done yet, as long as there is time."""
    done = {key(run) for run in read(options.out)}
    left = [run for run in planned(options) if key(run) not in done]
    print(f"{len(left)} runs to do", flush=True)
    if not options.device:
        os.environ["JAX_PLATFORMS"] = "cpu"
    end = time.monotonic() + 60 * options.minutes
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        waiting = {pool.submit(perform, run): run for run in left}
        for future in as_completed(waiting):
            run = waiting[future]
            words = f"{run['workload']} {run['system']} ε = {run['epsilon']} seed {run['seed']}"
            if future.cancelled():
                continue
            error = future.exception()
            if error is None:
                with Path(options.out).open("a") as file:
                    file.write(json.dumps(future.result()) + "\n")
                found = future.result()
                errors = f"{found['mean']:.5f}, " if "mean" in found else ""
                words += f": {errors}{found['seconds']:.0f} s"
            else:
                words += f" failed: {error}"
            print(words, flush=True)
            if time.monotonic() > end:
                for other in waiting:
                    other.cancel()


def summary(runs: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """By data and workload, by ε, by system: means over seeds, of the best settings."""
    cells: dict[Any, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        relation = ", add-remove" if run.get("neighbours") == "add-remove" else ""
        workload = run["workload"] + relation
        place = Path(run["data"]).stem, workload, run["epsilon"], run["system"]
        cells[place][json.dumps(run["settings"])].append(run)
    found: dict[Any, Any] = defaultdict(lambda: defaultdict(dict))
    for (data, workload, epsilon, system), tried in cells.items():
        numbers: dict[str, float] = {}
        for each in tried.values():
            names = [name for name, value in each[0].items() if isinstance(value, float)]
            for name in set(names) - {"epsilon"}:
                value = float(np.mean([run[name] for run in each]))
                better = max if name.startswith("F1") else min
                numbers[name] = better(numbers.get(name, value), value)
        seeds = max(len(each) for each in tried.values())
        found[data, workload][epsilon][system] = {**numbers, "seeds": seeds}
    return found


def report(runs: list[dict[str, Any]]) -> None:
    """Tables in Markdown; the best in bold, ours against the best of the others."""
    for (data, workload), by_epsilon in sorted(summary(runs).items()):
        names = sorted({n for row in by_epsilon.values() for c in row.values() for n in c})
        for name in names:
            if name in ("seeds", "seconds", "cpu_seconds"):
                continue
            print(f"\n{data}, {workload}: {name}\n")
            epsilons = sorted(by_epsilon)
            print("| | " + " | ".join(f"ε = {each:g}" for each in epsilons) + " |")
            print("|---" * (len(epsilons) + 1) + "|")
            better = max if name.startswith("F1") else min
            rivals = []
            for epsilon in epsilons:
                others = [
                    cell[name]
                    for system, cell in by_epsilon[epsilon].items()
                    if system not in (OURS, FOR_MODELS, BY_HAND) and name in cell
                ]
                rivals.append(better(others) if others else float("nan"))
            for system in SYSTEMS:
                cells = [by_epsilon[epsilon].get(system, {}) for epsilon in epsilons]
                if not any(name in cell for cell in cells):
                    continue
                line = []
                for cell, best in zip(cells, rivals, strict=True):
                    text = f"{cell[name]:.5f}" if name in cell else ""
                    if name in cell and better(cell[name], best) == cell[name]:
                        text = f"**{text}**"
                    line.append(text)
                seeds = {cell["seeds"] for cell in cells if cell}
                print(f"| {system} ({min(seeds)} seeds) | " + " | ".join(line) + " |")
            ours = [by_epsilon[epsilon].get(OURS, {}).get(name) for epsilon in epsilons]
            if all(ours):
                ratios = [f"{100 * (a / b - 1):+.0f} %" for a, b in zip(ours, rivals, strict=True)]
                print("| ours against the best rival | " + " | ".join(ratios) + " |")


def draw(runs: list[dict[str, Any]], path: str) -> None:
    """Mean and largest error by ε, a panel for each data set and workload."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "accuracy", "svg.fonttype": "none"}
    found = dict(sorted(summary(runs).items()))
    figure, axes = plt.subplots(2, len(found), figsize=(3.1 * len(found), 5.2), sharex=True)
    for column, ((data, workload), by_epsilon) in enumerate(found.items()):
        for line, name in enumerate(("mean", "max")):
            panel = axes[line, column]
            shown = [name for name in SYSTEMS if name not in (FOR_MODELS, BY_HAND)]
            for number, system in enumerate(shown):
                points = [
                    (e, row[system][name]) for e, row in sorted(by_epsilon.items()) if system in row
                ]
                if points:
                    width = 2.5 if system == OURS else 1
                    color = "black" if system == OURS else f"C{number}"
                    panel.plot(
                        *zip(*points, strict=True), marker=".", lw=width, color=color, label=system
                    )
            panel.set_yscale("log")
            panel.grid(alpha=0.3)
            if line == 0:
                panel.set_title(f"{data}, {workload}", fontsize=9)
            else:
                panel.set_xlabel("ε")
            if column == 0:
                panel.set_ylabel(f"{'mean' if name == 'mean' else 'largest'} error")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run, or report."""
    parser = argparse.ArgumentParser(description="Errors beside every rival's.")
    parser.add_argument("--data")
    parser.add_argument("--out", default="accuracy.jsonl")
    parser.add_argument("--part", choices=list(PARTS), default="marginals")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--neighbours", choices=NEIGHBOURS, default=NEIGHBOURS[0])
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--minutes", type=float, default=1e6, help="Begin nothing new after.")
    parser.add_argument("--device", action="store_true", help="Let JAX take a GPU.")
    parser.add_argument("--report", nargs="+", help="Files of runs: print tables of them.")
    parser.add_argument("--figure", help="With --report: draw them, too.")
    options = parser.parse_args()
    if options.report:
        runs = [run for path in options.report for run in read(path)]
        report(runs)
        if options.figure:
            draw([run for run in runs if run["part"] == "marginals"], options.figure)
    elif options.data:
        run_all(options)
    else:
        parser.error("give --data, or --report")


if __name__ == "__main__":
    main()
