"""Kills: runs ended by SIGKILL at random moments and resumed, until they are complete."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.endurance.children import Child
from benchmarks.endurance.scenes import (
    DATASET,
    MECHANISMS,
    RELATIONS,
    Scene,
    differing,
    drawn,
    listing,
    steps,
)
from private_gsd import Release
from private_gsd.errors import GsdError
from private_gsd.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from benchmarks.endurance.scenes import Reference
    from private_gsd.privacy.accounts import Charge

# Kills that are aimed wait for a change of the ledger's files, and then as long as this at most.
AFTER_A_CHANGE = 0.004
# As many changes come at most in a run before one is waited for in vain.
MOST_CHANGES = 12


def kills(
    number: int, reference: Reference, folder: Path, random: random.Random
) -> Iterator[dict[str, Any]]:
    """Kill so often in all, over all mechanisms and relations; what became of each run."""
    done = 0
    while done < number:
        for mechanism in MECHANISMS:
            for neighbours in RELATIONS:
                if done >= number:
                    return
                scene = Scene(folder / "killed", mechanism, neighbours)
                found = killed_run(scene, reference, random, number - done)
                done += found["kills"]
                yield found


def killed_run(
    scene: Scene, reference: Reference, random: random.Random, most: int
) -> dict[str, Any]:
    """One run, killed once or several times and resumed.

    Args:
        scene: The run.
        reference: What undisturbed runs are like.
        random: Where moments come from.
        most: How many kills at most.
    """
    shutil.rmtree(scene.folder, ignore_errors=True)
    scene.folder.mkdir(parents=True)
    shutil.copy(reference.ledger(scene), scene.ledger)
    counts = Counter({"kills": 0})
    failures: list[str] = []
    seen: dict[str, Any] = {}
    wanted = min(most, 1 + int(random.expovariate(0.7)))
    while not failures:
        child = Child(scene.start_or_resume, scene.folder)
        if counts["kills"] < wanted:
            _wait_to_kill(child, scene, reference.seconds(scene), random)
            child.kill()
        ended = child.wait()
        if not ended.killed:
            if ended.code or ended.trouble:
                failures.append(f"{ended.trouble or 'refused'}: {ended.last_words}")
            break
        counts["kills"] += 1
        try:
            paid = charges_of_a_copy(scene)
            counts["after a charge" if paid else "before the first charge"] += 1
            now = drawn(scene.release)
            failures += [f"drawn twice for one charge: {name}" for name in differing(seen, now)]
            failures += [f"gone after a kill: {name}" for name in seen if name not in now]
            seen = now
            if len(set(steps(paid))) < len(paid):
                failures.append("charged twice for one step")
            if random.random() < 0.3:  # a look must not disturb what is resumed
                scene.spent_and_remaining()
        except GsdError as error:
            failures.append(f"after a kill: {error}")
    failures = failures or check_complete(scene, reference, seen)
    words = f"{scene.mechanism}, {scene.neighbours}"
    return {**counts, "part": "kills", "what": words, "runs": 1, "failures": failures}


def charges_of_a_copy(scene: Scene) -> list[Charge]:
    """The charges after a kill, read from a copy: opening a ledger may tidy it up."""
    copy = scene.folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for path in scene.folder.glob("ledger.db*"):
        shutil.copy(path, copy)
    with Ledger(copy / scene.ledger.name, create=False) as ledger:
        return ledger.charges(DATASET)


def check_complete(scene: Scene, reference: Reference, seen: dict[str, Any]) -> list[str]:
    """What is wrong with a run that has come to its end.

    Args:
        scene: The run.
        reference: What undisturbed runs are like.
        seen: What was drawn and seen before the end.
    """
    failures = []
    try:
        release = Release.load(scene.release)
        release.synthetic  # noqa: B018 (it checks itself)
        charges, final = scene.charges(), drawn(scene.release)
        spent, remaining = scene.spent_and_remaining()
        total = scene.total()
        measured = release.measurements()
    except GsdError as error:
        return [f"after the end: {error}"]
    named = {charge.run.partition(" ")[0] for charge in charges}
    if len(named) != 1:
        failures.append(f"charges of {len(named)} runs")
    if len(set(steps(charges))) < len(charges):
        failures.append("charged twice for one step")
    planned = reference.spent(scene)
    if spent != planned or sum(charge.units for charge in charges) != spent:
        failures.append(f"{spent} units were spent where {planned} were planned")
    if remaining != total - spent:
        failures.append("budget is still reserved after the end")
    if measured is None or not set(measured.charges) <= {str(charge.id) for charge in charges}:
        failures.append("a measurement names a charge that is not there")
    failures += [f"drawn twice for one charge: {name}" for name in differing(seen, final)]
    failures += [f"gone at the end: {name}" for name in seen if name not in final]
    left = listing(scene.release) - reference.listing(scene)
    failures += [f"left in the release: {name}" for name in sorted(left)]
    return failures


def _wait_to_kill(child: Child, scene: Scene, seconds: float, random: random.Random) -> None:
    """Wait for any moment of a run, or for one beside a change of its ledger."""
    end = time.monotonic() + 1.2 * seconds
    if random.random() < 0.5:
        end = time.monotonic() + random.uniform(0, 1.1 * seconds)
        while child.running and time.monotonic() < end:
            time.sleep(min(0.002, max(0.0, end - time.monotonic())))
        return
    before = _state(scene)
    for _ in range(random.randint(1, MOST_CHANGES)):
        while (now := _state(scene)) == before and child.running and time.monotonic() < end:
            time.sleep(0.0003)
        before = now
    time.sleep(random.uniform(0, AFTER_A_CHANGE))


def _state(scene: Scene) -> list[tuple[str, int, int]]:
    """The ledger's files as they are now."""
    found = []
    for path in sorted(scene.folder.glob("ledger.db*")):
        try:
            about = path.stat()
        except FileNotFoundError:
            continue
        found.append((path.name, about.st_size, about.st_mtime_ns))
    return found
