"""The bound on tests: never below the best test there is, and hardly above it."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.noise import gaussian_scale
from private_gsd.privacy.tradeoff import largest_powers
from tests.privacy.test_conversions import discrete_gaussian

ALARMS = [1e-6, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9]


def best_test(law: np.ndarray, loss: np.ndarray, alarms: list[float]) -> list[float]:
    """The power of the best test (Neyman and Pearson), by a sum over all outcomes.

    ``law`` is that of the first table, and ``loss`` log P/Q: the test says "the first" where the
    loss is largest, and tosses a coin at its edge.
    """
    order = np.argsort(-loss, kind="stable")
    right = np.concatenate([[0.0], np.cumsum(law[order])])
    wrong = np.concatenate([[0.0], np.cumsum((law * np.exp(-loss))[order])])
    return [float(np.interp(alarm, wrong, right)) for alarm in alarms]


def outcomes(answers: int, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """The law of the sum of so many noisy counts, to each of which one record adds one."""
    one = discrete_gaussian(variance)
    law = one
    for _ in range(answers - 1):
        law = np.convolve(law, one)
    reach = (len(law) - 1) // 2
    return law, (answers - 2 * np.arange(-reach, reach + 1)) / (2 * variance)


@pytest.mark.parametrize("conversion", ["zcdp", "paper", "gdp"])
@pytest.mark.parametrize("answers", [1, 3, 20])
@pytest.mark.parametrize("rho", [0.002, 0.05, 0.5, 3])
def test_no_test_does_better(rho: float, answers: int, conversion: str) -> None:
    """Discrete Gaussians as they are drawn, and the best test of all."""
    units = RhoBudget.from_rho(rho, 1e-9).units // answers
    variance = gaussian_scale(1.0, units, conversion) ** 2  # type: ignore[arg-type]
    found = best_test(*outcomes(answers, variance), ALARMS)
    bound = largest_powers(rho, ALARMS, conversion)  # type: ignore[arg-type]
    assert (np.array(found) <= bound).all()


@pytest.mark.parametrize("answers", [1, 3])
def test_half_the_noise_is_found(answers: int) -> None:
    """The comparison above can fail: with half the noise the best test exceeds the bound."""
    units = RhoBudget.from_rho(0.05, 1e-9).units // answers
    variance = gaussian_scale(1.0, units, "gdp") ** 2
    found = best_test(*outcomes(answers, variance / 4), ALARMS)
    assert (np.array(found) > largest_powers(0.05, ALARMS, "gdp")).sum() >= 6


@pytest.mark.parametrize("rho", [1e-6, 0.001, 0.0166, 0.2, 2, 10])
def test_of_gaussian_noise_the_bound_is_the_power(rho: float) -> None:
    """Φ(Φ⁻¹(a) + √2ρ), the trade-off of Gaussian differential privacy."""
    normal = NormalDist()
    exact = [normal.cdf(normal.inv_cdf(alarm) + math.sqrt(2 * rho)) for alarm in ALARMS]
    bound = np.array(largest_powers(rho, ALARMS, "gdp"))
    assert (bound >= exact).all()
    assert bound == pytest.approx(exact, rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("rho", [0.001, 0.05, 1])
def test_several_rows_of_one_person(rho: float) -> None:
    """k rows move a count by k: as if rho were k² as large, also where the noise is discrete."""
    variance = gaussian_scale(1.0, RhoBudget.from_rho(rho, 1e-9).units, "gdp") ** 2
    law = discrete_gaussian(variance)
    reach = (len(law) - 1) // 2
    for rows in (2, 5, 10):
        loss = (rows**2 - 2 * rows * np.arange(-reach, reach + 1)) / (2 * variance)
        bound = largest_powers(rows**2 * rho, ALARMS, "gdp")
        assert (np.array(best_test(law, loss, ALARMS)) <= bound).all()


@given(st.floats(1e-9, 2000), st.floats(0, 1), st.sampled_from(["zcdp", "gdp"]))
def test_a_bound_is_a_probability(rho: float, alarm: float, conversion: str) -> None:
    [bound] = largest_powers(rho, [alarm], conversion)  # type: ignore[arg-type]
    assert alarm <= bound <= 1
