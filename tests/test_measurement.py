"""Measurements: frozen values, whole on disk or not there, with no exact answer in them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from private_gsd import answer, datasets, workloads
from private_gsd.answering import count
from private_gsd.encoding import Encoder
from private_gsd.errors import MeasurementError
from private_gsd.measurement import Measurements, measure
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import Budget
from private_gsd.privacy.mechanisms import InsecureSeededNoise, SecureNoise

SCHEMA = datasets.census_schema()
WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, 2)
    + workloads.random_halfspaces(SCHEMA, 700, seed=3)
    + workloads.tree_marginals(SCHEMA, 2)
    + workloads.random_prefixes(SCHEMA, 50)
)
TABLE = datasets.census(3000)
EXACT = answer(WORKLOAD, TABLE)
BUDGET = Budget.from_epsilon(1, 1e-9)


def measured(groups: list[int], noise: Any = None, **options: Any) -> Measurements:
    return measure(
        EXACT,
        groups,
        BUDGET.split([1] * len(groups)),
        accountant=LocalAccountant(BUDGET),
        noise=noise or InsecureSeededNoise(1),
        **options,
    )


EVERY_KIND = [0, 77, 78, 500, 777, 780, 850, WORKLOAD.num_groups - 1]


def test_what_a_measurement_is() -> None:
    result = measured(EVERY_KIND, SecureNoise())
    assert result.private
    assert result.rows == 3000
    assert result.charges == ("1",) * len(EVERY_KIND)
    assert result.workload.num_groups == len(EVERY_KIND)
    np.testing.assert_allclose(result.shares, result.counts / 3000)
    first = result.workload.group_sizes[0]
    np.testing.assert_allclose(result.variances[:first], (result.scales[0] / 3000) ** 2)
    assert len(result.variances) == result.workload.size
    assert repr(result) == f"<Measurements of {len(EVERY_KIND)} groups>"


def test_groups_may_come_in_any_order() -> None:
    one = measured([0, 5, 9], InsecureSeededNoise(4))
    two = measured([9, 0, 5], InsecureSeededNoise(4))
    np.testing.assert_array_equal(one.counts, two.counts)
    assert [two.workload.describe(g) for g in range(3)] == [WORKLOAD.describe(g) for g in (0, 5, 9)]


def test_insecure_noise_is_told_on() -> None:
    result = measured([0])
    assert not result.private
    assert "NOT private" in repr(result)
    joined = measured([1], SecureNoise()) + result
    assert not joined.private


def test_the_number_of_rows_is_private_under_add_remove() -> None:
    with pytest.raises(MeasurementError, match="the number of rows is private: measure it"):
        measured([0], neighbours="add-remove")
    assert measured([0], neighbours="add-remove", rows=2990).rows == 2990


def test_save_and_load(tmp_path: Path) -> None:
    result = measured(EVERY_KIND)
    result.save(tmp_path / "m")
    again = Measurements.load(tmp_path / "m")
    np.testing.assert_array_equal(again.counts, result.counts)
    np.testing.assert_array_equal(again.scales, result.scales)
    assert (again.rows, again.charges, again.private, again.neighbours) == (
        result.rows,
        result.charges,
        result.private,
        result.neighbours,
    )
    assert again.workload.schema == SCHEMA
    for index in range(0, again.workload.size, 7):
        assert again.workload.query(index) == result.workload.query(index)
    [batch] = TABLE.to_batches()
    matrix = Encoder(SCHEMA).encode(batch)
    np.testing.assert_array_equal(count(again.workload, matrix), count(result.workload, matrix))
    chosen = again.workload.select([2, 3])
    np.testing.assert_array_equal(
        count(chosen, matrix), count(result.workload.select([2, 3]), matrix)
    )


def test_saving_again_replaces_and_leaves_no_litter(tmp_path: Path) -> None:
    measured([0]).save(tmp_path / "m")
    result = measured([1, 2])
    result.save(tmp_path / "m")
    assert len(list((tmp_path / "m").iterdir())) == 2
    assert Measurements.load(tmp_path / "m").workload.num_groups == 2


def test_no_exact_count_is_saved(tmp_path: Path) -> None:
    """The file holds what was released: counts whose noise is not zero."""
    result = measured([0], SecureNoise())
    result.save(tmp_path / "m")
    exact = EXACT.counts[: WORKLOAD.group_sizes[0]]
    assert (result.counts != exact).any()
    with np.load(next((tmp_path / "m").glob("*.npz"))) as arrays:
        assert set(arrays) == {"counts", "scales"}
        np.testing.assert_array_equal(arrays["counts"], result.counts)


def test_torn_changed_and_missing_files(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with pytest.raises(MeasurementError, match=r"measurements.json: no such file"):
        Measurements.load(folder)
    measured(EVERY_KIND).save(folder)
    arrays = next(folder.glob("*.npz"))
    document = folder / "measurements.json"
    good, text = arrays.read_bytes(), document.read_text()
    arrays.write_bytes(good[:-1] + b"x")
    with pytest.raises(MeasurementError, match="was changed or is torn"):
        Measurements.load(folder)
    arrays.unlink()
    with pytest.raises(MeasurementError, match=r"npz: no such file"):
        Measurements.load(folder)
    arrays.write_bytes(good)
    Measurements.load(folder)
    for bad, message in (
        (text[: len(text) // 2], "not whole"),
        ("[]", "not whole"),
        ("{}", "not whole"),
        (text.replace('"version": 1', '"version": 99'), "found .* of version 99"),
        (text.replace("private-gsd measurements", "something else"), "found 'something else'"),
        (text.replace('"rows": 3000', '"rows": -5'), "rows must be"),
        (text.replace('"family": "halfspaces"', '"family": "x"'), "unknown family of queries 'x'"),
    ):
        document.write_text(bad)
        with pytest.raises(MeasurementError, match=message):
            Measurements.load(folder)


def test_an_unwritable_folder() -> None:
    with pytest.raises(MeasurementError, match="cannot be written"):
        measured([0]).save("/proc/measurements")  # where not even root may write


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("")
    with pytest.raises(MeasurementError, match="cannot be written"):
        measured([0]).save(tmp_path / "m")
    with pytest.raises(MeasurementError, match="cannot be read"):
        Measurements.load(tmp_path / "m")


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "m"
    first = measured([0])
    first.save(folder)
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(MeasurementError, match="No space left"):
        measured([1, 2]).save(folder)
    monkeypatch.undo()
    np.testing.assert_array_equal(Measurements.load(folder).counts, first.counts)
    assert len(list(folder.iterdir())) == 2


def _full(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_outside_evidence() -> None:
    theirs = Measurements.from_marginals(
        SCHEMA,
        3000,
        [(["sex"], [1500.5, 1499], 10.0), (["sex", "veteran"], np.ones((2, 3)), 4.0)],
    )
    assert theirs.workload.num_groups == 2
    assert theirs.charges == ("", "")
    assert theirs.counts[0] == 1500.5
    joined = measured([0]) + theirs
    assert joined.workload.num_groups == 3
    with pytest.raises(MeasurementError, match="sex has 2 cells, not 3"):
        Measurements.from_marginals(SCHEMA, 3000, [(["sex"], [1, 2, 3], 1.0)])
    with pytest.raises(MeasurementError, match="no evidence"):
        Measurements.from_marginals(SCHEMA, 3000, [])
    with pytest.raises(MeasurementError, match="scales positive"):
        Measurements.from_marginals(SCHEMA, 3000, [(["sex"], [1, 2], 0.0)])
    with pytest.raises(MeasurementError, match="finite"):
        Measurements.from_marginals(SCHEMA, 3000, [(["sex"], [1, float("nan")], 1.0)])
    with pytest.raises(MeasurementError, match="different tables"):
        _ = measured([0]) + Measurements.from_marginals(SCHEMA, 5, [(["sex"], [1, 2], 1.0)])


def test_the_json_says_whether_it_is_private(tmp_path: Path) -> None:
    measured([0]).save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "measurements.json").read_text())["private"] is False


def test_exact_answers_are_no_measurement() -> None:
    for raw in (EXACT, EXACT.counts.tolist()):
        with pytest.raises(MeasurementError, match="counts are noisy numbers, not"):
            Measurements(WORKLOAD, raw, np.ones(5), 3000, ("",), True)  # type: ignore[arg-type]
