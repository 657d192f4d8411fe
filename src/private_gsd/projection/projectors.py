"""The registry: projectors by the names that a user writes, as "rap" or "rap:batch=500"."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from private_gsd.errors import SearchError, did_you_mean
from private_gsd.projection.baselines.gem import GEM
from private_gsd.projection.baselines.pgm import PGM
from private_gsd.projection.baselines.rap import RAP
from private_gsd.projection.baselines.rap_plus_plus import RAPPlusPlus
from private_gsd.projection.genetic import GeneticSearch, evolve, prepare
from private_gsd.projection.protocol import Projection, Projector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.watch import Callback
    from private_gsd.workloads import Workload


@dataclass(frozen=True, kw_only=True)
class GSD:
    """The genetic search, which serves every query; see ``evolve``.

    Attributes:
        denoise: Whether the answers of marginals are denoised first.
    """

    denoise: bool = True

    @property
    def name(self) -> str:
        """As it is registered."""
        return "gsd"

    @property
    def limited(self) -> bool:
        """Any groups will do together."""
        return False

    def check(self, workload: Workload) -> None:
        """Every workload is served."""

    def why_infeasible(self, workload: Workload, share: float = 1.0) -> str | None:  # noqa: ARG002
        """Any groups will do together."""
        return None

    def prepare(self, measurements: Measurements, *, rows: int) -> None:
        """Load the kernels."""
        prepare(measurements, GeneticSearch(rows=rows, denoise=self.denoise))

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
        found = evolve(
            measurements,
            GeneticSearch(rows=rows, denoise=self.denoise),
            seed=seed,
            start=start,
            threads=threads,
            callback=callback,
        )
        seconds = found.seconds + found.compile_seconds
        return Projection(found.matrix, found.loss, found.reason, found.generations, seconds)


REGISTRY: dict[str, type[Any]] = {
    "gsd": GSD,
    "rap": RAP,
    "rap++": RAPPlusPlus,
    "gem": GEM,
    "pgm": PGM,
}
NAMES = tuple(REGISTRY)
TRUTHS = {"true": True, "false": False}


def projector_of(spec: str) -> Projector:
    """The projector that a name stands for, with settings after a colon.

    >>> projector_of("rap:iterations=200,learning_rate=0.1")
    RAP(mixtures=1000, batch=5000, iterations=200, learning_rate=0.1)
    """
    if not isinstance(spec, str):
        raise SearchError(f"projector must be a name, not {spec!r}; there are {', '.join(NAMES)}")
    name, _, rest = (each.strip() for each in spec.partition(":"))
    if name not in REGISTRY:
        raise SearchError(
            f"no projector is called {name!r}{did_you_mean(name, NAMES)}; there are "
            f"{', '.join(NAMES)}"
        )
    kind = REGISTRY[name]
    settings: dict[str, Any] = {}
    known: dict[str, Any] = {each.name: type(each.default) for each in fields(kind)}
    for part in rest.split(",") if rest else []:
        key, _, value = (each.strip() for each in part.partition("="))
        if key not in known:
            words = f"its settings are {', '.join(known)}" if known else "it has no settings"
            raise SearchError(
                f"projector {spec!r}: {name} has no {key!r}{did_you_mean(key, known)}; {words}"
            )
        if key in settings:
            raise SearchError(f"projector {spec!r}: {key} is given twice")
        try:
            settings[key] = TRUTHS[value] if known[key] is bool else known[key](value)
        except (ValueError, KeyError):
            kinds = {int: "a whole number", float: "a number", bool: "true or false"}
            raise SearchError(
                f"projector {spec!r}: {key} must be {kinds[known[key]]}, not {value!r}"
            ) from None
    projector: Projector = kind(**settings)
    return projector
