"""The command: ``python -m experiments NAME --data … --out DIR``; ``list`` says what there is."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from experiments.data import Named, name_data
from experiments.registry import EXPERIMENTS
from experiments.results import write_table
from experiments.running import Failure, Outcome, plan, run_all
from private_gsd.errors import GsdError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.experiment import Config, Experiment

# Fields of configurations that have an option of their name.
CHANGES = ("epsilons", "seeds", "epochs", "queries", "only")


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="python -m experiments",
        description="The paper's figures and tables. Noise is seeded: nothing here is private.",
    )
    made.add_argument("name", choices=[*EXPERIMENTS, "all", "list"], metavar="NAME")
    made.add_argument(
        "--data",
        nargs="+",
        default=["census"],
        help="files, census[:ROWS], or acs:TASK (mobility, employment, income, coverage, travel, "
        "multitask); several stand beside each other",
    )
    made.add_argument("--schema", nargs="+", default=[], help="a schema for each file")
    made.add_argument("--out", type=Path, default=Path("results"), help="the folder for all of it")
    made.add_argument("--epsilons", nargs="+", type=float)
    made.add_argument("--seeds", type=int, help="how many runs are averaged")
    made.add_argument("--epochs", nargs="+", type=int, help="T of adaptive systems")
    made.add_argument("--queries", type=int, help="how many random questions, as 50000")
    made.add_argument("--only", nargs="+", metavar="SYSTEM", help="run these systems alone")
    made.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    scale = made.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_true", help="a minute or two, to see it run")
    scale.add_argument("--paper", action="store_true", help="nothing reduced: many hours")
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Run what was asked for; returns the exit code."""
    options = parser().parse_args(words)
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 160)
    if options.name == "list":
        table = Table("name", "shows", "the paper's claim")
        for each in EXPERIMENTS.values():
            table.add_row(each.name, each.shows, each.claim)
        console.print(table)
        return 0
    code = 0
    try:
        named = [
            name_data(source, options.schema[place] if place < len(options.schema) else None)
            for place, source in enumerate(options.data)
        ]
        if options.name != "all":
            return one(EXPERIMENTS[options.name], options, named, console)
        for experiment in EXPERIMENTS.values():
            code = max(code, one(experiment, options, named, console))
    except GsdError as error:
        console.print(f"[red]{type(error).__name__}:[/] {error}", highlight=False)
        return error.exit_code
    return code


def one(
    experiment: Experiment, options: argparse.Namespace, named: list[Named], console: Console
) -> int:
    """One experiment, from its plan to its plots."""
    scale = "quick" if options.quick else "paper" if options.paper else "full"
    changes = {name: getattr(options, name) for name in CHANGES}
    if options.name == "all":  # what an experiment does not have is not meant for it
        changes = {name: value for name, value in changes.items() if hasattr(experiment.full, name)}
    changes = {
        name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()
    }
    config = experiment.config(scale, **changes)
    console.rule(f"{experiment.name}: {experiment.shows}")
    say_reduced(config, console)
    begin = time.perf_counter()
    runs = plan(experiment, config, named)
    outcome = run_all(experiment, runs, options.out / "runs", jobs=options.jobs, console=console)
    took = time.perf_counter() - begin
    console.print(
        f"{len(runs)} runs: {outcome.fresh} made now in {took:.0f} s, "
        f"{len(runs) - outcome.fresh - len(outcome.failures)} made before"
    )
    write(experiment, outcome, options.out, console)
    say_failures(outcome.failures, console)
    return 1 if outcome.failures else 0


def say_reduced(config: Config, console: Console) -> None:
    """In which ways it is less than the paper's."""
    for line in config.reduced:
        console.print(f"reduced: {line}", highlight=False)


def write(experiment: Experiment, outcome: Outcome, folder: Path, console: Console) -> None:
    """Tables and plots of what there is."""
    if not outcome.rows:
        return
    path = folder / experiment.name
    write_table(path.with_suffix(".csv"), outcome.rows)
    summary = experiment.summary(outcome.rows)
    write_table(folder / f"{experiment.name}_summary.csv", summary)
    experiment.draw(outcome.rows, path)
    table = Table(*summary[0])
    for row in summary:
        table.add_row(*(f"{v:.5g}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)
    console.print(f"wrote {path}.csv, {path}_summary.csv, {path}.png and {path}.svg")


def say_failures(failures: Sequence[Failure], console: Console) -> None:
    """What went wrong; the same command tries it again."""
    for failure in failures:
        where = "" if failure.run.data is None else f" on {failure.run.data.name}"
        console.print(f"[red]failed[/]{where}: {failure.run.settings}", highlight=False)
        console.print(f"    {failure.why}", highlight=False, markup=False)
    if failures:
        console.print(f"{len(failures)} runs failed; the same command tries only these again")


if __name__ == "__main__":
    sys.exit(main())
