"""The ledger's file: made at once, recognised, opened, and no other file than a ledger."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from private_gsd.errors import LedgerError
from private_gsd.privacy.ledger import storage
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.ledger_tables import VERSION
from tests.privacy.ledger.ledgers import half_written, pay, small, used_ledger
from tests.privacy.ledger.processes import race, script, workers

TRY = """
import json, sys
from private_gsd.errors import LedgerError
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger

def look(path):
    with Ledger(path, read_only=True) as ledger:
        return ledger.account("d").spent

def pay(path):
    with Ledger(path, create=True) as ledger:
        return ledger.charge("d", 1, mechanism="m", groups=[], run="r").id

for use in (look, pay):
    for path in sys.argv[1:]:
        try:
            print(json.dumps(use(path)))
        except LedgerError as error:
            print(json.dumps(str(error)))
"""
MOUNTS = """
set -e
cd "$1"
mkdir other folder
touch other/ledger.db
mount --bind ledger.db other/ledger.db
mount --bind . folder
shift
exec "$@"
"""
USE_MOUNTS = """
import json, sys
from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.chain import append

first = Ledger("ledger.db")
for path in ("ledger.db", "other/ledger.db", "folder/ledger.db"):
    try:
        with Ledger(path) as ledger:
            ledger.charge("d", 4, mechanism="m", groups=[], run="r")
        print(json.dumps("paid"))
    except (BudgetError, LedgerError) as error:
        print(json.dumps(str(error)))
    with Ledger(path, read_only=True) as ledger:
        print(json.dumps([ledger.account("d").spent, first.account("d").spent]))
"""


@pytest.mark.slow
def test_two_processes_race_to_create_a_ledger(tmp_path: Path) -> None:
    with workers(2, "race_to_create") as pair:
        for number in range(20):
            path = tmp_path / f"{number}.db"
            answers = race(pair, path=str(path))
            assert {answer.get("won", str(answer)) for answer in answers} == {1, 2}
            with Ledger(path) as ledger:
                assert ledger.account("d").spent == 2
    assert not list(tmp_path.glob(".*"))  # no drafts


def test_read_only_files_and_folders(tmp_path: Path) -> None:
    original = tmp_path / "ledger.db"
    with Ledger(original, create=True) as ledger:
        ledger.add_dataset("d", small())
        pay(ledger, 5)
    file, folder, half = (tmp_path / name / "ledger.db" for name in ("file", "folder", "half"))
    for copy in (file, folder, half):
        copy.parent.mkdir()
        shutil.copy(original, copy)
    half_written(half)
    for copy in (file, folder, half):
        for each in copy.parent.iterdir():
            each.chmod(0o444)
        if copy is not file:
            copy.parent.chmod(0o555)
    new = folder.with_name("new.db")
    seen = script(TRY, file, folder, half, new)
    for copy in (folder, half):
        copy.parent.chmod(0o755)
    looked, paid = seen[:4], seen[4:]
    assert looked[:2] == [5, 5]
    assert looked[2].startswith(f"{half}: it is read-only")  # what is half written must be undone
    assert looked[3].startswith(f"{new}: no such ledger")
    for copy, said in zip((file, folder, half, new), paid, strict=True):
        assert said.startswith(f"{copy}: it is read-only") or "cannot be written to" in said
    assert not new.exists()
    for copy in (file, folder):
        with Ledger(copy) as ledger:
            assert ledger.account("d").spent == 5


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE charges (units)")


def other_database_in_use(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE charges (units)")
        for name in ("", "-wal"):
            shutil.copy(f"{path}{name}", f"{path}{name}.copy")
    for name in ("", "-wal"):
        Path(f"{path}{name}.copy").rename(f"{path}{name}")


def of_version(path: Path, version: int) -> None:
    Ledger(path, create=True).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")


def cut(path: Path, size: int) -> None:
    path.write_bytes(used_ledger(path)[:size])


def scribbled(path: Path) -> None:
    content = used_ledger(path)
    content[2 * 4096 + 8 : 2 * 4096 + 400] = random.Random(3).randbytes(392)
    path.write_bytes(content)


def without_a_trigger(path: Path) -> None:
    used_ledger(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TRIGGER charges_delete")
        other.execute("DELETE FROM charges")
        other.commit()


def spoiled_amount(path: Path) -> None:
    used_ledger(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        query = "SELECT sql FROM sqlite_master WHERE name = 'charges_update'"
        (trigger,) = other.execute(query).fetchone()
        other.execute("DROP TRIGGER charges_update")
        other.execute("UPDATE charges SET units = -units")
        other.execute(trigger)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text("dataset,units\n" * 500), "not a ledger"),
        (lambda path: path.write_text("x"), "not a ledger"),
        (lambda path: path.touch(), "not a ledger"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\1" * 5000), "not a ledger"),
        (lambda path: path.mkdir(), "not a file"),
        (getattr(os, "mkfifo", Path.mkdir), "not a file"),  # Windows has none
        (lambda path: path.symlink_to("/dev/null"), "not a file"),
        (lambda path: path.symlink_to(path), "not the name of a file"),
        (other_database, "not a ledger; choose another file"),
        (other_database_in_use, "not a ledger; choose another file"),
        (
            lambda path: of_version(path, VERSION + 1),
            f"a ledger of format {VERSION + 1}, and this private-gsd reads format",
        ),
        (lambda path: of_version(path, VERSION - 1), "; use the private-gsd that made it"),
        (lambda path: cut(path, 60), "not a ledger"),
        (lambda path: cut(path, 100), "damaged"),
        (lambda path: cut(path, 4096), "damaged"),
        (lambda path: cut(path, 5000), "damaged"),
        (lambda path: cut(path, 5 * 4096), "damaged"),
        (scribbled, "damaged"),
        (without_a_trigger, "damaged"),
        (spoiled_amount, "damaged"),
    ],
)
def test_not_a_ledger(path: Path, make: Callable[[Path], object], message: str) -> None:
    make(path)

    def state() -> dict[str, bytes | None]:
        return {p.name: p.read_bytes() if p.is_file() else None for p in path.parent.iterdir()}

    before = state()
    for options in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(LedgerError) as caught:
            Ledger(path, **options)
        assert str(path) in str(caught.value)
        assert message in str(caught.value)
        assert state() == before


def test_no_such_ledger(tmp_path: Path) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(LedgerError, match=r"gone.db: no such ledger; make one with"):
            Ledger(tmp_path / "gone.db", **options)
    with pytest.raises(LedgerError, match=r"gone.db: there is no folder"):
        Ledger(tmp_path / "nowhere" / "gone.db", create=True)
    with pytest.raises(LedgerError, match="not the name of a file"):
        Ledger(f"{tmp_path}/a\0b", create=True)
    (tmp_path / "text").touch()
    with pytest.raises(LedgerError, match=r"gone.db"):
        Ledger(tmp_path / "text" / "gone.db", create=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["text"]


def test_half_a_ledger_is_not_made_a_new_one(path: Path) -> None:
    """SQLite would apply an old -journal to a new file of the same name."""
    Path(f"{path}-journal").write_bytes(b"what a dead process left")
    with pytest.raises(LedgerError, match=r"ledger.db-journal: part of a ledger"):
        Ledger(path, create=True)
    assert not path.exists()


def test_a_journal_that_is_emptied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows: it stays, and what it holds is undone by whoever opens it."""
    monkeypatch.setattr(storage, "JOURNAL", "truncate")
    journal = Path(f"{path}-journal")
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        pay(ledger, 5)
        assert journal.stat().st_size == 0
    for read_only in (True, False):
        half_written(path)
        assert journal.stat().st_size > 0
        with Ledger(path, read_only=read_only) as ledger:
            assert ledger.account("d").spent == 5
    path.unlink()
    journal.touch()  # of no ledger, and so in nobody's way
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
    path.unlink()
    journal.write_bytes(b"what a dead process left")
    with pytest.raises(LedgerError, match=r"ledger.db-journal: part of a ledger"):
        Ledger(path, create=True)


