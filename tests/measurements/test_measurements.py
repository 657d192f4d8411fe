"""Measurements: frozen values, whole on disk or not there, with no exact answer in them."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from private_gsd import datasets, exact_counts, workloads
from private_gsd.counting.exact import ExactCounts, count
from private_gsd.data.encoding import Encoder
from private_gsd.errors import MeasurementError, SchemaError, WorkloadError
from private_gsd.measurements.measurements import Measurements, _checksum, measure
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.measuring import (
    NoisyRecordCount,
    release_counts,
    release_n_records,
)
from private_gsd.privacy.noise import InsecureSeededNoise, SecureNoise
from private_gsd.privacy.selection import Selection, select_by_distance, select_groups
from private_gsd.system import durable_files

SCHEMA = datasets.census_schema()
WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, 2)
    + workloads.random_halfspaces(SCHEMA, 700, seed=3)
    + workloads.tree_marginals(SCHEMA, 2)
    + workloads.random_prefixes(SCHEMA, 50)
)
TABLE = datasets.census(3000)
EXACT = exact_counts(WORKLOAD, TABLE)
BUDGET = RhoBudget.from_epsilon(1, 1e-9)


def measured(groups: list[int], noise: Any = None, **options: Any) -> Measurements:
    return measure(
        EXACT,
        groups,
        BUDGET.split([1] * len(groups)),
        accountant=LocalAccountant(BUDGET, options.get("neighbours", "replace-one")),
        noise=noise or InsecureSeededNoise(1),
        **options,
    )


EVERY_KIND = [0, 77, 78, 500, 777, 780, 850, WORKLOAD.num_groups - 1]


def test_what_a_measurement_is() -> None:
    result = measured(EVERY_KIND, SecureNoise())
    assert result.private
    assert result.n_records == 3000
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
    with pytest.raises(MeasurementError, match="the number of records is private: measure it"):
        measured([0], neighbours="add-remove")
    assert measured([0], neighbours="add-remove", n_records=2990).n_records == 2990


def test_save_and_load(tmp_path: Path) -> None:
    result = measured(EVERY_KIND)
    result.save(tmp_path / "m")
    again = Measurements.load(tmp_path / "m")
    np.testing.assert_array_equal(again.counts, result.counts)
    np.testing.assert_array_equal(again.scales, result.scales)
    assert (again.n_records, again.charges, again.private, again.neighbours) == (
        result.n_records,
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
        (text.replace('"version": 2', '"version": 99'), "found .* of version 99"),
        (text.replace("private-gsd measurements", "something else"), "found 'something else'"),
        (text.replace('"private": false', '"private": true'), "was changed or is torn"),
        (text.replace('"n_records": 3000', '"n_records": 30'), "was changed or is torn"),
        ("[" * 100_000, "not whole"),
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


def test_external_measurements() -> None:
    theirs = Measurements.from_marginals(
        SCHEMA,
        3000,
        [(["sex"], [1500.5, 1499], 10.0), (["sex", "veteran"], np.ones((2, 3)), 4.0)],
        private=True,
    )
    assert theirs.workload.num_groups == 2
    assert theirs.charges == ("", "")
    assert theirs.counts[0] == 1500.5
    joined = measured([0]) + theirs
    assert joined.workload.num_groups == 3
    with pytest.raises(MeasurementError, match="sex has 2 cells, not 3"):
        Measurements.from_marginals(SCHEMA, 3000, [(["sex"], [1, 2, 3], 1.0)], private=True)
    with pytest.raises(MeasurementError, match="no marginals were given"):
        Measurements.from_marginals(SCHEMA, 3000, [], private=True)
    with pytest.raises(MeasurementError, match="scales positive"):
        Measurements.from_marginals(SCHEMA, 3000, [(["sex"], [1, 2], 0.0)], private=True)
    with pytest.raises(MeasurementError, match="finite"):
        Measurements.from_marginals(SCHEMA, 3000, [(["sex"], [1, float("nan")], 1.0)], private=True)
    with pytest.raises(MeasurementError, match="different tables"):
        _ = measured([0]) + Measurements.from_marginals(
            SCHEMA, 5, [(["sex"], [1, 2], 1.0)], private=True
        )


def test_the_json_says_whether_it_is_private(tmp_path: Path) -> None:
    measured([0]).save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "measurements.json").read_text())["private"] is False


def test_exact_answers_are_no_measurement() -> None:
    for raw in (EXACT, EXACT.counts, EXACT.counts.tolist()):
        with pytest.raises(MeasurementError, match="counts are noisy numbers, float64, not"):
            Measurements(WORKLOAD, raw, np.ones(5), 3000, ("",), True)  # type: ignore[arg-type]


def test_measurements_are_frozen() -> None:
    result = measured([0])
    with pytest.raises(ValueError, match="read-only"):
        result.counts[0] = 99


def test_an_insecure_selection_or_total_is_told_on() -> None:
    options: dict[str, Any] = {"noise": SecureNoise()}
    assert measured([0], **options).private
    assert not measure(
        EXACT, Selection((0,), private=False), [9], accountant=LocalAccountant(BUDGET), **options
    ).private
    total = NoisyRecordCount(2990, 5.0, private=False)
    assert not measured([0], neighbours="add-remove", n_records=total, **options).private


@pytest.mark.parametrize("n_records", [2000.0, 0, -3, True, "9", 10**400])
def test_a_bad_number_of_records_is_found_before_the_charge(n_records: Any) -> None:
    accountant = LocalAccountant(BUDGET)
    with pytest.raises(MeasurementError, match="n_records must be a whole number"):
        measure(EXACT, [0], [9], accountant=accountant, noise=SecureNoise(), n_records=n_records)
    assert accountant.spent == 0
    good = measure(
        EXACT,
        [0],
        [9],
        accountant=accountant,
        noise=SecureNoise(),
        n_records=np.int64(2000),  # type: ignore[arg-type]
    )
    assert good.n_records == 2000


@pytest.mark.parametrize(("groups", "units"), [([0], [5, 9]), ([0, 1], [5]), ([0.9], [5])])
def test_shares_must_match_groups(groups: Any, units: Any) -> None:
    accountant = LocalAccountant(BUDGET)
    with pytest.raises((MeasurementError, WorkloadError)):
        measure(EXACT, groups, units, accountant=accountant, noise=SecureNoise())
    assert accountant.spent == 0


def forge(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Write a folder whose checksums are right and whose contents are not."""
    measured(EVERY_KIND).save(folder)
    document = json.loads((folder / "measurements.json").read_text())
    path = folder / document["arrays"]
    with np.load(path) as loaded:
        arrays = dict(loaded)
    change(document, arrays)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    path.write_bytes(buffer.getvalue())
    document["arrays_sha256"] = hashlib.sha256(buffer.getvalue()).hexdigest()
    document["sha256"] = _checksum(document)
    (folder / "measurements.json").write_text(json.dumps(document))


