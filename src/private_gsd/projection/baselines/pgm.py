"""PGM: a graphical model of the measured marginals, estimated and sampled by the package mbi.

The method is that of McKenna et al. (2019). With the adaptive mechanism, which selects by the
exponential mechanism, it is the paper's PGM+EM. PGM serves marginals of discrete columns, and of
numeric columns by ranges or trees, which it discretises at their cut points. It cannot serve
prefixes, halfspaces, conditions in SQL or Python functions. Measurements are weighted by their
noise.

The tables of the model are over the cliques of a junction tree, and grow exponentially where many
marginals overlap. A model of more than ``cells`` cells is refused before any budget is spent, and
the adaptive mechanism selects one group at a time among those that keep the model small enough.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import ProjectionError, WorkloadError
from private_gsd.projection.atoms import Atoms
from private_gsd.projection.baselines.optional import gradients, graphical_models
from private_gsd.projection.baselines.setting_checks import check_settings
from private_gsd.projection.protocol import Projection, Projector, checked, require_served
from private_gsd.projection.watch import Reason, Stopped, Watch
from private_gsd.system.progress import Progress, ignore
from private_gsd.workloads.layout import MarginalTable, marginal_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads import Workload

# Lock for NumPy's global random number generator.
_GLOBAL_GENERATOR = Lock()
# Number of iterations of mbi between two reports of progress.
REPORTED_STEPS = 50


class CellSums:
    """The query of a marginal's table for mbi: sums of a factor over the columns' atoms.

    Args:
        jnp: JAX's NumPy.
        cells: For each column, the cell of each of its atoms; -1 for none.
        sizes: For each column, the number of cells.
    """

    def __init__(self, jnp: Any, cells: list[NDArray[np.int64]], sizes: list[int]) -> None:
        self._jnp = jnp
        self._cells = cells
        self._sizes = sizes

    def __call__(self, factor: Any) -> Any:
        """The counts of the cells."""
        table = factor.datavector(flatten=False)
        for axis, (cells, size) in enumerate(zip(self._cells, self._sizes, strict=True)):
            first = self._jnp.moveaxis(table, axis, 0)
            begin = self._jnp.zeros((size, *first.shape[1:]), dtype=table.dtype)
            summed = begin.at[cells[cells >= 0]].add(first[cells >= 0])
            table = self._jnp.moveaxis(summed, 0, axis)
        return table.ravel()

    def op_norm_sq(self) -> float:
        """The square of the largest singular value: the largest number of atoms of a cell."""
        return float(np.prod([np.bincount(each[each >= 0]).max() for each in self._cells]))


@dataclass(frozen=True, kw_only=True)
class PGM(Projector):
    """PGM: a graphical model of the measured marginals (projector ``"pgm"``).

    It serves marginals, and needs the optional packages of ``private-gsd[baselines]``.

    Attributes:
        iterations: Number of iterations of mirror descent, rounded up to a multiple of 50.
        cells: Largest number of cells of the model; a larger model is refused.
    """

    iterations: int = 250
    cells: int = 10 * 2**20

    from_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def name(self) -> str:
        """The name in the registry."""
        return "pgm"

    @property
    def has_size_limit(self) -> bool:
        """True: the model must not grow too large."""
        return True

    def check(self, workload: Workload) -> None:
        """Refuse all queries except marginals."""
        graphical_models(self.name)
        require_served(self.name, workload, ("tables",))

    def why_infeasible(self, workload: Workload, share: float = 1.0) -> str | None:
        """Why the model would be too large; None if it would not."""
        mbi = graphical_models(self.name)
        tables = marginal_tables(workload)
        domain = _domain(mbi, Atoms.of(workload.schema, tables))
        tree, _ = mbi.junction_tree.make_junction_tree(domain, _cliques(tables))
        sizes = {clique: int(domain.size(clique)) for clique in tree.nodes}
        allowed = int(share * self.cells)
        if sum(sizes.values()) <= allowed:
            return None
        worst = max(sizes, key=lambda clique: sizes[clique])
        names = " x ".join(workload.schema.names[place] for place in worst)
        return (
            f"the graphical model of these {len({t.group for t in tables}):,} marginals would have "
            f"{sum(sizes.values()):,} cells, more than the {allowed:,} allowed: they "
            f"join {names}"
        )

    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: NDArray[np.float64] | None = None,  # noqa: ARG002
        threads: int | None = None,  # noqa: ARG002
        progress: Progress = ignore,
    ) -> Projection:
        """Estimate a new model and draw rows; ``start`` and ``threads`` are not used."""
        rows, seed = checked(measurements, rows, seed)
        self.check(measurements.workload)
        mbi = graphical_models(self.name)
        reason = self.why_infeasible(measurements.workload)
        if reason is not None:
            raise WorkloadError(
                f"{reason}. Measure fewer marginals, or adaptively, or use another projector"
            )
        watch = Watch(
            progress=progress,
            what="fitting",
            total=-(-self.iterations // REPORTED_STEPS) * REPORTED_STEPS,
        )
        tables = marginal_tables(measurements.workload)
        atoms = Atoms.of(measurements.workload.schema, tables)
        with gradients(self.name).jax.enable_x64(True):
            return self._estimate(mbi, measurements, tables, atoms, rows, seed, watch)

    def _estimate(
        self,
        mbi: Any,
        measurements: Measurements,
        tables: list[MarginalTable],
        atoms: Atoms,
        rows: int,
        seed: int,
        watch: Watch,
    ) -> Projection:
        domain = _domain(mbi, atoms)
        linear = [_measurement(mbi, atoms, measurements, table) for table in tables]
        loss_of = mbi.marginal_loss.from_linear_measurements(linear, domain)
        loss, steps_done = float("nan"), 0

        def report(marginals: Any) -> None:
            nonlocal loss, steps_done
            steps_done += REPORTED_STEPS
            loss = float(loss_of(marginals))
            if not math.isfinite(loss):
                raise ProjectionError(f"the loss of the projector {self.name!r} is {loss}")
            watch.record(steps_done, loss)

        def estimate(iterations: int, report: Any) -> Any:
            return mbi.estimation.MirrorDescent().estimate(
                domain, loss_of, measurements.n_records, iters=iterations, callback_fn=report
            )

        why: Reason = "generations"
        with watch.listening():
            try:
                model = estimate(self.iterations, report)
            except Stopped as stopped:
                why = stopped.reason
                model = estimate(steps_done, None)
        with _seeded(seed):
            drawn = model.synthetic_data(rows).to_dict()
        places = range(len(atoms.sizes))
        codes = np.column_stack([np.asarray(drawn[place], dtype=np.int64) for place in places])
        matrix = atoms.draw(codes, np.random.default_rng(seed))
        return Projection(matrix, loss, watch.end_reason(why), steps_done, watch.seconds)


def _domain(mbi: Any, atoms: Atoms) -> Any:
    """The domain, with the positions of columns as names: sets of strings have no fixed order."""
    return mbi.Domain(range(len(atoms.sizes)), atoms.sizes)


def _cliques(tables: list[MarginalTable]) -> list[tuple[int, ...]]:
    return [tuple(feature.position for feature in table.features) for table in tables]


def _measurement(mbi: Any, atoms: Atoms, measurements: Measurements, table: MarginalTable) -> Any:
    """The table of a marginal as a measurement of mbi."""
    counts = measurements.counts[table.query : table.query + table.size]
    scale = float(measurements.scales[table.group])
    clique = tuple(feature.position for feature in table.features)
    cells = [atoms.cells(feature) for feature in table.features]
    sizes = [feature.size for feature in table.features]
    if all(np.array_equal(each, np.arange(n)) for each, n in zip(cells, sizes, strict=True)):
        return mbi.LinearMeasurement(counts, clique, scale)
    jnp = gradients("pgm").jnp
    return mbi.LinearMeasurement(counts, clique, scale, CellSums(jnp, cells, sizes))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global random number generator, which mbi uses; restore it afterwards."""
    with _GLOBAL_GENERATOR:
        before = np.random.get_state()  # noqa: NPY002
        np.random.seed(np.random.SeedSequence(seed).generate_state(4))  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002
