"""Accountants: nothing is released that was not paid, and no crash leaves a release unpaid."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from private_gsd.errors import BudgetError, MeasurementError
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.accountant import LedgerAccountant, LocalAccountant
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.measuring import release_counts, release_n_records
from private_gsd.privacy.noise import (
    SecureNoise,
)
from tests.privacy.census_counts import EXACT
from tests.privacy.crash_worker import STEPS

BUDGET = RhoBudget.from_epsilon(1, 1e-9)
UNITS = BUDGET.units // 3


def test_a_local_accountant_refuses_other_noise_under_gdp() -> None:
    accountant = LocalAccountant(RhoBudget.from_rho(0.5, 1e-6, "gdp"))
    with pytest.raises(BudgetError, match="conversion 'gdp'"):
        accountant.charge(1, "noisy top-k", ["g"], "replace-one")
    accountant.charge(1, "discrete gaussian", ["g"], "replace-one")
    assert accountant.spent == 1


@pytest.mark.parametrize("units", [0, -1, True, 1.0])
def test_a_local_accountant_takes_amounts_alone(units: Any) -> None:
    accountant = LocalAccountant(BUDGET)
    with pytest.raises(BudgetError, match="a positive number of units"):
        accountant.charge(units, "discrete gaussian", ["g"], "replace-one")
    assert accountant.spent == 0


def test_other_neighbours_than_promised_are_refused() -> None:
    """Noise for add-remove neighbours is too little for replace-one ones."""
    for promised, used in (("replace-one", "add-remove"), ("add-remove", "replace-one")):
        accountant = LocalAccountant(BUDGET, promised)
        with pytest.raises(BudgetError, match=f"is for {promised} neighbours, the release for"):
            release_counts(
                EXACT,
                [0],
                [5],
                accountant=accountant,
                noise=SecureNoise(),
                neighbours=used,  # type: ignore[arg-type]
            )
        assert accountant.spent == 0


def test_the_ledger_keeps_its_promise_about_neighbours(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("census", BUDGET, "replace-one")
        accountant = LedgerAccountant(ledger, "census", "run")
        with pytest.raises(BudgetError, match="the release for add-remove"):
            release_n_records(EXACT, 5, accountant=accountant, noise=SecureNoise())
        assert ledger.account("census").spent == 0


def run(folder: Path, step: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.privacy.crash_worker", folder, str(UNITS), step],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, marks=() if step in ("charging", "charged") else pytest.mark.slow)
        for step in STEPS
    ],
)
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
    # A later run resumes from it, or pays again; three thirds are all there is.
    run(tmp_path, "end")
    run(tmp_path, "end")
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        assert ledger.account("census").spent == 3 * UNITS
