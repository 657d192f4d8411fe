"""``private-gsd resume``: releases that are finished, moved or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from private_gsd import Release, Synthesizer
from private_gsd.runs.run_folder import RunFolder
from tests.cli.running import QUICK, run


def test_a_release_that_was_handed_on(folder: Path) -> None:
    run("synthesize", *QUICK, "--release", "r", cwd=folder)
    Release.load(folder / "r").save(folder / "saved")
    run("resume", "saved", "-o", "again.csv", cwd=folder)
    assert (folder / "again.csv").exists()
    before = (folder / "table.csv").read_text()
    words = ("-o", "table.csv", "--force")
    _, err = run("resume", "saved", "table.csv", *words, cwd=folder, code=1)
    assert "is one of the files of the table" in err
    assert (folder / "table.csv").read_text() == before
    _, err = run("resume", "saved", "--query", "SELECT 1", cwd=folder, code=2)
    assert "--query goes with the address of a server" in err


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    _, error = run("synthesize", *QUICK, "--release", "table.csv/r", cwd=folder, code=12)
    assert "cannot be written" in error
    _, error = run("resume", "nowhere", cwd=folder, code=12)
    assert "nowhere: holds no release" in error
    _, error = run("sample", "nowhere", "-n", "5", "-o", "o.csv", cwd=folder, code=12)
    assert "nowhere: holds no release" in error


class Killed(BaseException):
    """The end of a process."""


@pytest.fixture
def killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was killed when it had measured, in a folder whose name is not UTF-8."""

    def killing(*_: object) -> None:
        raise Killed

    name = os.fsdecode(b"rel\xff")
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_table", killing)
        with pytest.raises(Killed):
            run("synthesize", *QUICK, "--release", name, cwd=folder)
    return folder / name


def test_a_killed_run_whose_name_is_not_utf8(killed: Path) -> None:
    release = Synthesizer.resume(killed).release_
    assert release.synthetic.num_rows == 100
    assert repr(release) == "<Release rel\ufffd>"


def test_another_number_of_rows_another_place(killed: Path) -> None:
    """The rows, the ledger and the table may have changed their place or number."""
    folder = killed.parent
    (folder / "table.csv").rename(folder / "moved.csv")
    ledger = killed.with_name(killed.name + ".ledger.db")
    ledger.rename(folder / "moved.db")
    _, err = run("resume", killed.name, "moved.csv", cwd=folder, code=9)
    assert "say where it is with --ledger" in " ".join(err.split())
    more = ("--ledger", "moved.db", "--rows", "30", "--threads", "1", "-o", "o.csv")
    _, err = run("resume", killed.name, "moved.csv", *more[:-1], "moved.db", cwd=folder, code=1)
    out, _ = run("resume", killed.name, "moved.csv", *more, cwd=folder)
    assert "30 synthetic rows: o.csv" in out
    _, err = run("resume", killed.name, "--rows", "40", cwd=folder, code=12)
    assert "has its synthetic table already" in err
