"""New rows: they answer as the fitted table does, are no copies, and add no structure."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from private_gsd import Categorical, Integer, Measurements, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.kernels.cells import draw_again, fill_atoms
from private_gsd.measurements.column_distributions import column_distributions
from private_gsd.projection import new_rows
from private_gsd.projection.constraints import broken_rows, first_table
from private_gsd.projection.new_rows import NewRows, chunk_sizes
from private_gsd.projection.objective import Objective
from private_gsd.workloads import Workload
from tests.projection.families import FAMILIES
from tests.projection.families import SCHEMA as MIXED
from tests.projection.test_within_cells import measured_of, table, uniform

Matrix = NDArray[np.float64]
COLUMNS = 8
SCHEMA = Schema([Categorical(f"c{place}", values=[0, 1, 2, 3]) for place in range(COLUMNS)])
PAIRS = workloads.categorical_marginals(SCHEMA, 2)


def chained(rows: int, seed: int) -> Matrix:
    """Rows of which each value is that of the column before, or any other."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (rows, COLUMNS)).astype(float)
    for place in range(1, COLUMNS):
        same = rng.random(rows) < 0.5
        values[same, place] = values[same, place - 1]
    return values


def known_of(workload: Workload, table: Matrix, scale: float = 10.0) -> Measurements:
    """Measurements that the table answers exactly."""
    return Measurements(
        workload,
        np.asarray(count(workload, table), dtype=np.float64),
        np.full(workload.num_groups, scale),
        len(table),
        ("",) * workload.num_groups,
        True,
        "replace-one",
    )


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_rows, "CHUNK_ROWS", 1000)
    monkeypatch.setattr(new_rows, "CHAINS", 3)


def shares(workload: Workload, rows: Matrix) -> Matrix:
    return np.asarray(count(workload, rows) / len(rows))


