"""Latent classes: loss and gradient against obvious twins, classes found again, and limits."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import Categorical, Integer, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising import denoise, latent_classes
from private_gsd.projection.denoising.denoise import Denoising
from private_gsd.projection.denoising.latent_classes import LatentClasses
from private_gsd.projection.denoising.lower_orders import complete_tables, summed_to
from private_gsd.projection.watch import Stopped, Watch
from private_gsd.workloads import Workload
from private_gsd.workloads.layout import MarginalTable
from private_gsd.workloads.specs import workload_of

MIXED = Schema(
    [
        Categorical("a", values=["x", "y"], nullable=True),
        Integer("b", lower=0, upper=9, nullable=True),
        Categorical("c", values=[1, 2, 3, 4]),
    ]
)

SPECS = ["categorical:2", "tree:2:3"]


def random_rows(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, size, rows).astype(float) for size in (3, 11, 4)]
    columns[0][columns[0] == 2] = math.nan
    columns[1][columns[1] == 10] = math.nan
    return np.column_stack(columns)


def measured_with(workload: Workload, table: np.ndarray, share: float, seed: int) -> Measurements:
    """The answers of a table with noise of that share of the rows, for every other group half."""
    groups = workload.num_groups
    scales = share * len(table) * np.where(np.arange(groups) % 2, 0.5, 1.0)
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(workload.size) * np.repeat(scales, workload.group_sizes)
    counts = count(workload, table) + noise
    return Measurements(workload, counts, scales, len(table), ("",) * groups, private=False)


def classes_of(
    measured: Measurements, precision: type[np.floating[Any]] = np.float64
) -> tuple[LatentClasses, list[MarginalTable]]:
    tables = complete_tables(measured.workload)
    ones = summed_to(measured, tables, 1, measured.shares)
    known = {table.features[0]: table.of(ones.shares) for table in complete_tables(ones.workload)}
    return LatentClasses(measured, tables, known, precision), tables


def watch() -> Watch:
    return Watch()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_loss_is_what_it_is_said_to_be(seed: int) -> None:
    """Table by table, class by class and column by column, from probabilities alone."""
    measured = measured_with(workload_of(MIXED, SPECS), random_rows(50, seed), 0.1, seed)
    found, tables = classes_of(measured)
    places = found.cells
    point = np.random.default_rng(seed).normal(size=(3, places.atoms + 1))
    shares, probabilities = found.classes(point)
    assert shares.sum() == pytest.approx(1)
    assert np.allclose(places.column_sums(probabilities), 1)
    seen = probabilities @ places.sums
    loss = 0.0
    for table in tables:
        first, second = (places.of[feature] for feature in table.features)
        expected = sum(
            share * np.outer(each[first], each[second])
            for share, each in zip(shares, seen, strict=True)
        )
        variance = (measured.scales[table.group] / measured.n_records) ** 2
        loss += ((expected - table.of(measured.shares)) ** 2).sum() / (2 * variance)
    for share, each in zip(shares, probabilities, strict=True):
        loss += (
            latent_classes.PRIOR_STRENGTH * share * (each * np.log(each / found.prior_means)).sum()
        )
    assert found.loss(point) == pytest.approx(loss)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_gradient_is_that_of_the_loss(seed: int) -> None:
    measured = measured_with(workload_of(MIXED, SPECS), random_rows(50, seed), 0.1, seed)
    found, _ = classes_of(measured)
    rng = np.random.default_rng(seed)
    point = rng.normal(size=(3, found.cells.atoms + 1))
    gradient = found.gradient(point)
    for _ in range(5):
        way = rng.normal(size=point.shape)
        step = 1e-5
        ends = [found.loss(point + sign * step * way) for sign in (1, -1)]
        rise = (ends[0] - ends[1]) / (2 * step)
        assert (gradient * way).sum() == pytest.approx(rise, rel=1e-4, abs=1e-3)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_32_bits_are_close_to_64(seed: int) -> None:
    measured = measured_with(workload_of(MIXED, SPECS), random_rows(50, seed), 0.001, seed)
    exact, near = (classes_of(measured, each)[0] for each in (np.float64, np.float32))
    point = np.random.default_rng(seed).normal(size=(3, exact.cells.atoms + 1))
    gradient = exact.gradient(point)
    assert np.abs(near.gradient(point) - gradient).max() <= 1e-5 * np.abs(gradient).max()


def test_a_pair_measured_twice_weighs_twice() -> None:
    once = measured_with(workload_of(MIXED, ["categorical:2"]), random_rows(50, 1), 0.1, 1)
    again = measured_with(workload_of(MIXED, ["categorical:2"]), random_rows(50, 1), 0.2, 2)
    found, tables = classes_of(once + again)
    weights = 1 / once.scales**2 + 1 / again.scales**2
    expected = (once.counts / once.scales**2 + again.counts / again.scales**2) / weights / 50
    place = found.place(tables[0])
    assert np.allclose(found.noisy[place].ravel(), expected)
    assert np.allclose(found.noisy, found.noisy.T)
    assert np.allclose(found.weights[place], weights * 50**2 / 4)


def test_coarse_cells_are_sums_of_fine_ones() -> None:
    measured = measured_with(workload_of(MIXED, SPECS), random_rows(500, 2), 0.02, 2)
    found, tables = classes_of(measured)
    by_columns: dict[tuple[int, ...], list[np.ndarray]] = {}
    for table, answers in zip(tables, found.answers(0, watch()), strict=True):
        assert answers.min() >= 0
        assert answers.sum() == pytest.approx(1)
        position = tuple(feature.position for feature in table.features)
        by_columns.setdefault(position, []).append(answers)
    levels = by_columns[(0, 1)]
    assert len(levels) == 3
    for coarse, fine in itertools.pairwise(levels):
        cut, null = fine[:, :-1], fine[:, -1]
        assert np.allclose(coarse[:, :-1], cut[:, ::2] + cut[:, 1::2])
        assert np.allclose(coarse[:, -1], null)


def tied(rows: int, columns: int, seed: int) -> tuple[Schema, np.ndarray]:
    """Columns of eight values; a fifth of the rows has the first value in all columns."""
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 8, (rows, columns)).astype(np.float64)
    table[rng.random(rows) < 0.2] = 0
    return Schema([Categorical(f"c{i}", values=list(range(8))) for i in range(columns)]), table


def test_what_all_columns_have_in_common_is_seen() -> None:
    """A cell of 0.2, or 0.04 in independent columns, with noise of 0.04 and 0.08: 45 such cells.

    Each of them is found, and all cells together err by less than a quarter of the noise.
    """
    schema, table = tied(5000, 10, 0)
    workload = workloads.categorical_marginals(schema, 2)
    measured = measured_with(workload, table, 0.08, 0)
    found, tables = classes_of(measured)
    answers = found.answers(0, watch())
    assert min(each[0, 0] for each in answers) > 0.1
    true = count(workload, table) / len(table)
    errors = [each - table.of(true) for table, each in zip(tables, answers, strict=True)]
    noise = np.abs(measured.shares - true).mean()
    assert np.abs(errors).mean() < 0.25 * noise


def test_of_independent_columns_hardly_anything_is_found() -> None:
    """In no cell as much as the least noise."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 6, (5000, 6)).astype(np.float64)
    schema = Schema([Categorical(f"c{i}", values=list(range(6))) for i in range(6)])
    workload = workloads.categorical_marginals(schema, 2)
    measured = measured_with(workload, table, 0.05, 1)
    found, tables = classes_of(measured)
    means = found.prior_means
    for pair, answers in zip(tables, found.answers(0, watch()), strict=True):
        first, second = (found.cells.of[feature] for feature in pair.features)
        assert np.abs(answers - np.outer(means[first], means[second])).max() < 0.025