def test_odd_names_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a?mode=memory", "50%25 #1", ":memory:", "Größe", "-"):
        with Ledger(name, create=True) as ledger:
            ledger.add_dataset("d", small())
        assert (tmp_path / name).stat().st_size > 4096
    (tmp_path / "link").symlink_to("-")
    with Ledger("link") as ledger:
        assert ledger.account("d").spent == 0
    assert len(list(tmp_path.iterdir())) == 6


def test_a_second_name_is_refused(tmp_path: Path) -> None:
    """Each name of a hard-linked file would have charges of its own."""
    with Ledger(tmp_path / "one.db", create=True):
        pass
    os.link(tmp_path / "one.db", tmp_path / "two.db")
    for name in ("one.db", "two.db"):
        with pytest.raises(LedgerError, match="the file has a second name"):
            Ledger(tmp_path / name, create=True)


@pytest.mark.parametrize("name", [".private-gsd-ledger.db", "ledger.db"])
def test_only_drafts_of_ours_are_removed(tmp_path: Path, name: str) -> None:
    """Never the ledger itself, nor a link that the user made."""
    path, link = tmp_path / name, tmp_path / ".private-gsd-backup.db"
    Ledger(path, create=True).close()
    link.hardlink_to(path)
    with pytest.raises(LedgerError, match="second name"):
        Ledger(path)
    assert path.exists()
    assert link.exists()
    with pytest.raises(LedgerError, match="is a name for a ledger that is being made"):
        Ledger(tmp_path / f".private-gsd-{'0' * 16}", create=True)


def test_a_ledger_that_is_mounted_twice(path: Path) -> None:
    """The file itself is refused, its folder is as good as the other; none forgets a charge."""
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small(10))
    command = ["unshare", "-rm", "sh", "-c", MOUNTS, "sh", str(path.parent)]
    done = subprocess.run(
        [*command, sys.executable, "-c", USE_MOUNTS], capture_output=True, text=True, check=False
    )
    if done.returncode and done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no mounts of our own here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    first, seen, refused, still, second, both = map(json.loads, done.stdout.splitlines())
    assert (first, second) == ("paid", "paid")
    assert refused.startswith("other/ledger.db: the file itself is mounted here")
    assert (seen, still, both) == ([4, 4], [4, 4], [8, 8])


def test_statistics_of_a_tool_do_no_harm(path: Path) -> None:
    used_ledger(path)
    with Ledger(path, read_only=True) as ledger:
        truth = ledger.charges("d")
    with closing(sqlite3.connect(path)) as other:
        other.execute("ANALYZE")
    with Ledger(path) as ledger:
        assert ledger.charges("d") == truth


def test_mount_points_are_read_as_the_system_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    line = rb"36 35 98:0 /mnt1 /a\040b\134c rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
    monkeypatch.setattr(Path, "read_bytes", lambda _: line + b"\n")
    assert storage.mount_points(Path("l.db")) == {Path("/a b\\c")}