def set_array(name: str, index: Any, value: Any) -> Callable[[Any, Any], None]:
    def change(_: Any, arrays: Any) -> None:
        arrays[name][index] = value

    return change


def set_feature(**values: Any) -> Callable[[Any, Any], None]:
    def change(document: Any, _: Any) -> None:
        for family in document["families"]:
            if family["family"] == "marginals":
                family["features"][-1].update(values)

    return change


FORGED: dict[str, Callable[[Any, Any], None]] = {
    "n_records": lambda d, a: d.update(n_records=-5),
    "private": lambda d, a: d.update(private="false"),
    "neighbours": lambda d, a: d.update(neighbours="x"),
    "charges": lambda d, a: d.update(charges=[1] * len(EVERY_KIND)),
    "family": lambda d, a: d["families"][0].update(family="x"),
    "no families": lambda d, a: d.update(families=[]),
    "complex counts": lambda d, a: a.update(counts=a["counts"] + 0j),
    "short counts": lambda d, a: a.update(counts=a["counts"][:-1]),
    "nan": set_array("counts", 0, np.nan),
    "value": set_array("family3_value", 0, 10**9),
    "negative value": set_array("family3_value", 0, -1),
    "numbers": set_array("family3_numbers", (0, 0), 10**9),
    "category": set_array("family3_category", 0, 2),
    "thresholds": set_array("family3_thresholds", (0, 0), np.nan),
    "coefficients": lambda d, a: a.update(family1_coefficients=a["family1_coefficients"][:1]),
    "position": set_feature(position=-1),
    "other position": set_feature(position=0),
    "segments": set_feature(segments=[1, 1]),
    "negative segments": set_feature(segments=[-5, 1]),
    "breaks": set_feature(breaks=[3.0, 2.0, 1.0]),
    "few breaks": set_feature(breaks=[]),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
def test_unsound_contents_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    """Also where the checksums fit: the kernels trust what is loaded."""
    forge(tmp_path / "m", change)
    with pytest.raises(MeasurementError):
        Measurements.load(tmp_path / "m")


def test_two_savers_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another save between the arrays and the document of the first leaves a whole folder."""
    folder = tmp_path / "m"
    first, second = measured([0]), measured([1, 2])
    write = durable_files.write

    def interrupt(path: Path, content: bytes) -> None:
        if path.name == "measurements.json":
            monkeypatch.setattr(durable_files, "write", write)
            second.save(folder)
        write(path, content)

    monkeypatch.setattr(durable_files, "write", interrupt)
    first.save(folder)
    assert Measurements.load(folder).workload.num_groups == 1


def test_new_folders_are_synced_into_their_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def record(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    measured([0]).save(tmp_path / "new" / "deep")
    assert {str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new" / "deep")} <= set(synced)


def test_a_drafted_schema_is_not_measured() -> None:
    """Its values and bounds are those of single people, and no noise is on them."""
    drafted = replace(WORKLOAD, schema=replace(SCHEMA, drafted=True))
    exact = ExactCounts(drafted, EXACT.n_records, EXACT.counts)
    shares = np.zeros(drafted.size)
    accountant = LocalAccountant(BUDGET)
    doors: list[Callable[[Any], Any]] = [
        lambda noise: measure(exact, [0], [9], accountant=accountant, noise=noise),
        lambda noise: release_counts(exact, [0], [9], accountant=accountant, noise=noise),
        lambda noise: select_groups(
            exact, shares, 3000, [0, 1], 1, 9, accountant=accountant, noise=noise
        ),
        lambda noise: select_by_distance(
            exact, shares, 3000, [0, 1], 1, 9, accountant=accountant, noise=noise
        ),
    ]
    for door in doors:
        with pytest.raises(SchemaError, match="the schema is a draft"):
            door(SecureNoise())
    other = LocalAccountant(BUDGET, "add-remove")
    with pytest.raises(SchemaError, match="the schema is a draft"):
        release_n_records(exact, 9, accountant=other, noise=SecureNoise())
    assert (accountant.spent, other.spent) == (0, 0)
    # For experiments on public data; the result says what it is.
    for door in doors:
        assert not getattr(door(InsecureSeededNoise(1)), "private", False)


def test_measurements_by_a_drafted_schema_are_not_private() -> None:
    drafted = replace(SCHEMA, drafted=True)
    marginal = [(["sex"], [1500.5, 1499], 10.0)]
    with pytest.raises(MeasurementError, match="the schema is a draft"):
        Measurements.from_marginals(drafted, 3000, marginal, private=True)
    assert not Measurements.from_marginals(drafted, 3000, marginal, private=False).private
