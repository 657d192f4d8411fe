"""Damaged files: every file that is read, damaged in many ways, and the commands that read it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from benchmarks.endurance.damaged_inputs import external_measurements, inputs
from benchmarks.endurance.damaged_ledgers import ledgers
from benchmarks.endurance.damaged_releases import complete_release, interrupted_release
from benchmarks.endurance.damages import choose, damaged
from benchmarks.endurance.looking import plain

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.endurance.looking import Subject
    from benchmarks.endurance.scenes import Reference

SUBJECTS = (ledgers, complete_release, interrupted_release, inputs, external_measurements)


def damages(
    number: int, reference: Reference, folder: Path, random: random.Random, only: str = ""
) -> Iterator[dict[str, Any]]:
    """So many damages of each file; what became of each.

    Args:
        number: How many.
        reference: Ledgers to begin with.
        folder: Where to work.
        random: Where places come from.
        only: Only files whose name has this in it.
    """
    for made in SUBJECTS:
        for subject in made(reference, folder):
            for name in subject.files:
                what = f"{subject.name}: {plain(name)}"
                if only in what:
                    _check_undamaged(subject, name)
                    for each in range(number):
                        yield {**_one(subject, name, each, random), "part": "damages", "what": what}


def _check_undamaged(subject: Subject, name: str) -> None:
    """What is refused undamaged says nothing about damages."""
    shutil.rmtree(subject.place, ignore_errors=True)
    shutil.copytree(subject.template, subject.place)
    size = (subject.place / name).stat().st_size
    looked = subject.look(subject.place, name, size)
    if looked.worst != "harmless":
        raise RuntimeError(f"{subject.name}: {name} is {looked.worst} undamaged: {looked.words}")


def _one(subject: Subject, name: str, number: int, random: random.Random) -> dict[str, Any]:
    shutil.rmtree(subject.place, ignore_errors=True)
    shutil.copytree(subject.template, subject.place)
    file = subject.place / name
    other = _twin(subject, name)
    kind = choose(number, swap=other is not None)
    before = file.read_bytes()
    after = damaged(before, kind, random, other)
    if after is None:
        file.unlink()
    else:
        file.write_bytes(after)
    shorter = min(len(before), len(after or b""))
    begin = next((at for at in range(shorter) if before[at] != (after or b"")[at]), shorter)
    looked = subject.look(subject.place, name, begin)
    failures = [f"{kind} at {begin:,} of {len(before):,}: {words}" for words in looked.words]
    return {"damages": 1, looked.worst: 1, "failures": failures}


def _twin(subject: Subject, name: str) -> bytes | None:
    """What the same file has elsewhere, if it is there and differs."""
    if subject.other is None:
        return None
    mine = (subject.template / name).read_bytes()
    for path in sorted(subject.other.rglob("*")):
        if path.is_file() and plain(str(path.relative_to(subject.other))) == plain(name):
            content = path.read_bytes()
            return None if content == mine else content
    return None
