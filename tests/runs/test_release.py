"""Release folders: complete, torn, forged, or not releases at all."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import (
    Categorical,
    Integer,
    Schema,
)
from private_gsd.errors import (
    ReleaseError,
)
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.runs.release import Release
from private_gsd.runs.run_folder import RunFolder
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.system.untrusted_files import seal
from tests.fitting import QUICK, SCHEMA, SMALL, TABLE
from tests.runs.kills import Killed, killing


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"{}", "run.json: cannot be read: was changed or is torn"),
        ("run.json", seal({}), "run.json is damaged: 'run'"),
        ("run.json", seal({"run": 1}), "run.json is damaged: 'run'"),
        ("run.json", b"[" * 100_000, "run.json: cannot be read"),
        ("release.json", b"[" * 100_000, "release.json: cannot be read"),
        ("table-0.npy", b"torn", "table-0.npy: was changed or is torn"),
        ("table-0.npy", b"", "table-0.npy: was changed or is torn"),
    ],
)
def test_files_that_are_damaged(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "finish", killing)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=folder)
    (folder / name).write_bytes(content)
    with pytest.raises(ReleaseError, match=re.escape(message)):
        Synthesizer.resume(folder, TABLE)


def test_a_synthetic_table_that_is_torn_or_gone(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    release = Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=folder).release_
    path = folder / "synthetic.parquet"
    good = path.read_bytes()
    pyarrow.parquet.write_table(release.synthetic.slice(0, 7), path)
    with pytest.raises(ReleaseError, match="was changed or is torn"):
        release.synthetic  # noqa: B018
    path.write_bytes(good[:100])
    with pytest.raises(ReleaseError, match="was changed or is torn"):
        Synthesizer.resume(folder).sample()
    path.unlink()
    with pytest.raises(ReleaseError, match="has no synthetic table yet"):
        release.synthetic  # noqa: B018
    assert Synthesizer.resume(folder).sample().num_rows == 60
    assert path.read_bytes() == good
    (folder / "privacy.json").write_text("{}")
    with pytest.raises(ReleaseError, match=r"privacy\.json: was changed or is torn"):
        release.privacy  # noqa: B018


def test_a_folder_with_other_things_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)
    (folder / "release.json").unlink()
    with pytest.raises(ReleaseError, match="is not empty"):
        Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)


@pytest.mark.parametrize("name", ["schema.toml", "external/measurements.json", "run.json"])
def test_files_of_the_user_that_are_called_as_ours(name: str, tmp_path: Path) -> None:
    """They are not taken for what a killed run left, and neither replaced nor removed."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("the user's own")
    with pytest.raises(ReleaseError, match="is not empty"):
        Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=tmp_path)
    assert file.read_text() == "the user's own"


def test_temporary_files_of_the_user_stay(tmp_path: Path) -> None:
    (tmp_path / ".notes.tmp").write_text("the user's own")
    with pytest.raises(ReleaseError, match="is not empty"):
        Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=tmp_path)
    made = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE).release_
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "schema.toml").write_text("the user's own")
    with pytest.raises(ReleaseError, match="is not empty"):
        made.save(tmp_path / "other")
    assert (tmp_path / "other" / "schema.toml").read_text() == "the user's own"


def test_a_release_is_saved_loaded_and_projected_anew(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    synth.release_.save(tmp_path / "release")
    release = Release.load(tmp_path / "release")
    names = {path.name for path in release.folder.iterdir()}
    assert names == {
        *("release.json", "schema.toml", "workload.json", "workload.npz", "measurements"),
        *("synthetic.parquet", "privacy.json"),
    }
    with pytest.raises(ReleaseError, match=r"has no run\.json"):
        _ = RunFolder.load(release.folder).run
    assert release.synthetic.equals(synth.release_.synthetic)
    assert release.schema == SCHEMA
    measured = release.measurements()
    assert isinstance(measured, Measurements)
    # More rows, another seed: from the measurements alone.
    again = evolve(measured, GeneticSearch(rows=500), seed=9)
    assert again.table.num_rows == 500
    with pytest.raises(ReleaseError, match="holds a release already"):
        synth.release_.save(tmp_path / "release")
    with pytest.raises(ReleaseError, match="holds a release already; resume it"):
        Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=tmp_path / "release")


def test_no_file_of_a_release_holds_a_row_or_an_exact_count(tmp_path: Path) -> None:
    """A canary: a row that no synthetic row can be, and counts that stand out."""
    schema = Schema(
        [
            Categorical("name", values=[f"person {number:05d}" for number in range(400)]),
            Integer("pay", lower=0, upper=10**9),
            Categorical("job", values=["a", "b"]),
        ]
    )
    canary = 987_654_321
    people = pa.table(
        {
            "name": [f"person {number % 399:05d}" for number in range(5000)],
            "pay": [canary] * 5000,
            "job": ["a"] * 4321 + ["b"] * 679,
        }
    )
    folder = tmp_path / "release"
    synth = Synthesizer(
        schema, epsilon=0.01, rows=50, workload=["categorical:1", "tree:1"], projector=QUICK
    )
    # Real noise may hit the exact count.
    synth.fit(people, release=folder, insecure_noise_seed=1)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 8
    exact = np.array([4321], dtype=np.float64)
    for path in files:
        content = path.read_bytes()
        for secret in (str(canary).encode(), np.float64(canary).tobytes()):
            assert secret not in content, path
        # As a number of its own: digests and times may hold any four digits.
        assert not re.search(rb"(?<![0-9a-f.])4321(?![0-9a-f.])", content), path
        if path.name != "synthetic.parquet":  # compressed floats may hold any eight bytes
            assert exact.tobytes() not in content, path
    assert b"987654321" not in pickle.dumps(synth)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "release.json").unlink(), "holds no release"),
        (lambda folder: (folder / "release.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "release.json").write_text("[]"), "not what a release has"),
        (lambda folder: (folder / "workload.npz").write_text(""), "workload.npz: was changed"),
        (
            lambda folder: (folder / "release.json").write_text(json.dumps({"format": "x"})),
            "expected 'private-gsd release' of version 3, found 'x'",
        ),
    ],
)
def test_folders_that_hold_no_release(
    change: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "release"
    Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)
    change(folder)
    with pytest.raises(ReleaseError, match=message):
        release = Release.load(folder)
        _ = release.workload, release.selections()
