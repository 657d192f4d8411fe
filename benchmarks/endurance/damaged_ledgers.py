"""Damaged ledgers: one that was closed, and one of a process that was killed."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.csv

from benchmarks.endurance.children import call, command
from benchmarks.endurance.looking import QUICK, Looked, Subject
from benchmarks.endurance.scenes import DATASET, SCHEMA, TABLE, Scene, interrupted
from private_gsd.privacy.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.endurance.scenes import Reference


def ledgers(reference: Reference, folder: Path) -> Iterator[Subject]:
    """A ledger that was closed, and one of a process that was killed."""
    place = folder / "ledger"
    scene = Scene(place, "adaptive", "replace-one")
    other = Scene(folder / "ledger-other", "mst", "replace-one")
    other.folder.mkdir(parents=True)
    other.create_ledger(7.0)
    # Its only dataset is another one: to know of none of the charges is what no file can notice.
    words = ["ledger", "create", "renamed.db", "--dataset", "others", "--epsilon", "7"]
    command([*words, "--delta", "1e-6"], other.folder)
    (other.folder / "renamed.db").replace(other.ledger)
    for name in ("closed ledger", "ledger of a killed run"):
        template = folder / name.replace(" ", "-")
        if name == "closed ledger":
            place.mkdir(parents=True)
            shutil.copy(reference.ledger(scene), scene.ledger)
            for number in range(2):
                call(lambda number=number: scene.fit(scene.folder / f"r{number}"), folder)  # type: ignore[misc]
        else:
            interrupted(scene, reference)
        true = _account(_copied(scene, folder / "copy"))
        shutil.copytree(place, template)
        shutil.rmtree(place)
        pyarrow.csv.write_csv(TABLE, template / "people.csv")
        SCHEMA.write(template / "schema.toml")
        files = tuple(sorted(path.name for path in template.glob("ledger.db*")))
        look = _LookAtLedger(true)
        yield Subject(name, template, place, files, look, other.folder)


def _copied(scene: Scene, folder: Path) -> Scene:
    """The same ledger elsewhere: to open it may tidy it up."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in scene.folder.glob("ledger.db*"):
        shutil.copy(path, folder)
    return Scene(folder, scene.mechanism, scene.neighbours)


def _account(scene: Scene) -> tuple[int, int, int]:
    with Ledger(scene.ledger, create=False) as ledger:
        account = ledger.account(DATASET)
        return account.spent, account.remaining, account.budget.units


@dataclass(frozen=True)
class _LookAtLedger:
    """Show it, charge more than remains, charge what remains, and run for more than remains."""

    true: tuple[int, int, int]

    def __call__(self, place: Path, name: str, begin: int) -> Looked:  # noqa: ARG002
        spent, remaining, total = self.true
        looked = Looked()
        file = place / "ledger.db"
        looked.take(command(["ledger", "show", file], place), lambda: True, "ledger show")

        def show() -> None:
            with Ledger(file, create=False, read_only=True) as ledger:
                account = ledger.account(DATASET)
                print(json.dumps([account.spent, account.remaining, account.budget.units]))

        def charge(units: int) -> Callable[[], None]:
            def work() -> None:
                with Ledger(file, create=False) as ledger:
                    ledger.charge(DATASET, units, mechanism="test", groups=[], run="damaged")

            return work

        def right(least: int) -> bool:
            """Whether no less is spent and no more remains than is true."""
            found = call(show, place)
            if found.code:
                return found.refused
            says = json.loads(found.out)
            return bool(says[0] >= least and says[1] <= total - least and says[2] == total)

        looked.take(call(show, place), lambda: right(spent), "what is spent and remains")
        over = call(charge(remaining + 1), place)
        looked.take(over, lambda: False, "a charge over the total")
        words = ["synthesize", "people.csv", "--schema", "schema.toml", "--ledger", str(file)]
        words += ["--dataset", DATASET, "--epsilon", "2.9", "--delta", "1e-6"]
        words += ["--mechanism", "adaptive", "--epochs", "1", "--release", "r", *QUICK]
        looked.take(command(words, place), lambda: False, "a run over the total")
        if remaining:
            paid = call(charge(remaining), place)
            looked.take(paid, lambda: right(spent + remaining), "a charge of what remains")
        # What is always refused is no sign that the damage was noticed.
        outcomes = [each for at, each in enumerate(looked.outcomes) if at not in (2, 3)]
        always = [each for at, each in enumerate(looked.outcomes) if at in (2, 3)]
        looked.outcomes = outcomes + [each for each in always if each != "refused"]
        return looked
