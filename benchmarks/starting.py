"""Starting: how long the first and the next runs take, of any checkouts, in turn.

    python -m benchmarks.starting before=/tmp/before now=. [--tests] [--ci] [--times 9]

Each checkout is cloned into a temporary folder, so what is not committed is left out, and set up
there by its own Makefile: packages should have been downloaded before (pip keeps them). One
measurement of each checkout follows the other. ``make test`` and ``.ci/run`` take minutes, and are
run where ``--tests`` and ``--ci`` say so. The table has wall time and, in parentheses, processor
time in seconds; of what takes seconds or less, the best of several.

"First" is without compiled kernels. The example is the one of the README, on 20,000 rows of the
simulated census.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 20_000
FILES = (
    "python -c 'import pyarrow.csv; from private_gsd import datasets;"
    f' pyarrow.csv.write_csv(datasets.census({ROWS}), "census.csv")\'',
    "private-gsd schema draft census.csv -o drafted.toml",
    """sh -c "grep -v '^drafted = true' drafted.toml > schema.toml" """,
)
LEDGER = "private-gsd ledger create ledger.db --dataset census --epsilon 2 --delta 1e-9"
SYNTHESIZE = (
    "private-gsd synthesize census.csv --schema schema.toml --epsilon 1"
    " -o synthetic.csv --force --release release --ledger ledger.db"
)
INHERITED = {"NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}


class Taken(NamedTuple):
    """How long something took, in seconds."""

    wall: float
    processor: float

    def __str__(self) -> str:
        digits = 2 if self.wall < 10 else 1 if self.wall < 100 else 0
        return f"{self.wall:.{digits}f} ({self.processor:.{digits}f})"


@dataclass(frozen=True)
class Checkout:
    """A checkout that is measured.

    Attributes:
        name: Its name in the table.
        source: The repository that it is cloned from.
        folder: Where it is cloned to.
    """

    name: str
    source: Path
    folder: Path

    @classmethod
    def of(cls, text: str, folder: Path) -> Checkout:
        """A checkout by its name and repository, ``NAME=FOLDER``."""
        name, _, source = text.partition("=")
        if not name or not source or not (Path(source) / ".git").exists():
            raise SystemExit(f"{text!r}: expected NAME=FOLDER, where FOLDER is a git checkout")
        return cls(name, Path(source).absolute(), folder / name)

    def clone(self) -> None:
        """A fresh clone, without environment, kernels and results."""
        shutil.rmtree(self.folder, ignore_errors=True)
        quiet = ["-c", "advice.detachedHead=false", "--quiet"]
        subprocess.run(["git", "clone", *quiet, self.source, self.folder], check=True)

    def run(self, command: str, folder: str = ".") -> Taken:
        """Run a command within the clone, whose own programs are found first."""
        path = f"{self.folder / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"
        # Neither kernels of other checkouts, nor the options of a make that runs this.
        own = {key: value for key, value in os.environ.items() if key not in INHERITED}
        return timed(shlex.split(command), self.folder / folder, {**own, "PATH": path})

    def forget_kernels(self) -> None:
        """Remove the kernels that were compiled."""
        for saved in (self.folder / "src").rglob("__pycache__/*"):
            if saved.suffix != ".pyc":
                saved.unlink()

    def prepare_example(self) -> None:
        """The files of the README's example, but for its ledger and release."""
        (self.folder / "example").mkdir()
        for command in FILES:
            self.run(command, "example")

    def example(self) -> Taken:
        """The README's ``synthesize``, in a folder without release, with a new ledger."""
        self.run("rm -rf release ledger.db ledger.db-journal", "example")
        self.run(LEDGER, "example")
        return self.run(SYNTHESIZE, "example")


def timed(words: list[str], folder: Path, environment: dict[str, str]) -> Taken:
    """Run a command, and say how long it took; if it fails, so does everything."""
    before, begin = _processor(), time.perf_counter()
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    taken = Taken(time.perf_counter() - begin, _processor() - before)
    if done.returncode:
        raise SystemExit(f"{folder}: {' '.join(words)}\n{done.stdout[-3000:]}")
    return taken


def _processor() -> float:
    """Processor time of all commands that have ended, and of what they started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(
    checkouts: list[Checkout], times: int, *, tests: bool = False, ci: bool = False
) -> dict[str, list[Taken]]:
    """What each checkout took, by what was measured.

    Args:
        checkouts: The checkouts.
        times: How often short commands are run; their best time counts.
        tests: Whether to run ``make test``, too.
        ci: Whether to run ``.ci/run``, too.
    """
    found: dict[str, list[Taken]] = {}

    def each(what: str, work: Callable[[Checkout], Taken], best_of: int = 1) -> None:
        taken = [[work(checkout) for checkout in checkouts] for _ in range(best_of)]
        found[what] = [min(column) for column in zip(*taken, strict=True)]
        print(what, *found[what], sep="\t", file=sys.stderr, flush=True)

    def fresh(command: str) -> Callable[[Checkout], Taken]:
        def work(checkout: Checkout) -> Taken:
            checkout.clone()
            return checkout.run(command)

        return work

    def again(command: str) -> Callable[[Checkout], Taken]:
        return lambda checkout: checkout.run(command)

    def first_example(checkout: Checkout) -> Taken:
        checkout.forget_kernels()
        return checkout.example()

    each("`make demo`, fresh clone", fresh("make demo"))
    each("`make demo`, second time", again("make demo"))
    each("`private-gsd --version`", again("private-gsd --version"), times)
    each("`python -c 'import private_gsd'`", again("python -c 'import private_gsd'"), times)
    for checkout in checkouts:
        checkout.prepare_example()
    each("`private-gsd synthesize`, first", first_example, min(times, 3))
    each("`private-gsd synthesize`, second", Checkout.example, times)
    if tests:
        each("`make test`, fresh clone", fresh("make test"))
        each("`make test`, second time", again("make test"))
    if ci:
        each("`.ci/run`, fresh clone", fresh(".ci/run"))
    return found


def table(names: list[str], found: dict[str, list[Taken]]) -> str:
    """What was found, as a table in Markdown."""
    lines = [["", *names], ["---"] * (len(names) + 1)]
    lines += [[what, *map(str, taken)] for what, taken in found.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("checkouts", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--times", type=int, default=9, help="how often short commands are run")
    parser.add_argument("--tests", action="store_true", help="run make test, too")
    parser.add_argument("--ci", action="store_true", help="run .ci/run, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="starting-") as folder:
        checkouts = [Checkout.of(text, Path(folder)) for text in options.checkouts]
        found = measure(checkouts, options.times, tests=options.tests, ci=options.ci)
    print(table([each.name for each in checkouts], found))


if __name__ == "__main__":
    main()
