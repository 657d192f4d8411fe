"""The tables of a ledger: they only grow, whoever asks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from private_gsd.privacy.ledger.ledger import Ledger
from tests.privacy.ledger.ledgers import pay, small
from tests.windows import removes_open_files


@removes_open_files  # nor would a journal that a ledger has open be
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET units = 1",
        "UPDATE charges SET run = 'other'",
        "DELETE FROM charges",
        "UPDATE datasets SET units = units + 1",
        "DELETE FROM datasets",
        "INSERT OR REPLACE INTO charges VALUES (1, 'd', 'r', '', 'm', '[]', 1)",
        "INSERT OR IGNORE INTO charges VALUES (1, 'd', 'r', '', 'm', '[]', 1)",
        "REPLACE INTO datasets VALUES ('d', 1000000, 0.5, 'paper', 'replace-one', NULL, '')",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', 9901)",
        "INSERT INTO charges VALUES (9, 'nobody', 'r', '', 'm', '[]', 1)",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', 0)",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', -5)",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', 0.5)",
        "INSERT INTO charges VALUES (-1, 'd', 'r', '', 'm', '[]', 1)",
        "INSERT INTO datasets VALUES ('e', -1, 0.5, 'paper', 'replace-one', NULL, '')",
    ],
)
def test_no_tool_can_take_back_or_overspend(ledger: Ledger, path: Path, statement: str) -> None:
    made = pay(ledger, 100)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:  # no pragma of ours set
        with pytest.raises(sqlite3.IntegrityError):
            other.execute(statement)
        other.execute("INSERT INTO charges VALUES (2, 'd', 'r', '', 'm', '[]', 9900)")  # fits
    assert ledger.charges("d")[0] == made
    assert ledger.account("d").budget == small()
    assert ledger.account("d").remaining == 0
