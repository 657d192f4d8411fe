"""The synthesizer: from a table and a budget to a release."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import re
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import Adaptive, Budget, GeneticSearch, Knowledge, datasets
from private_gsd.errors import (
    BudgetError,
    GsdError,
    LedgerError,
    NotFittedError,
    ProjectionError,
    ReleaseError,
    SchemaError,
    SourceError,
    WorkloadError,
)
from private_gsd.mechanisms import defaults
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.conversions import ROUNDING
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.workloads.specs import workload_of
from tests.fitting import ADD_REMOVE, QUICK, SCHEMA, SMALL, TABLE, fitted
from tests.runs.kills import killed_after_the_charge


def test_one_line_gives_a_private_table() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    table = synth.sample()
    assert table.num_rows == 60
    assert table.schema == TABLE.schema
    record = synth.release_.privacy
    assert record["private"] is True
    assert record["spent"]["epsilon"] == pytest.approx(1.0)
    assert record["delta"] == 1 / 800**2
    assert synth.release_.complete


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "file"])
def test_the_kind_of_frame_comes_back(kind: str, tmp_path: Path) -> None:
    data: Any = {"pandas": TABLE.to_pandas(), "polars": pl.from_arrow(TABLE)}.get(kind, TABLE)
    if kind == "file":
        data = tmp_path / "table.csv"
        pyarrow.csv.write_csv(TABLE, data)
    frame = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(data).sample(7)
    assert len(frame) == 7
    if kind == "pandas":
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.columns) == list(SCHEMA.names)
    if kind == "polars":
        assert isinstance(frame, pl.DataFrame)
        assert frame.columns == list(SCHEMA.names)


def test_samples_of_any_size() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    whole = synth.release_.synthetic.to_pylist()
    fewer = synth.sample(20).to_pylist()
    assert all(fewer.count(row) <= whole.count(row) for row in fewer)
    more = synth.sample(150).to_pylist()
    assert len(more) == 150
    assert more[:60] == whole
    new = [row for row in more[60:] if row not in whole]
    assert len({str(row) for row in new}) > 40
    assert synth.sample(150).to_pylist() == more != synth.sample(150, random_state=1).to_pylist()
    assert synth.sample(20).equals(synth.sample(20))
    assert synth.sample(20).equals(synth.sample(20, random_state=0))
    assert not synth.sample(20).equals(synth.sample(20, random_state=1))
    for wrong in ({"n": 0}, {"n": "5"}, {"n": 5, "random_state": -1}):
        with pytest.raises(ReleaseError, match="must be a whole number from"):
            synth.sample(**wrong)


def test_a_ledger_in_the_release_is_refused(tmp_path: Path) -> None:
    """It would be published, and put back, with the folder."""
    folder = tmp_path / "r"
    with pytest.raises(LedgerError, match="is in the release, and would be published with it"):
        Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=folder, ledger=folder / "l.db")
    killed_after_the_charge(folder, **SMALL)
    inside = folder / "moved.db"
    (tmp_path / "r.ledger.db").rename(inside)
    with pytest.raises(LedgerError, match="is in the release, and would be published with it"):
        Synthesizer.resume(folder, TABLE, ledger=inside)


def test_the_ledgers_terms_are_the_runs(tmp_path: Path) -> None:
    """What was asked for is what is stated: at the ledger's delta."""
    ledger = tmp_path / "l.db"
    with Ledger(ledger, create=True) as opened:
        opened.add_dataset("table", RhoBudget.from_epsilon(1.0, 1e-9))
    release = Synthesizer(SCHEMA, 0.5, **SMALL).fit(TABLE, ledger=ledger).release_
    record, budget = release.privacy, release.settings.budget
    assert record["spent"]["epsilon"] == pytest.approx(0.5, rel=1e-6)
    assert record["delta"] == budget.delta == 1e-9
    assert record["conversion"] == budget.conversion == "zcdp"
    terms: dict[str, Any] = {"delta": 1e-6, "conversion": "paper"}
    for name, value in terms.items():
        with pytest.raises(LedgerError, match=f"has {name}"):
            fitted(SCHEMA, 0.1, TABLE, rows=60, ledger=ledger, **{name: value})


