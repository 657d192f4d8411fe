"""Kinds: pairs of columns as those of rows of a few kinds.

Within a kind, columns do not hang together (latent classes). The table of two columns is then

    Σ_k p_k θ_k[a] θ_k[b]

with the shares p of the kinds and the chances θ of the columns' atoms. What many pairs show at
once, as that several columns are empty for the same people, is one more kind, and is seen where no
pair could tell it by itself. p and θ minimise

    Σ (answer - noisy answer)² / 2σ²  +  DOUBT · Σ_k p_k Σ_c KL(θ_kc ‖ the column's own chances)

by Adam (Kingma and Ba), from a few random beginnings; the answers are their means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from private_gsd.projection.atoms import Atoms
from private_gsd.workloads.starts import starts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.watch import Watch
    from private_gsd.schema import Schema
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import Asked

    Array = NDArray[np.float64]

KINDS = 12
# How many rows' worth of doubt there is that a kind differs from all rows. With 60, what ACS pairs
# at ε = 0.23 have in common was no longer seen.
DOUBT = 40.0
# Twice as many fits changed mean errors of real pairs by less than 0.5 %, twice as many steps by up
# to 1.3 %, either way.
FITS = 4
STEPS = 200
RATE = 0.05  # no logarithm moves by more in a step, or by much more
SPREAD = 0.3  # of the first logarithms
MOMENTS = 0.9, 0.999
# Features with more cells than this together are left alone: a step is of the order of its square.
MOST_CELLS = 1024
LEAST = 1e-6


class Kinds:
    """The kinds of rows that pairs of columns show.

    Args:
        measured: The noisy answers.
        tables: The pairs among them.
        ones: What is known of each feature by itself.
    """

    def __init__(
        self, measured: Measurements, tables: Sequence[Asked], ones: Mapping[Feature, Array]
    ) -> None:
        self._tables = tables
        self._places = _Places(measured.workload.schema, tables)
        cells = self._places.cells
        # Each pair has its table in both orders, and half of its weight there.
        self._weights = np.zeros((cells, cells))
        self._noisy = np.zeros((cells, cells))
        for table in tables:
            place = self._place(table)
            weight = (measured.n_records / measured.scales[table.group]) ** 2 / 4
            self._weights[place] += weight
            self._noisy[place] += weight * table.of(measured.shares)
        self._weights += self._weights.T
        self._noisy += self._noisy.T
        np.divide(self._noisy, self._weights, out=self._noisy, where=self._weights > 0)
        self._usual = self._places.usual(ones)

    @staticmethod
    def few_enough(tables: Sequence[Asked]) -> bool:
        """Whether there are few enough cells."""
        return sum(f.size for f in {f for t in tables for f in t.features}) <= MOST_CELLS

    def answers(self, seed: int, watch: Watch) -> list[Array]:
        """For each table, the mean of what the fits say.

        Args:
            seed: Of the search.
            watch: Told of progress.
        """
        total = np.zeros_like(self._noisy)
        # More threads than there are free cores take ten times as long for such small products.
        with threadpool_limits(1, "blas"):
            for fit in range(FITS):
                rng = np.random.default_rng([seed, fit])
                lifts = SPREAD * rng.standard_normal((KINDS, self._places.atoms))
                total += self._fitted(lifts, watch)
        return [total[self._place(table)] / FITS for table in self._tables]

    def _place(self, table: Asked) -> tuple[slice, slice]:
        first, second = table.features
        return self._places.of[first], self._places.of[second]

    def _fitted(self, lifts: Array, watch: Watch) -> Array:
        """The answers of kinds that begin with some lifts, the logarithms beside usual chances."""
        # The last column is the logarithm of the kind's share.
        point = np.append(lifts, np.zeros((len(lifts), 1)), axis=1)
        mean, square = np.zeros_like(point), np.zeros_like(point)
        for step in range(1, STEPS + 1):
            loss, slope = self.loss_and_slope(point)
            mean += (1 - MOMENTS[0]) * (slope - mean)
            square += (1 - MOMENTS[1]) * (slope**2 - square)
            size = np.sqrt(square / (1 - MOMENTS[1] ** step)) + 1e-8
            point -= RATE * mean / (1 - MOMENTS[0] ** step) / size
            watch.report(0, loss / watch.unit, whole=False)
        shares, chances = self._kinds(point)
        seen = self._places.summed(chances)
        return (seen * shares[:, None]).T @ seen

    def _kinds(self, point: Array) -> tuple[Array, Array]:
        """The shares of kinds, and each kind's chances of all atoms."""
        shares = np.exp(point[:, -1] - point[:, -1].max())
        chances = np.exp(point[:, :-1]) * self._usual
        return shares / shares.sum(), chances / self._places.each(self._places.totals(chances))

    def loss_and_slope(self, point: Array) -> tuple[float, Array]:
        """What is minimised, and its derivatives."""
        places = self._places
        shares, chances = self._kinds(point)
        seen = places.summed(chances)
        excess = (seen * shares[:, None]).T @ seen - self._noisy
        logs = np.log(chances / self._usual)
        apart = (chances * logs).sum(axis=1)
        loss = float((self._weights * excess**2).sum() + DOUBT * shares @ apart)
        pull = 2 * seen @ (self._weights * excess)
        by_chance = shares[:, None] * (2 * places.spread(pull) + DOUBT * (logs + 1))
        by_share = (pull * seen).sum(axis=1) + DOUBT * apart
        slope = np.empty_like(point)
        slope[:, :-1] = chances * (by_chance - places.each(places.totals(chances * by_chance)))
        slope[:, -1] = shares * (by_share - shares @ by_share)
        return loss, slope


