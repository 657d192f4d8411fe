"""Ledgers for the tests: small budgets, charges, and files in every state."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from private_gsd.privacy.accounts import Charge
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from tests.privacy.ledger.ledger_worker import UNITS


def small(units: int = 10 * UNITS) -> RhoBudget:
    return RhoBudget(units, 1e-9, "paper")


def pay(ledger: Ledger, units: int = UNITS, dataset: str = "d", **words: Any) -> Charge:
    return ledger.charge(
        dataset, units, **{"mechanism": "discrete gaussian", "groups": ["age"], "run": "r", **words}
    )


def used_ledger(path: Path) -> bytearray:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        for _ in range(100):
            pay(ledger, 1, groups=["g" * 200])
    return bytearray(path.read_bytes())


def half_written(path: Path) -> None:
    """A ledger as a process leaves it that dies while it writes a charge."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        other.execute("BEGIN IMMEDIATE")
        for number in range(50, 90):
            values = (number, "d", "r", "now", "m", json.dumps(["g" * 400]), 1)
            other.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        for name in ("", "-journal"):
            shutil.copy(f"{path}{name}", f"{path}{name}.copy")
    for name in ("", "-journal"):
        Path(f"{path}{name}.copy").replace(f"{path}{name}")
