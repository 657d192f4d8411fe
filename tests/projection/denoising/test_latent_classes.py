"""Kinds of rows: loss and slope against obvious twins, kinds that are found again, and limits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import Categorical, Integer, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising import denoise, latent_classes
from private_gsd.projection.denoising.denoise import Denoising
from private_gsd.projection.denoising.latent_classes import Kinds
from private_gsd.projection.watch import Progress, Stopped, Watch
from private_gsd.workloads import Workload
from private_gsd.workloads.layout import Asked
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


def kinds_of(measured: Measurements) -> tuple[Kinds, list[Asked]]:
    tables = denoise._tables(measured.workload)
    ones = denoise._below(measured, tables, 1, measured.shares)
    known = {table.features[0]: table.of(ones.shares) for table in denoise._tables(ones.workload)}
    return Kinds(measured, tables, known), tables


def watch() -> Watch:
    return Watch(1.0, None, None)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_loss_is_what_it_is_said_to_be(seed: int) -> None:
    """Table by table, kind by kind and column by column, from chances alone."""
    measured = measured_with(workload_of(MIXED, SPECS), random_rows(50, seed), 0.1, seed)
    found, tables = kinds_of(measured)
    places = found._places
    point = np.random.default_rng(seed).normal(size=(3, places.atoms + 1))
    shares, chances = found._kinds(point)
    assert shares.sum() == pytest.approx(1)
    assert np.allclose(places.totals(chances), 1)
    seen = chances @ places._sums
    loss = 0.0
    for table in tables:
        first, second = (places.of[feature] for feature in table.features)
        expected = sum(
            share * np.outer(each[first], each[second])
            for share, each in zip(shares, seen, strict=True)
        )
        variance = (measured.scales[table.group] / measured.n_records) ** 2
        loss += ((expected - table.of(measured.shares)) ** 2).sum() / (2 * variance)
    for share, each in zip(shares, chances, strict=True):
        loss += latent_classes.DOUBT * share * (each * np.log(each / found._usual)).sum()
    assert found.loss_and_slope(point)[0] == pytest.approx(loss)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_slope_is_that_of_the_loss(seed: int) -> None:
    measured = measured_with(workload_of(MIXED, SPECS), random_rows(50, seed), 0.1, seed)
    found, _ = kinds_of(measured)
    rng = np.random.default_rng(seed)
    point = rng.normal(size=(3, found._places.atoms + 1))
    slope = found.loss_and_slope(point)[1]
    for _ in range(5):
        way = rng.normal(size=point.shape)
        step = 1e-5
        ends = [found.loss_and_slope(point + sign * step * way)[0] for sign in (1, -1)]
        rise = (ends[0] - ends[1]) / (2 * step)
        assert (slope * way).sum() == pytest.approx(rise, rel=1e-4, abs=1e-3)


def test_a_pair_asked_twice_weighs_twice() -> None:
    once = measured_with(workload_of(MIXED, ["categorical:2"]), random_rows(50, 1), 0.1, 1)
    again = measured_with(workload_of(MIXED, ["categorical:2"]), random_rows(50, 1), 0.2, 2)
    found, _ = kinds_of(once + again)
    weights = 1 / once.scales**2 + 1 / again.scales**2
    expected = (once.counts / once.scales**2 + again.counts / again.scales**2) / weights / 50
    place = found._place(found._tables[0])
    assert np.allclose(found._noisy[place].ravel(), expected)
    assert np.allclose(found._noisy, found._noisy.T)
    assert np.allclose(found._weights[place], weights * 50**2 / 4)


def test_coarse_cells_are_sums_of_fine_ones() -> None:
    measured = measured_with(workload_of(MIXED, SPECS), random_rows(500, 2), 0.02, 2)
    found, tables = kinds_of(measured)
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
    """Columns of eight values, of which the first is a fifth of the people's, in all at once."""
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 8, (rows, columns)).astype(np.float64)
    table[rng.random(rows) < 0.2] = 0
    return Schema([Categorical(f"c{i}", values=list(range(8))) for i in range(columns)]), table


def test_what_all_columns_have_in_common_is_seen() -> None:
    """A cell of 0.2 that would be 0.04 by chance, with noise of 0.04 and 0.08: 45 such cells.

    Each of them is found, and all cells together err by less than a quarter of the noise.
    """
    schema, table = tied(5000, 10, 0)
    workload = workloads.categorical_marginals(schema, 2)
    measured = measured_with(workload, table, 0.08, 0)
    found, tables = kinds_of(measured)
    answers = found.answers(0, watch())
    assert min(each[0, 0] for each in answers) > 0.1
    true = count(workload, table) / len(table)
    errors = [each - table.of(true) for table, each in zip(tables, answers, strict=True)]
    noise = np.abs(measured.shares - true).mean()
    assert np.abs(errors).mean() < 0.25 * noise


