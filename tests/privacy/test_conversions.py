"""The conversions: against integrals and exact sums, which know nothing of the proof."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import example, given
from hypothesis import strategies as st

from private_gsd.privacy.budget import RhoBudget, epsilon_of, rho_of
from private_gsd.privacy.conversions import ROUNDING, gdp_delta, zcdp_delta
from private_gsd.privacy.noise import gaussian_scale

EPSILONS = np.linspace(0, 6, 13)


def discrete_gaussian(variance: float) -> np.ndarray:
    """Probabilities of whole numbers around 0, as far as there are any to speak of."""
    reach = math.ceil(14 * math.sqrt(variance)) + 2
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    found: np.ndarray = weights / weights.sum()
    return found


def losses(variance: float) -> np.ndarray:
    """log P/Q at each of these numbers, if one record adds one to what is counted under Q."""
    reach = (len(discrete_gaussian(variance)) - 1) // 2
    found: np.ndarray = (1 - 2 * np.arange(-reach, reach + 1)) / (2 * variance)
    return found


def exact_deltas(answers: int, variance: float, epsilons: np.ndarray) -> np.ndarray:
    """δ of so many counts, to each of which one record adds one: a sum over all outcomes."""
    one = discrete_gaussian(variance)
    law = one
    for _ in range(answers - 1):
        law = np.convolve(law, one)
    reach = (len(law) - 1) // 2
    loss = (answers - 2 * np.arange(-reach, reach + 1)) / (2 * variance)
    found = [(law * np.maximum(0, -np.expm1(each - loss))).sum() for each in epsilons]
    return np.array(found)


@pytest.mark.parametrize("answers", [1, 2, 8, 50])
@pytest.mark.parametrize("rho", [0.01, 0.1, 0.5, 2, 8])
def test_whole_numbers_keep_what_the_conversion_promises(answers: int, rho: float) -> None:
    units = RhoBudget.from_rho(rho, 1e-9).units // answers
    variance = gaussian_scale(1.0, units, "gdp") ** 2
    epsilons = EPSILONS * math.sqrt(rho)
    claimed = [gdp_delta(rho, epsilon) for epsilon in epsilons]
    assert (exact_deltas(answers, variance, epsilons) <= claimed).all()


@pytest.mark.parametrize(("answers", "rho"), [(1, 0.1), (1, 2), (2, 0.5), (8, 2)])
def test_without_the_three_they_would_not(answers: int, rho: float) -> None:
    """A variance of Δ²/2ρ alone is enough for zCDP, but not for the conversion "gdp"."""
    epsilons = EPSILONS * math.sqrt(rho)
    claimed = [gdp_delta(rho, epsilon) for epsilon in epsilons]
    assert (exact_deltas(answers, answers / (2 * rho), epsilons) / claimed).max() > 1.02


def test_the_promise_is_no_more_than_is_needed_where_noise_is_usual() -> None:
    """At a variance of hundreds, less than 4 % of δ is given away, or 0.4 % of ε."""
    rho, answers = 0.05, 50
    variance = gaussian_scale(1.0, RhoBudget.from_rho(rho / answers, 1e-9).units, "gdp") ** 2
    (exact,) = exact_deltas(answers, variance, np.ones(1))
    assert exact > 0.96 * gdp_delta(rho, 1.0)


def test_answers_with_different_noise() -> None:
    """Two counts, one with nine times the other's budget: a sum over pairs of outcomes."""
    rho = 0.4
    parts = [RhoBudget.from_rho(part * rho, 1e-9).units for part in (0.9, 0.1)]
    variances = [gaussian_scale(1.0, units, "gdp") ** 2 for units in parts]
    first, second = (discrete_gaussian(each) for each in variances)
    law = np.outer(first, second)
    loss = np.add.outer(losses(variances[0]), losses(variances[1]))
    for epsilon in EPSILONS:
        delta = float((law * np.maximum(0, -np.expm1(epsilon - loss))).sum())
        assert delta <= gdp_delta(rho, epsilon)


