"""Progress: who hears what is announced, and that compiling is announced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import private_gsd as gsd
from private_gsd.synthesis.sampling import fill_columns, rows_where
from private_gsd.system import progress
from private_gsd.system.progress import (
    COMPILING,
    LINE,
    Progress,
    announce,
    ignore,
    listening,
    shown,
)
from private_gsd.workloads import categorical_marginals

SCHEMA = gsd.datasets.census_schema().select(["sex", "age"])
TABLE = gsd.datasets.census(200).select(SCHEMA.names)


def test_the_newest_listener_hears_what_is_announced() -> None:
    heard: list[Any] = []

    def first(*now: Any) -> None:
        heard.append(("first", *now))

    def second(*now: Any) -> None:
        heard.append(("second", *now))

    announce("nobody", 0, None)
    with shown(first):
        announce("one", 0, None)
        with listening(second):
            announce("two", 1, 2)
        announce("three", 2, 2)
    with shown(False):
        announce("nobody", 0, None)
    assert heard == [("first", "one", 0, None), ("second", "two", 1, 2), ("first", "three", 2, 2)]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is drawn, in a notebook: that a bar begins and ends, and what it shows."""
    told: list[Any] = []

    @contextmanager
    def bars() -> Iterator[Progress]:
        told.append("begin")
        yield lambda *now: told.append(now)
        told.append("end")

    monkeypatch.setattr(progress, "bars_here", bars)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    return told


@pytest.mark.parametrize("nothing", [None, ignore])
def test_a_bar_is_drawn_while_kernels_are_compiled(nothing: Any, drawn: list[Any]) -> None:
    """It ends with the next report, or with the work; where nothing is compiled, there is none."""
    with shown(nothing) as report:
        report("counting", 1, 2)
        assert drawn == []
        announce(COMPILING, 0, None)
        announce(COMPILING, 1, 1)
        assert drawn == ["begin", (COMPILING, 0, None), (COMPILING, 1, 1)]
        report("searching", 0, None)
        report("searching", 1, None)
        assert drawn[3:] == ["end"]
        announce(COMPILING, 1, None)
    assert drawn[4:] == ["begin", (COMPILING, 1, None), "end"]
    report(COMPILING, 2, None)  # of a thread that is late
    assert len(drawn) == 7


def test_the_bar_ends_with_an_error(drawn: list[Any]) -> None:
    with pytest.raises(KeyboardInterrupt), shown():
        announce(COMPILING, 0, None)
        raise KeyboardInterrupt
    assert drawn[-1] == "end"


