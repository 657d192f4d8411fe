"""The audit: its statistics, what it finds, and that it lets a right mechanism pass."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import audit

from private_gsd.mechanisms import MECHANISMS
from private_gsd.mechanisms.registry import conversion_of
from private_gsd.privacy.budget import RhoBudget, epsilon_of
from private_gsd.privacy.noise import SecureNoise
from private_gsd.runs.checkpoint import MemoryCheckpoint

DELTA = 0.1


def gaussian_ratios(mu: float, number: int, seed: int) -> np.ndarray:
    """Log-likelihood ratios of a Gaussian mechanism, from both tables."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.normal(sign * mu**2 / 2, mu, number) for sign in (-1, 1)])


@pytest.mark.slow
def test_the_bound_is_below_epsilon_and_near_it() -> None:
    """Of the Gaussian mechanism the epsilon at a delta is known."""
    mu = 1.0
    true = epsilon_of(mu**2 / 2, DELTA, "gdp")
    found = [
        audit.lower_bound(gaussian_ratios(mu, 100_000, seed), DELTA, 0.999, seed)[0]
        for seed in range(10)
    ]
    # Ten bounds, each wrong once in a thousand times.
    assert max(found) < true
    assert min(found) > 0.85 * true


def test_the_bound_by_hand() -> None:
    # None of 1,000 and all of 1,000: by Clopper and Pearson 1 - 0.025^(1/1000) and the like.
    high = 1 - 0.025 ** (1 / 1000)
    low = 0.025 ** (1 / 1000)
    expected = math.log((low - DELTA) / high)
    assert audit.epsilon_bound(0, 1000, 1000, DELTA, 0.95) == pytest.approx(expected)
    assert audit.epsilon_bound(500, 0, 1000, DELTA, 0.95) == 0
    assert audit.epsilon_bound(1000, 1000, 1000, DELTA, 0.95) == 0


def test_what_shows_without_noise_is_found() -> None:
    """Infinite ratios on one side, in a quarter of the releases: more than delta allows."""
    ratios = gaussian_ratios(0.01, 2000, 1)
    assert audit.lower_bound(ratios, DELTA, 0.999, 0)[0] == 0
    ratios[1, ::4] = np.inf
    bound, event = audit.lower_bound(ratios, DELTA, 0.999, 0)
    assert bound > 2
    assert event.startswith("ratio > ")


def test_likelihoods_are_those_of_the_noise() -> None:
    """The law of a selection among three, by 4,000 draws: each share within five deviations."""
    scores = np.array([3, 0, 1])
    draws = [SecureNoise(1).top_k(scores, 2, 2.0) for _ in range(4000)]
    seen = {(a, b): 0 for a in range(3) for b in range(3) if a != b}
    for a, b in draws:
        seen[a, b] += 1
    expected = {pair: math.exp(audit.log_selection(scores, pair, 2.0)) for pair in seen}
    assert sum(expected.values()) == pytest.approx(1)
    for pair, probability in expected.items():
        deviation = math.sqrt(probability * (1 - probability) / 4000)
        assert abs(seen[pair] / 4000 - probability) < 5 * deviation
    one, other = (audit.log_gaussian(np.array([x]), 3.0) for x in (1, 4))
    assert one - other == pytest.approx((16 - 1) / (2 * 9))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", audit.RELATIONS)
@pytest.mark.parametrize("mechanism", audit.MECHANISMS)
def test_the_pair_is_nearly_the_worst(mechanism: str, neighbours: str) -> None:
    """Ratios of a few releases vary as much as the budget allows, or the audit has no power.

    The variance of the ratios is 2 rho where a pair attains all of rho; of 60 ratios it is off by
    half once in some thousand times.
    """
    case = audit.Case(mechanism, neighbours, 2.0, DELTA)
    ratios = case.draw(30)
    assert np.isfinite(ratios).all()
    budget = RhoBudget.from_epsilon(2.0, DELTA, conversion_of(MECHANISMS[mechanism]()))
    attained = float((ratios - ratios.mean(axis=1, keepdims=True)).var()) / (2 * budget.rho)
    assert 0.3 < attained < 1.8


@pytest.mark.parametrize("neighbours", audit.RELATIONS)
@pytest.mark.parametrize("weighting", audit.WEIGHTINGS)
def test_a_unit_of_several_rows_is_as_bad_as_a_row(weighting: str, neighbours: str) -> None:
    """It attains all of the budget but for what measures a private number of records."""
    case = audit.Case("one-shot", neighbours, 2.0, DELTA, weighting=weighting)
    ratios = case.draw(60)
    assert np.isfinite(ratios).all()
    budget = RhoBudget.from_epsilon(2.0, DELTA, conversion_of(MECHANISMS["one-shot"]()))
    attained = float((ratios - ratios.mean(axis=1, keepdims=True)).var()) / (2 * budget.rho)
    assert 0.5 < attained < 1.7


def test_a_leak_beside_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is published and depends on the table is found by replay."""
    case = audit.Case("one-shot", "add-remove", 2.0, DELTA)
    published = audit.published
    runs = []

    def leaking(checkpoint: MemoryCheckpoint) -> tuple[object, ...]:
        runs.append(1)
        return (*published(checkpoint), len(runs) % 2)  # a run, and its replay

    monkeypatch.setattr(audit, "published", leaking)
    assert np.isinf(case.draw(3)).all()


@pytest.mark.slow
def test_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Half the noise of one-shot exceeds the claim in all but one of some thousand runs.

    With 600 releases its bound is 1.85 in the mean where the claim is 1, and 0.22 its deviation.
    """
    words = ["--mechanism", "one-shot", "--neighbours", "replace-one", "--jobs", "1"]
    code = audit.main([*words, "--draws", "600", "--epsilon", "1", "--confidence", "0.95"])
    out = capsys.readouterr().out
    assert "within the claim" in out
    assert "exceeds the claim" in out
    assert code == 0
