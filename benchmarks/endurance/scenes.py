"""Scenes: small tables, the runs that are disturbed, and what is seen of them from outside."""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from benchmarks.endurance.children import Child, call, command
from private_gsd import Budget, GeneticSearch, Release, Synthesizer, datasets
from private_gsd.mechanisms.registry import MECHANISMS as REGISTRY
from private_gsd.mechanisms.registry import conversion_of, mechanism_with
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.workloads import Neighbours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from private_gsd.privacy.accounts import Charge

DATASET = "people"
EPSILON = 1.0
DELTA = 1e-6
SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen"])
TABLE = datasets.census(300, seed=3).select(SCHEMA.names)
MECHANISMS = tuple(REGISTRY)
RELATIONS: tuple[str, ...] = get_args(Neighbours)


@dataclass(frozen=True)
class Scene:
    """A run in a folder: a ledger, and a release that is charged to it.

    Attributes:
        folder: Where all of it is.
        mechanism: How the budget is spent.
        neighbours: The neighbouring relation.
        seed: A seed for the noise, where the result must be the same each time.
        release_name: The name of the release's folder.
    """

    folder: Path
    mechanism: str
    neighbours: str
    seed: int | None = None
    release_name: str = "release"

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.folder / "ledger.db"

    @property
    def release(self) -> Path:
        """The release's folder."""
        return self.folder / self.release_name

    def create_ledger(self, epsilon: float = 3 * EPSILON) -> None:
        """Make the ledger, with more budget than a run needs: who charges twice is not refused."""
        conversion = conversion_of(REGISTRY[self.mechanism]())
        words: list[str | Path] = ["ledger", "create", self.ledger, "--dataset", DATASET]
        words += ["--epsilon", str(epsilon), "--delta", str(DELTA), "--conversion", conversion]
        ended = command([*words, "--neighbours", self.neighbours], self.folder)
        if ended.code:
            raise RuntimeError(f"no ledger could be made: {ended.last_words}")

    def fit(self, release: Path | None = None, epsilon: float = EPSILON) -> None:
        """Run, from the beginning."""
        epochs = 3 if self.mechanism == "adaptive" else None
        Synthesizer(
            SCHEMA,
            Budget(epsilon, DELTA, self.neighbours),  # type: ignore[arg-type]
            workload="categorical:3" if self.mechanism == "layered" else "categorical:2",
            mechanism=mechanism_with(self.mechanism, epochs=epochs),
            rows=40,
            # Only what is saved matters: without denoising it is quicker, where that may be.
            projector=GeneticSearch(denoise=self.mechanism == "joint-last"),
            threads=1,
        ).fit(
            TABLE,
            ledger=self.ledger,
            dataset=DATASET,
            release=release or self.release,
            insecure_noise_seed=self.seed,
        )

    def resume(self, release: Path | None = None) -> None:
        """Resume the run."""
        Synthesizer.resume(release or self.release, TABLE, threads=1)

    @property
    def begun(self) -> bool:
        """Whether there is something to resume."""
        return (self.release / "release.json").exists()

    def start_or_resume(self) -> None:
        """Resume the run, or begin it where nothing had begun."""
        if self.begun:
            self.resume()
        else:
            self.fit()

    def charges(self) -> list[Charge]:
        """All charges."""
        with Ledger(self.ledger, create=False, read_only=True) as ledger:
            return ledger.charges(DATASET)

    def spent_and_remaining(self) -> tuple[int, int]:
        """Units spent, and units that may still be spent."""
        with Ledger(self.ledger, create=False, read_only=True) as ledger:
            account = ledger.account(DATASET)
            return account.spent, account.remaining

    def total(self) -> int:
        """Units that may be spent in all."""
        with Ledger(self.ledger, create=False, read_only=True) as ledger:
            return ledger.account(DATASET).budget.units


