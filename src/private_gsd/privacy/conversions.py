"""Conversions: the least δ for which a total of ρ is known to be (ε, δ)-differentially private.

The conversion "zcdp" holds for all noise that is together ρ-zCDP. The conversion "gdp" holds for
discrete Gaussian noise alone, about which more is known. For the same (ε, δ) it allows 8 to 18 %
more ρ, that is 4 to 8 % less noise (ε from 0.1 to 2, δ = 1/N², from a million to a thousand
records).

**Gaussian noise.** One record moves the answers by a vector v. If each answer i has Gaussian
noise of variance σᵢ², the privacy loss is Gaussian too, and δ is that of μ-Gaussian
differential privacy, μ² = Σ vᵢ²/σᵢ²: δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) (Balle and Wang 2018;
Dong, Roth and Su 2022). A charge of ρ has v²/σ² <= 2ρ, so that charges of ρ in total have
μ² <= 2ρ. This holds also where the next query and its budget are chosen after seeing the
earlier answers (Smith and Thakurta, "Fully Adaptive Composition for Gaussian Differential Privacy",
2022), which is how a ledger is used.

**Noise on whole numbers.** The noise is drawn from the discrete Gaussian, whose pmf at y is φ_σ(y)
/ Σ_k φ_σ(k), φ_σ the density of N(0, σ²). It is, to a very small error, a Gaussian that was rounded
at random: let s² = σ² - r², X ~ N(0, s²) and, given X = x, let Y be k with probability φ_r(k - x) /
Z(x), Z(x) = Σ_k φ_r(k - x). Then

    P[Y = y] = ∫ φ_s(x) φ_r(y - x) / Z(x) dx.

By Poisson's summation Z(x) = 1 + 2 Σ_{j>0} exp(-2π²r²j²) cos(2πjx), which is within 1 ± η with
η = 2.1 exp(-2π²r²), and so is Σ_k φ_σ(k), since σ > r. As ∫ φ_s(x) φ_r(y - x) dx = φ_σ(y), the law
of Y and the discrete Gaussian differ at every y by a factor of at most (1 + η)/(1 - η). Counts are
whole numbers, and adding one shifts both laws alike. So d answers with discrete Gaussian noise are,
up to a factor c = ((1 + η)/(1 - η))^d at every point, made from answers with Gaussian noise of
variances σᵢ² - r² without another look at the data; and where P <= c·P' and Q >= Q'/c everywhere,

    P(S) - e^ε Q(S) <= c (P'(S) - e^(ε - 2 ln c) Q'(S)) <= c δ(ε - 2 ln c).

Answers that the two datasets have in common have the same law on both sides, and do not count in d.
``ROUNDING`` is r²; noise for the conversion "gdp" has this much more variance than Δ²/2ρ (see
``noise.gaussian_scale``). With 3, η < 5e-26, and ``SLACK`` covers d of 10^12 answers. Where the
noise has a standard deviation below about 5 (4.4 to 6.8, depending on ε and δ), the added variance
costs more than the conversion saves. Where queries depend on earlier answers, the factors multiply
in the same way, answer by answer.
"""

from __future__ import annotations

import math

ROUNDING = 3.0
SLACK = 1e-12
# A bound on the rounding error of the difference of two tails, relative to the larger tail. Where δ
# is at least 1e-300, the arguments are below 40, and so no larger than 80 before they are
# subtracted; a relative error of 2^-52 becomes a few 1e-13.
ROUNDED = 1e-11


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least δ for which ρ-zCDP is known to imply (ε, δ)-DP.

    Proposition 12 of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy":
    for every α > 1, δ = exp((α - 1)(αρ - ε)) / (α - 1) · (1 - 1/α)^α. Any α gives a valid δ: an
    α that bisection has not found exactly makes δ larger, never wrong.
    """
    if rho == 0:
        return 0.0
    # The logarithm's derivative, (2α - 1)ρ - ε + log(1 - 1/α), grows with α.
    low, high = 1.0, (epsilon + 1) / (2 * rho) + 2
    for _ in range(100):
        alpha = (low + high) / 2
        if alpha <= 1.0 or (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha) < 0:
            low = alpha
        else:
            high = alpha
    alpha = high
    logarithm = (
        (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
    )
    return min(math.exp(min(logarithm, 0.0)), 1.0)


def gdp_delta(rho: float, epsilon: float) -> float:
    """The least δ for which discrete Gaussian noise of ρ in total is known to be (ε, δ)-DP.

    The result is never larger than ``zcdp_delta``, since such noise is also ρ-zCDP.
    """
    if rho == 0:
        return 0.0
    mu = math.sqrt(2 * rho)
    less = max(epsilon - SLACK, 0.0)
    nearer, farther = less / mu - mu / 2, less / mu + mu / 2
    above = math.erfc(nearer / math.sqrt(2)) / 2
    # The squares of the two differ by 2ε, so that e^ε φ(farther) equals φ(nearer). In this form
    # nothing overflows, and no value that has underflowed to 0 is multiplied.
    below = math.exp(-(nearer**2) / 2) / math.sqrt(2 * math.pi) * _mills(farther)
    delta = (1 + SLACK) * (above - below + ROUNDED * above)
    return min(max(delta, 0.0), zcdp_delta(rho, epsilon))


def _mills(x: float) -> float:
    """The Mills ratio: P[X > x] of a standard Gaussian, divided by its density at x, for x >= 0."""
    if x < 5:
        return math.erfc(x / math.sqrt(2)) * math.exp(x * x / 2) * math.sqrt(math.pi / 2)
    found = x
    for term in range(60, 0, -1):  # Laplace's continued fraction; 60 terms give all digits
        found = x + term / found
    return 1 / found
