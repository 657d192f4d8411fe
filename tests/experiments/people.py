"""A person file in the Census Bureau's format, with invented people: real names of columns."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np
from experiments.acs import FILE, HORIZON, TASKS, YEAR
from experiments.dictionary import ABROAD, CATEGORICAL, NUMERIC, OTHER

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WIDTHS = {"OCCP": 4, "POBP": 3, "PUMA": 5, "POWPUMA": 5, "SCHL": 2, "JWTR": 2, "RELP": 2}


def person_text(rows: int, seed: int = 0) -> str:
    """Lines as the file has them: codes with leading zeros, empty where not applicable."""
    rng = np.random.default_rng(seed)
    columns = {"RT": np.full(rows, "P"), "SERIALNO": np.full(rows, "2018GQ0000049")}
    names = sorted(set().union(*(task.sources for task in TASKS.values())))
    columns |= {name: _cells(rng, name, rows) for name in [*names, "ST", "PWGTP"]}
    header = ",".join(columns)
    return "\n".join([header, *(",".join(cells) for cells in zip(*columns.values(), strict=True))])


def _cells(rng: np.random.Generator, name: str, rows: int) -> NDArray[np.str_]:
    if name in ("ST", "PWGTP"):
        return np.full(rows, "06" if name == "ST" else "12")
    if name in NUMERIC:
        bounds = NUMERIC[name]
        found = rng.integers(bounds.lower, bounds.upper + 1, rows).astype(str)
        if name == "PINCP":
            found = rng.integers(-5000, 90_000, rows).astype(str)
        nullable = bounds.nullable
    else:
        codes, nullable = CATEGORICAL[name]
        known = [code for code in codes if code not in (OTHER, ABROAD)]
        if name == "POWPUMA":
            known = ["1", *(f"{code}90" for code in known), "70100"]
        found = np.array([code.zfill(WIDTHS.get(name, 1)) for code in known])
        found = found[rng.integers(len(found), size=rows)]
    if nullable:
        found = np.where(rng.random(rows) < 0.1, "", found)
    return found


def place_file(cache: Path, rows: int = 300) -> Path:
    """Put a file where a download would."""
    path = cache / YEAR / HORIZON / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(person_text(rows) + "\n")
    return path


def archive(path: Path, rows: int = 300) -> bytes:
    """The file as the archive that the Census Bureau has."""
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(FILE, person_text(rows) + "\n")
        made.writestr("ACS2018_PUMS_README.pdf", b"")
    return path.read_bytes()