@pytest.mark.parametrize(
    ("settings", "conversion"),
    [
        ({}, "gdp"),
        ({"mechanism": "layered"}, "gdp"),
        ({"conversion": "zcdp"}, "zcdp"),
        ({"mechanism": Adaptive(epochs=2)}, "zcdp"),
        ({"mechanism": "mst"}, "zcdp"),
    ],
)
def test_the_conversion_is_the_best_that_the_noise_allows(
    settings: dict[str, Any], conversion: str, tmp_path: Path
) -> None:
    synth = fitted(SCHEMA, 1.0, TABLE, release=tmp_path / "r", **SMALL | settings)
    record = synth.release_.privacy
    assert record["conversion"] == synth.release_.settings.budget.conversion == conversion
    assert record["total"]["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert record["spent"]["epsilon"] <= 1.0
    assert ("since its noise is Gaussian" in record["guarantee"]) == (conversion == "gdp")
    # ``fit`` changes no parameter.
    assert synth.budget == Budget(1.0, conversion=settings.get("conversion"))
    again = Synthesizer.resume(tmp_path / "r")
    assert again.budget == synth.release_.settings.budget


def test_other_noise_is_not_stated_by_the_gaussians_curve(tmp_path: Path) -> None:
    """Refused before the table is looked at, with a ledger and without."""
    adaptive: dict[str, Any] = {"mechanism": Adaptive(epochs=2)}
    with pytest.raises(BudgetError, match="'adaptive' selects with other noise; use one-shot"):
        Synthesizer(SCHEMA, Budget(1.0, conversion="gdp"), **adaptive)
    ledger = tmp_path / "l.db"
    Synthesizer(SCHEMA, 0.5, **SMALL).fit(TABLE, ledger=ledger, create_ledger=True)
    with Ledger(ledger, read_only=True) as opened:
        before = opened.charges("table")
    words = f"{ledger}: dataset 'table' has the conversion 'gdp', which is of Gaussian noise"
    with pytest.raises(BudgetError, match=re.escape(words)):
        fitted(SCHEMA, 0.1, object(), rows=60, ledger=ledger, **adaptive)
    with Ledger(ledger, read_only=True) as opened:
        assert opened.charges("table") == before


def test_a_ledger_in_the_release_by_way_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    settings = {"ledger": tmp_path / "real" / "r" / "l.db", "create_ledger": True, **SMALL}
    with pytest.raises(LedgerError, match="is in the release"):
        fitted(SCHEMA, 1.0, TABLE, release=tmp_path / "link" / "r", **settings)


def test_seeded_noise_is_told_of_everywhere(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, 1.0, **SMALL)
    release = synth.fit(TABLE, insecure_noise_seed=1, release=tmp_path / "r").release_
    assert release.privacy["private"] is False
    assert release.privacy["guarantee"].startswith("NONE")
    measured = release.measurements()
    assert measured is not None
    assert not measured.private


@pytest.mark.slow
def test_a_copy_has_the_release_and_no_data() -> None:
    """A release is safe to carry; the table that was fitted is not, and stays behind."""
    data = TABLE.to_pandas()
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(data)
    table = synth.release_.synthetic
    in_process = joblib.Parallel(n_jobs=2)([joblib.delayed(_rows_of)(synth)])
    assert in_process == [table.to_pylist()]
    for carry in (_pickled, copy.deepcopy):
        made = carry(synth)
        assert made.get_params() == synth.get_params()
        assert made.release_.folder != synth.release_.folder
        assert made.release_.synthetic.equals(table)
        assert made.release_.privacy == synth.release_.privacy
        folder = made.release_.folder
        again = carry(made)
        del made
        assert not folder.exists()
        assert again.sample().equals(table)
    unfitted = _pickled(Synthesizer(SCHEMA, epsilon=1.0))
    with pytest.raises(NotFittedError, match="call fit first"):
        unfitted.sample()


def _pickled(synth: Synthesizer) -> Synthesizer:
    found = pickle.loads(pickle.dumps(synth))
    assert isinstance(found, Synthesizer)
    return found


def _rows_of(synth: Synthesizer) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = synth.release_.synthetic.to_pylist()
    return rows


def test_a_ledger_that_is_spent_refuses(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    options: dict[str, Any] = {"ledger": ledger, "dataset": "census", **SMALL}
    fitted(SCHEMA, 1.0, TABLE, create_ledger=True, **options)
    with pytest.raises(BudgetError, match="Nothing was charged or released"):
        fitted(SCHEMA, 0.5, TABLE, **options)
    with Ledger(ledger, create=True) as opened:
        assert len(opened.charges("census")) == 1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"on_invalid": "x"}, GsdError, "on_invalid must be 'error' or 'coerce'"),
        ({"ledger": 5}, LedgerError, "ledger must be a path"),
        ({"release": 5}, ReleaseError, "release must be a path"),
        ({"ledger": None}, LedgerError, "create_ledger goes with ledger"),
        ({"create_ledger": False}, LedgerError, "no such ledger"),
        ({"progress": 5}, GsdError, "progress must be True, False or a function"),
        ({"insecure_noise_seed": -1}, WorkloadError, "insecure_noise_seed"),
        ({"dataset": 5}, LedgerError, "dataset must be a line of text"),
    ],
)
def test_what_is_refused_before_anything_is_spent(
    settings: dict[str, Any], error: type[GsdError], message: str, tmp_path: Path
) -> None:
    paths = {"release": tmp_path / "r", "ledger": tmp_path / "l.db", "create_ledger": True}
    with pytest.raises(error, match=message):
        Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, **{**paths, **settings})
    assert list(tmp_path.iterdir()) == []  # neither a folder nor a ledger is left


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"schema": TABLE}, SchemaError, "schema must be a Schema, not Table"),
        ({"budget": 0}, BudgetError, "epsilon"),
        ({"budget": "1"}, BudgetError, "epsilon must be a number, not '1'"),
        ({"budget": None}, BudgetError, "a budget is needed: epsilon=1.0"),
        ({"epsilon": 2.0}, BudgetError, "give budget or epsilon, not both"),
        ({"mechanism": "adaptve"}, BudgetError, "did you mean 'adaptive'"),
        ({"mechanism": 3}, BudgetError, "mechanism must be one of 'auto', 'one-shot'"),
        ({"projector": "rapp"}, ProjectionError, "no projector is called 'rapp'"),
        ({"projector": "gsd:speed=2"}, ProjectionError, "gsd has no 'speed'"),
        ({"projector": 5}, ProjectionError, "projector must be a name or a Projector"),
        ({"rows": 0}, ProjectionError, "rows must be a whole number"),
        ({"rows": "60"}, ProjectionError, "rows must be a whole number"),
        (
            {"rows": 60, "projector": "gsd:rows=50"},
            ProjectionError,
            "rows is 60, and the projector's is 50",
        ),
        ({"random_state": -1}, WorkloadError, "random_state must be a whole number"),
        ({"threads": 2000}, WorkloadError, "threads must be a whole number"),
        ({"workload": "catgorical:2"}, WorkloadError, "did you mean 'categorical'"),
        ({"workload": ["catgorical:2"]}, WorkloadError, "did you mean 'categorical'"),
        ({"workload": ["tree:x"]}, WorkloadError, "'tree:x' should read tree:K"),
        ({"workload": []}, WorkloadError, "name at least one workload"),
        ({"workload": 5}, WorkloadError, "name at least one workload"),
        (
            {"workload": workload_of(SCHEMA.select(["sex"]), ["categorical:1"])},
            WorkloadError,
            "another schema",
        ),
        ({"knowledge": {"sex = 'F'": 3}}, WorkloadError, "knowledge must be a Knowledge"),
        (
            {"knowledge": Knowledge(public_counts={"size > 3": 3})},
            GsdError,
            "size",
        ),
        (
            {"knowledge": Knowledge(derived_statistics=["median(wealth)"])},
            GsdError,
            "wealth",
        ),
        (
            {"knowledge": Knowledge(derived_statistics=["median(age)"]), "projector": "rap"},
            WorkloadError,
            "projector 'rap' takes neither public counts nor derived statistics",
        ),
    ],
)
def test_parameters_are_checked_when_they_are_given(
    parameters: dict[str, Any], error: type[GsdError], message: str
) -> None:
    given = {"schema": SCHEMA, "budget": 1.0, **parameters}
    with pytest.raises(error, match=message):
        Synthesizer(**given)
    synth = Synthesizer(SCHEMA, 1.0)
    with pytest.raises(error, match=message):
        synth.set_params(**{name: given[name] for name in parameters})
    assert synth.get_params() == Synthesizer(SCHEMA, 1.0).get_params()


