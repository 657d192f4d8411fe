"""Neighbours: of two tables that differ in one row, everything that anybody sees is the same.

Each pair of tables goes through each door with noise that gives both the same measurements. What
then still differs depends on the table otherwise than through measurements that were paid for, and
is a leak.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_gsd as gsd
from private_gsd.errors import GsdError
from private_gsd.evaluation import release_page
from private_gsd.privacy.noise import SecureNoise
from private_gsd.runs import runner
from private_gsd.workloads.specs import workload_of
from tests import fitting
from tests.neighbours.doors import (
    COMMON,
    DOORS,
    KEPT,
    READING,
    SETTINGS,
    Look,
    Visit,
    command,
    created,
    files,
    fitted,
    visited,
)
from tests.neighbours.frames import Place, csv_file, typed
from tests.neighbours.leaks import LEAKS
from tests.neighbours.observing import Seen, first_difference, observe
from tests.neighbours.standing_in import EqualNoise, everything_equal, replaced
from tests.neighbours.tables import ADD_REMOVE, BASE, NULL, PAIRS, SCHEMA, Pair, Rows

pytestmark = [
    pytest.mark.worker("engines"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
Watch = Callable[[Look, Rows, Any], Seen]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all: a path is seen, too."""
    return tmp_path_factory.mktemp("neighbours") / "work"


@pytest.fixture
def visit(folder: Path, request: pytest.FixtureRequest) -> Callable[..., Visit]:
    """A table with an empty folder beside it."""

    def empty(rows: Rows = BASE, settings: Any = None) -> Visit:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        SCHEMA.write(folder / "schema.toml")
        return Visit(rows, settings or {}, Place(folder, request.getfixturevalue))

    return empty


@pytest.fixture
def watch(visit: Callable[..., Visit]) -> Watch:
    """Sends a table through a door."""

    def look(door: Look, rows: Rows, settings: Any) -> Seen:
        return visited(door, visit(rows, settings))

    return look


# What most people use; the other doors are slow.
QUICK = ("defaults", "csv", "pandas")
CASES = [
    pytest.param(
        door,
        pair,
        id=f"{door}: {pair}",
        marks=() if door.endswith(tuple(f", {word}" for word in QUICK)) else pytest.mark.slow,
    )
    for door in DOORS
    for pair in PAIRS
    if pair.everywhere or door in READING
]
# What was seen of tables that are in several pairs.
known: dict[Any, str] = {}


@pytest.mark.parametrize(("door", "pair"), CASES)
def test_neighbours_look_alike(door: str, pair: Pair, watch: Watch) -> None:
    for rows in (pair.one, pair.other):
        key = (door, id(rows), tuple(pair.settings))
        if key not in known:
            if "polars" in door:
                gc.collect()  # the order of categories is kept as long as somebody uses them
            seen = watch(DOORS[door], rows, pair.settings)
            # A plan draws no noise, and is refused where the number of records is not public.
            if "plan" not in door or pair.settings != ADD_REMOVE:
                assert "says" not in seen["seen"], seen["seen"]
            if "plan" not in door:
                assert EqualNoise.seen, "the stand-in for noise was not asked"
            known[key] = json.dumps(seen)
    one, other = (known[door, id(rows), tuple(pair.settings)] for rows in (pair.one, pair.other))
    if one != other:
        pytest.fail(f"{pair}: {first_difference(json.loads(one), json.loads(other), door)}")


@pytest.mark.slow
def test_processes_look_alike(visit: Callable[..., Visit]) -> None:
    """The command line as people have it, killed before its search and resumed."""
    seen = []
    for rows in (BASE, NULL):
        here = visit(rows)
        created(here)
        path = csv_file(rows, here.place)
        words = ["--kill", "synthesize", path.name, *COMMON, *KEPT]
        killed = _process(here.folder, "1", *words)
        assert killed["code"] == str(-signal.SIGKILL), killed
        left = files(here, path)
        assert any("measurements.json" in name for name in left)
        resumed = _process(here.folder, "2", "resume", "release", "-o", "out.csv", "--json")
        assert resumed["code"] == "0", resumed
        seen.append({"killed": killed, "left": left, "resumed": resumed, "all": files(here, path)})
    assert first_difference(seen[0], seen[1]) is None


def _process(folder: Path, *words: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.neighbours.launcher", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "COLUMNS": "100",
        },
        check=False,
    )
    return {"code": str(done.returncode), "stdout": done.stdout, "stderr": done.stderr}


# External measurements that are not private


def _external(rows: Rows, private: bool) -> gsd.Measurements:
    """Exact counts, as somebody might have them who does not care."""
    workload = workload_of(SCHEMA, ["categorical:2"])
    exact = gsd.exact_counts(workload, typed(rows).select(SCHEMA.names))
    scales = np.full(workload.num_groups, 0.5)
    charges = ("",) * workload.num_groups
    return gsd.Measurements(
        workload, exact.counts.astype(float), scales, len(rows), charges, private
    )


