"""Doors: every way through which something of a table can be seen. A door is one line in ``DOORS``.

What is left out, since it is for whoever holds the table, and confidential: ``schema draft`` and
``schema check``, ``evaluate``, errors about values outside the schema, and progress.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import typer

import private_gsd as gsd
from private_gsd.cli import main
from private_gsd.evaluation import release_page
from private_gsd.measurements.measurements import measure
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.runs import runner
from private_gsd.synthesis.smartnoise import GsdSynthesizer
from private_gsd.workloads.specs import workload_of
from tests import fitting
from tests.neighbours import standing_in
from tests.neighbours.frames import (
    KINDS,
    TYPES_FROM_VALUES,
    Kind,
    Place,
    csv_file,
    gzip_file,
    parquet_file,
)
from tests.neighbours.observing import Seen, observe
from tests.neighbours.tables import SCHEMA, Rows

SPECS = ["categorical:1", "tree:1:2"]
SETTINGS: dict[str, Any] = {
    "workload": SPECS,
    "rows": 25,
    "threads": 1,
    "projector": fitting.QUICK,
}
GIVEN = pa.table({"city": ["York", "Ely", "Rye"], "age": [31, None, 64]})
CONDITION = "age < 60 OR age IS NULL"


@dataclass(frozen=True)
class Visit:
    """One table at one door.

    Attributes:
        rows: The table.
        settings: What the pair of tables needs of a budget and of ``fit``.
        place: Where files go, and engines are.
    """

    rows: Rows
    settings: Mapping[str, Any]
    place: Place

    @property
    def folder(self) -> Path:
        """A folder, empty at first."""
        return self.place.folder

    @property
    def options(self) -> list[str]:
        """The settings, as the command line has them."""
        return [
            word
            for name, value in self.settings.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]


Look = Callable[[Visit], Any]


def visited(look: Look, visit: Visit) -> Seen:
    """All that is seen at a door: its result or its error, and warnings, with equal noise."""
    with (
        warnings.catch_warnings(record=True) as caught,
        standing_in.everything_equal(),
    ):
        warnings.simplefilter("always")
        seen = observe(seen_or_error(lambda: look(visit)))
    told = [f"{each.category.__name__}: {each.message}" for each in caught if _ours(each)]
    return {"seen": seen, "warnings": told}


def _ours(warning: warnings.WarningMessage) -> bool:
    """Whether a warning is the package's own, and not one of a library about a test."""
    return warning.category.__module__.partition(".")[0] == "private_gsd"


def seen_or_error(look: Callable[[], Any]) -> Any:
    """What a call gives, or the error that it raises."""
    try:
        return look()
    except Exception as error:
        return error


# Python


ledgers: dict[tuple[str, str], bytes] = {}


def created(visit: Visit, conversion: str = "gdp") -> None:
    """Put a ledger with a budget for several releases into the folder."""
    relation = visit.settings.get("neighbours", "replace-one")
    path = visit.folder / "ledger.db"
    if (relation, conversion) not in ledgers:
        terms = ["--dataset", "table", "--epsilon", "9", "--delta", "1e-6"]
        terms += ["--neighbours", relation, "--conversion", conversion]
        done = command(visit, "ledger", "create", path.name, *terms)
        if done["exit code"] != "0":
            raise AssertionError(done["stderr"])
        ledgers[relation, conversion] = path.read_bytes()
    path.write_bytes(ledgers[relation, conversion])


def fitted(visit: Visit, data: Any, **settings: Any) -> gsd.Synthesizer:
    """A synthesizer that was fitted, and charged a ledger."""
    given = {"ledger": visit.folder / "ledger.db", "release": visit.folder / "release"}
    return fitting.fitted(SCHEMA, 1.0, data, **{**given, **SETTINGS, **visit.settings, **settings})


