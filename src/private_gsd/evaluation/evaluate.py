"""Evaluate: a synthetic table against the real one. It reads the sensitive data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import SchemaError, WorkloadError, did_you_mean, require
from private_gsd.evaluation.metrics.associations import compare_associations
from private_gsd.evaluation.metrics.attacks import attack
from private_gsd.evaluation.metrics.distributions import compare_columns
from private_gsd.evaluation.metrics.k_marginals import kmarginal
from private_gsd.evaluation.metrics.machine_learning import default_targets, learn
from private_gsd.evaluation.metrics.propensity import propensity
from private_gsd.evaluation.metrics.query_errors import workload_errors
from private_gsd.evaluation.result import Evaluation, Tables
from private_gsd.evaluation.rows import read_rows
from private_gsd.runs.release import Release
from private_gsd.schema import Schema
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from private_gsd.evaluation.metrics.machine_learning import Task
    from private_gsd.evaluation.rows import Matrix

    Tell = Callable[[str, int], object]

SAMPLE = 50_000
TEST_SHARE = 0.2
# More queries than this are not asked where nobody named any.
QUERIES = 2_000_000


def evaluate(
    synthetic: Release | Any,
    data: Any,
    *,
    schema: Schema | None = None,
    workload: Workload | Sequence[str] | None = None,
    holdout: Any = None,
    targets: Sequence[str] | None = None,
    on_invalid: str | None = None,
    sample: int = SAMPLE,
    seed: int = 0,
    tell: Tell | None = None,
) -> Evaluation:
    """Compare a synthetic table with the real one. The result must not be published.

    Args:
        synthetic: A release, or a synthetic table of any make that ``open_source`` takes.
        data: The real table that it was made from.
        schema: The public schema; a release has its own.
        workload: The questions to compare answers to; those of the release by default, else those
            that a release would ask.
        holdout: Real rows that it was not made from: to test models on, and to attack with.
        targets: The columns that models predict and attacks guess; a few with few classes by
            default.
        on_invalid: What to do with values outside the schema, "error" or "coerce"; as
            the release did.
        sample: The most rows of a table that anything but the counting of queries, nulls and broken
            rules looks at.
        seed: Of sampling and training.
        tell: Told what is being done, and how many more rows of a table went by.
    """
    require("sklearn", what="Evaluation", extra="evaluation")
    release = synthetic if isinstance(synthetic, Release) else None
    known = release.schema if release is not None else schema
    if not isinstance(known, Schema):
        raise SchemaError("to evaluate a table that is not a release, give its schema")
    if release is not None and schema is not None and schema != known:
        raise SchemaError(f"{release.folder}: has another schema than the one given")
    sample = whole("sample", sample, 100, 10_000_000)
    seed = whole("seed", seed, 0, 2**31 - 2)
    for target in targets or ():
        if target not in known:
            hint = did_you_mean(target, known.names)
            raise SchemaError(f"no column {target!r} to predict{hint}")
    if on_invalid is None:
        on_invalid = (
            "error" if release is None else str(release.settings.get("on_invalid", "error"))
        )
    # What is wrong with the release is found before the real table is read.
    table = synthetic if release is None else release.synthetic
    told = tell or _not_told
    asked = _questions(known, workload, release)
    measurements = None if release is None or workload is not None else release.measurements()

    def rows_of(what: str, table: Any, questions: Workload | None) -> Any:
        told(what, 0)
        return read_rows(
            table,
            known,
            questions,
            limit=sample,
            seed=seed,
            on_invalid=on_invalid,  # type: ignore[arg-type]
            progress=lambda rows: told(what, rows),
        )

    real = rows_of("Reading the real table", data, asked)
    held = None if holdout is None else rows_of("Reading the held-out rows", holdout, None)
    made = rows_of("Reading the synthetic table", table, asked)
    told("Comparing columns", 0)
    columns = compare_columns(known, real, made)
    told("Comparing pairs of columns", 0)
    associations = compare_associations(known, real, made, seed=seed)
    told("Comparing answers", 0)
    errors = workload_errors(asked, real, made, measurements)
    told("Comparing k-marginals", 0)
    marginals = [
        kmarginal(known, real, made, k=k, seed=seed) for k in (2, 3) if k == 2 or k <= len(known)
    ]
    told("Telling the tables apart", 0)
    apart = propensity(known, real, made, seed=seed)
    kept = None if held is None else held.sample
    chosen = (
        default_targets(known, real.sample) if targets is None else list(dict.fromkeys(targets))
    )
    tasks = _learn(known, made.sample, real.sample, kept, chosen, seed, told)
    told("Attacking", 0)
    attacks = attack(known, made.sample, real.sample, kept, secrets=chosen, seed=seed)
    return Evaluation(
        schema=known,
        tables=Tables(
            real.total,
            made.total,
            None if held is None else held.total,
            len(real.sample),
            len(made.sample),
        ),
        columns=tuple(columns),
        associations=associations,
        errors=errors,
        kmarginals=tuple(marginals),
        propensity=apart,
        tasks=tuple(tasks),
        attacks=attacks,
        rules=tuple(
            (rule, int(real.broken[place]) / real.total, int(made.broken[place]) / made.total)
            for place, rule in enumerate(known.constraints)
        ),
        privacy=None if release is None else release.privacy,
        name="synthetic table" if release is None else release.name,
        seed=seed,
    )


def _questions(
    schema: Schema, given: Workload | Sequence[str] | None, release: Release | None
) -> Workload:
    """What to ask both tables."""
    if isinstance(given, Workload):
        if given.schema != schema:
            raise WorkloadError("the workload is of another schema than the synthetic table")
        return given
    if given is not None:
        return workload_of(schema, given)
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
    made: Matrix,
    real: Matrix,
    held: Matrix | None,
    targets: Sequence[str],
    seed: int,
    told: Tell,
) -> list[Task]:
    """Models, tested on the held-out rows, or else on a fifth of the real ones."""
    if held is None:
        order = np.random.default_rng(seed).permutation(len(real))
        cut = round(TEST_SHARE * len(real))
        held, real = real[np.sort(order[:cut])], real[np.sort(order[cut:])]
    return learn(
        schema,
        made,
        real,
        held,
        targets,
        seed=seed,
        progress=lambda target: told(f"Learning to predict {target}", 0),
    )


def _not_told(what: str, rows: int) -> None:
    """Nobody wants to know."""
