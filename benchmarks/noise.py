"""Noise: discrete Gaussian values a second, drawn by OpenDP, on one thread and on two.

    python -m benchmarks.noise

Beside it stands NumPy's floating-point noise, which is fast, and which must not be used: its bits
give away the value under it.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import measure, report
from private_gsd.privacy.noise import SecureNoise

DRAWS = 200_000


def one_thread(counts: np.ndarray) -> int:
    """Ours, on one thread."""
    return len(SecureNoise(threads=1).gaussian(counts, 100.0))


def two_threads(counts: np.ndarray) -> int:
    """Ours, on two threads."""
    return len(SecureNoise(threads=2).gaussian(counts, 100.0))


def floating_point(counts: np.ndarray) -> int:
    """Not private."""
    return len(counts + 100.0 * np.random.default_rng(0).standard_normal(len(counts)))


def zeros() -> np.ndarray:
    """Counts to add noise to."""
    return np.zeros(DRAWS, dtype=np.int64)


def main() -> None:
    """Measure and report."""
    results = [
        measure("OpenDP, one thread", one_thread, zeros),
        measure("OpenDP, two threads", two_threads, zeros, cores=2),
        measure("NumPy floats (not private)", floating_point, zeros),
    ]
    report(f"{DRAWS:,} draws of Gaussian noise", results)
    for result in results[:2]:
        print(f"{result.name}: {result.rows / result.seconds:,.0f} values a second")


if __name__ == "__main__":
    main()