def test_nothing_is_drawn_where_somebody_listens_or_wants_nothing(
    drawn: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    with shown(lambda *now: heard.append(now)), shown(None):
        announce(COMPILING, 0, None)
    with shown(False), shown(None):
        announce(COMPILING, 1, None)
    assert heard == [(COMPILING, 0, None)]
    assert drawn == []
    assert not caplog.records


def test_without_terminal_and_notebook_a_line_is_logged(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with shown():
        announce(COMPILING, 0, None)
        announce(COMPILING, 1, None)
    assert [record.getMessage() for record in caplog.records] == [LINE]
    assert capfd.readouterr().out == ""


def test_a_notebook_shows_one_line_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    shells = type("ZMQInteractiveShell", (), {})
    pages: list[str] = []
    display = SimpleNamespace(
        HTML=str,
        display=lambda page, display_id: SimpleNamespace(update=pages.append),
    )
    notebook: Any = SimpleNamespace(display=display, get_ipython=shells)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with shown() as report:
        announce(COMPILING, 3, None)
        report("searching", 0, None)
    (page, last) = pages
    assert "Compiling, once on this machine <progress></progress> 3" in page
    assert last == ""


def fitted() -> gsd.Synthesizer:
    return gsd.Synthesizer(SCHEMA, 1.0, rows=20).fit(TABLE, insecure_noise_seed=1)


def searched() -> None:
    workload = categorical_marginals(SCHEMA, 1)
    counts, groups = np.zeros(workload.size), np.ones(workload.num_groups)
    names = ("",) * workload.num_groups
    gsd.evolve(gsd.Measurements(workload, counts, groups, 10, names, private=False), rows=5)


def swept() -> None:
    sweep = gsd.Sweep(SCHEMA, TABLE, "categorical:1", progress=False)
    sweep.run([1.0], insecure=True, n_jobs=1)


@pytest.mark.parametrize(
    "compiles",
    [
        fitted,
        searched,
        lambda: gsd.exact_counts(categorical_marginals(SCHEMA, 1), TABLE),
        lambda: gsd.Sweep(SCHEMA, TABLE, "categorical:1"),
        swept,
        lambda: gsd.evaluate(TABLE, TABLE, schema=SCHEMA),
    ],
    ids=["fit", "evolve", "exact_counts", "Sweep", "run", "evaluate"],
)
def test_whoever_compiles_says_so(
    compiles: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every entry of the package draws a bar where it has to compile, without being asked."""
    entered: list[bool] = []

    @contextmanager
    def noticed() -> Iterator[Progress]:
        entered.append(True)
        yield ignore

    monkeypatch.setattr(progress, "compiling_bar", noticed)
    compiles()
    assert entered


def test_samples_say_that_they_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    release = fitted().release_
    test_whoever_compiles_says_so(lambda: rows_where(release, "age > 0"), monkeypatch)
    given = pa.table({"sex": ["female"]})
    test_whoever_compiles_says_so(lambda: fill_columns(release, given), monkeypatch)


# What the sources' own folder holds is of another version than these.
EMPTY = """
from private_gsd.kernels import caching

caching.DIGEST = "0" * 64

import private_gsd as gsd
from private_gsd import datasets

schema = datasets.census_schema().select(["sex", "age"])
table = datasets.census(200).select(schema.names)
"""
COUNT = f"""{EMPTY}
from private_gsd.workloads import categorical_marginals

gsd.exact_counts(categorical_marginals(schema, 1), table)
print("counted")
"""
FIT = f"""{EMPTY}
import json
import sys

told = []
progress = {{"told": lambda *now: told.append(now), "False": False, "None": None}}[sys.argv[1]]
synth = gsd.Synthesizer(schema, epsilon=1.0, rows=50)
synth.fit(table, insecure_noise_seed=1, progress=progress)
print(json.dumps(told))
"""


def python(cache: Path, *words: str, stderr: int = subprocess.PIPE) -> tuple[str, str]:
    """What a Python with a cache folder of its own says on standard output and error."""
    done = subprocess.run(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "TERM": "xterm"},
    )
    return done.stdout, done.stderr


@pytest.mark.slow
def test_counting_says_that_it_compiles(tmp_path: Path) -> None:
    """A script without a terminal: one line the first time, on standard error."""
    assert python(tmp_path, "-c", COUNT) == ("counted\n", f"{LINE}\n")
    assert python(tmp_path, "-c", COUNT) == ("counted\n", "")


@pytest.mark.slow
def test_compiling_is_reported_once_on_a_machine(tmp_path: Path) -> None:
    """In the first process, before noise is added; never in the second."""

    def parts() -> list[str]:
        return [what for what, *_ in json.loads(python(tmp_path, "-c", FIT, "told")[0])]

    first, second = parts(), parts()
    last = len(first) - 1 - first[::-1].index(COMPILING)
    assert last < first.index("adding noise")
    assert COMPILING not in second
    assert "adding noise" in second


@pytest.mark.slow
def test_a_fit_says_that_it_compiles_unless_told_not_to(tmp_path: Path) -> None:
    assert python(tmp_path / "one", "-c", FIT, "False")[1] == ""
    assert python(tmp_path / "two", "-c", FIT, "None")[1] == f"{LINE}\n"
    assert python(tmp_path / "two", "-c", FIT, "None")[1] == ""


@pytest.mark.slow
def test_in_a_terminal_it_is_a_bar(tmp_path: Path) -> None:
    """It is drawn on the terminal, and taken away; what goes to a file is clean."""
    mine, its = os.openpty()
    drawn = b""

    def read() -> None:
        nonlocal drawn
        with suppress(OSError):  # nobody has the other side any more
            while content := os.read(mine, 4096):
                drawn += content

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert python(tmp_path, "-c", COUNT, stderr=its)[0] == "counted\n"
    finally:
        os.close(its)
        reader.join()
        os.close(mine)
    told = drawn.decode()
    assert "Compiling, once on this machine" in told
    assert told.endswith("\x1b[1A\x1b[2K")  # up, and the line is cleared
    assert LINE not in told
