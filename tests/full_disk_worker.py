"""Run whole releases on disks of different sizes, all too small; then on with more room.

Meant for a mount namespace of its own: ``unshare -Urm python -m tests.full_disk_worker FOLDER``.
Prints what became of each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from private_gsd import Adaptive, Synthesizer
from private_gsd.errors import GsdError
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.runs.release import Release
from tests.fitting import QUICK, SCHEMA, TABLE


def mount(folder: Path, pages: int | None, *words: str) -> None:
    size = "64m" if pages is None else f"{4 * pages}k"
    command = ["mount", "-t", "tmpfs", "-o", ",".join([*words, f"size={size}"]), "tmpfs"]
    subprocess.run([*command, str(folder)], check=True)


def fit(disk: Path) -> Synthesizer:
    synth = Synthesizer(
        SCHEMA,
        epsilon=1.0,
        workload=["categorical:2", "tree:2:3"],
        mechanism=Adaptive(epochs=2),
        rows=200,
        threads=1,
        projector=QUICK,  # only the disk matters
    )
    return synth.fit(
        TABLE,
        release=disk / "release",
        ledger=disk / "ledger.db",
        create_ledger=True,
        insecure_noise_seed=5,
    )


def outcome(disk: Path) -> list[object]:
    with Ledger(disk / "ledger.db", read_only=True) as ledger:
        charges = ledger.charges("table")
    steps = [[charge.units, charge.run.partition(" ")[2]] for charge in charges]
    return [Release.load(disk / "release").synthetic.to_pylist(), steps]


def main(folder: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    mount(disk, None)
    fit(disk)
    expected = outcome(disk)
    subprocess.run(["umount", "--lazy", str(disk)], check=True)
    for pages in range(1, 45):
        mount(disk, pages)
        told = ""
        try:
            fit(disk)
        except GsdError as error:
            told = str(error)
        mount(disk, None, "remount")
        again = (disk / "release" / "release.json").exists()
        if again:
            Synthesizer.resume(disk / "release", TABLE)
        else:
            fit(disk)
        found = {"pages": pages, "told": told, "resumed": again, "same": outcome(disk) == expected}
        sys.stdout.write(json.dumps(found) + "\n")
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
