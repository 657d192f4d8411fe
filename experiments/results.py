"""Results: finished runs as files that are whole or not there, and tables of them as CSV."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import private_gsd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from experiments.experiment import Row, Settings

FORMAT = 1


def run_key(experiment: str, data: str, settings: Settings) -> str:
    """What a run is known by: equal runs have equal keys, others do not.

    Args:
        experiment: The experiment's name.
        data: The digest of the data; empty where there is none.
        settings: Of the run.
    """
    said = json.dumps(
        [FORMAT, private_gsd.__version__, experiment, data, dict(settings)], sort_keys=True
    )
    return f"{experiment}-{hashlib.sha256(said.encode()).hexdigest()[:20]}"


def save_run(folder: Path, key: str, document: Mapping[str, Any]) -> None:
    """Write a finished run in one step: whoever is killed leaves no torn file."""
    folder.mkdir(parents=True, exist_ok=True)
    passing = folder / f".{key}.{os.getpid()}"
    passing.write_text(json.dumps(document), encoding="utf-8")
    passing.replace(folder / f"{key}.json")


def saved_run(folder: Path, key: str) -> dict[str, Any] | None:
    """A finished run, if it is there."""
    try:
        found: dict[str, Any] = json.loads((folder / f"{key}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Rows as CSV; a field that a row does not have is empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    passing = path.with_name(f".{path.name}.{os.getpid()}")
    with passing.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    passing.replace(path)
