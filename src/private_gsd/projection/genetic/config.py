"""What a search is told: how many rows, which algorithm, when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from private_gsd.errors import ProjectionError
from private_gsd.projection.objective import Weights
from private_gsd.projection.protocol import MOST_ROWS, Projection, Projector, whole_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.watch import Callback

Algorithm = Literal["fast", "paper"]
PAPER_ONLY = {
    *("mutations", "crossovers", "elites", "mutation_rate", "crossover_rate", "window"),
}


@dataclass(frozen=True, kw_only=True)
class GeneticSearch(Projector):
    """The genetic search. The default is fast; ``GeneticSearch.paper`` gives Algorithm 1.

    >>> GeneticSearch(rows=500).algorithm
    'fast'
    >>> GeneticSearch.paper(rows=500, mutations=100, crossovers=100).elites
    2

    Attributes:
        rows: How many rows the table has, N' in the paper.
        weights: How much each query counts: by the inverse of its noise's variance, or all alike.
        algorithm: "fast" or "paper".
        generations: No more than so many. A generation of the fast search is a visit to every
            value of the table.
        tolerance: Stop when the loss falls by less than so much of itself: from one generation to
            the next, or over ``window`` generations of Algorithm 1.
        seconds: No longer than so many.
        denoise: Whether the fast search is for denoised answers of marginals, not the noisy ones;
            see ``denoising``.
        islands: In how many parts the fast search first fits the rows, each on its own, unless
            it is given a table to begin with; by default, one for small tables, and a number that
            depends on ``rows`` for others.
        mutations: Of Algorithm 1, mutations a generation, P_mut.
        crossovers: Of Algorithm 1, crossovers a generation, P_cross.
        elites: Of Algorithm 1, how many tables survive a generation, E.
        mutation_rate: Of Algorithm 1, values changed by a mutation.
        crossover_rate: Of Algorithm 1, values changed by a crossover.
        window: Of Algorithm 1, over how many generations the loss must fall; ``rows`` by default.
    """

    rows: int = 2000
    weights: Weights = "inverse-variance"
    algorithm: Algorithm = "fast"
    generations: int = 1000
    tolerance: float = 1e-4
    seconds: float | None = None
    denoise: bool = True
    islands: int | None = None
    mutations: int = 50
    crossovers: int = 50
    elites: int = 2
    mutation_rate: int = 1
    crossover_rate: int = 1
    window: int | None = None

    keeps_rules: ClassVar[bool] = True
    takes_knowledge: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The name in the registry."""
        return "gsd"

    def prepare(self, measurements: Measurements, *, rows: int, started: bool = False) -> None:
        """Load the kernels."""
        from private_gsd.projection.genetic.evolve import prepare  # it imports this module

        prepare(measurements, replace(self, rows=rows), started=started)

    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: NDArray[np.float64] | None = None,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> Projection:
        """Search for a table."""
        from private_gsd.projection.genetic.evolve import evolve  # it imports this module

        found = evolve(
            measurements,
            replace(self, rows=rows),
            seed=seed,
            start=start,
            threads=threads,
            callback=callback,
        )
        seconds = found.seconds + found.compile_seconds
        return Projection(found.matrix, found.loss, found.reason, found.generations, seconds)

    def __post_init__(self) -> None:
        for name, known in (("weights", Weights), ("algorithm", Algorithm)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in get_args(known):
                words = " or ".join(repr(each) for each in get_args(known))
                raise ProjectionError(f"{name} must be {words}, not {value!r}")
        for name, low, high in (
            ("rows", 1, MOST_ROWS),
            ("generations", 0, 2**62),
            ("mutations", 0, 2**24),
            ("crossovers", 0, 2**24),
            ("elites", 1, 2**16),
            ("mutation_rate", 1, 2**24),
            ("crossover_rate", 1, 2**24),
        ):
            self._check_whole(name, low, high)
        if self.islands is not None:
            if self.algorithm == "paper":
                raise ProjectionError("Algorithm 1 has no islands")
            self._check_whole("islands", 1, self.rows)
        if self.window is not None:
            self._check_whole("window", 1, 2**31)
        given = {each.name for each in fields(self) if getattr(self, each.name) != each.default}
        if self.algorithm == "fast" and given & PAPER_ONLY:
            name = min(given & PAPER_ONLY)
            raise ProjectionError(f"{name} is of Algorithm 1; say GeneticSearch.paper({name}=…)")
        if not isinstance(self.denoise, bool):
            raise ProjectionError(f"denoise must be true or false, not {self.denoise!r}")
        if self.algorithm == "paper" and self.mutations + self.crossovers == 0:
            raise ProjectionError("mutations and crossovers cannot both be 0: nothing would change")
        self._check_number("tolerance", 1, "from 0 to 1")
        if self.seconds is not None:
            self._check_number("seconds", math.inf, "of at least 0")

    @classmethod
    def paper(
        cls,
        *,
        rows: int = 2000,
        mutations: int = 50,
        crossovers: int = 50,
        generations: int = 200_000,
        **others: Any,
    ) -> GeneticSearch:
        """Algorithm 1 of the paper, with its hyperparameters (its table of them) and its loss.

        Args:
            rows: N'.
            mutations: P_mut.
            crossovers: P_cross.
            generations: G.
            others: Any other attribute.
        """
        return cls(
            algorithm="paper",
            rows=rows,
            mutations=mutations,
            crossovers=crossovers,
            generations=generations,
            **{"weights": "equal", "denoise": False, **others},
        )

    def settled(self, before: float, after: float) -> bool:
        """Whether a loss has fallen by so little that the search may end."""
        return before - after <= self.tolerance * before

    def _check_whole(self, name: str, low: int, high: int) -> None:
        object.__setattr__(self, name, whole_number(name, getattr(self, name), low, high))

    def _check_number(self, name: str, high: float, words: str) -> None:
        value = getattr(self, name)
        try:
            number = math.nan if isinstance(value, bool | str | bytes) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not 0 <= number <= high:
            raise ProjectionError(f"{name} must be a number {words}, not {value!r}")
        object.__setattr__(self, name, number)
