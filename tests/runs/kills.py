"""Runs that are killed at a step, and what they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from private_gsd.runs.release import Release
from private_gsd.runs.run_folder import RunFolder
from private_gsd.system import durable_files
from tests.fitting import SCHEMA, TABLE, fitted


class Killed(BaseException):
    """What a killed process would have done."""


def durable_steps(monkeypatch: pytest.MonkeyPatch, kill_at: int) -> list[str]:
    """Die before (even numbers) or after (odd ones) a step that leaves something on the disk."""
    steps: list[str] = []

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            number = 2 * len(steps)
            steps.append(name)
            if number == kill_at:
                raise Killed
            result = real(*arguments, **options)
            if number + 1 == kill_at:
                raise Killed
            return result

        return step

    write = durable_files.write
    monkeypatch.setattr(durable_files, "write", watched("write", write))
    monkeypatch.setattr(Reservation, "charge", watched("charge", Reservation.charge))
    monkeypatch.setattr(Reservation, "commit", watched("commit", Reservation.commit))
    monkeypatch.setattr(Reservation, "reserve", watched("reserve", Reservation.reserve))
    return steps


def outcome(folder: Path, ledger: Path) -> tuple[Any, ...]:
    """All that a run leaves that does not tell the time; and that no draw is left beside it."""
    release = Release.load(folder)
    assert not list(folder.rglob("*.tmp"))
    assert len(list((folder / "measurements").iterdir())) == 2
    measured = release.measurements()
    assert measured is not None
    with Ledger(ledger, create=True) as opened:
        charges = [(c.units, c.mechanism, c.groups) for c in opened.charges("table")]
    return release.synthetic.to_pylist(), measured.counts.tolist(), release.selections(), charges


def killed_after_the_charge(folder: Path, **settings: Any) -> None:
    """A run that has paid for measurements and kept none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            RunFolder, "save_measurements", lambda *arguments: (_ for _ in ()).throw(Killed())
        )
        with pytest.raises(Killed):
            fitted(SCHEMA, 1.0, TABLE, release=folder, **settings)


def killing(*_: Any, **__: Any) -> None:
    raise Killed
