"""File systems: what is refused, what is waited for, what two names stand for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from private_gsd.system import file_systems
from private_gsd.system.file_systems import is_within, open_to_read, patiently, place_new, same_file


def test_a_file_that_is_open_for_a_moment_is_waited_for() -> None:
    """As long as the patience is, and no longer; other errors are not waited for."""
    tries = []

    def act() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise PermissionError(13, "in use")

    patiently(act, 5)
    assert len(tries) == 3
    tries.clear()
    with pytest.raises(PermissionError):
        patiently(act, 0)
    assert len(tries) == 1

    def gone() -> None:
        tries.append(1)
        raise FileNotFoundError

    with pytest.raises(FileNotFoundError):
        patiently(gone, 5)
    assert len(tries) == 2


def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name, encoding="utf-8", newline="\n")
    with pytest.raises(FileExistsError):
        place_new(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text(encoding="utf-8") == "b"
    place_new(tmp_path / "a", tmp_path / "c")
    assert (tmp_path / "c").read_text(encoding="utf-8") == "a"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names there")
@pytest.mark.parametrize("flags", [[], ["O_NOFOLLOW"], ["O_NOFOLLOW", "O_NONBLOCK"]])
def test_links_and_pipes_are_refused_whatever_opening_can(
    tmp_path: Path, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By opening itself, or by looking before and after."""
    for flag in flags:
        monkeypatch.delattr(os, flag)
    plain, link, pipe = tmp_path / "plain", tmp_path / "link", tmp_path / "pipe"
    plain.write_bytes(b"content\r\n\x1a")
    link.symlink_to(plain)
    os.mkfifo(pipe)
    for path, follow in ((plain, False), (plain, True), (link, True)):
        with os.fdopen(open_to_read(path, follow=follow), "rb") as file:
            assert file.read() == plain.read_bytes()
    with pytest.raises(ValueError, match="is a symbolic link"):
        open_to_read(link, follow=False)
    for follow in (False, True):
        with pytest.raises(ValueError, match="is not a plain file"):
            open_to_read(pipe, follow=follow)
        with pytest.raises(FileNotFoundError):
            open_to_read(tmp_path / "gone", follow=follow)


def test_a_file_that_is_exchanged_between_looking_and_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where opening cannot refuse a link by itself."""
    path, other = tmp_path / "a", tmp_path / "b"
    path.touch()
    other.touch()
    real = os.open

    def exchanged(name: Path, flags: int) -> int:
        path.unlink()
        path.symlink_to(other)
        return real(name, flags)

    monkeypatch.delattr(os, "O_NOFOLLOW", raising=False)
    monkeypatch.setattr(os, "open", exchanged)
    with pytest.raises(ValueError, match="changed while it was opened"):
        open_to_read(path, follow=False)


def test_two_names_of_a_file(tmp_path: Path) -> None:
    """Links, and letters that the file system takes for the same, which a hard link stands for."""
    (tmp_path / "folder").mkdir()
    name = tmp_path / "folder" / "Table.csv"
    name.touch()
    (tmp_path / "folder" / "table.csv").hardlink_to(name)
    (tmp_path / "other").symlink_to(tmp_path / "folder")
    assert same_file(name, tmp_path / "folder" / "table.csv")
    assert same_file(name, tmp_path / "other" / "Table.csv")
    assert same_file(tmp_path / "new", tmp_path / "folder" / ".." / "new")
    assert not same_file(name, tmp_path / "new")
    assert is_within(tmp_path / "other" / "new" / "deep", tmp_path / "folder")
    assert not is_within(tmp_path / "folder", tmp_path / "folder")


def test_a_disk_is_synced_by_its_own_command_where_there_is_one(tmp_path: Path) -> None:
    """macOS: in a process of its own, with a module ``fcntl`` that knows F_FULLFSYNC."""
    program = """
import os, sys, types
calls = []

def fcntl(descriptor, command):
    calls.append(command)
    if len(calls) > 1:
        raise OSError(45, "not supported")

sys.modules["fcntl"] = types.SimpleNamespace(F_FULLFSYNC=51, fcntl=fcntl)
os.fsync = lambda descriptor: calls.append("fsync")
from private_gsd.privacy.ledger import storage
from private_gsd.system import file_systems
with open(sys.argv[1], "wb") as file:
    file_systems.sync(file.fileno())
    file_systems.sync(file.fileno())
assert calls == [51, 51, "fsync"], calls
assert not file_systems.FOLDERS_SYNC
assert storage.JOURNAL == "truncate"
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="the rule for Linux")
def test_on_linux_a_journal_is_removed() -> None:
    assert file_systems.FOLDERS_SYNC
    assert file_systems.PATIENCE == 0
