"""Mechanisms: their laws, with stated power, and an audit that half the noise would fail.

Secure noise takes no seed, so these tests draw anew in every run; a right one fails once in a
billion runs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from private_gsd.errors import BudgetError
from private_gsd.privacy.budget import RhoBudget, epsilon_of
from private_gsd.privacy.conversions import ROUNDING
from private_gsd.privacy.noise import (
    InsecureSeededNoise,
    SecureNoise,
    discrete_gaussian,
    gaussian_scale,
    noisy_top_k,
    selection_scale,
)
from tests.privacy.statistics import SIGNIFICANCE, chi_square_p, epsilon_lower_bound

DRAWS = 20_000
NOISE = SecureNoise()


def gaussian_p(draws: np.ndarray, scale: float) -> float:
    """The p-value that draws follow the discrete Gaussian law of that scale."""
    support = np.arange(-60, 61)
    weights = np.exp(-(support**2) / (2 * scale**2))
    expected = len(draws) * weights / weights.sum()
    observed = np.bincount(np.clip(draws, -60, 60) + 60, minlength=121).astype(np.float64)
    return chi_square_p(observed, expected)


@pytest.mark.parametrize("scale", [0.7, 2.3, 9.0])
def test_the_discrete_gaussian_has_its_law(scale: float) -> None:
    draws = NOISE.gaussian(np.zeros(DRAWS, dtype=np.int64), scale)
    assert gaussian_p(draws, scale) > SIGNIFICANCE
    # Power: the same test, on as many draws, sees a scale that is 10 % off.
    assert gaussian_p(NOISE.gaussian(np.zeros(DRAWS, dtype=np.int64), 1.1 * scale), scale) < 1e-9
    # The variance of 20,000 draws lies within 6.5 standard errors of its own.
    assert draws.var() == pytest.approx(
        scale**2, rel=6.5 * math.sqrt(2 / DRAWS) + 0.15 * (scale < 1)
    )


def test_noise_is_added_to_the_counts_and_independent() -> None:
    counts = np.arange(DRAWS, dtype=np.int64) * 1_000_000
    noise = NOISE.gaussian(counts, 5.0) - counts
    assert gaussian_p(noise, 5.0) > SIGNIFICANCE
    correlation = np.corrcoef(noise[:-1], noise[1:])[0, 1]
    assert abs(correlation) < 6.5 / math.sqrt(DRAWS)


def test_chunks_on_threads_keep_their_order_and_share_nothing() -> None:
    counts = np.arange(50_000, dtype=np.int64) * 1000
    noisy = SecureNoise(threads=4).gaussian(counts, 1.0)
    assert np.abs(noisy - counts).max() < 50
    quarter = (noisy - counts).reshape(4, -1)
    assert not (quarter[0] == quarter[1]).all()


def test_two_runs_differ() -> None:
    zeros = np.zeros(100, dtype=np.int64)
    assert (NOISE.gaussian(zeros, 100.0) != NOISE.gaussian(zeros, 100.0)).any()


def test_selection_follows_the_exponential_mechanism() -> None:
    scores, scale = np.array([0, 3, 5, 5, 1]), 2.0
    chosen = [NOISE.top_k(scores, 1, scale)[0] for _ in range(DRAWS)]
    weights = np.exp(scores / scale)
    observed = np.bincount(chosen, minlength=5).astype(np.float64)
    assert chi_square_p(observed, DRAWS * weights / weights.sum()) > SIGNIFICANCE
    # Power: another scale would be seen.
    other = np.exp(scores / (1.2 * scale))
    assert chi_square_p(observed, DRAWS * other / other.sum()) < SIGNIFICANCE


@pytest.mark.slow
def test_top_k_is_k_selections_without_replacement() -> None:
    scores, scale = np.array([0, 3, 5, 1]), 2.0
    pairs = [tuple(NOISE.top_k(scores, 2, scale)) for _ in range(DRAWS)]
    weights = np.exp(scores / scale)
    observed, expected = [], []
    for first in range(4):
        for second in set(range(4)) - {first}:
            observed.append(pairs.count((first, second)))
            rest = weights.sum() - weights[first]
            expected.append(DRAWS * weights[first] / weights.sum() * weights[second] / rest)
    assert sum(observed) == DRAWS
    assert chi_square_p(np.array(observed, float), np.array(expected)) > SIGNIFICANCE


@pytest.mark.parametrize("square", [1, 2, 10, 1360])
@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.3, 5])
def test_calibration_costs_what_was_charged_by_opendp_s_word(square: float, rho: float) -> None:
    units = RhoBudget.from_rho(rho, 1e-9).units
    for conversion, more in (("zcdp", 0.0), ("paper", 0.0), ("gdp", ROUNDING)):
        scale = gaussian_scale(square, units, conversion)  # type: ignore[arg-type]
        assert discrete_gaussian(scale).map(math.sqrt(square)) <= rho
        assert scale == pytest.approx(math.sqrt(square / (2 * rho) + more), rel=1e-9)
    for k in (1, 5):
        spread = selection_scale(units, k)
        assert noisy_top_k(k, spread).map(1) <= rho
        assert spread == pytest.approx(math.sqrt(k / (2 * rho)), rel=1e-9)


def test_the_exponential_mechanism_s_calibration_is_the_paper_s() -> None:
    """Gumbel noise of scale 2/ε is the ε exponential mechanism, which is ε²/8-zCDP."""
    epsilon = 0.8
    units = RhoBudget.from_rho(epsilon**2 / 8, 1e-9).units
    assert selection_scale(units) == pytest.approx(2 / epsilon, rel=1e-9)


@pytest.mark.parametrize("units", [0, -5, 1.5, True])
def test_noise_needs_a_budget(units: int) -> None:
    with pytest.raises(BudgetError, match="at least one unit"):
        gaussian_scale(2, units, "zcdp")
    with pytest.raises(BudgetError, match="at least one unit"):
        selection_scale(units)


def test_seeded_noise_says_what_it_is() -> None:
    one, same, other = (InsecureSeededNoise(seed) for seed in (1, 1, 2))
    zeros = np.zeros(1000, dtype=np.int64)
    draws = one.gaussian(zeros, 7.0)
    np.testing.assert_array_equal(draws, same.gaussian(zeros, 7.0))
    assert (draws != other.gaussian(zeros, 7.0)).any()
    assert draws.std() == pytest.approx(7, rel=0.2)
    assert one.top_k(np.array([0, 500, 100]), 2, 1.0) == [1, 2]
    assert not one.private
    assert NOISE.private


# The audit. An event is looked for that tells two neighbouring datasets apart as well as any can;
# how often it comes on each gives a lower bound on ε, which must stay below what is claimed.
RUNS = 20_000


def audit_gaussian(scale: float, delta: float) -> float:
    """One row moves ten from one sum to another: (10, 0) against (0, 10)."""
    ours = NOISE.gaussian(np.tile(np.array([10, 0], dtype=np.int64), RUNS), scale).reshape(-1, 2)
    other = NOISE.gaussian(np.tile(np.array([0, 10], dtype=np.int64), RUNS), scale).reshape(-1, 2)
    best = 0.0
    for threshold in range(0, 80, 10):
        hits = int((ours[:, 0] - ours[:, 1] >= threshold).sum())
        false = int((other[:, 0] - other[:, 1] >= threshold).sum())
        best = max(best, epsilon_lower_bound(hits, false, RUNS, delta))
    return best


@pytest.mark.slow
def test_the_audit_of_one_shot_measurement() -> None:
    rho, delta = 0.5, 0.01
    scale = gaussian_scale(200, RhoBudget.from_rho(rho, delta).units, "gdp")
    claim = epsilon_of(rho, delta, "gdp")
    bound = audit_gaussian(scale, delta)
    assert 0.4 * claim < bound < claim  # the audit sees something, and not more than is claimed
    assert audit_gaussian(scale / 2, delta) > claim  # and half the noise fails it


SELECTIONS = 6_000


def audit_selection(scale: float) -> float:
    """Ten scores, of which one record can raise one and lower the others by one."""
    ours, other = np.array([1] + [0] * 10), np.array([0] + [1] * 10)
    hits = sum(NOISE.top_k(ours, 1, scale) == [0] for _ in range(SELECTIONS))
    false = sum(NOISE.top_k(other, 1, scale) == [0] for _ in range(SELECTIONS))
    return epsilon_lower_bound(hits, false, SELECTIONS, 0.0)


@pytest.mark.slow
def test_the_audit_of_selection() -> None:
    """The exponential mechanism of ρ-zCDP claims √(8ρ) without any δ."""
    rho = 2.0
    scale = selection_scale(RhoBudget.from_rho(rho, 1e-9).units)
    claim = math.sqrt(8 * rho)
    bound = audit_selection(scale)
    assert 0.5 * claim < bound < claim
    assert audit_selection(scale / 2) > claim
