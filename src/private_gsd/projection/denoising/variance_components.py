"""Variance components: the strength of each group's dependence, by empirical Bayes.

The excess of a table over its prior mean has two sources: noise, whose variance is known, and the
dependence of its columns. The dependence of a cell has the variance τ times the cell's prior mean,
where τ is the variance component of the group. The prior distribution of τ is the same for all
groups, and is estimated from all of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.projection.denoising.lower_orders import cell_variance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads.layout import MarginalTable

    Shares = NDArray[np.float64]

# The grid of variance components.
COMPONENTS = np.geomspace(1e-6, 3, 40)
# Prior strength, in rows, of the independence of columns, where no component is estimated.
PRIOR_STRENGTH = 200.0
# Least component of a group: this factor times the noise scale as a fraction of the records, and at
# most a bound.
LEAST_PER_NOISE = 0.25
LEAST_BOUND = 1 / 60
# Iterations of the estimate of the components' prior distribution, and the kernel that blurs it.
ITERATIONS = 30
KERNEL = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
# Least prior mean of a cell.
LEAST_MEAN = 1e-9


def with_component_scales(
    measured: Measurements,
    tables: Sequence[MarginalTable],
    prior_means: Sequence[Shares],
    order: int,
    column: int | None = None,
) -> Measurements:
    """Prior means plus excess as answers, with scales from the variance components of the groups.

    Args:
        measured: The noisy answers.
        tables: The complete tables of these measurements.
        prior_means: The prior mean of each table, from lower orders.
        order: The order of the tables with an excess; tables of lower order get their prior means.
        column: The position of a column whose tables keep the energy of their excess.
    """
    counts = measured.counts.copy()
    groups = measured.workload.num_groups
    likelihoods = np.zeros((groups, len(COMPONENTS)))
    estimated = np.zeros(groups, dtype=np.bool_)
    for table, mean in zip(tables, prior_means, strict=True):
        excess = centered(table.of(measured.shares) - mean)
        if len(table.features) < order or 1 in table.shape:
            table.of(counts)[...] = mean * measured.n_records
            continue
        table.of(counts)[...] = (mean + excess) * measured.n_records
        estimated[table.group] = True
        likelihoods[table.group] += log_likelihoods(excess, mean, cell_variance(measured, table))
    components = np.full(groups, 1 / PRIOR_STRENGTH)
    if estimated.any():
        noise = measured.scales[estimated] / measured.n_records
        least = np.minimum(LEAST_PER_NOISE * noise, LEAST_BOUND)
        components[estimated] = np.maximum(
            variance_components(likelihoods[estimated], order), least
        )
    kept = {table.group: table for table in tables if estimated[table.group]}
    for group, table in kept.items():
        if _has(table, column):
            variance = cell_variance(measured, table)
            components[group] = keeping_energy(float(components[group]), table.size, variance)
    return replace(measured, counts=counts, scales=measured.scales / np.sqrt(components))


def posterior_means(
    measured: Measurements,
    tables: Sequence[MarginalTable],
    prior_means: Sequence[Shares],
    column: int | None = None,
) -> list[Shares]:
    """The prior mean of each table plus its excess, shrunk by the group's variance component.

    Args:
        measured: The noisy answers.
        tables: The tables of pairs of columns among the answers.
        prior_means: The prior mean of each table.
        column: The position of a column whose tables keep the energy of their excess.
    """
    prior_means = [np.maximum(each, LEAST_MEAN) for each in prior_means]
    excesses = [
        centered(table.of(measured.shares) - mean)
        for table, mean in zip(tables, prior_means, strict=True)
    ]
    groups = np.unique([table.group for table in tables])
    likelihoods = np.zeros((len(groups), len(COMPONENTS)))
    places = [int(np.searchsorted(groups, table.group)) for table in tables]
    for table, mean, excess, place in zip(tables, prior_means, excesses, places, strict=True):
        if 1 not in table.shape:
            likelihoods[place] += log_likelihoods(excess, mean, cell_variance(measured, table))
    found = []
    components = variance_components(likelihoods, 2)
    for table, mean, excess, place in zip(tables, prior_means, excesses, places, strict=True):
        component, variance = float(components[place]), cell_variance(measured, table)
        if _has(table, column):
            component = keeping_energy(component, table.size, variance)
        signal = component * mean
        shrunk = centered(excess * signal / (signal + variance))
        found.append(np.maximum(mean + shrunk, 0))
    return found


def keeping_energy(component: float, cells: int, noise_variance: float) -> float:
    """The component that shrinks by the root of the factor by which the given one would.

    A posterior mean has less energy (sum of squares) than what it estimates, by the factor that
    shrinks it. Models add up many weak dependences, and miss what they have lost.

    Args:
        component: The variance component of a table.
        cells: The number of its cells.
        noise_variance: The variance of the noise on a cell.
    """
    return component * (1 + math.sqrt(1 + noise_variance * cells / component))


def _has(table: MarginalTable, column: int | None) -> bool:
    """Whether a table has a column, by its position."""
    return column is not None and column in {feature.position for feature in table.features}


def log_likelihoods(
    excess: Shares, prior_mean: Shares, noise_variance: float
) -> NDArray[np.float64]:
    """The log-likelihood of a table's excess at each variance component."""
    share = math.prod(1 - 1 / size for size in excess.shape)
    variances = COMPONENTS[:, None] * np.maximum(prior_mean.ravel(), LEAST_MEAN) + noise_variance
    fits = np.log(variances) + excess.ravel() ** 2 / share / variances
    return np.asarray(-share / 2 * fits.sum(axis=1))


def variance_components(likelihoods: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """The variance component of each group, from its log-likelihoods.

    The prior distribution of the components is estimated from all groups, without a parametric
    form. The component of a group is its posterior mean, and for orders above 2 its posterior
    geometric mean: noise can hide all dependence of triples, and the arithmetic mean of a flat
    posterior is determined by the largest components.
    """
    posterior = posteriors(likelihoods)
    if order > 2:
        return np.asarray(np.exp(posterior @ np.log(COMPONENTS)))
    return np.asarray(posterior @ COMPONENTS)


def posteriors(likelihoods: NDArray[np.float64]) -> NDArray[np.float64]:
    """The posterior distribution of each component; the prior is learned from all of them.

    Args:
        likelihoods: For each component, its log-likelihood at each value of ``COMPONENTS``.
    """
    prior = np.full(len(COMPONENTS), 1 / len(COMPONENTS))
    posterior = likelihoods
    for _ in range(ITERATIONS):
        posterior = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True)) * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = np.convolve(np.pad(posterior.mean(axis=0), 2, mode="edge"), KERNEL, "valid")
        prior /= prior.sum()
    return posterior


def centered(cells: Shares) -> Shares:
    """A table minus all of its lower orders: every sum over a column is 0."""
    for axis in range(cells.ndim):
        cells = cells - cells.mean(axis=axis, keepdims=True)
    return cells