def test_where_nothing_hangs_together_hardly_anything_is_found() -> None:
    """Half of the least noise, at most."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 6, (5000, 6)).astype(np.float64)
    schema = Schema([Categorical(f"c{i}", values=list(range(6))) for i in range(6)])
    workload = workloads.categorical_marginals(schema, 2)
    measured = measured_with(workload, table, 0.05, 1)
    found, _ = kinds_of(measured)
    usual = found._usual
    for table_asked, answers in zip(found._tables, found.answers(0, watch()), strict=True):
        first, second = (found._places.of[feature] for feature in table_asked.features)
        assert np.abs(answers - np.outer(usual[first], usual[second])).max() < 0.025 / 2


def test_what_is_beyond_is_believed_as_far_as_the_noise_lets() -> None:
    """All of it without noise, nothing of it where noise is everything."""
    schema, table = tied(2000, 4, 3)
    workload = workloads.categorical_marginals(schema, 2)
    tables = denoise._tables(workload)
    usual = [np.outer([0.2, *[0.8 / 7] * 7], [0.2, *[0.8 / 7] * 7])] * len(tables)
    true = count(workload, table) / len(table)
    clear = measured_with(workload, table, 1e-6, 0)
    for each, beyond in zip(tables, denoise._beyond(clear, tables, usual), strict=True):
        sums = each.of(true) - usual[0] - denoise.centered(each.of(true) - usual[0])
        assert np.abs(beyond - np.maximum(each.of(true) - sums, 0)).max() < 1e-4
    dark = measured_with(workload, table, 10.0, 0)
    for beyond, expected in zip(denoise._beyond(dark, tables, usual), usual, strict=True):
        assert np.abs(beyond - expected).max() < 0.02


def test_a_column_of_one_value_has_nothing_to_say() -> None:
    schema = Schema([Categorical("a", values=["x"]), Categorical("b", values=[1, 2, 3])])
    table = np.column_stack([np.zeros(400), np.arange(400) % 3]).astype(np.float64)
    measured = measured_with(workloads.categorical_marginals(schema, 2), table, 0.05, 0)
    made = Denoising(measured, 0, 1, watch()).run()
    assert np.abs(made.shares - 1 / 3).max() < 0.1
    assert made.shares.sum() == pytest.approx(1, abs=0.01)


def test_errors_fall_with_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of three draws, by a twentieth at least."""
    schema, table = tied(5000, 10, 0)
    workload = workloads.categorical_marginals(schema, 2)
    true = count(workload, table) / len(table)
    errors = {}
    for part in (0.0, denoise.KINDS_PART):
        monkeypatch.setattr(denoise, "KINDS_PART", part)
        made = [
            Denoising(measured_with(workload, table, 0.05, seed), seed, 1, watch()).run()
            for seed in range(3)
        ]
        errors[part] = np.mean([np.abs(each.shares - true).mean() for each in made])
    assert errors[denoise.KINDS_PART] < 0.95 * errors[0.0]


def test_too_many_cells_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, table = tied(1000, 4, 0)
    measured = measured_with(workloads.categorical_marginals(schema, 2), table, 0.05, 0)
    monkeypatch.setattr(latent_classes, "MOST_CELLS", 31)
    without = Denoising(measured, 0, 1, watch()).run()
    monkeypatch.setattr(latent_classes, "MOST_CELLS", 32)
    assert (Denoising(measured, 0, 1, watch()).run().counts != without.counts).any()
    monkeypatch.setattr(denoise, "KINDS_PART", 0.0)
    assert (Denoising(measured, 0, 1, watch()).run().counts == without.counts).all()


def test_answers_that_are_absurd_do_no_harm() -> None:
    """What is far outside [0, 1] leaves finite answers."""
    schema, table = tied(500, 4, 0)
    measured = measured_with(workloads.categorical_marginals(schema, 2), table, 1e5, 0)
    found, _ = kinds_of(measured)
    answers = np.concatenate([each.ravel() for each in found.answers(0, watch())])
    assert np.isfinite(answers).all()
    assert answers.min() >= 0


def test_it_tells_of_progress_and_can_be_stopped() -> None:
    schema, table = tied(500, 4, 0)
    found, _ = kinds_of(measured_with(workloads.categorical_marginals(schema, 2), table, 0.05, 0))
    told: list[Progress] = []

    def enough(progress: Progress) -> bool:
        told.append(progress)
        return True

    with pytest.raises(Stopped):
        found.answers(0, Watch(1.0, None, enough))
    assert len(told) == 1
    assert told[0].loss > 0
    with pytest.raises(Stopped):
        found.answers(0, Watch(1.0, 0.0, None))