@pytest.mark.parametrize("extra", [0.3, 0.5, 1.0])
def test_a_discrete_gaussian_is_a_gaussian_rounded_at_random(extra: float) -> None:
    """The lemma of the proof, with less of the rounding, so that its error can be seen."""
    variance = 2.0
    error = 2.1 * math.exp(-2 * math.pi**2 * extra)
    step = 2**-8
    x = np.arange(-20, 20, step)

    def density(at: np.ndarray, spread: float) -> np.ndarray:
        found: np.ndarray = np.exp(-(at**2) / (2 * spread)) / math.sqrt(2 * math.pi * spread)
        return found

    around = density(np.arange(-40, 41)[:, None] - x, extra).sum(axis=0)
    assert 0.4 * error < np.abs(around - 1).max() < error
    middle = (len(discrete_gaussian(variance)) - 1) // 2
    for y in range(6):
        made = float((density(x, variance - extra) * density(y - x, extra) / around).sum()) * step
        ratio = made / discrete_gaussian(variance)[middle + y]
        assert (1 - error) / (1 + error) <= ratio <= (1 + error) / (1 - error)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3])
@pytest.mark.parametrize("rho", [1e-3, 0.05, 2])
def test_the_conversion_is_the_integral(rho: float, epsilon: float) -> None:
    """δ = ∫ max(0, p - e^ε q), p and q Gaussians that are μ apart."""
    mu = math.sqrt(2 * rho)
    x, step = np.linspace(-12, 12, 2_000_001, retstep=True)
    p, q = (np.exp(-((x - shift) ** 2) / 2) / math.sqrt(2 * math.pi) for shift in (mu, 0.0))
    integral = float(np.maximum(0, p - math.exp(epsilon) * q).sum() * step)
    assert gdp_delta(rho, epsilon) == pytest.approx(integral, rel=1e-5, abs=1e-18)


@given(st.floats(1e-12, 900), st.floats(0, 2000))
@example(1e-12, 1e-6)
@example(900, 800)
@example(450, 699.95)
@example(0.02, 1e-9)
def test_gaussian_noise_is_never_worse_than_all_that_zcdp_allows(
    rho: float, epsilon: float
) -> None:
    here = gdp_delta(rho, epsilon)
    assert 0 <= here <= zcdp_delta(rho, epsilon) <= 1
    assert gdp_delta(rho, epsilon + 0.1) <= here
    assert gdp_delta(rho * 1.01, epsilon) >= here
    assert gdp_delta(0.0, epsilon) == 0


@pytest.mark.parametrize(
    ("rho", "epsilon", "delta"),
    [
        (36.11326478959759, 290.75461133043876, 3.3190753e-198),
        (4.422334, 109.87816610484506, 8.0646264e-277),
        (0.0198, 1.0, 1.5248888e-8),
        (1e-9, 1e-4, 1.9714217e-7),
        (500.0, 699.0, 1.2930482e-10),
    ],
)
def test_where_numbers_end(rho: float, epsilon: float, delta: float) -> None:
    """Never less than δ is (reckoned with 60 digits), and hardly more."""
    assert delta <= gdp_delta(rho, epsilon) < 1.00001 * delta


@pytest.mark.parametrize("rho", [1e-3, 0.02, 0.5])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_dp_accounting_comes_to_the_same(rho: float, delta: float) -> None:
    """Its accountant rounds up on a grid; ours is the formula."""
    accountant = PLDAccountant()
    accountant.compose(GaussianDpEvent(1 / math.sqrt(2 * rho)))
    theirs = accountant.get_epsilon(delta)
    assert epsilon_of(rho, delta, "gdp") == pytest.approx(theirs, rel=2e-3)


@pytest.mark.parametrize(("rows", "least", "most"), [(1000, 0.91, 0.95), (10**6, 0.95, 0.97)])
def test_how_much_less_noise_it_takes(rows: int, least: float, most: float) -> None:
    """What the docs say: some 5 % less."""
    for epsilon in (0.1, 1.0, 3.0):
        rhos = [rho_of(epsilon, 1 / rows**2, each) for each in ("zcdp", "gdp")]
        assert least < math.sqrt(rhos[0] / rhos[1]) < most


def test_every_gaussian_has_the_three() -> None:
    for rho in (1e-6, 0.01, 1, 100):
        scale = gaussian_scale(2.0, RhoBudget.from_rho(rho, 1e-9).units, "gdp")
        assert scale**2 - ROUNDING >= 1 / rho
        assert scale**2 - ROUNDING == pytest.approx(1 / rho, rel=1e-9, abs=1e-12)
