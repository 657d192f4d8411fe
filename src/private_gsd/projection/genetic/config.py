"""Settings of the genetic search: the number of rows, the algorithm, when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from private_gsd.errors import ProjectionError, did_you_mean
from private_gsd.projection.objective import Weights
from private_gsd.projection.protocol import MOST_ROWS, Projection, Projector
from private_gsd.system.progress import Progress, ignore
from private_gsd.workloads.checks import any_number, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads import Workload

Algorithm = Literal["fast", "paper"]
# The number of rows where neither the settings nor the caller give one.
DEFAULT_ROWS = 2000
PAPER_ONLY = {
    *("mutations", "crossovers", "elites", "mutation_rate", "crossover_rate", "window"),
}


@dataclass(frozen=True, kw_only=True)
class GeneticSearch(Projector):
    """The genetic search: a projector that improves a table edit by edit.

    The default algorithm is fast. ``GeneticSearch.paper`` gives Algorithm 1 of the paper, which has
    settings of its own.

    >>> GeneticSearch(rows=500).algorithm
    'fast'
    >>> GeneticSearch.paper(rows=500, mutations=100, crossovers=100).elites
    2

    Attributes:
        rows: Number of rows of the table, N' in the paper. If None, the caller of the search gives
            the number.
        weights: Weight of each query: "inverse-variance" for the inverse of the variance of its
            noise, or "equal" for 1.
        algorithm: "fast" for the coordinate search, or "paper" for Algorithm 1.
        generations: Largest number of generations. A generation of the fast search is a sweep
            over all values of the table.
        tolerance: The search stops when the loss falls by at most this fraction: from one
            generation to the next, or over ``window`` generations of Algorithm 1.
        seconds: Time limit in seconds; None for no limit.
        denoise: Whether the fast search fits denoised answers to marginals instead of the noisy
            answers.
        for_models: The column that models will predict; None for none. Denoising shrinks its
            dependence on other columns less.
        mutations: Number of mutations in a generation of Algorithm 1, P_mut.
        crossovers: Number of crossovers in a generation of Algorithm 1, P_cross.
        elites: Number of tables that survive a generation of Algorithm 1, E.
        mutation_rate: Number of values that a mutation of Algorithm 1 changes.
        crossover_rate: Number of values that a crossover of Algorithm 1 changes.
        window: Number of generations of Algorithm 1 over which ``tolerance`` applies; the number of
            rows by default.
    """

    rows: int | None = None
    weights: Weights = "inverse-variance"
    algorithm: Algorithm = "fast"
    generations: int = 1000
    tolerance: float = 1e-4
    seconds: float | None = None
    denoise: bool = True
    for_models: str | None = None
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

    @property
    def finds_interactions(self) -> bool:
        """Whether answers are denoised."""
        return self.denoise and self.algorithm == "fast" and self.generations > 0

    def takes_new_rows(self, workload: Workload) -> bool:
        """Whether a large table is a smaller one with new rows; Algorithm 1 fits all rows."""
        return self.algorithm == "fast" and super().takes_new_rows(workload)

    def check(self, workload: Workload) -> None:
        """Refuse a column for models that the schema does not have."""
        names = workload.schema.names
        if self.for_models is not None and self.for_models not in names:
            raise ProjectionError(
                f"for_models: the schema has no column {self.for_models!r}"
                f"{did_you_mean(self.for_models, names)}; it has {', '.join(names[:10])}"
                f"{', …' if len(names) > 10 else ''}"
            )

    def prepare(self, measurements: Measurements, *, rows: int) -> None:
        """Compile the kernels, or load them from the cache."""
        from private_gsd.projection.genetic.evolve import prepare  # it imports this module

        prepare(measurements, self, rows=rows)

    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: NDArray[np.float64] | None = None,
        threads: int | None = None,
        progress: Progress = ignore,
    ) -> Projection:
        """Search for a table."""
        from private_gsd.projection.genetic.evolve import evolve  # it imports this module

        found = evolve(
            measurements,
            self,
            rows=rows,
            seed=seed,
            start=start,
            threads=threads,
            progress=progress,
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
            ("generations", 0, 2**62),
            ("mutations", 0, 2**24),
            ("crossovers", 0, 2**24),
            ("elites", 1, 2**16),
            ("mutation_rate", 1, 2**24),
            ("crossover_rate", 1, 2**24),
        ):
            self._check_whole(name, low, high)
        if self.rows is not None:
            self._check_whole("rows", 1, MOST_ROWS)
        if self.window is not None:
            self._check_whole("window", 1, 2**31)
        given = {each.name for each in fields(self) if getattr(self, each.name) != each.default}
        if self.algorithm == "fast" and given & PAPER_ONLY:
            name = min(given & PAPER_ONLY)
            raise ProjectionError(
                f"{name} is a setting of Algorithm 1; say GeneticSearch.paper({name}=…)"
            )
        if not isinstance(self.denoise, bool):
            raise ProjectionError(f"denoise must be true or false, not {self.denoise!r}")
        if not isinstance(self.for_models, str | None):
            raise ProjectionError(
                f"for_models is the name of a column, not {self.for_models!r:.80}"
            )
        if self.algorithm == "paper" and self.mutations + self.crossovers == 0:
            raise ProjectionError("mutations and crossovers cannot both be 0: nothing would change")
        self._check_number("tolerance", 1, "from 0 to 1")
        if self.seconds is not None:
            self._check_number("seconds", math.inf, "of at least 0")

    @classmethod
    def paper(
        cls,
        *,
        rows: int | None = None,
        mutations: int = 50,
        crossovers: int = 50,
        generations: int = 200_000,
        **others: Any,
    ) -> GeneticSearch:
        """Algorithm 1 of the paper, with the paper's hyperparameters and loss.

        Args:
            rows: Number of rows, N'.
            mutations: Number of mutations in a generation, P_mut.
            crossovers: Number of crossovers in a generation, P_cross.
            generations: Largest number of generations, G.
            others: Other settings of ``GeneticSearch``.
        """
        return cls(
            algorithm="paper",
            rows=rows,
            mutations=mutations,
            crossovers=crossovers,
            generations=generations,
            **{"weights": "equal", "denoise": False, **others},
        )

    def rows_of(self, wanted: int | None) -> int:
        """The number of rows of a table, from the settings or from the caller.

        Args:
            wanted: The number that the caller gives. The default is 2,000 rows if neither the
                settings nor the caller give a number.
        """
        if wanted is not None:
            wanted = whole("rows", wanted, 1, MOST_ROWS, ProjectionError)
            if self.rows is not None and self.rows != wanted:
                raise ProjectionError(
                    f"the genetic search is set to {self.rows:,} rows, and {wanted:,} rows are "
                    "wanted; give one of the two numbers"
                )
        return self.rows or wanted or DEFAULT_ROWS

    def to_dict(self) -> dict[str, Any]:
        """The name and the settings, for JSON; a column for models only where there is one."""
        found = super().to_dict()
        return {k: v for k, v in found.items() if k != "for_models" or v is not None}

    def settled(self, before: float, after: float) -> bool:
        """Whether the loss fell by at most the tolerance, so that the search may end."""
        return before - after <= self.tolerance * before

    def _check_whole(self, name: str, low: int, high: int) -> None:
        number = whole(name, getattr(self, name), low, high, ProjectionError)
        object.__setattr__(self, name, number)

    def _check_number(self, name: str, high: float, words: str) -> None:
        value = getattr(self, name)
        found = any_number(value)
        if not 0 <= found <= high:
            raise ProjectionError(f"{name} must be a number {words}, not {value!r}")
        object.__setattr__(self, name, found)
