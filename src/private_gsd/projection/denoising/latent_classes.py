"""Latent classes: pairs of columns, explained by a few classes of rows.

Within a class the columns are independent. The table of two columns is then

    Σ_k p_k θ_k[a] θ_k[b]

with the probabilities p of the classes and the probabilities θ of the columns' atoms. A pattern
that many pairs share (such as columns that are null in the same rows) becomes a class, even if it
is below the noise in each single pair. p and θ minimise

    Σ (answer - noisy answer)² / 2σ²  +  PRIOR_STRENGTH · Σ_k p_k Σ_c KL(θ_kc ‖ prior mean of c)

by Adam (Kingma and Ba, 2015), from a few random starts; the answers are the means over the starts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from private_gsd.projection.atoms import Atoms
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.watch import Watch
    from private_gsd.schema import Schema
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import MarginalTable

    Array = NDArray[np.float64]

# Number of latent classes of each fit; each fit has a random start of its own.
CLASSES = 16, 12, 8, 6
# Prior strength, in rows, with which the distributions in a class are drawn to the prior means.
PRIOR_STRENGTH = 28.0
# Number of steps from each start.
STEPS = 200
# Settings of Adam: learning rate, and decay of the moments.
LEARNING_RATE = 0.05
MOMENTS = 0.9, 0.999
# Standard deviation of the first log-lifts.
SPREAD = 0.3
# Largest number of cells of all features; the time of a step grows with its square.
MOST_CELLS = 1024
# Least prior mean of an atom.
LEAST_MEAN = 1e-6


class LatentClasses:
    """The latent classes of pairs of columns.

    Parameters of a fit are a matrix with a row for each class: the log-lifts of all atoms over
    their prior means, and the logarithm of the probability of the class.

    Args:
        measured: The noisy answers.
        tables: The tables of pairs of columns among the answers.
        columns: The estimated distribution of each feature.
        precision: The type in which tables are compared: with 64 bits it takes twice the time.
    """

    def __init__(
        self,
        measured: Measurements,
        tables: Sequence[MarginalTable],
        columns: Mapping[Feature, Array],
        precision: type[np.floating[Any]] = np.float32,
    ) -> None:
        self._tables = tables
        self.cells = FeatureCells(measured.workload.schema, tables)
        shape = self.cells.cells, self.cells.cells
        # Each pair has its table in both orders, with half of its weight in each.
        self.weights, self.noisy = np.zeros(shape), np.zeros(shape)
        for table in tables:
            place = self.place(table)
            weight = (measured.n_records / measured.scales[table.group]) ** 2 / 4
            self.weights[place] += weight
            self.noisy[place] += weight * table.of(measured.shares)
        self.weights += self.weights.T
        self.noisy += self.noisy.T
        np.divide(self.noisy, self.weights, out=self.noisy, where=self.weights > 0)
        self._near = self.weights.astype(precision), self.noisy.astype(precision)
        self.prior_means = self.cells.prior_means(columns)

    @staticmethod
    def few_enough(tables: Sequence[MarginalTable]) -> bool:
        """Whether the features of some tables have few enough cells."""
        return sum(f.size for f in {f for t in tables for f in t.features}) <= MOST_CELLS

    def answers(self, seed: int, watch: Watch) -> list[Array]:
        """For each table, the mean of the fits.

        Args:
            seed: The seed of the search.
            watch: The watch that reports progress.
        """
        total = np.zeros_like(self.noisy)
        # On a busy machine, several threads take ten times as long for such small products.
        with threadpool_limits(1, "blas"):
            for fit, classes in enumerate(CLASSES):
                rng = np.random.default_rng([seed, fit])
                log_lifts = SPREAD * rng.standard_normal((classes, self.cells.atoms))
                total += self._fit(log_lifts, watch)
        return [total[self.place(table)] / len(CLASSES) for table in self._tables]

    def place(self, table: MarginalTable) -> tuple[slice, slice]:
        """The place of a table in the matrix of all pairs of cells."""
        first, second = table.features
        return self.cells.of[first], self.cells.of[second]

    def _fit(self, log_lifts: Array, watch: Watch) -> Array:
        """The answers of a fit that starts from the given log-lifts."""
        point = np.append(log_lifts, np.zeros((len(log_lifts), 1)), axis=1)
        mean, square = np.zeros_like(point), np.zeros_like(point)
        for step in range(1, STEPS + 1):
            gradient = self.gradient(point)
            mean += (1 - MOMENTS[0]) * (gradient - mean)
            square += (1 - MOMENTS[1]) * (gradient**2 - square)
            size = np.sqrt(square / (1 - MOMENTS[1] ** step)) + 1e-8
            point -= LEARNING_RATE * mean / (1 - MOMENTS[0] ** step) / size
            watch.report(0, "denoising")
        shares, probabilities = self.classes(point)
        seen = self.cells.summed(probabilities)
        return (seen * shares[:, None]).T @ seen

    def classes(self, point: Array) -> tuple[Array, Array]:
        """The probability of each class, and the probabilities of all atoms in each class."""
        shares = np.exp(point[:, -1] - point[:, -1].max())
        weights = np.exp(point[:, :-1]) * self.prior_means
        cells = self.cells
        return shares / shares.sum(), weights / cells.repeated(cells.column_sums(weights))

    def loss(self, point: Array) -> float:
        """The loss of parameters."""
        shares, probabilities = self.classes(point)
        seen = self.cells.summed(probabilities)
        excess = (seen * shares[:, None]).T @ seen - self.noisy
        divergence = (probabilities * np.log(probabilities / self.prior_means)).sum(axis=1)
        return float((self.weights * excess**2).sum() + PRIOR_STRENGTH * shares @ divergence)

    def gradient(self, point: Array) -> Array:
        """The derivatives of the loss by all parameters."""
        cells = self.cells
        shares, probabilities = self.classes(point)
        seen = cells.summed(probabilities)
        weights, noisy = self._near
        near = seen.astype(weights.dtype)
        excess = (near * shares[:, None].astype(weights.dtype)).T @ near
        excess -= noisy
        excess *= weights
        by_cell = (2 * near @ excess).astype(np.float64)
        logs = np.log(probabilities / self.prior_means)
        by_atom = shares[:, None] * (2 * cells.spread(by_cell) + PRIOR_STRENGTH * (logs + 1))
        divergence = (probabilities * logs).sum(axis=1)
        by_share = (by_cell * seen).sum(axis=1) + PRIOR_STRENGTH * divergence
        gradient = np.empty_like(point)
        gradient[:, :-1] = probabilities * (
            by_atom - cells.repeated(cells.column_sums(probabilities * by_atom))
        )
        gradient[:, -1] = shares * (by_share - shares @ by_share)
        return gradient


class FeatureCells:
    """The cells of all features and the atoms of all columns, numbered consecutively.

    Args:
        schema: The schema.
        tables: The tables of the features.

    Attributes:
        atoms: The number of atoms of all columns.
        cells: The number of cells of all features.
        of: For each feature, the slice of its cells.
        sums: For each atom and cell, 1 if the atom is in the cell, else 0.
    """

    def __init__(self, schema: Schema, tables: Sequence[MarginalTable]) -> None:
        pieces = Atoms.of(schema, tables)
        features = sorted(
            dict.fromkeys(feature for table in tables for feature in table.features),
            key=lambda feature: feature.position,
        )
        columns = list(dict.fromkeys(feature.position for feature in features))
        self._sizes = [pieces.sizes[column] for column in columns]
        self._starts = starts_of(self._sizes)[:-1]
        self.atoms = sum(self._sizes)
        self.cells = sum(feature.size for feature in features)
        starts = pairwise(starts_of([feature.size for feature in features]).tolist())
        self.of = {feature: slice(*ends) for feature, ends in zip(features, starts, strict=True)}
        self._finest: list[tuple[Feature, slice]] = []
        self.sums = np.zeros((self.atoms, self.cells))
        for column, start, size in zip(columns, self._starts, self._sizes, strict=True):
            mine = [feature for feature in features if feature.position == column]
            for feature in mine:
                cells = self.of[feature].start + pieces.cells(feature)
                self.sums[start + np.arange(size), cells] = 1
            finest = max(mine, key=lambda feature: feature.size)
            self._finest.append((finest, slice(start, start + size)))
        self._identical = self.atoms == self.cells and (self.sums == np.eye(self.atoms)).all()

    def prior_means(self, columns: Mapping[Feature, Array]) -> Array:
        """The prior means of the atoms, from the distribution of each column's finest feature."""
        found = np.empty(self.atoms)
        for feature, atoms in self._finest:
            sums = self.sums[atoms, self.of[feature]]
            found[atoms] = sums @ (columns[feature] / np.maximum(sums.sum(axis=0), 1))
        found = np.maximum(found, LEAST_MEAN)
        return np.asarray(found / self.repeated(self.column_sums(found)))

    def summed(self, atoms: Array) -> Array:
        """For each cell, the sum over its atoms."""
        return atoms if self._identical else atoms @ self.sums

    def spread(self, cells: Array) -> Array:
        """For each atom, the sum over the cells that it is in."""
        return cells if self._identical else cells @ self.sums.T

    def column_sums(self, atoms: Array) -> Array:
        """For each column, the sum over its atoms."""
        return np.asarray(np.add.reduceat(atoms, self._starts, axis=-1))

    def repeated(self, columns: Array) -> Array:
        """For each atom, the entry of its column."""
        return np.repeat(columns, self._sizes, axis=-1)