def results(synth: gsd.Synthesizer, visit: Visit) -> dict[str, Any]:
    """What a fitted synthesizer has to show."""
    return {
        **settings_of(synth),
        "release": synth.release_,
        "sample": synth.sample(),
        "where": synth.sample(5, where=CONDITION),
        "given": synth.sample_given(GIVEN),
        "ledger": visit.folder / "ledger.db",
    }


def pages(synth: gsd.Synthesizer, visit: Visit) -> dict[str, Any]:
    """What is handed on of a release."""
    synth.release_.save(visit.folder / "saved")
    return {
        **results(synth, visit),
        "few": synth.sample(7),
        "many": synth.sample(60),
        "page": release_page(synth.release_),
        "saved": visit.folder / "saved",
    }


def settings_of(synth: gsd.Synthesizer) -> dict[str, Any]:
    """All that a synthesizer says of itself."""
    return {
        "repr": repr(synth),
        "parameters": {name: _written(each) for name, each in synth.get_params().items()},
        "pickled": {name: _written(each) for name, each in synth.__getstate__().items()},
    }


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def python(kind: Kind, visit: Visit, **settings: Any) -> Any:
    """Fit and sample."""
    created(visit)
    return results(fitted(visit, kind(visit.rows, visit.place), **settings), visit)


def plan(visit: Visit, **settings: Any) -> Any:
    """What would be measured."""
    terms = {name: value for name, value in visit.settings.items() if name in fitting.TERMS}
    synth = fitting.synthesizer(SCHEMA, 1.0, **{**SETTINGS, **terms, **settings})

    def planned() -> Any:
        forecast = synth.plan(KINDS["arrow"](visit.rows, visit.place))
        return [forecast.document(), forecast._repr_html_(), forecast.rows]

    return seen_or_error(planned)


def mechanism(name: str, visit: Visit) -> Any:
    """A mechanism that selects."""
    created(visit, "zcdp")
    specs = ["categorical:2"] if name == "layered" else SPECS
    chosen = gsd.Adaptive(epochs=2) if name == "adaptive" else name
    data = KINDS["pandas"](visit.rows, visit.place)
    return pages(fitted(visit, data, mechanism=chosen, workload=specs), visit)


def defaults(visit: Visit) -> Any:
    """What is asked, and the delta, where nobody says; in a folder that is not kept."""
    data = KINDS["polars"](visit.rows, visit.place)
    synth = fitting.fitted(SCHEMA, 1.0, data, rows=25, **visit.settings)
    release = synth.release_
    names = [repr(release), release._repr_html_()]
    return [settings_of(synth), names, release.save(visit.folder / "saved"), synth.sample()]


def external(visit: Visit) -> Any:
    """With private external measurements, the same for both tables."""
    workload = workload_of(SCHEMA, ["categorical:2"])
    groups = workload.num_groups
    counts, scales = np.full(workload.size, 10.0), np.full(groups, 2.0)
    known = gsd.Measurements(workload, counts, scales, 90, ("",) * groups, private=True)
    knowledge = gsd.Knowledge(external_measurements=[known])
    return python(KINDS["pandas"], visit, knowledge=knowledge)


def smartnoise(visit: Visit) -> Any:
    """SmartNoise's calls."""
    created(visit)
    terms = {name: value for name, value in visit.settings.items() if name in fitting.TERMS}
    adapter = GsdSynthesizer(1.0, schema=SCHEMA, **SETTINGS, **terms)
    frame = adapter.fit_sample(
        KINDS["pandas"](visit.rows, visit.place),
        categorical_columns=["city", "member"],
        continuous_columns=["age"],
        ledger=visit.folder / "ledger.db",
        on_invalid=visit.settings.get("on_invalid", "error"),
    )
    return [frame, adapter.sample(5), repr(adapter), adapter.synthesizer.release_]


