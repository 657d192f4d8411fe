"""Damaged releases: a complete one, and one that was killed in the middle."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.csv

from benchmarks.endurance.children import call, command
from benchmarks.endurance.looking import Looked, Subject
from benchmarks.endurance.scenes import EPSILON, TABLE, Scene, interrupted, steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.endurance.children import Ended
    from benchmarks.endurance.scenes import Reference


def complete_release(reference: Reference, folder: Path) -> Iterator[Subject]:
    """A complete release."""
    place = folder / "complete"
    scene = Scene(place, "adaptive", "add-remove")
    template, other = folder / "complete-template", folder / "complete-other"
    for number, target in enumerate((other, template)):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        shutil.copy(reference.ledger(scene), scene.ledger)
        # The other one has spent less.
        ended = call(lambda number=number: scene.fit(epsilon=EPSILON * (1 + number) / 2), folder)  # type: ignore[misc]
        if ended.code:
            raise RuntimeError(f"a run failed undisturbed: {ended.last_words}")
        pyarrow.csv.write_csv(TABLE, place / "people.csv")
        shutil.copytree(place, target)
    look = _LookAtComplete(_shown(place))
    files = _files(template / "release")
    yield Subject("complete release", template, place, files, look, other)


def _files(release: Path) -> tuple[str, ...]:
    found = [path.relative_to(release.parent) for path in release.rglob("*") if path.is_file()]
    return tuple(sorted(map(str, found)))


COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "release", "-o", "report.html", "--force"),
    "sample": ("sample", "release", "-o", "sample.csv", "--force"),
    "resume": ("resume", "release", "-o", "resumed.csv", "--force", "people.csv"),
    "sample again": ("sample", "release", "-o", "sample.csv", "--force"),
}


def _shown(place: Path) -> dict[str, tuple[Ended, bytes]]:
    """What every command says and writes of a complete release."""
    found = {}
    for name, words in COMMANDS.items():
        output = place / words[3]
        output.unlink(missing_ok=True)
        ended = command(words, place)
        found[name] = (ended, output.read_bytes() if output.exists() else b"")
    return found


@dataclass(frozen=True)
class _LookAtComplete:
    """Report, sample and resume, and compare all that comes out."""

    true: dict[str, tuple[Ended, bytes]]

    def __call__(self, place: Path, name: str, begin: int) -> Looked:  # noqa: ARG002
        looked = Looked()
        for each, (ended, output) in _shown(place).items():
            expected = (self.true[each][0].out, self.true[each][1])
            same = (ended.out, output) == expected
            looked.take(ended, lambda same=same: same, each)  # type: ignore[misc]
        return looked


def interrupted_release(reference: Reference, folder: Path) -> Iterator[Subject]:
    """A release that was killed in the middle; noise comes from a seed, so that it ends alike."""
    place = folder / "interrupted"
    template, other = folder / "interrupted-template", folder / "interrupted-other"
    for seed, target in ((6, other), (5, template)):
        scene = Scene(place, "adaptive", "add-remove", seed)
        interrupted(scene, reference, "table-*.npy")
        pyarrow.csv.write_csv(TABLE, place / "people.csv")
        shutil.copytree(place, target)
    ended = command(COMMANDS["resume"], place)
    if ended.code:
        raise RuntimeError(f"a run could not be resumed undisturbed: {ended.last_words}")
    true = (place / "resumed.csv").read_bytes()
    look = _LookAtInterrupted(scene, true, _paid(scene))
    files = _files(template / "release")
    yield Subject("interrupted release", template, place, files, look, other)


@dataclass(frozen=True)
class _LookAtInterrupted:
    """Resume, and compare the table and the charges."""

    scene: Scene
    true: bytes
    charges: list[tuple[int, str]]

    def __call__(self, place: Path, name: str, begin: int) -> Looked:  # noqa: ARG002
        looked = Looked()

        def same() -> bool:
            table = (place / "resumed.csv").read_bytes()
            return table == self.true and _paid(self.scene) == self.charges

        looked.take(command(COMMANDS["resume"], place), same, "resume")
        # Whatever came of it, nothing else was paid for than what a whole run pays for.
        paid = _paid(self.scene)
        if paid != self.charges[: len(paid)]:
            looked.note("silent", "other charges than planned")
        return looked


def _paid(scene: Scene) -> list[tuple[int, str]]:
    """What was paid, and for which steps."""
    charges = scene.charges()
    return [(charge.units, step) for charge, step in zip(charges, steps(charges), strict=True)]
