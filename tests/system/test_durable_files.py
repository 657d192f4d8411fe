"""Durable files: whole or not at all, and shown only once their digest is recorded."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from private_gsd.errors import NotCommittedError
from private_gsd.system.durable_files import TEMPORARY, digest_of, make_folder, publish, recover
from private_gsd.system.durable_files import write as write_file


class Died(BaseException):
    """What a killed process would have done."""


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    path = tmp_path / "a" / "b" / "c"
    for content in (b"one", b"two"):
        write_file(path, content)
        assert files(path.parent) == {"c": content}


def test_a_folder_in_place_of_the_file_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    with pytest.raises(OSError, match=r"directory|denied"):
        write_file(tmp_path / "c", b"one")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert TEMPORARY.fullmatch(f".c.{'0' * 16}.tmp")
    assert not TEMPORARY.fullmatch("c.tmp")


def test_a_file_is_shown_after_its_digest_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "c"
    seen: list[str] = []

    def record(digest: str) -> None:
        assert not path.exists()
        seen.append(digest)

    publish(path, b"one", record)
    assert seen == [hashlib.sha256(b"one").hexdigest()] == [digest_of(path)]
    assert files(tmp_path) == {"c": b"one"}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_a_process_that_died_in_between(tmp_path: Path, recorded: bool, older: bool) -> None:
    """What was recorded is shown, also in place of an older file; what was not is deleted."""
    path = tmp_path / "c"
    digests: list[str] = []
    if older:
        publish(path, b"old", digests.append)

    def dying(digest: str) -> None:
        if recorded:
            digests.append(digest)
        raise Died

    with pytest.raises(Died):
        publish(path, b"new", dying)
    assert path.exists() == older

    def committed_at(digest: str) -> int:
        return digests.index(digest) + 1 if digest in digests else 0

    for _ in range(2):
        recover(path, committed_at)
        expected = {"c": b"new"} if recorded else {"c": b"old"} if older else {}
        assert files(tmp_path) == expected


def test_what_may_not_be_shown_is_deleted(tmp_path: Path) -> None:
    def refuse(_: str) -> None:
        raise NotCommittedError("another process measures for the same charge")

    with pytest.raises(NotCommittedError):
        publish(tmp_path / "c", b"one", refuse)
    assert files(tmp_path) == {}
