"""Neighbouring units: of two tables that differ in all rows of one unit, what is seen is the same.

As for tables that differ in one row (``test_neighbours``), with noise that gives both tables the
same measurements.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

import private_gsd as gsd
from private_gsd.evaluation import release_page
from private_gsd.runs import runner
from tests import fitting
from tests.cli.running import QUICK_SEARCH, run
from tests.counting.visits import schema, visits
from tests.neighbours.observing import first_difference, observe
from tests.neighbours.standing_in import EqualNoise, everything_equal

Door = Callable[[gsd.Schema, pa.Table, Path, dict[str, Any]], Any]

BASE = visits(40, seed=3)
IDS = BASE["patient"].to_pylist()
REST = BASE.filter(pa.array([each != IDS[17] for each in IDS]))


def with_unit(rows: int, ward: str, age: int | None, name: int = 10**12) -> pa.Table:
    """The rest of the table, and a unit of so many rows in their midst."""
    unit = pa.table(
        {
            "age": pa.array([age] * rows, pa.int64()),
            "patient": [name] * rows,
            "ward": [ward] * rows,
        }
    )
    return pa.concat_tables([REST.slice(0, 50), unit, REST.slice(50)]).combine_chunks()


REPLACED = [
    (BASE, with_unit(1, "a", 3)),
    (with_unit(1, "a", 3), with_unit(90, "c", None)),
    (with_unit(30, "b", 0, name=5), with_unit(30, "c", 9)),
]
ADDED = [(REST, BASE), (REST, with_unit(90, "c", None))]
CASES = [
    pytest.param(*pair, neighbours, weighting, id=f"{weighting}, {neighbours} {number}")
    for weighting in ("units", "rows")
    for neighbours, pairs in (("replace-one", REPLACED), ("add-remove", ADDED))
    for number, pair in enumerate(pairs)
]
SETTINGS: dict[str, Any] = {**fitting.SMALL, "delta": 1e-6, "workload": ["categorical:1", "tree:1"]}


def seen(
    door: Door, known: gsd.Schema, table: pa.Table, folder: Path, settings: dict[str, Any]
) -> Any:
    """All that is seen at a door, with equal noise, in an empty folder of the same name."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with warnings.catch_warnings(record=True) as caught, everything_equal():
        warnings.simplefilter("always")
        found = observe(door(known, table, folder, settings))
        assert EqualNoise.seen
    return {"seen": found, "warnings": [str(each.message) for each in caught]}


def shown(synth: gsd.Synthesizer, folder: Path) -> dict[str, Any]:
    """What a fit has to show."""
    synth.release_.save(folder / "saved")
    return {
        "sample": synth.sample(),
        "many": synth.sample(150),
        "release": synth.release_,
        "page": release_page(synth.release_),
        "folder": folder,
    }


def fitted(known: gsd.Schema, data: Any, folder: Path, settings: dict[str, Any]) -> gsd.Synthesizer:
    given = {"ledger": folder / "ledger.db", "create_ledger": True, "release": folder / "release"}
    return fitting.fitted(known, 1.0, data, **{**SETTINGS, **settings, **given})


def python(known: gsd.Schema, table: pa.Table, folder: Path, settings: dict[str, Any]) -> Any:
    """A fit of a table in memory."""
    return shown(fitted(known, table, folder, settings), folder)


def adaptive(known: gsd.Schema, table: pa.Table, folder: Path, settings: dict[str, Any]) -> Any:
    """A fit that selects what it measures."""
    chosen = gsd.Adaptive(epochs=2, queries_per_epoch=1)
    return shown(fitted(known, table, folder, {**settings, "mechanism": chosen}), folder)


def resumed(known: gsd.Schema, table: pa.Table, folder: Path, settings: dict[str, Any]) -> Any:
    """A killed run of a file, what it leaves, and what comes of it."""
    pyarrow.parquet.write_table(table, folder.with_suffix(".parquet"))

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with mock.patch.object(runner, "project", die), pytest.raises(KeyboardInterrupt):
        fitted(known, folder.with_suffix(".parquet"), folder, settings)
    left = observe(folder)
    synth = gsd.Synthesizer.resume(folder / "release", threads=1)
    return {"left": left, **shown(synth, folder)}


def command(known: gsd.Schema, table: pa.Table, folder: Path, settings: dict[str, Any]) -> Any:
    """The command line, with a plan where the number of records is public."""
    known.write(folder / "schema.toml")
    pyarrow.csv.write_csv(table, path := folder.with_suffix(".csv"))
    common = [str(path), "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6"]
    common += ["--neighbours", settings["neighbours"], "--workload", "categorical:1"]
    words = ["--rows", "50", *QUICK_SEARCH, "-o", "out.csv", "--release", "release"]
    public = settings["neighbours"] == "replace-one" and known.unit is not None
    public = public and not known.unit.rows_count  # type: ignore[union-attr]
    expected = [] if public else ["--expected-records", "100"]
    return [
        run("plan", *common, *expected, cwd=folder),
        run("synthesize", *common, *words, "--json", cwd=folder),
        run("report", "release", "-o", "page.html", cwd=folder),
        folder,
    ]


DOORS: dict[str, Door] = {
    "python": python,
    "adaptive": adaptive,
    "resumed": resumed,
    "command": command,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("one", "other", "neighbours", "weighting"), CASES)
def test_neighbouring_units_look_alike(
    door: str, one: pa.Table, other: pa.Table, neighbours: str, weighting: Any, tmp_path: Path
) -> None:
    known, settings = schema(4, weighting), {"neighbours": neighbours}
    looks, exact = [], []
    for table in (one, other):
        looks.append(seen(DOORS[door], known, table, tmp_path / "work", settings))
        exact.append(list(EqualNoise.seen))
    assert first_difference(looks[0], looks[1], door) is None
    assert exact[0] != exact[1]


def test_the_pairs_are_neighbours() -> None:
    """All units but one have the same rows in both tables."""
    for pairs, sizes in ((REPLACED, (1, 1)), (ADDED, (0, 1))):
        for pair in pairs:
            one, other = ({each: rows_of(table, each) for each in ids_of(table)} for table in pair)
            gone = [each for each in one if one[each] != other.get(each)]
            come = [each for each in other if other[each] != one.get(each)]
            assert (len(gone), len(come)) == sizes


def ids_of(table: pa.Table) -> set[int]:
    return set(table["patient"].to_pylist())


def rows_of(table: pa.Table, unit: int) -> list[str]:
    """The rows of one unit."""
    rows = table.filter(pc.equal(table["patient"], unit)).to_pylist()
    return sorted(str(sorted(row.items())) for row in rows)