def sweep(visit: Visit) -> Any:
    """Many releases of one set of counts."""
    created(visit, "zcdp")
    given = {"delta": 1e-6, **visit.settings}
    runs = gsd.Sweep(SCHEMA, typed_pandas(visit), SPECS, **given)
    settings: list[dict[str, Any]] = [
        {"rows": 25, "projector": fitting.QUICK},
        {"rows": 25, "projector": fitting.QUICK, "mechanism": gsd.Adaptive(epochs=2)},
    ]
    with Ledger(visit.folder / "ledger.db", create=False) as ledger:
        made = runs.run([0.5, 1.0], settings=settings, ledger=ledger, n_jobs=1)
    return {
        "repr": repr(runs),
        "runs": [
            [run.epsilon, run.seed, run.settings, run.measurements, run.matrix, run.table]
            for run in made
        ],
        "ledger": visit.folder / "ledger.db",
    }


def typed_pandas(visit: Visit) -> Any:
    """A pandas frame."""
    return KINDS["pandas"](visit.rows, visit.place)


def functions(visit: Visit) -> Any:
    """The functions below the synthesizer."""
    data = KINDS["pandas"](visit.rows, visit.place)
    workload = workload_of(SCHEMA, SPECS)
    exact = gsd.exact_counts(workload, data, on_invalid=visit.settings.get("on_invalid", "error"))
    relation: Any = visit.settings.get("neighbours", "replace-one")
    measured = measure(
        exact,
        range(workload.num_groups),
        [2**40] * workload.num_groups,
        accountant=LocalAccountant(RhoBudget.from_epsilon(1.0, 1e-6), relation),
        noise=standing_in.EqualNoise(),
        neighbours=relation,
        n_records=60 if relation == "add-remove" else None,
    )
    measured.save(visit.folder / "measured")
    return [repr(gsd.open_source(data, SCHEMA)), repr(exact), measured, visit.folder / "measured"]


# A run that is killed


class KilledError(BaseException):
    """Ends a run as a signal does that nobody can catch."""


def _die(*words: Any, **named: Any) -> Any:
    raise KilledError


@contextmanager
def killed(where: str) -> Iterator[None]:
    """A run that ends before it searches, or before it draws any noise."""
    owner: Any = runner if where == "project" else standing_in.EqualNoise
    with mock.patch.object(owner, where, _die):
        try:
            yield
        except KilledError as error:
            error.__traceback__ = None
        else:
            raise AssertionError("it was not killed")


def resumed(where: str, visit: Visit) -> Any:
    """A killed run, resumed from Python."""
    created(visit)
    path = csv_file(visit.rows, visit.place)
    with killed(where):
        fitted(visit, path)
    left = observe(visit.folder / "release")
    synth = gsd.Synthesizer.resume(visit.folder / "release", threads=1)
    return {"left": left, **pages(synth, visit)}


def resumed_by_command(where: str, visit: Visit) -> Any:
    """A killed run, resumed on the command line."""
    created(visit)
    path = csv_file(visit.rows, visit.place)
    with killed(where):
        command(visit, "synthesize", path.name, *COMMON, *visit.options, *KEPT)
    left = observe(visit.folder / "release")
    words = ["resume", "release", "-o", "out.csv", "--json"]
    return {"left": left, "said": command(visit, *words), "files": files(visit, path)}


# The command line

COMMON = ["--schema", "schema.toml", "--epsilon", "1", "--rows", "25"]
COMMON += ["--projector", fitting.QUICK]
COMMON += [word for spec in SPECS for word in ("--workload", spec)]
KEPT = ["--ledger", "ledger.db", "--release", "release", "--dataset", "table"]


_commands = cache(typer.main.get_command)  # which takes longer than most commands


def command(visit: Visit, *words: str | Path) -> dict[str, str]:
    """Run a command here."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with (
        chdir(visit.folder),
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch.object(sys, "argv", ["private-gsd", *map(str, words)]),
        mock.patch.object(typer.main, "get_command", _commands),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return {"stdout": out.getvalue(), "stderr": err.getvalue(), "exit code": str(code)}


def files(visit: Visit, *own: Path) -> Seen:
    """Every file but the table's own."""
    names = {path.name for path in own}
    return {name: seen for name, seen in observe(visit.folder).items() if name not in names}


