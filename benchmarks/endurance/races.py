"""Races: processes that start together for the last of a budget, or to resume the same run."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.endurance.children import Child
from benchmarks.endurance.kills import check_complete
from benchmarks.endurance.scenes import DATASET, Scene, differing, drawn, interrupted
from private_gsd.errors import BudgetError
from private_gsd.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.endurance.children import Ended
    from benchmarks.endurance.scenes import Reference

RACES = ("charges", "runs", "resuming one release", "resuming two copies")
# Mechanisms that still draw after their first measurement.
SELECTING = ("adaptive", "mst", "aim")
# Children are there by then, and start together.
SOON = 0.03


def races(
    number: int, reference: Reference, folder: Path, random: random.Random
) -> Iterator[dict[str, Any]]:
    """So many races of each kind; what became of each."""
    templates: dict[str, Path] = {}
    for race in range(number):
        neighbours = ("replace-one", "add-remove")[race // 3 % 2]
        mechanism = SELECTING[race % 3]
        scene = Scene(folder / f"{mechanism}-{neighbours}", mechanism, neighbours)
        for kind in RACES:
            shutil.rmtree(scene.folder, ignore_errors=True)
            if kind in RACES[:2]:
                scene.folder.mkdir(parents=True)
                shutil.copy(reference.small_ledger(scene), scene.ledger)
                failures, counts = (_charges if kind == "charges" else _runs)(
                    scene, reference, random
                )
            else:
                template = templates.get(scene.folder.name)
                if template is None:  # its ledger must stay where it is
                    template = folder / f"{scene.folder.name}-template"
                    interrupted(scene, reference)
                    shutil.copytree(scene.folder, template)
                    templates[scene.folder.name] = template
                else:
                    shutil.copytree(template, scene.folder)
                again = _one_release if kind == RACES[2] else _two_copies
                failures, counts = again(scene, reference, random)
            yield {**counts, "part": "races", "what": kind, "races": 1, "failures": failures}


def simultaneously(
    works: Sequence[Callable[[], object]], folder: Path, random: random.Random
) -> list[Ended]:
    """Work in children that start at the same moment, give or take half a millisecond or ten."""
    start = time.monotonic() + SOON
    apart = random.choice([0.0005, 0.01])

    def waiting(work: Callable[[], object], moment: float) -> Callable[[], object]:
        def run() -> None:
            time.sleep(max(0.0, moment - time.monotonic() - 0.002))
            while time.monotonic() < moment:  # a sleep would end too late for a close race
                pass
            work()

        return run

    children = [Child(waiting(work, start + random.uniform(0, apart)), folder) for work in works]
    return [child.wait() for child in children]


def _charges(
    scene: Scene,
    reference: Reference,  # noqa: ARG001
    random: random.Random,
) -> tuple[list[str], dict[str, int]]:
    """Bare charges of all that there is."""
    total = scene.total()

    def charge() -> None:
        with Ledger(scene.ledger, create=False) as ledger:
            ledger.charge(DATASET, total, mechanism="test", groups=["all"], run="race")

    ended = simultaneously([charge] * random.choice([2, 3]), scene.folder, random)
    failures = _one_wins(ended)
    if scene.spent_and_remaining() != (total, 0):
        failures.append(f"spent and remaining are {scene.spent_and_remaining()}, not {(total, 0)}")
    return failures, {}


def _runs(
    scene: Scene, reference: Reference, random: random.Random
) -> tuple[list[str], dict[str, int]]:
    """Whole runs, each of which needs all that there is."""
    others = [scene.release, scene.folder / "other"]
    works: list[Callable[[], object]] = [
        lambda folder=folder: scene.fit(folder)  # type: ignore[misc]
        for folder in others
    ]
    ended = simultaneously(works, scene.folder, random)
    failures = _one_wins(ended)
    for folder, each in zip(others, ended, strict=True):
        if each.code and (folder / "release.json").exists():
            failures.append("a run that was refused has left a release")
        if not each.code:
            winner = Scene(
                scene.folder, scene.mechanism, scene.neighbours, release_name=folder.name
            )
            failures += check_complete(winner, reference, {})
    return failures, {}


def _one_release(
    scene: Scene, reference: Reference, random: random.Random
) -> tuple[list[str], dict[str, int]]:
    """Two that resume the same release: one works, the other is refused or finds it complete."""
    seen = drawn(scene.release)
    ended = simultaneously([scene.resume] * 2, scene.folder, random)
    failures = _troubles(ended)
    complete = sum(each.code == 0 for each in ended)
    if not complete:
        failures.append(f"nobody could resume: {ended[0].last_words}")
    failures += check_complete(scene, reference, seen)
    return failures, {"found complete": complete - 1}


def _two_copies(
    scene: Scene, reference: Reference, random: random.Random
) -> tuple[list[str], dict[str, int]]:
    """Two that resume copies of a release: what one saves, the other never shows otherwise."""
    other = scene.folder / "other"
    shutil.copytree(scene.release, other)
    seen = drawn(scene.release)
    works = [scene.resume, lambda: scene.resume(other)]
    ended = simultaneously(works, scene.folder, random)
    failures = _one_wins(ended, any_reason=True)
    folders = [scene.release, other]
    twice = differing(drawn(scene.release), drawn(other))
    failures += [f"drawn twice for one charge: {name}" for name in twice]
    for folder, each in zip(folders, ended, strict=True):
        if not each.code:
            winner = Scene(
                scene.folder, scene.mechanism, scene.neighbours, release_name=folder.name
            )
            failures += check_complete(winner, reference, seen)
    return failures, {}


def _one_wins(ended: list[Ended], *, any_reason: bool = False) -> list[str]:
    failures = _troubles(ended)
    winners = sum(each.code == 0 for each in ended)
    if winners != 1:
        failures.append(f"{winners} of {len(ended)} won: {ended[0].last_words}")
    for each in ended:
        if each.code and not any_reason and each.code != BudgetError.exit_code:
            failures.append(f"refused for another reason: {each.last_words}")
    return failures


def _troubles(ended: list[Ended]) -> list[str]:
    found = [f"{each.trouble}: {each.last_words}" for each in ended if each.trouble]
    return found + [
        "refused without a word" for each in ended if each.code > 0 and not each.refused
    ]
