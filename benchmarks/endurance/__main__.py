"""Endurance: random kills, races and damaged files; counts of what came of them.

    python -m benchmarks.endurance

Runs of all mechanisms are killed by SIGKILL at random moments (half of them beside a change of the
ledger) and resumed until they are complete. Processes race for the last of a budget, and to resume
the same release. Every file that is read is damaged in several ways, and goes through the commands
that read it. All of it is done by forked processes, with real noise (where nothing must be compared
to a second run), the real ledger and the real command line.

What must hold: every step is charged once, what was planned is what was spent, nothing stays
reserved, no charge has two draws that anybody saw, one process wins, no result changes in silence,
and nobody sees a traceback.

The exit code is 1 if anything failed. A failure is printed with its place.
"""

from __future__ import annotations

import os

# One thread each: forked processes share two cores. NumPy reads this when it is imported.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import gc
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.endurance.damaged_files import damages
from benchmarks.endurance.kills import kills
from benchmarks.endurance.looking import FAILURES, OUTCOMES
from benchmarks.endurance.races import races
from benchmarks.endurance.scenes import Reference
from private_gsd.system.operating_system import cores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEADINGS = {
    "kills": ("runs", "kills", "before the first charge", "after a charge"),
    "races": ("races", "found complete"),
    "damages": ("damages", *OUTCOMES),
}
SHOWN = 40


def part(total: int, job: int, jobs: int) -> int:
    """How many of a total one of several jobs does."""
    return total // jobs + (job < total % jobs)


def work(
    options: argparse.Namespace, job: int, reference: Reference, folder: Path
) -> Iterator[dict[str, Any]]:
    """All that one job does."""
    rng = random.Random(f"{options.seed} {job}")
    yield from kills(part(options.kills, job, options.jobs), reference, folder, rng)
    yield from races(part(options.races, job, options.jobs), reference, folder / "races", rng)
    number = part(options.damages, job, options.jobs)
    yield from damages(number, reference, folder / "damages", rng, options.only)


def in_jobs(
    options: argparse.Namespace, reference: Reference, folder: Path
) -> list[dict[str, Any]]:
    """Fork the jobs, report their progress, and collect what they found."""
    gc.freeze()
    files = [folder / f"job-{job}.jsonl" for job in range(options.jobs)]
    pids = []
    for job, file in enumerate(files):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with file.open("w") as output:
                    for found in work(options, job, reference, folder / f"job-{job}"):
                        output.write(json.dumps(found) + "\n")
                        output.flush()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    began, said, running = time.monotonic(), 0.0, set(pids)
    broken = False
    while running:
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.remove(pid)
                broken |= status != 0
        if time.monotonic() - said > 15 or not running:
            said = time.monotonic()
            counts: Counter[str] = Counter()
            for found in read(files):
                for name in ("kills", "races", "damages"):
                    counts[name] += found.get(name, 0)
                counts["failures"] += bool(found["failures"])
            words = ", ".join(f"{count:,} {name}" for name, count in counts.items())
            print(f"{said - began:6.0f} s  {words}", file=sys.stderr, flush=True)
        time.sleep(0.2)
    gc.unfreeze()
    results = read(files)
    if broken:
        results.append({"part": "kills", "what": "a job", "failures": ["did not come to its end"]})
    return results


def read(files: Sequence[Path]) -> list[dict[str, Any]]:
    """What jobs have found so far; the last line may be half written."""
    lines = []
    for file in files:
        if file.exists():
            text = file.read_text()
            lines += text[: text.rfind("\n") + 1].splitlines()
    return [json.loads(line) for line in lines]


def show(results: Sequence[dict[str, Any]]) -> int:
    """Print a table for each part, and the failures; how many there were."""
    console = Console(width=132)
    for name, columns in HEADINGS.items():
        rows: dict[str, Counter[str]] = {}
        for result in results:
            if result["part"] == name:
                row = rows.setdefault(result["what"], Counter())
                row.update({column: result.get(column, 0) for column in columns})
                row["failures"] += bool(result["failures"])
        if not rows:
            continue
        shown = [*columns, *([] if name == "damages" else ["failures"])]
        table = Table(name, *shown, title=None)
        total: Counter[str] = sum(rows.values(), Counter())
        for what, row in [*rows.items(), ("all", total)]:
            cells = []
            for column in shown:
                bad = row[column] and column in (*FAILURES, "failures")
                cells.append(f"[bold red]{row[column]:,}[/]" if bad else f"{row[column]:,}")
            table.add_row(what, *cells)
        console.print(table)
    failed = [(each["what"], words) for each in results for words in each["failures"]]
    for what, words in failed[:SHOWN]:
        print(f"FAILED  {what}: {words}")
    if len(failed) > SHOWN:
        print(f"... and {len(failed) - SHOWN:,} more")
    return sum(bool(each["failures"]) for each in results)


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, race and damage; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=1000, help="in all")
    parser.add_argument("--races", type=int, default=200, help="of each kind")
    parser.add_argument("--damages", type=int, default=100, help="of each file")
    parser.add_argument("--only", default="", help="damage only files whose name has this in it")
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--seed", type=int, default=0, help="of moments and places")
    parser.add_argument("--json", type=Path, help="write all that was found to this file")
    parser.add_argument("--folder", type=Path, help="work there and leave it; else temporary")
    parser.add_argument("--no-sync", action="store_true", help="do not wait for the disk")
    options = parser.parse_args(arguments)
    if options.no_sync:
        vars(os)["fsync"] = lambda descriptor: None  # noqa: ARG005
    folder = options.folder or Path(tempfile.mkdtemp(prefix="endurance-"))
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        reference = Reference.made(folder / "reference")
        results = in_jobs(options, reference, folder)
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    failed = show(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    print(f"{failed:,} failures in {time.monotonic() - began:.0f} seconds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
