"""The privacy record: what it promises, of what, and for whom."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.privacy.budget import INSECURE, RhoBudget, epsilon_of
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.record import at_most, release_record, restated
from private_gsd.privacy.tradeoff import largest_powers

NO_CLAIMS: dict[str, Any] = {
    "public_counts": {},
    "external_groups": 0,
    "external_private": None,
    "derived_statistics": [],
}


def record_of(
    folder: Path, budget: RhoBudget, spent: float = 0.5, mechanism: str = "discrete gaussian"
) -> dict[str, Any]:
    """The record of a dataset of which a part is spent."""
    with Ledger(folder / "ledger.db", create=True) as ledger:
        ledger.add_dataset("census", budget)
        units = math.floor(budget.units * spent)
        ledger.charge("census", units, mechanism=mechanism, groups=["age"], run="r")
        return ledger.privacy_record("census")


@pytest.mark.parametrize("conversion", ["zcdp", "paper", "gdp"])
def test_the_guarantee_is_of_the_total(conversion: Any, tmp_path: Path) -> None:
    """A filter: what is spent so far has no guarantee of its own, and none is stated."""
    budget = RhoBudget.from_epsilon(2.0, 1e-6, conversion)
    record = record_of(tmp_path, budget)
    promised = record["guarantee"]
    assert f"rho = {budget.rho!r}, which is the total" in promised
    assert f"epsilon = {budget.epsilon!r} and delta = 1e-06" in promised
    assert "now and later" in promised
    assert repr(record["spent"]["epsilon"]) not in promised
    assert f"What is spent so far, rho = {record['spent']['rho']!r}, is accounting" in promised
    assert "no guarantee" in record["accounting"]


@pytest.mark.parametrize("conversion", ["zcdp", "gdp"])
def test_several_rows_of_one_person(conversion: Any, tmp_path: Path) -> None:
    budget = RhoBudget.from_epsilon(1.0, 1e-9, conversion)
    record = record_of(tmp_path, budget)
    assert [group["rows"] for group in record["groups_of_rows"]] == [2, 5, 10]
    for group in record["groups_of_rows"]:
        rho = group["rows"] ** 2 * budget.rho
        assert group["rho"] == rho
        assert group["epsilon"] == epsilon_of(rho, 1e-9, conversion)
    assert 2.0 < record["groups_of_rows"][0]["epsilon"] < 2.2


def test_groups_of_which_nothing_can_be_said(tmp_path: Path) -> None:
    record = record_of(tmp_path, RhoBudget.from_rho(30.0, 1e-9))
    assert [group["epsilon"] is None for group in record["groups_of_rows"]] == [False, False, True]


def test_what_a_test_can_reach_is_of_the_total_too(tmp_path: Path) -> None:
    budget = RhoBudget.from_epsilon(1.0, 1e-9, "gdp")
    record = record_of(tmp_path, budget, 0.1)
    alarms = [test["false_alarms"] for test in record["tests"]]
    powers = [test["largest_power"] for test in record["tests"]]
    assert alarms == [0.001, 0.01, 0.05, 0.1]
    assert powers == largest_powers(budget.rho, alarms, "gdp")


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("external", [None, True, False])
def test_all_reasons_are_in_one_list(seeded: bool, external: bool | None, tmp_path: Path) -> None:
    mechanism = f"discrete gaussian ({INSECURE})" if seeded else "discrete gaussian"
    ledgers = record_of(tmp_path, RhoBudget.from_epsilon(1.0, 1e-6), 0.5, mechanism)
    claims = {**NO_CLAIMS, "external_groups": 0 if external is None else 3}
    claims["external_private"] = external
    record = release_record(ledgers, claims, alone=False)
    reasons = record["not_private_because"]
    assert len(reasons) == seeded + (external is False)
    assert record["private"] is (not reasons)
    assert record["guarantee"].startswith("NONE: ") is bool(reasons)
    assert all(reason in record["guarantee"] for reason in reasons)
    covered = "Whatever guarantee they have is outside this ledger" in record["guarantee"]
    assert covered is (external is True and not seeded)
    assert record["claims"] == claims


def test_a_record_is_stated_anew_from_its_numbers_and_claims(tmp_path: Path) -> None:
    """Whatever its words say: they follow from the rest."""
    record = record_of(tmp_path, RhoBudget.from_epsilon(1.0, 1e-6))
    words = ("not_private_because", "this_release_alone", "groups_of_rows", "tests", "accounting")
    without = {key: value for key, value in record.items() if key not in words}
    without |= {"guarantee": "all is well", "private": True}
    assert restated(without) == record
    without["claims"] = {"external_groups": 1, "external_private": False}
    assert restated(without)["private"] is False


def test_a_claim_without_a_name_is_refused(tmp_path: Path) -> None:
    """It would go unread, as claims of another version would, and the promise be too large."""
    record = record_of(tmp_path, RhoBudget.from_epsilon(1.0, 1e-6))
    with pytest.raises(ValueError, match="unknown claims: 'groups_from_elsewhere'"):
        restated({**record, "claims": {**NO_CLAIMS, "groups_from_elsewhere": 1}})


@given(st.floats(1e-300, 1e6), st.integers(1, 8))
def test_what_is_printed_is_no_less(number: float, digits: int) -> None:
    printed = float(at_most(number, digits))
    assert number <= printed <= number * (1 + 10 ** (1 - digits)) * (1 + 1e-12)