class _Places:
    """Where features have their cells, and columns their atoms.

    Args:
        schema: The schema.
        tables: Of the features.
    """

    def __init__(self, schema: Schema, tables: Sequence[Asked]) -> None:
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
        ends = np.cumsum([feature.size for feature in features]).tolist()
        self.of = {f: slice(end - f.size, end) for f, end in zip(features, ends, strict=True)}
        self._finest: list[tuple[Feature, slice]] = []
        self._sums = np.zeros((self.atoms, self.cells))
        for column, start, size in zip(columns, self._starts, self._sizes, strict=True):
            mine = [feature for feature in features if feature.position == column]
            for feature in mine:
                cells = self.of[feature].start + pieces.cells(feature)
                self._sums[start + np.arange(size), cells] = 1
            finest = max(mine, key=lambda feature: feature.size)
            self._finest.append((finest, slice(start, start + size)))
        self._alike = self.atoms == self.cells and (self._sums == np.eye(self.atoms)).all()

    def usual(self, ones: Mapping[Feature, Array]) -> Array:
        """The atoms' chances by what is known of the finest feature of each column."""
        found = np.empty(self.atoms)
        for feature, atoms in self._finest:
            sums = self._sums[atoms, self.of[feature]]
            found[atoms] = sums @ (ones[feature] / np.maximum(sums.sum(axis=0), 1))
        found = np.maximum(found, LEAST)
        return np.asarray(found / self.each(self.totals(found)))

    def summed(self, atoms: Array) -> Array:
        """Atoms summed to cells."""
        return atoms if self._alike else atoms @ self._sums

    def spread(self, cells: Array) -> Array:
        """For each atom, the sum over the cells that it is in."""
        return cells if self._alike else cells @ self._sums.T

    def totals(self, atoms: Array) -> Array:
        """The sums over each column's atoms."""
        return np.asarray(np.add.reduceat(atoms, self._starts, axis=-1))

    def each(self, columns: Array) -> Array:
        """For each atom, what its column has."""
        return np.repeat(columns, self._sizes, axis=-1)