def test_a_column_of_one_value_has_nothing_to_say() -> None:
    schema = Schema([Categorical("a", values=["x"]), Categorical("b", values=[1, 2, 3])])
    table = np.column_stack([np.zeros(400), np.arange(400) % 3]).astype(np.float64)
    measured = measured_with(workloads.categorical_marginals(schema, 2), table, 0.05, 0)
    made = Denoising(measured, 0, 1, watch()).run()
    assert np.abs(made.shares - 1 / 3).max() < 0.1
    assert made.shares.sum() == pytest.approx(1, abs=0.01)


@pytest.mark.slow
def test_errors_fall_with_latent_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of three draws, by a twentieth at least."""
    schema, table = tied(5000, 10, 0)
    workload = workloads.categorical_marginals(schema, 2)
    true = count(workload, table) / len(table)
    errors = {}
    for part in (0.0, denoise.LATENT_CLASS_WEIGHT):
        monkeypatch.setattr(denoise, "LATENT_CLASS_WEIGHT", part)
        made = [
            Denoising(measured_with(workload, table, 0.05, seed), seed, 1, watch()).run()
            for seed in range(3)
        ]
        errors[part] = np.mean([np.abs(each.shares - true).mean() for each in made])
    assert errors[denoise.LATENT_CLASS_WEIGHT] < 0.95 * errors[0.0]


def test_too_many_cells_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, table = tied(1000, 4, 0)
    measured = measured_with(workloads.categorical_marginals(schema, 2), table, 0.05, 0)
    monkeypatch.setattr(latent_classes, "MOST_CELLS", 31)
    without = Denoising(measured, 0, 1, watch()).run()
    monkeypatch.setattr(latent_classes, "MOST_CELLS", 32)
    assert (Denoising(measured, 0, 1, watch()).run().counts != without.counts).any()
    monkeypatch.setattr(denoise, "LATENT_CLASS_WEIGHT", 0.0)
    assert (Denoising(measured, 0, 1, watch()).run().counts == without.counts).all()


def test_answers_that_are_absurd_do_no_harm() -> None:
    """What is far outside [0, 1] leaves finite answers."""
    schema, table = tied(500, 4, 0)
    measured = measured_with(workloads.categorical_marginals(schema, 2), table, 1e5, 0)
    found, _ = classes_of(measured)
    answers = np.concatenate([each.ravel() for each in found.answers(0, watch())])
    assert np.isfinite(answers).all()
    assert answers.min() >= 0


def test_it_reports_progress_and_can_be_stopped() -> None:
    schema, table = tied(500, 4, 0)
    found, _ = classes_of(measured_with(workloads.categorical_marginals(schema, 2), table, 0.05, 0))
    reports: list[tuple[str, float, float | None]] = []

    def enough(what: str, done: float, total: float | None) -> bool:
        reports.append((what, done, total))
        return True

    with pytest.raises(Stopped):
        found.answers(0, Watch(progress=enough))
    assert reports == [("denoising", 0, None)]
    with pytest.raises(Stopped):
        found.answers(0, Watch(seconds=0.0))
