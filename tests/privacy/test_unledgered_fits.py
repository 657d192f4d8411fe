"""Fits of one process on the same data, without a ledger that adds them up."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

import private_gsd as gsd
from private_gsd import datasets
from private_gsd.privacy import unledgered_fits
from private_gsd.privacy.budget import RhoBudget, epsilon_of
from private_gsd.privacy.ledger.ledger import Ledger

SCHEMA = datasets.census_schema().select(["sex", "marital"])
TABLE = datasets.census(300).select(SCHEMA.names)
SMALL: dict[str, Any] = {"rows": 20, "threads": 1, "workload": "categorical:1"}


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No fit of another test; and warnings as errors, also those that other tests ignore."""
    monkeypatch.setattr(unledgered_fits, "FITS", [])
    with warnings.catch_warnings():
        warnings.simplefilter("error", gsd.UncountedWarning)
        yield


def fit(
    data: Any, budget: float | gsd.Budget = 1.0, schema: gsd.Schema = SCHEMA, **options: Any
) -> None:
    gsd.Synthesizer(schema, budget, **SMALL).fit(data, **options)


def test_a_cell_that_is_run_again_spends_again() -> None:
    frame = TABLE.to_pandas()
    fit(frame, 0.5)
    with pytest.warns(gsd.UncountedWarning, match="2 fits of this process") as warned:
        fit(frame, 1.0)
    with pytest.warns(gsd.UncountedWarning, match="3 fits of this process") as warned:
        fit(TABLE.to_pandas(), 0.5)  # the frame was made anew
    delta = 1 / 300**2
    rho = sum(RhoBudget.from_epsilon(each, delta, "gdp").rho for each in (0.5, 1.0, 0.5))
    words = str(warned[0].message)
    assert f"rho = {rho:.2g}"[:8] in words
    said = float(words.split("epsilon = ")[1].split()[0])
    assert said == pytest.approx(epsilon_of(rho, delta, "gdp"), rel=1e-3)
    assert said >= epsilon_of(rho, delta, "gdp")
    assert warned[0].filename.endswith("test_unledgered_fits.py")


def test_as_an_error_it_comes_before_anything_is_paid(tmp_path: Path) -> None:
    fit(TABLE)
    with pytest.raises(gsd.UncountedWarning):
        fit(TABLE, release=tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_what_the_same_data_are(tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        pyarrow.csv.write_csv(TABLE, tmp_path / name)
    fit(tmp_path / "one.csv")
    fit(str(tmp_path / "two.csv"))  # another file
    with pytest.warns(gsd.UncountedWarning, match="2 fits"):
        fit(str(tmp_path / ".." / tmp_path.name / "one.csv"))
    with pytest.warns(gsd.UncountedWarning, match="4 fits"):
        fit(TABLE)  # which may have been read from either
    few = SCHEMA.select(["sex"])
    other = TABLE.select(["sex"])
    fit(other, schema=few)  # other columns of another object
    with (
        pytest.warns(gsd.LeftOutWarning),
        pytest.warns(gsd.UncountedWarning, match="4 fits"),
    ):
        fit(tmp_path / "one.csv", schema=few)  # the file again, and the frame with these columns


def test_the_same_object_with_other_columns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gsd.LeftOutWarning)
        fit(TABLE, schema=SCHEMA.select(["sex"]))
        with pytest.warns(gsd.UncountedWarning, match="2 fits"):
            fit(TABLE, schema=SCHEMA.select(["marital"]))


def test_what_is_counted_elsewhere_or_not_private_does_not_warn(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(3.0, 1e-6, "gdp"))
    for _ in range(2):
        fit(TABLE, ledger=tmp_path / "l.db")
        fit(TABLE, insecure_noise_seed=1)
    fit(TABLE)


def test_relations_are_added_up_as_the_stronger_one() -> None:
    """To replace a record is to remove one and add one: four times the rho."""
    fit(TABLE, gsd.Budget(1.0, 1e-6))
    with pytest.warns(gsd.UncountedWarning) as warned:
        fit(TABLE, gsd.Budget(1.0, 1e-6, "add-remove"))
    rho = 5 * RhoBudget.from_epsilon(1.0, 1e-6, "gdp").rho
    said = float(str(warned[0].message).split("epsilon = ")[1].split()[0])
    assert said == pytest.approx(epsilon_of(rho, 1e-6, "gdp"), rel=1e-3)


def test_fits_of_different_units_are_told() -> None:
    """What a row's fit spends on a person is more, and nobody knows how much."""
    table = TABLE.append_column("person", [list(range(100)) * 3])
    schema = SCHEMA.with_unit(gsd.Unit("person", at_most=3))
    fit(table, gsd.Budget(1.0, 1e-6, "add-remove"), schema=schema)
    with pytest.warns(gsd.UncountedWarning) as warned:
        fit(table, gsd.Budget(1.0, 1e-6), schema=schema)
    rho = 5 * RhoBudget.from_epsilon(1.0, 1e-6, "gdp").rho
    said = float(str(warned[0].message).split("epsilon = ")[1].split()[0])
    assert said == pytest.approx(epsilon_of(rho, 1e-6, "gdp"), rel=1e-3)
    with (
        pytest.warns(gsd.LeftOutWarning),
        pytest.warns(gsd.UncountedWarning, match="They protect different units, and of each"),
    ):
        fit(table, gsd.Budget(1.0, 1e-6))
