"""Single columns: their distributions by the measured marginals, and tables of such columns.

A search changes a table until the measured answers fit. What was not measured stays as it was in
the first table, and so the columns of a first table must be independent of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.measurements.level_estimates import on_simplex
from private_gsd.projection.atoms import Atoms
from private_gsd.workloads.layout import marginal_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads.features import Feature

    Shares = NDArray[np.float64]

# Weight of the uniform distribution in a column's least squares; the least precise feature has 1.
UNIFORM_WEIGHT = 1e-3
# Largest weight of a feature; public counts have hardly any variance.
LARGEST_WEIGHT = 1e4
# Least and largest noise scale, and largest answer, as fractions of the records.
SCALES = 1e-6, 1e6
# Most steps of the conjugate gradients, and the fraction of the residual at which they end.
STEPS = 200
RESIDUAL = 1e-9


def independent_table(
    measured: Measurements, uniform: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """A table of independent columns, each distributed as the measured marginals say.

    Every atom of a column has its share of the rows, up to one row; values are uniform within an
    atom. The schema's rules are not kept.

    Args:
        measured: The noisy answers.
        uniform: A table of uniform random values. Its columns that are in no marginal stay.
        rng: The random number generator.
    """
    atoms = Atoms.of(measured.workload.schema, marginal_tables(measured.workload))
    shares = column_shares(measured, atoms)
    drawn = np.zeros(uniform.shape, dtype=np.int64)
    for place, mine in shares.items():
        numbers = quotas(mine, len(uniform))
        drawn[:, place] = rng.permutation(np.repeat(np.arange(len(mine)), numbers))
    values, places = uniform.copy(), list(shares)
    values[:, places] = atoms.draw(drawn, rng)[:, places]
    return values


def column_shares(measured: Measurements, atoms: Atoms) -> dict[int, Shares]:
    """The estimated shares of the atoms of every column that is in a marginal, by its position.

    Args:
        measured: The noisy answers.
        atoms: The atoms of the columns.
    """
    found: dict[int, Shares] = {}
    features: dict[int, list[tuple[NDArray[np.int64], Shares, float]]] = {}
    for feature, (answers, precision) in _feature_answers(measured).items():
        entry = atoms.cells(feature), answers, precision
        features.setdefault(feature.position, []).append(entry)
    for place, entries in features.items():
        found[place] = on_simplex(_least_squares(_widths(atoms, place), entries))
    return found


def quotas(shares: Shares, rows: int) -> NDArray[np.int64]:
    """Whole numbers of rows in proportion to shares, by the largest remainders.

    >>> quotas(np.array([0.5, 0.26, 0.24]), 10).tolist()
    [5, 3, 2]
    """
    exact = shares * rows
    numbers = np.floor(exact).astype(np.int64)
    left = rows - int(numbers.sum())
    numbers[np.argsort(numbers - exact, kind="stable")[:left]] += 1
    return numbers


def _feature_answers(measured: Measurements) -> dict[Feature, tuple[Shares, float]]:
    """For each feature: the mean of the sums of all tables with it, and its precision.

    A table with another feature that some rows have no cell of has no such sums.
    """
    shares = np.clip(measured.shares, -SCALES[1], SCALES[1])
    scales = np.clip(measured.scales / measured.n_records, *SCALES)
    sums: dict[Feature, Shares] = {}
    precisions: dict[Feature, float] = {}
    for table in marginal_tables(measured.workload):
        gaps = {place for place, feature in enumerate(table.features) if feature.has_gap}
        for place, feature in enumerate(table.features):
            if gaps - {place}:
                continue
            rest = tuple(other for other in range(len(table.features)) if other != place)
            summands = table.size // feature.size
            precision = 1 / (float(scales[table.group]) ** 2 * summands)
            sums[feature] = sums.get(feature, 0.0) + precision * table.of(shares).sum(axis=rest)
            precisions[feature] = precisions.get(feature, 0.0) + precision
    return {each: (sums[each] / precisions[each], precisions[each]) for each in sums}


def _widths(atoms: Atoms, place: int) -> Shares:
    """The shares of a column's atoms if it were uniform; a null is like a mean atom."""
    columns = atoms.columns
    entries = columns.starts[place] + atoms.segments[place]
    grid = columns.denominators[place] > 0
    widths: Shares = columns.lasts[entries] - columns.firsts[entries] + grid
    null = atoms.segments[place] == columns.nulls[place]
    widths[null] = widths[~null].mean()
    if not widths.sum() > 0:  # a real column of a single number
        widths[:] = 1
    return np.asarray(widths / widths.sum())


def _least_squares(
    uniform: Shares, entries: list[tuple[NDArray[np.int64], Shares, float]]
) -> Shares:
    """The shares of atoms that fit all features of a column best, by conjugate gradients.

    Args:
        uniform: The shares of a uniform column, to which what no feature says is near.
        entries: For each feature the cell of each atom, the answers, and their precision.
    """
    least = min(precision for _, _, precision in entries)
    # The sum of all atoms is a feature of one cell, without any noise.
    everything = np.zeros(len(uniform), dtype=np.int64), np.ones(1), LARGEST_WEIGHT * least
    features = [
        (cells, answers, min(precision / least, LARGEST_WEIGHT))
        for cells, answers, precision in [*entries, everything]
    ]

    def gradient(shares: Shares, sign: float) -> Shares:
        """The matrix of the least squares times shares, less the answers if ``sign`` is 1."""
        total = UNIFORM_WEIGHT * (shares - sign * uniform)
        for cells, answers, weight in features:
            inside = cells >= 0
            sums = np.bincount(cells[inside], shares[inside], minlength=len(answers))
            total[inside] += weight * (sums - sign * answers)[cells[inside]]
        return total

    shares = uniform.copy()
    residual = -gradient(shares, 1.0)
    direction, square = residual, float((residual**2).sum())
    enough = RESIDUAL**2 * square
    for _ in range(STEPS):
        if square <= enough:
            break
        image = gradient(direction, 0.0)
        step = square / float((direction * image).sum())
        shares = shares + step * direction
        residual = residual - step * image
        before, square = square, float((residual**2).sum())
        direction = residual + square / before * direction
    return shares
