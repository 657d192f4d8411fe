"""Peers: other systems' own packages on the same tables, at the same budgets and time limit.

    python -m benchmarks.peers --data FILE.csv [--systems …] [--epsilons 0.23 1] [--seeds 3]
        [--limit 600] [--environments FOLDER] [--out peers.jsonl]
    python -m benchmarks.peers --report peers.jsonl

Each package is installed from PyPI into an environment of its own, which is kept. The tables are
the discrete columns of the schemas in ``benchmarks/schemas``. Four fifths of the rows are given
away; (ε, 1e-9) holds for adding or removing one row, which is what the others promise. All systems
have one core and so many seconds of processor time. What does not install, fails or runs out of
time has a line that says so.

Reported are the mean and the largest error of all pairs and of all triples of columns, as shares
of the rows, and the macro F1 of models (logistic regression, mean over three columns) that are
trained on the synthetic rows and tested on the last fifth. How the others are called is in
``benchmarks/numbers/other_fits.py``. Noise is secure everywhere: figures change from run to run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import HOLDOUT
from benchmarks.numbers.making import DELTA, Run
from benchmarks.numbers.other_systems import SYSTEMS, rows_of
from private_gsd import (
    Budget,
    Encoder,
    LeftOutWarning,
    Schema,
    Synthesizer,
    UncountedWarning,
)
from private_gsd.counting.exact import count
from private_gsd.evaluation.metrics.classifiers import MODELS
from private_gsd.evaluation.metrics.machine_learning import default_targets, learn
from private_gsd.evaluation.table_sample import sample_table
from private_gsd.schema import Discrete
from private_gsd.workloads.specs import workload_of

OURS = "private-gsd"
PACKAGES = {
    "dpmm": ["dpmm==0.1.9"],
    "opendp": ["opendp[mbi]==0.16.0", "pandas"],
    "smartnoise": ["smartnoise-synth==1.0.8"],
}
WORKLOADS = {"pairs": "categorical:2", "triples": "categorical:3"}
SCORES = {
    "pairs mean": "pairs, mean error",
    "pairs max": "pairs, largest error",
    "triples mean": "triples, mean error",
    "triples max": "triples, largest error",
    "F1": "F1 of models",
    "processor": "processor seconds",
}


@lru_cache
def table_of(data: str) -> tuple[Schema, Any, Any]:
    """The schema of the discrete columns, the rows that are given away, and those held out."""
    warnings.simplefilter("ignore", LeftOutWarning)
    warnings.simplefilter("ignore", UncountedWarning)
    schema = Schema.read(f"benchmarks/schemas/{Path(data).stem}.toml")
    schema = schema.select([each.name for each in schema if isinstance(each, Discrete)])
    matrix = sample_table(data, schema, limit=2**31).sample
    out = np.arange(len(matrix)) % HOLDOUT == 0
    return schema, matrix[~out], matrix[out]


@lru_cache
def environment(package: str, folder: Path) -> str:
    """The interpreter that has a package; installs it where it is not there."""
    python = folder / package / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / package], check=True)
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *PACKAGES[package]], check=True, stderr=subprocess.PIPE)
    return str(python)


def made(run: Run, limit: int, environments: Path) -> tuple[Any, float]:
    """Synthetic rows, encoded, and the seconds of processor time that they took."""
    schema, rows, _ = table_of(run.data)
    if run.system != OURS:
        python = environment(run.system.partition("-")[0], environments)
        found, seconds = rows_of(run, schema, rows, python, limit)
        return found, seconds[1]
    budget = Budget(run.epsilon, DELTA, neighbours="add-remove")
    synth = Synthesizer(schema, budget, random_state=run.seed, threads=1)
    table = Encoder(schema).decode(rows)
    Synthesizer(schema, budget, threads=1).fit(table.slice(0, 1000))  # loads the kernels
    begin = time.process_time()
    synth.fit(table)
    used = time.process_time() - begin
    return sample_table(synth.sample(), schema, limit=2**31).sample, used


def perform(run: Run, limit: int, environments: Path) -> dict[str, Any]:
    """The scores of one run, or why there are none."""
    schema, real, holdout = table_of(run.data)
    found: dict[str, Any] = {**run._asdict(), "data": Path(run.data).stem}
    try:
        rows, found["processor"] = made(run, limit, environments)
    except subprocess.CalledProcessError as error:
        over = error.returncode in (-24, -9)
        return {**found, "failed": f"over {limit} s" if over else reason(error.stderr or b"")}
    for name, spec in WORKLOADS.items():
        queries = workload_of(schema, [spec])
        errors = np.abs(count(queries, real) / len(real) - count(queries, rows) / len(rows))
        found |= {f"{name} mean": float(errors.mean()), f"{name} max": float(errors.max())}
    scores = [
        score.f1_macro
        for task in learn(schema, rows, real, holdout, default_targets(schema, real), seed=run.seed)
        for score in task.scores
        if score.model == MODELS[0] and score.trained_on == "synthetic"
    ]
    return {**found, "F1": float(np.mean(scores))}


def reason(output: bytes) -> str:
    """What a program's output says from the line on that names the last error."""
    lines = output.decode(errors="replace").strip().splitlines() or ["no reason given"]
    named = [at for at, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return " ".join(" ".join(lines[(named or [-1])[-1] :]).split())[:200]


def report(found: list[dict[str, Any]]) -> str:
    """Tables in Markdown, one for each table and budget; the best figures are bold."""
    lines = []
    for data, epsilon in sorted({(each["data"], each["epsilon"]) for each in found}):
        lines += [f"\n{data}, ε = {epsilon:g}:\n", f"| | {' | '.join(SCORES.values())} |"]
        lines.append("|---" * (1 + len(SCORES)) + "|")
        runs = [each for each in found if (each["data"], each["epsilon"]) == (data, epsilon)]
        means = {
            system: {score: mean_of(runs, system, score) for score in SCORES}
            for system in dict.fromkeys(each["system"] for each in runs)
        }
        for system, mine in means.items():
            failed = [r["failed"] for r in runs if r["system"] == system and "failed" in r]
            cells = []
            for score in SCORES:
                value, best = mine[score], best_of(score, [each[score] for each in means.values()])
                text = "" if value is None else f"{value:.3g}"
                cells.append(f"**{text}**" if value is not None and value == best else text)
            note = f" ({len(failed)} failed: {failed[0]})" if failed else ""
            lines.append(f"| {system}{note} | {' | '.join(cells)} |")
    return "\n".join(lines)


def mean_of(runs: list[dict[str, Any]], system: str, score: str) -> float | None:
    """The mean score of the runs of a system; None where it has none."""
    values = [each[score] for each in runs if each["system"] == system and "failed" not in each]
    return float(np.mean(values)) if values else None


def best_of(score: str, values: list[float | None]) -> float | None:
    """The best of some scores."""
    known = [each for each in values if each is not None]
    return None if not known else max(known) if score == "F1" else min(known)


def main() -> None:
    """Measure what is not measured yet, or report."""
    parser = argparse.ArgumentParser(description="Other systems' own packages.")
    parser.add_argument("--data", action="append", default=[])
    parser.add_argument("--systems", nargs="+", choices=[OURS, *SYSTEMS], default=[OURS, *SYSTEMS])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.23, 1.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--environments", type=Path, default=Path("peers"))
    parser.add_argument("--out", type=Path, default=Path("peers.jsonl"))
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    out: Path = options.report or options.out
    found = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    if options.report is None:
        done = {tuple(each[name] for name in Run._fields) for each in found}
        wanted = itertools.product(
            range(options.seeds), options.data, options.epsilons, options.systems
        )
        for seed, data, epsilon, system in wanted:
            if (Path(data).stem, system, epsilon, seed) in done:
                continue
            run = Run(data, system, epsilon, seed)
            found.append(perform(run, options.limit, options.environments.absolute()))
            with out.open("a") as file:
                file.write(json.dumps(found[-1]) + "\n")
    print(report(found))


if __name__ == "__main__":
    main()