def planned_by_command(visit: Visit) -> Any:
    """What would be measured."""
    path = csv_file(visit.rows, visit.place)
    options = [word for word in visit.options if word not in ("--on-invalid", "coerce")]
    words = ["plan", path.name, *COMMON, *options]
    return {
        "plan": command(visit, *words),
        "json": command(visit, *words, "--json"),
        "all": command(visit, *words, "--all"),
        "files": files(visit, path),
    }


def made_by_command(visit: Visit, table: str, *words: str) -> list[list[str]]:
    """Commands that make a release, and show what it cost."""
    common = ["synthesize", table, *words, *COMMON, *visit.options]
    return [
        [*common, *KEPT, "-o", "out.csv"],
        [*common, *KEPT[:2], *KEPT[4:], "-o", "out.parquet", "--json"],
        ["ledger", "show", "ledger.db"],
        ["ledger", "show", "ledger.db", "--json"],
    ]


def commands(make: Callable[[Rows, Place], Path], visit: Visit) -> Any:
    """A release of a file."""
    created(visit)
    path = make(visit.rows, visit.place)
    said = [command(visit, *words) for words in made_by_command(visit, path.name)]
    return {"said": said, "files": files(visit, path)}


def commands_on_a_server(visit: Visit) -> Any:
    """A release of a query's result."""
    created(visit)
    query = KINDS["postgres"](visit.rows, visit.place)
    words = [visit.place.engine("postgres"), "--query", query.query]
    said = [command(visit, *each) for each in made_by_command(visit, *words)]
    return {"said": said, "files": files(visit)}


def commands_on_a_release(visit: Visit) -> Any:
    """All that can be asked of a release, once it is there."""
    made = commands(csv_file, visit)
    (visit.folder / "given.csv").write_text("city,age\nYork,31\nEly,\nRye,64\n")
    steps = (
        ["resume", "release", "--json", "-o", "again.parquet"],
        ["sample", "release", "-n", "9", "-o", "few.csv"],
        ["sample", "release", "-n", "70", "-o", "many.parquet"],
        ["sample", "release", "--where", CONDITION, "-o", "where.csv"],
        ["sample", "release", "--given", "given.csv", "-o", "given.parquet"],
        ["report", "release", "-o", "page.html"],
    )
    said = [command(visit, *words) for words in steps]
    return {"made": made["said"], "said": said, "files": files(visit, visit.folder / "table.csv")}


# What takes types from the values of a table, or reads a file.
READING: dict[str, Look] = {
    **{
        f"python, {name}": partial(python, kind)
        for name, kind in KINDS.items()
        if name in TYPES_FROM_VALUES
    },
    "smartnoise": smartnoise,
    "command line, csv": partial(commands, csv_file),
}
# All others; fewer pairs of tables are sent through these.
WORKING: dict[str, Look] = {
    **{
        f"python, {name}": partial(python, kind)
        for name, kind in KINDS.items()
        if name not in TYPES_FROM_VALUES
    },
    "python, plan": plan,
    "python, plan of what nobody asks": partial(plan, workload=None, rows=None),
    "python, defaults": defaults,
    "python, external measurements": external,
    **{
        f"python, {name}": partial(mechanism, name)
        for name in ("layered", "adaptive", "mst", "aim", "strongest-pairs")
    },
    "python, killed before the noise": partial(resumed, "gaussian"),
    "python, killed before the search": partial(resumed, "project"),
    "functions": functions,
    "sweep": sweep,
    "command line, plan": planned_by_command,
    "command line, gzip": partial(commands, gzip_file),
    "command line, parquet": partial(commands, parquet_file),
    "command line, postgres": commands_on_a_server,
    "command line, release": commands_on_a_release,
    "command line, killed before the noise": partial(resumed_by_command, "gaussian"),
    "command line, killed before the search": partial(resumed_by_command, "project"),
}
DOORS = READING | WORKING
