"""The paper's tables: five tasks of the American Community Survey, and all of them together.

California, 2018, one year, the person file of the Census Bureau; ``folktables`` downloads it and
knows who belongs to a task. Columns are those of the paper's appendix, categories and bounds those
of the data dictionary (``dictionary``). The file's checksum is taken down at the first download,
and later reads are held against it; nobody else's checksum is known here.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from experiments.dictionary import ABROAD, CATEGORICAL, NUMERIC, OTHER, described
from private_gsd import Categorical, Schema
from private_gsd.errors import SourceError, require

if TYPE_CHECKING:
    from collections.abc import Mapping

YEAR, HORIZON, STATE = "2018", "1-Year", "CA"
FILE = "psam_p06.csv"
ADDRESS = f"https://www2.census.gov/programs-surveys/acs/data/pums/{YEAR}/{HORIZON}/csv_pca.zip"
CACHE = "PRIVATE_GSD_CACHE"
# The paper's tables have, to the row, four fifths of the rows of folktables' tasks: the other fifth
# is what models are tested on.
TRAIN_SHARE = 0.8


@dataclass(frozen=True)
class Task:
    """One of the paper's tables.

    Attributes:
        name: Its name here.
        problem: What folktables calls it; it chooses the people. None for everybody.
        categorical: The categorical columns, the targets among them.
        numeric: The numeric columns.
        targets: What is predicted, each a yes or no: for each such column, the column of the file,
            and what it must be, as "= 1" or "> 20". Unknown is no, as in folktables.
    """

    name: str
    problem: str | None
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    targets: Mapping[str, tuple[str, str, int]]

    @property
    def schema(self) -> Schema:
        """The public schema: targets are 0 or 1, all else is as in the dictionary."""
        return Schema(
            Categorical(name, values=["0", "1"]) if name in self.targets else described(name)
            for name in (*self.categorical, *self.numeric)
        )

    @property
    def sources(self) -> set[str]:
        """The columns of the file that are needed."""
        named = {*self.categorical, *self.numeric} - set(self.targets)
        return named | {source for source, _, _ in self.targets.values()}


def _task(name: str, problem: str | None, categorical: str, numeric: str, **targets: Any) -> Task:
    return Task(name, problem, tuple(categorical.split()), tuple(numeric.split()), targets)


TASKS = {
    task.name: task
    for task in (
        _task(
            "mobility",
            "ACSMobility",
            "MIL DREM CIT DIS COW MAR SCHL MIG NATIVITY ANC DEAR DEYE SEX ESR GCL RAC1P RELP",
            "JWMNP PINCP WKHP AGEP",
            MIG=("MIG", "=", 1),
        ),
        # The paper's list of columns repeats that of income here, one short; its counts of columns
        # and of marginals are those of folktables' own list.
        _task(
            "employment",
            "ACSEmployment",
            "SCHL MAR RELP DIS ESP CIT MIG MIL ANC NATIVITY DEAR DEYE DREM SEX RAC1P ESR",
            "AGEP",
            ESR=("ESR", "=", 1),
        ),
        _task(
            "income",
            "ACSIncome",
            "COW OCCP SCHL MAR SEX PINCP RAC1P RELP POBP",
            "WKHP AGEP",
            PINCP=("PINCP", ">", 50_000),
        ),
        _task(
            "coverage",
            "ACSPublicCoverage",
            "MIL FER DREM CIT DIS MAR SCHL PUBCOV MIG NATIVITY ANC DEYE SEX ESR RAC1P DEAR ESP",
            "PINCP AGEP",
            PUBCOV=("PUBCOV", "=", 1),
        ),
        _task(
            "travel",
            "ACSTravelTime",
            "JWMNP PUMA CIT DIS OCCP SCHL JWTR MAR MIG SEX RAC1P POWPUMA RELP ESP",
            "AGEP POVPIP",
            JWMNP=("JWMNP", ">", 20),
        ),
        _task(
            "multitask",
            None,
            "OCCP MIG CIT ESP ANC PUMA FER DEAR DEYE ESR FOCCP JWTR WAOB JWMNP_bin DREM GCL MIL "
            "SCHL RELP MAR NATIVITY POWPUMA RAC1P DIS COW PUBCOV SEX PINCP",
            "INTP WAGP SEMP POVPIP WKHP JWRIP AGEP",
            MIG=("MIG", "=", 1),
            PUBCOV=("PUBCOV", "=", 1),
            JWMNP_bin=("JWMNP", ">", 20),
            PINCP=("PINCP", ">", 50_000),
        ),
    )
}


def cache_folder() -> Path:
    """The folder of downloads."""
    given = os.environ.get(CACHE)
    return Path(given) if given else Path.home() / ".cache" / "private-gsd" / "acs"


def load_task(name: str, cache: Path | None = None) -> pa.Table:
    """The rows of a task, in the schema's types; read from the cache, or downloaded.

    Args:
        name: Which of ``TASKS``.
        cache: The folder of downloads.
    """
    folder = cache_folder() if cache is None else cache
    path = person_file(folder)
    made = folder / f"{name}-{_recorded(path)[:16]}.parquet"
    if not made.exists():
        table = extract(TASKS[name], path)
        passing = made.with_suffix(f".{os.getpid()}")
        pyarrow.parquet.write_table(table, passing)
        passing.replace(made)
    return pyarrow.parquet.read_table(made)


def person_file(folder: Path) -> Path:
    """The person file: the one in the cache, if its checksum is the recorded one, or a download."""
    path = folder / YEAR / HORIZON / FILE
    if not path.exists():
        _download(path)
    found = _checksum(path)
    note = path.with_name(FILE + ".sha256")
    if not note.exists():
        note.write_text(found + "\n")
    elif _recorded(path) != found:
        raise SourceError(
            f"{path} is not the file that was downloaded first: its checksum is {found[:16]}…, and "
            f"{note.name} has {_recorded(path)[:16]}…. Delete the file to download it again, or "
            "delete the note if the file is right"
        )
    return path


def _recorded(path: Path) -> str:
    return path.with_name(FILE + ".sha256").read_text().strip()


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(path: Path) -> None:
    """Let folktables download, and say what went wrong; it only prints."""
    loading = require("folktables.load_acs", what="The paper's data", extra="experiments")
    path.parent.mkdir(parents=True, exist_ok=True)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        loading.initialize_and_download(
            str(path.parent), STATE, YEAR, HORIZON, "person", download=True
        )
    if not path.exists():
        lines = [line for line in said.getvalue().splitlines() if line.startswith("Exception:")]
        why = lines[-1].removeprefix("Exception:").strip()[:200] if lines else "nothing came"
        raise SourceError(
            f"could not download {ADDRESS}: {why}. Where there is no network, take a table that is "
            "there (--data FILE.csv --schema FILE.toml, or --data census), or unpack that archive "
            f"elsewhere and put {FILE} into {path.parent}"
        )


def extract(task: Task, path: Path) -> pa.Table:
    """The people and columns of a task, from the person file.

    Args:
        task: Which.
        path: The file, as the Census Bureau has it.
    """
    pandas = require("pandas", what="The paper's data", extra="experiments")
    folktables = require("folktables", what="The paper's data", extra="experiments")
    # What the filters of folktables look at, beside the columns themselves.
    needed = task.sources | {"AGEP", "ESR", "PINCP", "PWGTP", "WKHP"}
    if task.problem is not None:
        problem = getattr(folktables, task.problem)
        needed |= {*problem.features, problem.target, problem.group}
    header = pandas.read_csv(path, nrows=0).columns
    missing = sorted(needed - set(header))
    if missing:
        raise SourceError(f"{path}: the person file of {YEAR} has no {', '.join(missing)}")
    people = pandas.read_csv(path, usecols=sorted(needed), dtype="float64")
    if task.problem is not None:
        # Its public doors make zeros of nulls; who belongs to the task is told by this alone.
        people = problem._preprocess(people)
    if not len(people):
        raise SourceError(f"{path}: nobody belongs to the task {task.name}")
    columns = {}
    for name in (*task.categorical, *task.numeric):
        if name in task.targets:
            source, sign, value = task.targets[name]
            held = people[source] == value if sign == "=" else people[source] > value
            columns[name] = pa.array(["1" if each else "0" for each in held])
        else:
            columns[name] = _column(name, people[name])
    return pa.table(columns)


def _column(name: str, values: Any) -> pa.Array:
    """A column of the file as the dictionary has it."""
    missing = values.isna()
    if name in NUMERIC:
        bounds = NUMERIC[name]
        clipped = values.clip(bounds.lower, bounds.upper).fillna(0).astype("int64")
        return pa.array(clipped, mask=missing.to_numpy())
    codes = values.fillna(-1).astype("int64")
    if name == "POWPUMA":  # 1 is abroad; the areas of other states have numbers of all kinds
        texts = [ABROAD if code == 1 else str(code // 100) for code in codes]
    else:
        texts = [str(code) for code in codes]
    known = CATEGORICAL[name].codes
    if OTHER in known:
        listed = set(known)
        texts = [text if text in listed else OTHER for text in texts]
    return pa.array(texts, mask=missing.to_numpy())
