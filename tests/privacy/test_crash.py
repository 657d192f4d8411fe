"""A run killed at any step never leaves a release that the ledger does not know of."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from private_gsd.errors import MeasurementError
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from tests.privacy.crash_worker import STEPS

BUDGET = RhoBudget.from_epsilon(1, 1e-9)
UNITS = BUDGET.units // 3


def run(folder: Path, step: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.privacy.crash_worker", folder, str(UNITS), step],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_each_step(tmp_path: Path, step: str) -> None:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("census", BUDGET)
    run(tmp_path, step)
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        charges = {str(charge.id): charge.units for charge in ledger.charges("census")}
        spent = ledger.account("census").spent
    assert spent == sum(charges.values())
    assert spent == (0 if step == "charging" else UNITS)
    try:
        released = Measurements.load(tmp_path / "measured")
    except MeasurementError:
        assert step in ("charging", "charged", "drawn", "arrays", "pending")
        return
    assert step in ("document", "end")
    assert all(charges[number] == UNITS for number in released.charges)
    # A later run goes on from it, or pays again; three thirds are all there is.
    run(tmp_path, "end")
    run(tmp_path, "end")
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        assert ledger.account("census").spent == 3 * UNITS
