"""The paper's tables: their schemas, downloads that fail and that do not, and the file's format."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from experiments.__main__ import main
from experiments.acs import ADDRESS, CACHE, FILE, TASKS, extract, load_task, person_file
from experiments.dictionary import ABROAD, BIRTHPLACES, OCCUPATIONS, OTHER, PUMAS

from experiments import data as loading
from private_gsd import Encoder
from private_gsd.errors import SourceError
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.specs import workload_of
from tests.experiments.people import archive, person_text, place_file

# The paper's tables of data (columns) and of workloads (marginals).
COLUMNS = {
    "mobility": (4, 17),
    "employment": (1, 16),
    "income": (2, 9),
    "coverage": (2, 17),
    "travel": (2, 14),
}
PAIRS = {"mobility": 136, "coverage": 136, "employment": 120, "income": 36, "travel": 91}
TREES = {"mobility": 68, "coverage": 34, "employment": 16, "income": 18, "travel": 28}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_those_of_the_paper(name: str) -> None:
    schema = TASKS[name].schema
    kinds = Counter(isinstance(column, Discrete) for column in schema)
    assert (kinds[False], kinds[True]) == COLUMNS[name]
    assert workload_of(schema, ["categorical:2"]).num_groups == PAIRS[name]
    assert workload_of(schema, ["tree:2"]).num_groups == TREES[name]


def test_the_multitask_table() -> None:
    """The appendix lists 28 and 7, four targets among the first."""
    task = TASKS["multitask"]
    assert (len(task.categorical), len(task.numeric), len(task.targets)) == (28, 7, 4)
    assert {column.name for column in task.schema if isinstance(column, Numeric)} == {
        *("INTP", "WAGP", "SEMP", "POVPIP", "WKHP", "JWRIP", "AGEP")
    }


def test_as_many_questions_as_the_paper_counts() -> None:
    """Of the employment task, in its table of the ablation study."""
    schema = loading.scaled("", TASKS["employment"].schema, np.zeros((1, 17))).schema
    assert workload_of(schema, ["categorical:2", "tree:2"]).size == 10_570


def test_long_lists() -> None:
    assert len(PUMAS) == 265
    for codes in (PUMAS, OCCUPATIONS, BIRTHPLACES):
        assert len(set(codes)) == len(codes)
        assert list(map(int, codes)) == sorted(map(int, codes))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    loading.load.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str) -> Any:
        raise ConnectionError(f"no way to {url}")

    monkeypatch.setattr("requests.get", refuse)


def test_without_a_network(
    cache: Path, no_network: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address, the reason, and what to do instead; nothing is left behind."""
    code = main(["oneshot_tree", "--data", "acs:mobility", "--out", str(tmp_path), "--quick"])
    told = " ".join(capsys.readouterr().out.split())
    assert code == SourceError.exit_code
    assert f"could not download {ADDRESS}: no way to" in told
    assert "--data FILE.csv --schema FILE.toml" in told
    assert FILE in told
    assert not list(cache.rglob("*.sha256"))


def test_a_page_instead_of_an_archive(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = SimpleNamespace(content=b"<html>Not here</html>")
    monkeypatch.setattr("requests.get", lambda url: page)
    with pytest.raises(SourceError, match="File is not a zip file"):
        load_task("income")


def test_a_download(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked, its checksum taken down, and not downloaded again."""
    asked = []
    packed = archive(tmp_path / "csv_pca.zip")

    def get(url: str) -> Any:
        asked.append(url)
        return SimpleNamespace(content=packed)

    monkeypatch.setattr("requests.get", get)
    first = load_task("income")
    assert asked == [ADDRESS]
    assert load_task("income").equals(first)
    assert load_task("travel").num_rows > 0
    assert asked == [ADDRESS]
    note = person_file(cache).with_name(FILE + ".sha256")
    assert len(note.read_text().strip()) == 64


def test_another_file_than_the_first(cache: Path) -> None:
    path = place_file(cache)
    person_file(cache)
    path.write_text(person_text(10, seed=1))
    with pytest.raises(SourceError, match="not the file that was downloaded first"):
        load_task("income")


@pytest.mark.parametrize("name", TASKS)
def test_every_task_fits_its_schema(name: str, cache: Path) -> None:
    """All rows that it keeps are of its schema, none is lost, and a fifth is held out."""
    table = extract(TASKS[name], place_file(cache, 2000))
    assert tuple(table.column_names) == TASKS[name].schema.names
    for batch in table.to_batches():
        Encoder(TASKS[name].schema).encode(batch)
    data = loading.load(loading.name_data(f"acs:{name}"))
    assert len(data.matrix) == round(0.8 * table.num_rows)
    assert len(data.matrix) + len(data.holdout) == table.num_rows
    assert set(data.targets) == set(TASKS[name].targets)
    numbers = [p for p, column in enumerate(data.schema) if isinstance(column, Numeric)]
    assert np.nanmin(data.matrix[:, numbers]) >= 0
    assert np.nanmax(data.matrix[:, numbers]) <= 1


def test_values_of_a_row(cache: Path) -> None:
    """Who belongs to a task, its target, nulls, and codes that no list has."""
    path = place_file(cache, 4)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    names = lines[0]

    def put(row: int, **values: str) -> None:
        for name, value in values.items():
            lines[row + 1][names.index(name)] = value

    usual = {"AGEP": "40", "ESR": "1", "PWGTP": "9", "PINCP": "60000", "WKHP": "40"}
    put(0, **usual, JWMNP="25", OCCP="0010", POWPUMA="03700", PUMA="03701")
    put(1, **usual, JWMNP="20", OCCP="0011", POWPUMA="00001", PUMA="03701")
    put(2, **usual, JWMNP="", OCCP="", POWPUMA="70100", PUMA="99999")
    put(3, **{**usual, "AGEP": "12"})
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")
    found = extract(TASKS["travel"], path).to_pydict()
    assert found["JWMNP"] == ["1", "0", "0"]
    assert found["OCCP"] == ["10", OTHER, None]
    assert found["POWPUMA"] == ["37", ABROAD, OTHER]
    assert found["PUMA"] == ["3701", "3701", OTHER]
    assert extract(TASKS["income"], path).to_pydict()["PINCP"] == ["1", "1", "1"]


def test_a_file_of_another_kind(cache: Path) -> None:
    path = place_file(cache, 1)
    path.write_text("RT,AGEP\nP,30\n")
    with pytest.raises(SourceError, match="has no ANC, CIT"):
        extract(TASKS["employment"], path)


def test_no_such_task() -> None:
    with pytest.raises(SourceError, match="did you mean 'mobility'"):
        loading.name_data("acs:mobilty")
