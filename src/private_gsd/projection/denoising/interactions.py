"""Interactions: what a table of many columns holds beyond its pairs, component by component.

The excess of a table over what lower orders say is split into the interactions of every set of its
columns, by an orthonormal basis of each axis: a constant and contrasts. The cells of a number are
contrasted half by half, quarter by quarter, so that coarse and fine contrasts are different
components. The noise is the same in all of them. Each component has a variance component (see
``variance_components``), whose distribution is learned from all of them, and is shrunk by it: of
hundreds of sets of columns, the few that interact are kept, and the noise of the others is left
out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from private_gsd.projection.denoising.lower_orders import cell_variance
from private_gsd.projection.denoising.variance_components import COMPONENTS, posteriors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import MarginalTable

    Shares = NDArray[np.float64]
    Levels = NDArray[np.int64]

# Least number of columns of an interaction; lower orders have been denoised before.
LEAST_ORDER = 3


def with_interactions(
    measured: Measurements, tables: Sequence[MarginalTable], prior_means: Sequence[Shares]
) -> list[Shares]:
    """The prior mean of each table, and its excess as far as it is not noise.

    Args:
        measured: The noisy answers.
        tables: The tables, of three columns or more.
        prior_means: The prior mean of each table, from lower orders.
    """
    shares = measured.shares
    excesses, components, energies, sizes, noises, means = [], [], [], [], [], []
    for table, mean in zip(tables, prior_means, strict=True):
        axes = [contrasts(feature) for feature in table.features]
        found = transformed(table.of(shares) - mean, [basis for basis, _ in axes])
        component, orders = numbered([levels for _, levels in axes])
        excesses.append(found)
        components.append(component)
        number = len(orders)
        upper = orders >= LEAST_ORDER
        energies.append(np.bincount(component, found.ravel() ** 2, minlength=number))
        size = np.bincount(component, minlength=number)
        sizes.append(np.where(upper, size, 0))
        noises.append(np.full(number, cell_variance(measured, table)))
        means.append(np.full(number, 1 / table.size))
    factors = shrinkage(*map(np.concatenate, (energies, sizes, noises, means)))
    estimates, start = [], 0
    for table, mean, found, component, size in zip(
        tables, prior_means, excesses, components, sizes, strict=True
    ):
        mine = factors[start : start + len(size)]
        start += len(size)
        bases = [contrasts(feature)[0].T for feature in table.features]
        shrunk = transformed(found * mine[component].reshape(found.shape), bases)
        estimates.append(np.maximum(mean + shrunk, 0.0))
    return estimates


def shrinkage(energies: Shares, sizes: Levels, noises: Shares, means: Shares) -> Shares:
    """What is left of each component: the posterior mean of signal / (signal + noise).

    Args:
        energies: The sum of squares of each component.
        sizes: The number of its coefficients; 0 for components that are left out.
        noises: The variance of the noise on a coefficient.
        means: The variance of the signal where the variance component is 1.
    """
    factors = np.zeros(len(sizes))
    some = sizes > 0
    if not some.any():
        return factors
    signals = COMPONENTS * means[some, None]
    variances = signals + noises[some, None]
    likelihoods = -(sizes[some, None] * np.log(variances) + energies[some, None] / variances) / 2
    factors[some] = (posteriors(likelihoods) * (signals / variances)).sum(axis=1)
    return factors


def contrasts(feature: Feature) -> tuple[Shares, Levels]:
    """An orthonormal basis of an axis, whose first row is constant, and the level of each row.

    Args:
        feature: The feature of the axis.
    """
    ordered = feature.size - feature.nullable if feature.breaks else 0
    rows: list[Shares] = [np.full(feature.size, feature.size**-0.5)]
    levels = [0]
    # Stretches of cells that are split in two, and the level of the contrast of the halves.
    waiting = [(0, feature.size, 1)]
    while waiting:
        start, end, level = waiting.pop(0)
        if end - start < 2:
            continue
        null = ordered and end > ordered  # null is apart from all numbers
        middle = ordered if null and start < ordered else (start + end + 1) // 2
        left, right = middle - start, end - middle
        row = np.zeros(feature.size)
        row[start:middle] = math.sqrt(right / (left * (left + right)))
        row[middle:end] = -math.sqrt(left / (right * (left + right)))
        rows.append(row)
        levels.append(level)
        deeper = level + 1 if ordered else level
        waiting += [(start, middle, deeper), (middle, end, deeper)]
    return np.array(rows), np.array(levels)


def transformed(cells: Shares, bases: Sequence[Shares]) -> Shares:
    """The coefficients of a table in a basis of each axis."""
    # The last digits of a product depend on the number of threads, and so would the table.
    with threadpool_limits(1, "blas"):
        for axis, basis in enumerate(bases):
            cells = np.moveaxis(np.tensordot(basis, cells, axes=(1, axis)), 0, axis)
    return cells


def numbered(levels: Sequence[Levels]) -> tuple[Levels, Levels]:
    """The component of each coefficient, and for each component the number of its columns.

    Args:
        levels: For each axis, the level of each row of its basis.
    """
    sizes = [int(each.max()) + 1 for each in levels]
    grids = np.meshgrid(*levels, indexing="ij")
    component = np.ravel_multi_index([grid.ravel() for grid in grids], sizes)
    orders = sum((np.indices(sizes)[axis] > 0).astype(np.int64) for axis in range(len(sizes)))
    return component, np.asarray(orders).ravel()
