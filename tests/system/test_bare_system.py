"""The product on a system that lacks what Windows lacks, as far as that can be done here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.csv
import pytest

from private_gsd import Ledger, datasets
from tests.cli.running import COMMON, NAMES, QUICK

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="what is taken away here is missing there by itself"
)
KILLED = """
import os, sys
from private_gsd.runs.run_folder import RunFolder
from private_gsd.cli import main

RunFolder.save_table = lambda *_: os._exit(9)  # what was measured is saved, and no table
sys.argv[0] = "private-gsd"
main()
"""
HELD = """
import sys, time
from private_gsd.runs.run_folder import RunFolder

with RunFolder.load("r").locked():
    print("locked", flush=True)
    time.sleep(600)
"""
SPAWNED = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import private_gsd as gsd

def fit(seed):
    synth = gsd.Synthesizer(
        gsd.Schema.read("schema.toml"), gsd.Budget(0.1, delta=1e-9), rows=50,
        projector="gsd:denoise=false", mechanism="one-shot", random_state=seed,
    )
    return synth.fit("table.csv", ledger="l.db", dataset="d", release=f"spawned-{seed}")

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for synth in pool.map(fit, range(2)):
            assert synth.sample(20).num_rows == 20
            assert synth.release_.privacy["private"] is True
    with gsd.Ledger("l.db", read_only=True) as ledger:
        assert len({charge.run.split()[0] for charge in ledger.charges("d")}) == 2
"""


class Bare:
    """A folder in which programs run on a bare system."""

    def __init__(self, folder: Path, prelude: Path) -> None:
        self.folder = folder
        paths = [str(prelude), os.environ.get("PYTHONPATH", ""), *sys.path]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONIOENCODING": "cp1252",
            "PYTHONUTF8": "0",
            "PYTHONWARNDEFAULTENCODING": "1",
            "COLUMNS": "100",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="cp1252",
        )

    def run(self, *words: str, code: int = 0) -> str:
        process = self.start(*words)
        out, err = process.communicate()
        assert process.returncode == code, err
        assert "Traceback" not in err
        return out + err

    def command(self, *words: str, code: int = 0) -> str:
        return self.run("-m", "private_gsd.cli", *words, code=code)


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    """A bare system, with a table and its schema."""
    prelude, folder = tmp_path / "prelude", tmp_path / "work"
    prelude.mkdir()
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("bare_system.py"), prelude / "sitecustomize.py")
    datasets.census_schema().select(NAMES).write(folder / "schema.toml")
    pyarrow.csv.write_csv(datasets.census(500).select(NAMES), folder / "table.csv")
    return Bare(folder, prelude)


def test_it_is_bare(bare: Bare) -> None:
    """Or the other tests would show nothing."""
    for program in (
        *(f"import {name}" for name in ("fcntl", "resource")),
        *(f"import os; os.{name}" for name in ("fork", "O_DIRECTORY", "sched_getaffinity")),
        "import signal; signal.SIGHUP",
        "import os; os.open('.', os.O_RDONLY)",
        "import os; open('a', 'w'); file = open('a'); os.replace('table.csv', 'a')",
    ):
        process = bare.start("-c", program)
        assert process.communicate()[1].splitlines()[-1].split(":")[0] in {
            *("ModuleNotFoundError", "AttributeError", "PermissionError"),
        }, program


@pytest.mark.slow
def test_the_command_line(bare: Bare) -> None:
    """From a ledger to a report, with a run that is killed and one that is locked."""
    bare.command("ledger", "create", "l.db", "--dataset", "d", "--epsilon", "3", "--delta", "1e-9")
    paid = ("--ledger", "l.db", "--dataset", "d", "--delta", "1e-9")
    bare.command("plan", *COMMON, "--delta", "1e-9")
    bare.command("synthesize", *QUICK, *paid, "--release", "first", "-o", "first.csv")
    bare.run("-c", KILLED, "synthesize", *QUICK, *paid, "--release", "r", code=9)

    holder = bare.start("-c", HELD)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    told = bare.command("resume", "r", "-o", "second.csv", code=12)
    assert "another process is working on it" in told
    holder.kill()
    holder.communicate()
    bare.command("resume", "r", "-o", "second.csv")
    assert pyarrow.csv.read_csv(bare.folder / "second.csv").num_rows == 100

    bare.command("sample", "r", "-n", "30", "-o", "sample.csv")
    bare.command("report", "r", "-o", "report.html")
    assert "</html>" in (bare.folder / "report.html").read_text(encoding="utf-8")
    bare.command("ledger", "show", "l.db")
    with Ledger(bare.folder / "l.db", read_only=True) as ledger:
        runs = {charge.run.split()[0] for charge in ledger.charges("d")}
    assert len(runs) == 2, runs


@pytest.mark.slow
def test_processes_that_are_spawned(bare: Bare) -> None:
    """Two fits at once, on one ledger, whose synthesizers come back to the process that asked."""
    bare.command("ledger", "create", "l.db", "--dataset", "d", "--epsilon", "3", "--delta", "1e-9")
    (bare.folder / "program.py").write_text(SPAWNED, encoding="utf-8")
    bare.run("program.py")
