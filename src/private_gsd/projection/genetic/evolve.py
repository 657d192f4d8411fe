"""Evolving: a genetic search for a table whose answers match the measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.data.encoding import Encoder
from private_gsd.errors import ProjectionError
from private_gsd.kernels.binning import count_outside
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.constraints import broken_rules
from private_gsd.projection.denoising.denoise import Denoising
from private_gsd.projection.genetic.algorithm_1 import Algorithm1
from private_gsd.projection.genetic.config import GeneticSearch
from private_gsd.projection.genetic.coordinate_search import CoordinateSearch
from private_gsd.projection.genetic.function_search import FunctionSearch
from private_gsd.projection.objective import Objective
from private_gsd.projection.watch import Reason, SearchState, Stopped, Watch
from private_gsd.schema import Real
from private_gsd.system.operating_system import cores
from private_gsd.system.progress import Progress, ignore
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from private_gsd.projection.genetic.search import Search
    from private_gsd.schema import Schema


@dataclass(frozen=True, eq=False)
class Evolution:
    """The result of a genetic search.

    Attributes:
        schema: The public schema.
        matrix: The synthetic table, encoded.
        loss: The weighted sum of squared differences between noisy and synthetic answers, with
            noisy shares clipped at a million. A search that fits denoised answers minimises another
            loss.
        reason: The reason why the search stopped.
        generations: The number of generations.
        edits: The number of edits scored.
        seconds: The time that the search took, without compilation.
        compile_seconds: The time that it took to compile the kernels, or to load them.
        history: The state of the search after each generation.
    """

    schema: Schema
    matrix: NDArray[np.float64] = field(repr=False)
    loss: float
    reason: Reason
    generations: int
    edits: int
    seconds: float
    compile_seconds: float
    history: tuple[SearchState, ...] = field(repr=False)

    @property
    def table(self) -> pa.RecordBatch:
        """The synthetic table, in the schema's types."""
        return Encoder(self.schema).decode(self.matrix)


def evolve(
    measurements: Measurements,
    config: GeneticSearch | None = None,
    *,
    rows: int | None = None,
    seed: int = 0,
    start: NDArray[np.float64] | None = None,
    threads: int | None = None,
    progress: Progress = ignore,
) -> Evolution:
    """Search for a table whose answers match the measurements.

    The same measurements, settings and seed give the same table, for any number of threads.
    An interruption from the keyboard ends the search, and the best table so far is returned.

    Args:
        measurements: The noisy answers.
        config: The settings of the search; see ``GeneticSearch``.
        rows: The number of rows of the table, where ``config.rows`` is None; 2,000 by default.
        seed: The seed of the search; privacy does not depend on it.
        start: An encoded table of ``rows`` rows to start from. By default rows that denoising
            sampled, or independent columns, distributed as the marginals say. The loss of the
            result is never above the loss of this table.
        threads: The number of threads; all cores by default.
        progress: Called with the progress, about ten times a second and after every generation of
            the fast search; if it returns true, the search stops.
    """
    config = GeneticSearch() if config is None else config
    if not isinstance(measurements, Measurements):
        raise ProjectionError(f"a search needs Measurements, not {type(measurements).__name__}")
    if not isinstance(config, GeneticSearch):
        raise ProjectionError(f"config must be a GeneticSearch, not {type(config).__name__}")
    config.check(measurements.workload)
    rows = config.rows_of(rows)
    seed = whole("seed", seed, 0, 2**63 - 1, ProjectionError)
    threads = cores() if threads is None else whole("threads", threads, 1, 1024, ProjectionError)
    objective = Objective(measurements, config.weights)
    if start is not None:
        start = _checked(start, objective.schema, rows)
    watch = Watch(objective.share_loss(1.0, rows), config.seconds, progress)
    noisy, search = objective, _search(objective, config, rows, seed, watch, threads)
    fitted, denoising = measurements, None
    if config.denoise and config.algorithm == "fast":
        denoising = Denoising.of(measurements, config, rows, seed, threads, watch)
    reason: Reason
    with watch.listening(), watch.reporting():
        try:
            if denoising is not None:
                fitted = denoising.run()
                objective = Objective(fitted, config.weights)
                search = _search(objective, config, rows, seed, watch, threads)
            with watch.compiling():
                search.prepare(objective.state(objective.random_table(1, seed)))
            tables = search.first_tables(fitted, denoising) if start is None else [start]
            reason = search.run(tables)
        except Stopped as stopped:
            reason = stopped.reason
            if not len(search.values):  # stopped before the search began
                tables = search.first_tables(fitted, denoising) if start is None else [start]
                search.values = next(iter(tables))
        state = search.state
        if state is None or noisy is not objective:
            state = noisy.state(search.values)
    return Evolution(
        schema=objective.schema,
        matrix=np.asfortranarray(search.values),
        loss=noisy.share_loss(noisy.loss(state), rows),
        reason=watch.end_reason(reason),
        generations=search.generation,
        edits=watch.edits,
        seconds=watch.seconds,
        compile_seconds=watch.compile_seconds,
        history=tuple(watch.history),
    )


