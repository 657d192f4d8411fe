"""A ledger with one dataset, and where it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from private_gsd.privacy.ledger.ledger import Ledger
from tests.privacy.ledger.ledgers import small


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        yield ledger
