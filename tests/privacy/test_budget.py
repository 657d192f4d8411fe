"""The budget: conversions checked against others' code, and arithmetic that gives nothing away."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import dp_accounting
import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.errors import BudgetError
from private_gsd.privacy.budget import (
    UNITS_PER_RHO,
    Budget,
    RhoBudget,
    default_delta,
    epsilon_of,
    rho_of,
)
from private_gsd.privacy.conversions import zcdp_delta

dp.enable_features("contrib")
rhos = st.floats(1e-7, 20)
deltas = st.floats(1e-14, 0.1)


@given(rhos, deltas)
def test_the_zcdp_conversion_is_opendp_s(rho: float, delta: float) -> None:
    gaussian = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.l2_distance(T="f64"),
        scale=1 / math.sqrt(2 * rho),
    )
    conversion: Any = dp.c.make_zCDP_to_approxDP(gaussian)
    theirs = conversion.map(1.0).epsilon(delta)
    assert epsilon_of(rho, delta) == pytest.approx(theirs, rel=1e-7)


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 3])
@pytest.mark.parametrize("delta", [1e-10, 1e-5])
def test_the_zcdp_conversion_is_that_of_dp_accounting(rho: float, delta: float) -> None:
    """Its accountant tries a list of orders, where ours finds the best: it may be a bit looser."""
    orders = [1 + step / 50 for step in range(1, 500)] + [1.1**step for step in range(26, 110)]
    accountant = RdpAccountant(orders)
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    theirs = accountant.get_epsilon(delta)
    ours = epsilon_of(rho, delta)
    assert ours <= theirs + 1e-9
    assert ours == pytest.approx(theirs, rel=5e-3)


def test_the_paper_s_conversion() -> None:
    assert epsilon_of(0.01, 1e-6, "paper") == pytest.approx(
        0.01 + 2 * math.sqrt(0.01 * math.log(1e6))
    )
    rho = rho_of(1.0, 1e-9, "paper")
    assert rho + 2 * math.sqrt(rho * math.log(1e9)) == pytest.approx(1.0)


@given(rhos, deltas)
def test_the_zcdp_conversion_is_never_looser(rho: float, delta: float) -> None:
    zcdp = epsilon_of(rho, delta)
    assert epsilon_of(rho, delta, "gdp") <= zcdp <= epsilon_of(rho, delta, "paper")


@pytest.mark.parametrize("conversion", ["zcdp", "paper", "gdp"])
@given(epsilon=st.floats(0.001, 30), delta=deltas)
def test_a_budget_keeps_its_promise(conversion: Any, epsilon: float, delta: float) -> None:
    budget = RhoBudget.from_epsilon(epsilon, delta, conversion)
    assert budget.epsilon <= epsilon
    assert budget.epsilon == pytest.approx(epsilon, rel=1e-6)


@given(st.floats(1e-6, 10), st.floats(0, 30))
def test_delta_falls_as_epsilon_grows(rho: float, epsilon: float) -> None:
    assert 0 <= zcdp_delta(rho, epsilon + 0.1) <= zcdp_delta(rho, epsilon) <= 1
    assert zcdp_delta(0.0, epsilon) == 0


@given(st.floats(1e-6, 10), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=300))
def test_a_split_gives_away_nothing(rho: float, weights: list[float]) -> None:
    budget = RhoBudget.from_rho(rho, 1e-9)
    parts = budget.split(weights)
    assert 0 <= budget.units - sum(parts) < len(parts)
    total = sum(map(Fraction, weights))
    for part, weight in zip(parts, weights, strict=True):
        assert 0 <= budget.units * Fraction(weight) / total - part < 1


def test_units_are_exact() -> None:
    assert RhoBudget.from_rho(0.5, 1e-9).units == UNITS_PER_RHO // 2
    assert RhoBudget.from_rho(0.5, 1e-9).rho == 0.5
    assert RhoBudget.from_rho(0.1, 1e-9).rho <= 0.1


def test_the_default_delta() -> None:
    assert default_delta(1000) == pytest.approx(1e-6)


WRONG: list[tuple[Callable[[], Any], str]] = [
    *(
        (lambda e=e: RhoBudget.from_epsilon(e, 1e-9), "epsilon must be")
        for e in (0, -1, math.nan, math.inf, "1", True)
    ),
    *(
        (lambda d=d: RhoBudget.from_epsilon(1, d), "delta must be more than 0 and less than 1")
        for d in (0, 1, 1.5, -0.1, math.nan, 1e-310, 1 - 1e-16)
    ),
    *(
        (lambda d=d: RhoBudget.from_epsilon(1, d), "delta must be a number")
        for d in ("x", False, None)
    ),
    (lambda: RhoBudget.from_epsilon(10**400, 1e-9), "epsilon must be more than 0 and finite"),
    *((lambda r=r: RhoBudget.from_rho(r, 1e-9), "rho") for r in (math.nan, math.inf, "1")),
    (lambda: RhoBudget.from_rho(0, 1e-9), "the budget is empty"),
    (lambda: RhoBudget.from_rho(5000, 1e-9), "nobody is protected"),
    (lambda: RhoBudget.from_epsilon(1e-300, 1e-9), "epsilon must be at least 1e-09"),
    (lambda: RhoBudget.from_epsilon(1, 1e-9, "loose"), "'paper' or 'gdp', not 'loose'"),  # type: ignore[arg-type]
    (lambda: epsilon_of(-1, 1e-9), "rho must be"),
    (lambda: RhoBudget(5, 1e-9).split([1] * 9), "too small to be split in 9 parts"),
    (lambda: RhoBudget(5, 1e-9).split([]), "weights must be positive"),
    (lambda: RhoBudget(5, 1e-9).split([1, 0]), "weights must be positive"),
    (lambda: default_delta(1), "no sensible delta"),
    (lambda: RhoBudget(5, 1e-9).split([1e308, math.inf]), "weights must be positive"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(BudgetError) as error:
        make()
    assert message in str(error.value)


@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.9])
@pytest.mark.parametrize("conversion", ["zcdp", "paper", "gdp"])
def test_one_bound_and_one_message(conversion: Any, delta: float) -> None:
    """A bound on rho, and the epsilon that it is: no epsilon is in one range and out of another."""
    for epsilon in (1e4, 1e6, 1e7, 1e300):
        with pytest.raises(BudgetError, match="over the bound of rho = 1000") as error:
            RhoBudget.from_epsilon(epsilon, delta, conversion)
    most = int(str(error.value).rsplit(" ", 1)[1].replace(",", ""))
    assert RhoBudget.from_epsilon(most, delta, conversion).rho > 990
    with pytest.raises(BudgetError, match=f"the largest epsilon at this delta is {most:,}"):
        RhoBudget.from_epsilon(most + 1, delta, conversion)
    with pytest.raises(BudgetError, match="over the bound of rho = 1000"):
        RhoBudget.from_rho(1000.1, delta, conversion)


def test_large_weights_do_not_overflow() -> None:
    budget = RhoBudget.from_rho(1.0, 1e-9)
    assert budget.split([1e308, 1e308]) == [budget.units // 2] * 2


def test_a_stated_budget_takes_numbers_of_any_make() -> None:
    makes: list[Any] = [1, 1.0, np.int64(1), np.float32(1), np.float64(1)]
    budgets = [Budget(epsilon, np.float64(1e-9)) for epsilon in makes]
    assert set(budgets) == {Budget(1.0, 1e-9)}
    assert {(type(each.epsilon), type(each.delta)) for each in budgets} == {(float, float)}


@pytest.mark.parametrize(
    "budget",
    [Budget(1), Budget(np.float64(0.5), 1e-9, "add-remove", "paper")],
)
def test_a_stated_budget_goes_through_json(budget: Budget) -> None:
    assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget


def test_a_stated_budget_is_a_value() -> None:
    """Frozen, hashable, and the same after a pickle or a copy."""
    budget = Budget(1, 1e-9, "add-remove", "gdp")
    assert pickle.loads(pickle.dumps(budget)) == copy.deepcopy(budget) == budget
    assert len({budget, Budget(1.0, 1e-9, "add-remove", "gdp"), Budget(2)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.epsilon = 2.0  # type: ignore[misc]


WRONG_STATEMENTS: list[tuple[dict[str, Any], str]] = [
    *(
        ({"epsilon": epsilon}, message)
        for epsilon, message in (
            ("1", "epsilon must be a number, not '1'"),
            (True, "epsilon must be a number, not True"),
            (None, "epsilon must be a number, not None"),
            (np.bool_(True), "epsilon must be a number"),
            (math.nan, "epsilon must be more than 0 and finite, not nan"),
            (math.inf, "epsilon must be more than 0 and finite, not inf"),
            (10**400, "epsilon must be more than 0 and finite"),
            (0, "epsilon must be more than 0 and finite, not 0"),
            (-1.5, "epsilon must be more than 0 and finite, not -1.5"),
        )
    ),
    *(
        (
            {"epsilon": 1, "delta": delta},
            f"more than 0 and less than 1 (from 1e-300 to 0.9), not {delta!r}",
        )
        for delta in (0, 1, -1, math.nan, math.inf)
    ),
    *(
        ({"epsilon": 1, "delta": delta}, f"delta must be a number, not {delta!r}")
        for delta in ("0.1", True)
    ),
    ({"epsilon": 1, "neighbours": "replace"}, "'add-remove', not 'replace' (did you mean 'rep"),
    ({"epsilon": 1, "neighbours": ["replace-one"]}, "neighbours must be 'replace-one' or"),
    ({"epsilon": 1, "conversion": "papr"}, "not 'papr' (did you mean 'paper'?)"),
    ({"epsilon": 1, "conversion": 3}, "conversion must be"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG_STATEMENTS)
def test_a_stated_budget_checks_itself(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BudgetError) as error:
        Budget(**settings)
    assert message in str(error.value)
    with pytest.raises(BudgetError):
        Budget.from_dict(settings)


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({}, "a budget needs an epsilon"),
        (None, "a budget must be a mapping with an epsilon, not None"),
        ([1.0], "a budget must be a mapping with an epsilon, not [1.0]"),
        ({"epsilon": 1, "dleta": 1e-9}, "a budget has no 'dleta' (did you mean 'delta'?)"),
    ],
)
def test_a_budget_is_not_read_from_something_else(saved: Any, message: str) -> None:
    with pytest.raises(BudgetError) as error:
        Budget.from_dict(saved)
    assert message in str(error.value)


@pytest.mark.parametrize("n_records", [None, 1000])
def test_a_stated_budget_is_resolved_on_its_own_terms(n_records: int | None) -> None:
    """What the budget says goes before the number of records and the mechanism's conversion."""
    stated = Budget(1, 1e-9, "add-remove", "paper")
    resolved = stated.resolve(n_records=n_records, conversion="zcdp")
    assert resolved == RhoBudget.from_epsilon(1, 1e-9, "paper")


def test_a_stated_budget_takes_defaults_when_it_is_resolved() -> None:
    resolved = Budget(2).resolve(n_records=1000, conversion="gdp")
    assert resolved == RhoBudget.from_epsilon(2, default_delta(1000), "gdp")


@pytest.mark.parametrize(
    ("budget", "n_records", "message"),
    [
        (Budget(1, neighbours="add-remove"), 1000, "give a delta: by default it is 1 / N², and"),
        (
            Budget(1),
            None,
            "give a delta: by default it is 1 / N², and the number of records, N, is not known",
        ),
        (Budget(1), 1, "no sensible delta"),
    ],
)
def test_a_default_delta_needs_a_public_number_of_records(
    budget: Budget, n_records: int | None, message: str
) -> None:
    with pytest.raises(BudgetError) as error:
        budget.resolve(n_records=n_records, conversion="zcdp")
    assert message in str(error.value)