def prepare(
    measurements: Measurements,
    config: GeneticSearch,
    *,
    rows: int | None = None,
) -> None:
    """Compile the kernels of a search, or load them; refuse settings that the search refuses.

    Kernels are the same for all queries of a family: measurements of a few queries, with any
    answers, are enough.

    Args:
        measurements: Measurements of a query of each family.
        config: The settings of the search.
        rows: The number of rows of the table, as for ``evolve``.
    """
    rows = config.rows_of(rows)
    objective = Objective(measurements, config.weights, pool=1)
    if config.denoise and config.algorithm == "fast":
        Denoising.prepare(measurements)
    search = _search(objective, config, rows, 0, Watch(), 1)
    table = objective.random_table(1, 0)
    _checked(table, objective.schema, 1)
    search.prepare(objective.state(table))


def _search(
    objective: Objective,
    config: GeneticSearch,
    rows: int,
    seed: int,
    watch: Watch,
    threads: int,
) -> Search:
    if config.algorithm == "paper":
        if objective.functions:
            raise ProjectionError(
                "Algorithm 1 has no queries that are functions; use the fast search"
            )
        return Algorithm1(objective, config, rows, seed, watch)
    if objective.functions:
        return FunctionSearch(objective, config, rows, seed, watch)
    return CoordinateSearch(objective, config, rows, seed, watch, threads)


def _checked(start: Any, schema: Schema, rows: int) -> NDArray[np.float64]:
    """A copy of the table to start from, if it fits the schema."""
    try:
        given = np.asarray(start)
    except (TypeError, ValueError):
        given = np.array("nothing")
    if given.dtype.kind not in "iuf":
        raise ProjectionError("start must be a matrix of numbers, as an Encoder makes it")
    values = np.array(given, dtype=np.float64, order="C")
    if values.shape != (rows, len(schema)):
        raise ProjectionError(
            f"start must have {rows:,} rows and {len(schema)} columns, not shape {values.shape}"
        )
    for position, column in enumerate(schema):
        cells = values[:, position]
        whole_only = not isinstance(column, Real)
        if isinstance(column, Real) and column.decimals is not None:
            cells = values[:, position] = np.round(cells, column.decimals) + 0.0
        outside = count_outside(np.ascontiguousarray(cells), *column.bounds, column.nullable)
        if outside or (whole_only and (np.rint(cells) != cells)[~np.isnan(cells)].any()):
            raise ProjectionError(
                f"start: column {column.name!r} has values that the schema does not"
            )
    for rule, number in broken_rules(schema, values).items():
        raise ProjectionError(f"start: {number:,} rows break the rule {rule!r} of the schema")
    return values