def drawn(folder: Path) -> dict[str, Any]:
    """What a release shows that was drawn: by charge, the number of records and the selections.

    Empty where there is no release yet.
    """
    if not (folder / "release.json").exists():
        return {}
    release = Release.load(folder)
    found: dict[str, Any] = {}
    measured = release.measurements()
    if measured is not None:
        offsets = measured.workload.offsets
        for group, charge in enumerate(measured.charges):
            counts = measured.counts[offsets[group] : offsets[group + 1]].tobytes()
            name = f"charge {charge}: {measured.workload.describe(group)}"
            found[name] = found.get(name, b"") + counts
    counted = release.n_records()
    if counted is not None:
        found["number of records"] = counted.n_records
    for number, groups in enumerate(release.selections()):
        found[f"selection {number + 1}"] = tuple(groups)
    return found


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What was drawn twice under one charge, and seen both times."""
    return [name for name in one if name in other and one[name] != other[name]]


def steps(charges: list[Charge]) -> list[str]:
    """The names of the steps that charges paid for, without the run's."""
    return [charge.run.partition(" ")[2] for charge in charges]


def listing(folder: Path) -> set[str]:
    """The names in a folder, without numbers and digests; a second file of arrays has its own."""
    names: Counter[str] = Counter()
    for path in folder.rglob("*"):
        name = re.sub(r"[0-9a-f]{16}", "*", str(path.relative_to(folder)))
        names[re.sub(r"table-\d+", "table-*", name)] += 1
    several = {f"{name}, {count} times" for name, count in names.items() if "arrays-*" in name}
    return set(names) | several


@dataclass(frozen=True)
class Reference:
    """What undisturbed runs are like, and ledgers to begin with.

    Attributes:
        folder: Where they are.
    """

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Reference:
        """Run everything once and once more, so that kernels are compiled before it is timed."""
        reference = cls(folder)
        for scene in reference._scenes():
            scene.folder.mkdir(parents=True)
            scene.create_ledger(EPSILON)
            scene.ledger.rename(scene.folder / "small.db")
            scene.create_ledger()
            shutil.copy(scene.ledger, scene.folder / "empty.db")
            scene.fit()
            # In a child, as it will be; the first run in this process was for compiling.
            again = replace(scene, release_name="again")
            began = time.monotonic()
            ended = call(again.fit, scene.folder)
            if ended.code:
                raise RuntimeError(f"a run failed undisturbed: {ended.last_words}")
            (scene.folder / "seconds").write_text(str(time.monotonic() - began))
        return reference

    def ledger(self, scene: Scene) -> Path:
        """A ledger with more budget than a run needs, and no charge."""
        return self._like(scene).folder / "empty.db"

    def small_ledger(self, scene: Scene) -> Path:
        """A ledger with the budget of one run, and no charge."""
        return self._like(scene).folder / "small.db"

    def seconds(self, scene: Scene) -> float:
        """How long a run takes."""
        return float((self._like(scene).folder / "seconds").read_text())

    def spent(self, scene: Scene) -> int:
        """How many units a run spends."""
        charges = self._like(scene).charges()
        first = charges[0].run.partition(" ")[0]
        return sum(charge.units for charge in charges if charge.run.startswith(f"{first} "))

    def listing(self, scene: Scene) -> set[str]:
        """What a complete release has."""
        return listing(self._like(scene).release)

    def _like(self, scene: Scene) -> Scene:
        return replace(scene, folder=self.folder / _name(scene), release_name="release")

    def _scenes(self) -> Iterator[Scene]:
        for mechanism in MECHANISMS:
            for neighbours in RELATIONS:
                yield self._like(Scene(self.folder, mechanism, neighbours))


def _name(scene: Scene) -> str:
    return f"{scene.mechanism}-{scene.neighbours}"


def interrupted(
    scene: Scene, reference: Reference, when: str = "measurements/measurements.json"
) -> None:
    """Fill a scene with a run that was killed when it had measured something and not all.

    Args:
        scene: The scene.
        reference: What it begins with.
        when: The run is killed when its release has such a file.
    """
    for _ in range(50):
        shutil.rmtree(scene.folder, ignore_errors=True)
        scene.folder.mkdir(parents=True)
        shutil.copy(reference.ledger(scene), scene.ledger)
        child = Child(scene.fit, scene.folder)
        while child.running and not any(scene.release.glob(when)):
            time.sleep(0.0003)
        child.kill()
        ended = child.wait()
        if ended.killed and not Release.load(scene.release).complete:
            return
    raise RuntimeError(f"no run could be interrupted in time: {ended.last_words}")