def test_a_table_that_does_not_fit(tmp_path: Path) -> None:
    synth, folder = Synthesizer(SCHEMA, epsilon=1.0, **SMALL), tmp_path / "r"
    with pytest.raises(SourceError, match="missing"):
        synth.fit(TABLE.drop_columns(["age"]), release=folder)
    with pytest.raises(SourceError, match=r"nothing\.csv"):
        synth.fit(str(tmp_path / "nothing.csv"), release=folder)
    assert not folder.exists()


def test_numpy_numbers_will_do() -> None:
    rows, seed, epsilon = np.int64(30), np.int64(3), np.float64(1)
    synth = Synthesizer(
        SCHEMA,
        epsilon,
        rows=rows,  # type: ignore[arg-type]
        random_state=seed,  # type: ignore[arg-type]
        projector=QUICK,
    )
    assert synth.fit(TABLE).sample().num_rows == 30


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    synth = Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release="r")
    monkeypatch.chdir("/")
    assert synth.sample().num_rows == 60


def test_parameters_by_name() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0)
    names = list(inspect.signature(Synthesizer).parameters)
    assert list(synth.get_params()) == names
    assert len(names) <= 11
    assert synth.get_params()["rows"] is None
    assert synth.set_params(rows=50, mechanism="mst").get_params()["rows"] == 50
    with pytest.raises(ReleaseError, match="no parameter is called 'row'"):
        synth.set_params(row=3)