@pytest.mark.filterwarnings("ignore::private_gsd.LeftOutWarning")
@pytest.mark.parametrize("rows", [BASE, NULL], ids=["one table", "its neighbour"])
@pytest.mark.parametrize("private", [True, False], ids=["private", "not private"])
def test_what_others_measured_makes_a_release_private_or_not(
    rows: Rows, private: bool, visit: Callable[..., Visit]
) -> None:
    """The release of either table says what it is, and why, wherever it is looked at."""
    here = visit(rows)
    created(here)
    others = _external(rows, private)
    others.save(here.folder / "others")
    table = typed(rows).select(SCHEMA.names)
    knowledge = gsd.Knowledge(external_measurements=[others])
    release = fitted(here, table, knowledge=knowledge).release_
    record = release.privacy
    csv_file(rows, here.place)
    words = ["synthesize", "table.csv", *COMMON, *KEPT[:2], *KEPT[4:], "--external", "others"]
    said = command(here, *words, "-o", "out.csv")
    told = command(here, *words, "-o", "again.csv", "--json")
    page = command(here, "report", "release", "-o", "page.html")
    assert {said["exit code"], told["exit code"], page["exit code"]} == {"0"}
    shown = json.loads(told["stdout"])["privacy"]
    assert record["private"] is private
    assert shown["private"] is private
    assert json.loads((here.folder / "release/privacy.json").read_text())["private"] is private
    places = {
        "the record": record["guarantee"],
        "the command line": said["stdout"],
        "the command line's JSON": shown["guarantee"],
        "the notebook": release._repr_html_(),
        "the page": (here.folder / "page.html").read_text(),
        "the same page": release_page(release),
    }
    for place, text in places.items():
        denied = any(sign in text for sign in ("NOT PRIVATE", "NONE: ", "NO: "))
        assert denied is not private, f"{place}: {text}"
        if not private:
            assert "external measurements" in text.lower(), f"{place}: {text}"


# The number of rows, where it is private


def test_a_plan_needs_a_public_number_of_rows(visit: Callable[..., Visit]) -> None:
    synth = fitting.synthesizer(SCHEMA, 1.0, **SETTINGS, **ADD_REMOVE)
    for rows in (BASE, BASE[1:]):
        here = visit(rows, ADD_REMOVE)
        with pytest.raises(GsdError, match="expected_records"):
            synth.plan(typed(rows).select(SCHEMA.names))
        path = csv_file(rows, here.place)
        refused = command(here, "plan", path.name, *COMMON, *here.options)
        assert refused["exit code"] not in ("0", "1"), refused
        assert "--expected-records" in refused["stderr"]
        for number in ("59", "60"):
            assert number not in refused["stdout"] + refused["stderr"]


@pytest.mark.filterwarnings("ignore::private_gsd.LeftOutWarning")
def test_a_plan_for_a_public_number_of_rows(visit: Callable[..., Visit]) -> None:
    seen = []
    for rows in (BASE, BASE[1:]):
        here = visit(rows, ADD_REMOVE)
        synth = fitting.synthesizer(SCHEMA, 1.0, **SETTINGS, **ADD_REMOVE)
        forecast = synth.plan(typed(rows), expected_records=1000)
        words = ["plan", csv_file(rows, here.place).name, *COMMON, *here.options]
        said = command(here, *words, "--expected-records", "1000")
        told = command(here, *words, "--expected-records", "1000", "--json")
        assert said["exit code"] == told["exit code"] == "0", said
        seen.append(observe([forecast.document(), forecast._repr_html_(), said, told]))
    assert first_difference(seen[0], seen[1]) is None


# Whether all this would find a leak


def test_the_pairs_are_neighbours() -> None:
    for pair in PAIRS:
        one, other = (Counter(map(str, map(dict.items, rows))) for rows in (pair.one, pair.other))
        gone, come = one - other, other - one
        if pair.settings == ADD_REMOVE:
            assert (gone.total(), come.total()) == (0, 1), pair
        elif pair.name in ("the same table", "the order of rows"):
            assert gone.total() == come.total() == 0
            assert (pair.one == pair.other) is (pair.name == "the same table")
        else:
            assert (gone.total(), come.total()) == (1, 1), pair


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_measurements_are_equal_where_exact_counts_are_not(pair: Pair, watch: Watch) -> None:
    """So that what was compared is what neighbours have, and the noise is all that was forced."""
    files, exact = [], []
    for rows in (pair.one, pair.other):
        seen = watch(DOORS["python, csv"], rows, pair.settings)["seen"]
        kept = {
            name: file for name, file in seen["release"]["files"].items() if "measurements/" in name
        }
        assert len(kept) == 2
        assert seen["release"]["privacy"]["private"] == "bool True"
        files.append({name: file["sha256"] for name, file in kept.items()})
        exact.append(list(EqualNoise.seen))
        assert exact[-1]
    assert files[0] == files[1]
    assert (exact[0] != exact[1]) is pair.counts


def test_real_noise_is_seen(watch: Watch) -> None:
    """The same table twice, with noise as it is: measurements are part of what is compared."""

    def real(visit: Visit) -> Any:
        with replaced(EqualNoise, SecureNoise):
            return DOORS["python, arrow"](visit)

    assert first_difference(watch(real, BASE, {}), watch(real, BASE, {})) is not None


@pytest.mark.parametrize("leak", LEAKS)
def test_a_door_that_leaks_is_found(leak: str, watch: Watch) -> None:
    assert first_difference(watch(LEAKS[leak], BASE, {}), watch(LEAKS[leak], BASE, {})) is None
    found = first_difference(watch(LEAKS[leak], BASE, {}), watch(LEAKS[leak], NULL, {}), leak)
    assert found is not None
    assert found.startswith(leak)


def test_what_nobody_knows_how_to_observe_is_no_secret() -> None:
    with pytest.raises(TypeError, match="nobody said how to observe"):
        observe([{"a": object()}])


def test_stand_ins_are_gone_afterwards() -> None:
    with everything_equal():
        assert vars(runner)["SecureNoise"] is EqualNoise
    assert vars(runner)["SecureNoise"] is SecureNoise