@pytest.mark.parametrize("number", [0, 1, 19_999, 20_001, 1_000_000])
@pytest.mark.parametrize("columns", [1, 24, 3000])
def test_chunks_have_all_rows_and_about_the_same_size(number: int, columns: int) -> None:
    sizes = chunk_sizes(number, columns)
    assert sum(sizes) == number
    assert max(sizes, default=1) - min(sizes, default=1) in (0, 1)
    assert max(sizes, default=1) <= max(1, min(20_000, 2**19 // columns))


def test_answers_are_those_of_the_table(small_chunks: None) -> None:
    """Errors in rows do not grow with the rows: in shares they fall.

    9,000 rows that were drawn by themselves would differ by 0.0020 in the mean.
    """
    core = chained(2000, 0)
    made = NewRows(known_of(PAIRS, core), core, seed=1, threads=1).table(9000)
    errors = [
        np.abs(shares(PAIRS, rows) - shares(PAIRS, core)).mean()
        for rows in (made[:1000], made, np.concatenate([core, made]))
    ]
    assert errors[0] < 0.001
    assert errors[1] < 0.0002
    assert errors[2] < 0.0002


def test_what_a_chunk_misses_the_next_makes_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 100 rows answer with errors of 0.0044; 30 of them, each for itself, of 0.0012."""
    monkeypatch.setattr(new_rows, "CHUNK_ROWS", 100)
    monkeypatch.setattr(new_rows, "CHAINS", 1)
    core = chained(1000, 0)
    made = NewRows(known_of(PAIRS, core), core, threads=1).table(3000)
    assert np.abs(shares(PAIRS, made) - shares(PAIRS, core)).mean() < 0.0003


def test_rows_are_no_copies(small_chunks: None) -> None:
    """As many rows are those of the table as of a table of other rows, up to six sigma (0.02)."""
    core, other = chained(2000, 0), chained(9000, 5)
    made = NewRows(known_of(PAIRS, core), core, threads=1).table(9000)
    seen = {row.tobytes() for row in core}
    copied, by_chance = (np.mean([row.tobytes() in seen for row in each]) for each in (made, other))
    assert copied < by_chance + 0.1
    distinct, real = (len(np.unique(each, axis=0)) / 9000 for each in (made, other))
    assert distinct > 0.9 * real


def test_what_was_not_measured_is_not_taken_over(small_chunks: None) -> None:
    """Columns are measured alone, and the fitted table has a dependence that nobody measured."""
    core = chained(2000, 0)
    single = workloads.categorical_marginals(SCHEMA, 1)
    made = NewRows(known_of(single, core), core, threads=1).table(9000)
    later = made[3000:6000]  # the second chunks of all chains

    def dependence(rows: Matrix) -> float:
        found = np.asarray(np.corrcoef(rows.T))[np.triu_indices(COLUMNS, 1)]
        return float(np.abs(found).mean())

    assert dependence(core) > 0.15
    assert dependence(later) < 0.03  # by chance 0.015


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_same_rows_for_any_number_of_threads(small_chunks: None, threads: int) -> None:
    core = chained(500, 0)
    known = known_of(PAIRS, core)
    first = NewRows(known, core, seed=4, threads=3).table(4500)
    np.testing.assert_array_equal(NewRows(known, core, seed=4, threads=threads).table(4500), first)
    other = NewRows(known, core, seed=5, threads=threads).table(4500)
    assert (other != first).any(axis=1).mean() > 0.5


def test_whoever_wants_no_more_chunks_leaves_no_thread_behind(small_chunks: None) -> None:
    core = chained(500, 0)
    before = threading.active_count()
    chunks = NewRows(known_of(PAIRS, core), core, threads=2).chunks(50_000)
    assert len(next(chunks)) == 1000
    chunks.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert list(NewRows(known_of(PAIRS, core), core).chunks(0)) == []


# Kernels of these families are compiled for other tests as well.
QUICK = ("one-way", "two-way", "trees", "halfspaces")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in FAMILIES
        if name not in ("all of them", "compared numbers")
    ],
)
def test_every_family_is_answered(name: str) -> None:
    """Also queries that look at numbers: the answers are nearer than those of other rows."""
    workload = FAMILIES[name]()
    core = first_table(MIXED, 1500, 1)
    other = first_table(MIXED, 1500, 2)
    made = NewRows(known_of(workload, core), core, threads=1).table(1500)
    assert_encoded(made, MIXED)
    mine, theirs = (
        np.abs(shares(workload, rows) - shares(workload, core)).mean() for rows in (made, other)
    )
    assert mine < 0.5 * theirs
    assert (made != core)[~np.isnan(core)].mean() > 0.3


def assert_encoded(rows: Matrix, schema: Schema) -> None:
    for place, column in enumerate(schema):
        known = rows[~np.isnan(rows[:, place]), place]
        low, high = column.bounds
        assert low <= known.min(initial=low) <= known.max(initial=high) <= high
        assert column.nullable or len(known) == len(rows)


def test_rows_keep_the_rules_of_a_schema() -> None:
    schema = Schema(
        [Integer("low", lower=0, upper=50), Integer("high", lower=0, upper=50), *SCHEMA.columns],
        ["low <= high", "NOT (c0 = 0 AND c1 = 1)"],
    )
    core = first_table(schema, 1500, 1)
    workload = workloads.categorical_marginals(schema, 2) + workloads.tree_marginals(schema, 1, 3)
    made = NewRows(known_of(workload, core), core, threads=1).table(3000)
    assert not broken_rows(schema, made).any()
    assert np.abs(shares(workload, made) - shares(workload, core)).mean() < 0.002
    assert len({row.tobytes() for row in made} - {row.tobytes() for row in core}) > 2000


def test_numbers_are_drawn_within_cells_as_histograms_say() -> None:
    """Spikes at 0 and 300 hold a quarter of the rows; the fitted table knows their cells alone."""
    real, core = table(20_000), uniform(2000)
    known = measured_of(real)
    assert column_distributions(known)
    made = NewRows(known, core, threads=1).table(4000)
    for value in (0, 300):
        assert abs((made[:, 1] == value).mean() - (real[:, 1] == value).mean()) < 0.03
        assert (core[:, 1] == value).mean() < 0.01


def test_numbers_without_histograms_are_new() -> None:
    schema = Schema([Categorical("a", values=[0, 1]), Real("x", lower=0, upper=1)])
    rng = np.random.default_rng(0)
    core = np.column_stack([rng.integers(0, 2, 1000), rng.random(1000)]).astype(float)
    known = known_of(workloads.tree_marginals(schema, 1, 3), core)
    made = NewRows(known, core, threads=1).table(2000)
    assert len(np.unique(np.concatenate([core[:, 1], made[:, 1]]))) == 3000


def test_counts_of_other_rows_are_added() -> None:
    core, more = chained(300, 0), chained(200, 1)
    objective = Objective(known_of(PAIRS, core), "inverse-variance")
    alone = objective.state(core.copy())
    both = objective.state(more.copy(), others=(300, alone.counts))
    slow = objective.state(np.concatenate([core, more]))
    np.testing.assert_array_equal(both.counts, slow.counts)
    np.testing.assert_allclose(both.targets, slow.targets)
    np.testing.assert_array_equal(both.residuals, slow.residuals)


def test_values_that_are_drawn_again_stay_in_their_atoms() -> None:
    workload = workloads.tree_marginals(MIXED, 1, 4)
    objective = Objective(known_of(workload, first_table(MIXED, 400, 0)), "equal")
    values = first_table(MIXED, 400, 1)
    state = objective.state(values.copy())
    some = np.array([3, 4, 5], dtype=np.int64)
    draw_again(objective.problem.columns, some, state.atoms, 7, state.values)
    atoms = np.empty_like(state.atoms)
    fill_atoms(objective.problem.columns, state.values, atoms)
    np.testing.assert_array_equal(atoms, state.atoms)
    same = (state.values == values) | (np.isnan(state.values) & np.isnan(values))
    assert same[:, [0, 1, 2, 6]].all()
    assert same[:, 5].mean() < 0.05


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_loss_of_an_edit_is_that_of_a_slow_search(scale: float) -> None:
    """An edit of a table that fits moves a row from one cell to another, in seven tables."""
    core = chained(400, 0)
    known = known_of(PAIRS, core)
    scales = known.scales.copy()
    scales[0] *= scale
    objective = Objective(replace(known, scales=scales), "inverse-variance")
    state = objective.state(core.copy())
    losses: list[Any] = []
    rng = np.random.default_rng(1)
    while len(losses) < 100:
        changed = core.copy()
        changed[rng.integers(400), rng.integers(COLUMNS)] = rng.integers(4)
        if (changed != core).any():
            losses.append(objective.loss(objective.state(changed)) - objective.loss(state))
    assert new_rows._loss_of_edit(objective, core) == pytest.approx(np.median(losses))