def test_a_synthesizer_says_its_state(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL)
    assert repr(synth) == "<Synthesizer epsilon=1.0, not fitted>"
    assert not hasattr(synth, "release_")
    with pytest.raises(NotFittedError, match="there is no release yet: call fit first"):
        _ = synth.release_
    parameters = synth.get_params()
    synth.fit(TABLE, release=tmp_path / "census")
    assert synth.get_params() == parameters
    assert repr(synth) == "<Synthesizer epsilon=1.0, <Release census>>"
    assert repr(Synthesizer(SCHEMA, Budget(0.5))) == "<Synthesizer epsilon=0.5, not fitted>"


def test_rows_are_a_setting_of_the_projector() -> None:
    projector = GeneticSearch(rows=70, denoise=False)
    for rows in (None, 70):
        synth = Synthesizer(SCHEMA, epsilon=1.0, projector=projector, rows=rows)
        assert synth.plan(TABLE).rows == 70
    assert synth.fit(TABLE).sample().num_rows == 70


def test_one_name_is_a_workload() -> None:
    one = Synthesizer(SCHEMA, 1.0, workload="categorical:2").plan(TABLE)
    assert one.target.size == workload_of(SCHEMA, ["categorical:2"]).size


def test_the_default_table_has_as_many_rows_as_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a bound, and no fewer than answer well; a private number of records is measured."""
    monkeypatch.setattr(defaults, "ROWS", (100, 200))
    monkeypatch.setattr(defaults, "MOST_DEFAULT_ROWS", 700)
    few, settings = TABLE.slice(0, 50), {**SMALL, "rows": None}
    for data, expected in ((few, 100), (TABLE.slice(0, 300), 300), (TABLE, 700)):
        synth = Synthesizer(SCHEMA, 1.0, **settings)
        assert synth.plan(data).rows == synth.fit(data).release_.settings.rows == expected
        assert synth.release_.synthetic.num_rows == expected
    private = {name: value for name, value in ADD_REMOVE.items() if name != "rows"}
    made = fitted(SCHEMA, 1.0, TABLE.slice(0, 400), **private).release_
    counted = made.n_records()
    assert counted is not None
    assert made.settings.rows == made.synthetic.num_rows == counted.n_records
    # Algorithm 1 fits all rows, and so takes no more of them than before.
    paper = Synthesizer(SCHEMA, 1.0, projector=GeneticSearch.paper(generations=1))
    assert paper.plan(TABLE).rows == 200


@pytest.mark.parametrize("settings", [{}, {"mechanism": Adaptive(epochs=3)}])
def test_add_remove_measures_the_number_of_rows(settings: dict[str, Any], tmp_path: Path) -> None:
    """It is paid for, noisy, and the true one is nowhere to be found."""
    folder = tmp_path / "release"
    synth = fitted(SCHEMA, 0.5, TABLE, release=folder, **{**ADD_REMOVE, **settings})
    total = synth.release_.n_records()
    measured = synth.release_.measurements()
    assert total is not None
    assert measured is not None
    assert measured.n_records == total.n_records
    assert measured.neighbours == synth.release_.privacy["neighbours"] == "add-remove"
    charges = synth.release_.privacy["charges"]
    assert charges[0]["groups"] == ["number of records"]
    budget = RhoBudget.from_epsilon(0.5, 1e-6, "zcdp" if settings else "gdp")
    assert charges[0]["units"] == pytest.approx(budget.units / 50, rel=1e-9)
    more = 0 if settings else ROUNDING
    assert total.scale == pytest.approx(math.sqrt(1 / (2 * budget.rho / 50) + more), rel=1e-6)
    spent = sum(charge["units"] for charge in charges)
    assert budget.units * (1 - 1e-9) < spent <= budget.units
    assert synth.release_.settings.n_records is None
    # A copy of the release has it, too. A table with one row more changes nothing in the settings.
    assert synth.release_.save(tmp_path / "copy").n_records() == total
    larger = datasets.census(801, seed=2).select(SCHEMA.names)
    other = fitted(SCHEMA, 0.5, larger, **{**ADD_REMOVE, **settings}).release_
    assert other.settings == synth.release_.settings
    assert other.workload.size == synth.release_.workload.size


def test_the_noise_on_the_number_of_rows_is_as_large_as_it_says() -> None:
    """With 60 draws, a chi-squared test that a noise half or twice as large would always fail."""
    schema = SCHEMA.select(["sex"])
    table = TABLE.select(["sex"])
    found = []
    for _ in range(60):
        total = fitted(schema, 0.5, table, **ADD_REMOVE).release_.n_records()
        assert total is not None
        found.append((total.n_records - TABLE.num_rows) / total.scale)
    # Of chi-squared with 60 degrees of freedom, below 26 and above 116 with probability 1e-5.
    assert 26 < sum(each**2 for each in found) < 116


def test_add_remove_needs_a_delta_and_a_ledger_of_its_kind(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="give a delta"):
        Synthesizer(SCHEMA, Budget(1.0, neighbours="add-remove")).fit(TABLE)
    ledger = tmp_path / "ledger.db"
    Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, ledger=ledger, create_ledger=True)
    with pytest.raises(LedgerError, match="has neighbours 'replace-one', not 'add-remove'"):
        fitted(SCHEMA, 1.0, TABLE, ledger=ledger, **ADD_REMOVE)


def test_scikit_learn_can_clone_it() -> None:
    base = pytest.importorskip("sklearn.base")
    synth = Synthesizer(SCHEMA, 1.0, rows=60, workload=["categorical:2"])
    again = base.clone(synth)
    assert again.get_params() == synth.get_params()
    assert again is not synth
