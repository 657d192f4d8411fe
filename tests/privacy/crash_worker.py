"""Measures and saves like a run does, and is killed, with SIGKILL, at a given step."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from private_gsd import datasets, exact_counts, workloads
from private_gsd.measurements.measurements import measure
from private_gsd.privacy.accountant import LedgerAccountant
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.noise import SecureNoise
from private_gsd.system import durable_files

STEPS = ("charging", "charged", "drawn", "arrays", "pending", "document", "end")


def die(step: str, wanted: str) -> None:
    if step == wanted:
        os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, units: int, wanted: str) -> None:
    schema = datasets.census_schema()
    workload = workloads.categorical_marginals(schema, sets=[("sex", "marital")])
    exact = exact_counts(workload, datasets.census(500))
    ledger = Ledger(folder / "ledger.db", create=True)

    class Accountant(LedgerAccountant):
        def charge(self, *arguments: Any) -> str:
            die("charging", wanted)
            number = super().charge(*arguments)
            die("charged", wanted)
            return number

    class Noise(SecureNoise):
        def gaussian(self, *arguments: Any) -> Any:
            noisy = super().gaussian(*arguments)
            die("drawn", wanted)
            return noisy

    write = durable_files.write
    written: list[Path] = []

    def write_and_die(path: Path, content: bytes) -> None:
        write(path, content)
        written.append(path)
        die("arrays" if len(written) == 1 else "pending", wanted)

    move = durable_files.move

    def move_and_die(path: Path, target: Path) -> None:
        move(path, target)
        if path.suffix == ".pending":
            die("document", wanted)

    durable_files.write = write_and_die
    durable_files.move = move_and_die
    accountant = Accountant(ledger, "census", "run")
    measure(exact, [0], [units], accountant=accountant, noise=Noise()).save(folder / "measured")
    die("end", wanted)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
