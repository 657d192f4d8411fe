"""Evaluate: compare a synthetic table with the real table. It reads the sensitive data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.counting.of_units import read_ids
from private_gsd.data.sources import open_source
from private_gsd.errors import SchemaError, WorkloadError, did_you_mean, require
from private_gsd.evaluation.metrics.associations import compare_associations
from private_gsd.evaluation.metrics.attacks import attack
from private_gsd.evaluation.metrics.distributions import compare_columns
from private_gsd.evaluation.metrics.k_marginals import kmarginal
from private_gsd.evaluation.metrics.machine_learning import default_targets, learn
from private_gsd.evaluation.metrics.propensity import propensity
from private_gsd.evaluation.metrics.summary_statistics import compare_statistics
from private_gsd.evaluation.metrics.workload_errors import workload_errors
from private_gsd.evaluation.result import Evaluation, RowCounts
from private_gsd.evaluation.table_sample import TableSample, sample_table
from private_gsd.runs.release import Release
from private_gsd.schema import Schema
from private_gsd.system.progress import shown
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.counting.of_units import UnitNumbers
    from private_gsd.data.encoding import OnInvalid
    from private_gsd.evaluation.metrics.machine_learning import PredictionTask
    from private_gsd.evaluation.table_sample import Matrix
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.system.progress import Progress

SAMPLE = 50_000
TEST_SHARE = 0.2
# Most queries of pairs that are compared where no workload is given.
QUERIES = 2_000_000


def evaluate(
    synthetic: Release | Any,
    data: Any,
    *,
    schema: Schema | None = None,
    workload: Workload | Sequence[str] | str | None = None,
    holdout: Any = None,
    targets: Sequence[str] | None = None,
    on_invalid: OnInvalid | None = None,
    sample: int = SAMPLE,
    random_state: int = 0,
    progress: bool | Progress | None = None,
) -> Evaluation:
    """Compare a synthetic table with the real table. The result is confidential.

    Args:
        synthetic: A release, or any synthetic table that ``open_source`` takes.
        data: The real table that the synthetic table was made from.
        schema: The public schema, for a table without a release.
        workload: The queries whose answers are compared: a workload, or names such as
            "categorical:2". By default those of the release, or all pairs of columns.
        holdout: Real rows that the synthetic table was not made from: models are tested on them,
            and attacks need them for comparison.
        targets: The columns that models predict and attacks guess. By default a few columns with
            few classes.
        on_invalid: What to do with values outside the schema, "error" or "coerce". By default as
            in the release.
        sample: The largest number of rows of each table that are compared. Larger tables are
            sampled. Counts, nulls and broken rules are always exact, over all rows.
        random_state: The seed of sampling and training.
        progress: True for a bar in terminals and notebooks, or a function of (what, done, total).
            By default a bar says when kernels are compiled.
    """
    require("sklearn", what="Evaluation", extra="evaluation")
    release = synthetic if isinstance(synthetic, Release) else None
    known = _schema(schema, release)
    sample = whole("sample", sample, 100, 10_000_000)
    seed = whole("random_state", random_state, 0, 2**31 - 2)
    for target in targets or ():
        if target not in known:
            hint = did_you_mean(target, known.names)
            raise SchemaError(f"no column {target!r} to predict{hint}")
    if on_invalid is None:
        on_invalid = "error" if release is None else release.settings.on_invalid
    # A damaged release is found before the real table is read.
    table = synthetic if release is None else release.synthetic
    queries = _queries(known, workload, release)
    measurements = None if release is None or workload is not None else release.measurements()
    with shown(progress) as report:

        def read(name: str, table: Any, workload: Workload | None) -> TableSample:
            return sample_table(
                table,
                known if table is data else known.with_unit(None),  # others have no ids
                workload,
                limit=sample,
                seed=seed,
                on_invalid=on_invalid,
                what=f"reading the {name}",
                progress=report,
            )

        units = _units(data, known)
        return _compare(
            known,
            read("real table", data, queries),
            None if holdout is None else read("held-out rows", holdout, None),
            read("synthetic table", table, queries),
            units=units,
            queries=queries,
            measurements=measurements,
            targets=targets,
            privacy=None if release is None else release.privacy,
            name="synthetic table" if release is None else release.name,
            seed=seed,
            report=report,
        )


def _compare(
    schema: Schema,
    real: TableSample,
    holdout: TableSample | None,
    synthetic: TableSample,
    *,
    units: UnitNumbers | None,
    queries: Workload,
    measurements: Measurements | None,
    targets: Sequence[str] | None,
    privacy: dict[str, Any] | None,
    name: str,
    seed: int,
    report: Progress,
) -> Evaluation:
    """Compare tables that have been read."""
    report("comparing columns", 0, None)
    columns = compare_columns(schema, real, synthetic)
    report("comparing statistics", 0, None)
    statistics = compare_statistics(schema, real, synthetic)
    report("comparing pairs of columns", 0, None)
    associations = compare_associations(schema, real, synthetic, seed=seed)
    report("comparing answers", 0, None)
    errors = workload_errors(queries, real, synthetic, measurements)
    report("comparing k-marginals", 0, None)
    marginals = [
        kmarginal(schema, real, synthetic, k=k, seed=seed)
        for k in (2, 3)
        if k == 2 or k <= len(schema)
    ]
    report("telling the tables apart", 0, None)
    apart = propensity(schema, real, synthetic, seed=seed)
    rows = None if holdout is None else holdout.sample
    chosen = (
        default_targets(schema, real.sample) if targets is None else list(dict.fromkeys(targets))
    )
    tasks = _learn(schema, synthetic.sample, real.sample, rows, chosen, seed, report)
    report("attacking", 0, None)
    attacks = attack(schema, synthetic.sample, real.sample, rows, secrets=chosen, seed=seed)
    return Evaluation(
        schema=schema,
        tables=RowCounts(
            real.total,
            synthetic.total,
            None if holdout is None else holdout.total,
            len(real.sample),
            len(synthetic.sample),
            None if units is None else units.units,
            None if units is None else units.rows,
        ),
        columns=tuple(columns),
        statistics=statistics,
        associations=associations,
        errors=errors,
        kmarginals=tuple(marginals),
        propensity=apart,
        tasks=tuple(tasks),
        attacks=attacks,
        rules=tuple(
            (
                rule,
                int(real.broken[place]) / real.total,
                int(synthetic.broken[place]) / synthetic.total,
            )
            for place, rule in enumerate(schema.constraints)
        ),
        privacy=privacy,
        name=name,
        random_state=seed,
    )


def _units(data: Any, schema: Schema) -> UnitNumbers | None:
    """The units of protection of the real table, and the rows that are taken; its ids are read."""
    if schema.unit is None:
        return None
    source = open_source(data, schema)
    if source.once:
        return None
    return read_ids(source)


def _schema(given: Schema | None, release: Release | None) -> Schema:
    """The schema of the release; without a release, the given schema."""
    if release is not None:
        schema = release.schema
        if given is not None and given != schema:
            raise SchemaError(f"{release.folder}: has another schema than the one given")
        return schema
    if not isinstance(given, Schema):
        raise SchemaError("to evaluate a table that is not a release, give its schema")
    return given


def _queries(
    schema: Schema, given: Workload | Sequence[str] | str | None, release: Release | None
) -> Workload:
    """The queries whose answers are compared."""
    if isinstance(given, Workload):
        if given.schema != schema:
            raise WorkloadError("the workload is of another schema than the synthetic table")
        return given
    if given is not None:
        return workload_of(schema, [given] if isinstance(given, str) else given)
    if release is not None:
        return release.workload
    try:
        pairs = workload_of(schema, default_specs(schema, 2))
        if pairs.size <= QUERIES:
            return pairs
    except WorkloadError:  # too many
        pass
    return workload_of(schema, default_specs(schema, 1))


def _learn(
    schema: Schema,
    synthetic: Matrix,
    real: Matrix,
    holdout: Matrix | None,
    targets: Sequence[str],
    seed: int,
    report: Progress,
) -> list[PredictionTask]:
    """Train models, and test them on the held-out rows, or on a fifth of the real rows."""
    if holdout is None:
        order = np.random.default_rng(seed).permutation(len(real))
        cut = round(TEST_SHARE * len(real))
        holdout, real = real[np.sort(order[:cut])], real[np.sort(order[cut:])]
    return learn(schema, synthetic, real, holdout, targets, seed=seed, progress=report)
