"""Damage: no file of a release may be changed, cut, swapped or lost without a word."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import shutil
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from private_gsd import (
    Adaptive,
    Categorical,
    Knowledge,
    Measurements,
    Release,
    Schema,
    Synthesizer,
    datasets,
)
from private_gsd.errors import GsdError, MeasurementError, ReleaseError
from private_gsd.evaluation import release_page
from private_gsd.measurements.measurements import _checksum
from private_gsd.runs.run_folder import RunFolder
from private_gsd.runs.synthetic_table import read_table
from private_gsd.synthesis.sampling import sampled
from private_gsd.system.untrusted_files import (
    load_arrays,
    parse_json,
    read_file,
    seal,
    to_json,
    unseal,
)
from tests.fitting import QUICK, synthesizer
from tests.releases import document_of, rewrite

pytestmark = pytest.mark.worker("large")

SCHEMA = datasets.census_schema().select(["sex", "age", "marital"])
TABLE = datasets.census(500, seed=2).select(SCHEMA.names)
SETTINGS: dict[str, Any] = {
    "rows": 40,
    "threads": 1,
    "mechanism": Adaptive(epochs=2),
    "projector": QUICK,
    "workload": ["categorical:1", "halfspace:5"],
    "neighbours": "add-remove",
    "delta": 1e-6,
}
# What a complete release keeps for its run alone, and does not publish.
UNPUBLISHED = ("run.json", "table-0.npy", "table-1.npy")


# What may be missing, each with a result of its own.
LOSABLE = ("synthetic.parquet", "release.json", "table-0.npy", "table-1.npy")


class Killed(BaseException):
    """What a killed process would have done."""


def killing(*_: Any) -> None:
    raise Killed


def made(folder: Path, seed: int, *, complete: bool) -> Path:
    """A release with every kind of file."""
    marginal = [(["sex"], [250.0, 250.0 + seed], 3.0)]
    external = Measurements.from_marginals(SCHEMA, 500, marginal, private=False)
    knowledge = Knowledge({"sex = 'male'": 250}, external_measurements=[external])
    synth = synthesizer(SCHEMA, 1.0, **SETTINGS, knowledge=knowledge, random_state=seed)
    with pytest.MonkeyPatch.context() as patch:
        if complete:
            synth.fit(TABLE, release=folder / "r")
        else:
            patch.setattr(RunFolder, "finish", killing)
            with pytest.raises(Killed):
                synth.fit(TABLE, release=folder / "r")
    return folder / "r"


@pytest.fixture(scope="module", params=[True, False], ids=["complete", "interrupted"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, Path, Path]:
    """Whether releases are complete, one of them, and another one of the same table."""
    first, second = (
        made(tmp_path_factory.mktemp(name), seed, complete=request.param)
        for seed, name in enumerate(("one", "other"))
    )
    return request.param, first, second


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def used(folder: Path) -> None:
    """All that reads a release, up to where something is wrong."""
    release = Release.load(folder)
    if release.complete:
        release_page(release)
        sampled(release, 5, 0)
        release._repr_html_()
        for part in (
            release.workload,
            release.n_records(),
            release.selections(),
            release.external(),
        ):
            assert part is not None
    Synthesizer.resume(folder, TABLE)


@contextmanager
def restored(folder: Path, backup: Path) -> Iterator[None]:
    """A folder, and the ledger beside it, as they were before."""
    ledger = folder.with_name("r.ledger.db")
    shutil.copytree(folder, backup)
    shutil.copy(ledger, backup.with_suffix(".db"))
    try:
        yield
    finally:
        shutil.rmtree(folder)
        shutil.copytree(backup, folder)
        shutil.copy(backup.with_suffix(".db"), ledger)
        shutil.rmtree(backup)


def refused(folder: Path, complete: bool, name: str, what: str) -> None:
    """Whatever reads the release says so in one clean error; in a complete one, whoever it is."""
    with pytest.raises(GsdError) as caught:
        used(folder)
        pytest.fail(f"{what}: nobody noticed")
    assert "\n" not in str(caught.value), what
    if complete:
        assert isinstance(caught.value, ReleaseError), (what, caught.value)
        with pytest.raises(ReleaseError):
            Release.load(folder)
        with pytest.raises(ReleaseError):
            Release(folder).save(folder.with_name("copy"))
        assert not folder.with_name("copy").exists()


def test_no_damage_is_silent(pair: tuple[bool, Path, Path], tmp_path: Path) -> None:
    """Every file: flipped bits, cut, longer, emptied, lost, a link, and of another release."""
    complete, folder, other = pair
    rng = np.random.default_rng(0)
    names = [name for name in files_of(folder) if not (complete and name in UNPUBLISHED)]
    expected = 12 if complete else 13
    assert len(names) == expected, names
    done = 0
    for name in names:
        path = folder / name
        good = path.read_bytes()
        bad: dict[str, bytes | None] = {"lost": None, "emptied": b"", "longer": good + b"\0"}
        for bit in rng.choice(len(good) * 8, 8, replace=False).tolist():
            flipped = bytearray(good)
            flipped[bit // 8] ^= 1 << bit % 8
            bad[f"bit {bit}"] = bytes(flipped)
        for size in rng.choice(len(good), 2, replace=False).tolist():
            bad[f"cut at {size}"] = good[:size]
        theirs = other / name
        if not theirs.exists():  # arrays are named by their content
            (theirs,) = (other / name).parent.glob("arrays-*.npz")
        if theirs.read_bytes() != good:
            bad["of another release"] = theirs.read_bytes()
        else:
            assert name in ("schema.toml", "workload.json", "workload.npz")
        for what, content in bad.items():
            if content is None and name in LOSABLE:
                continue  # below
            with restored(folder, tmp_path / "backup"):
                path.unlink()
                if content is not None:
                    path.write_bytes(content)
                refused(folder, complete, name, f"{name}: {what}")
            done += 1
        with restored(folder, tmp_path / "backup"):
            path.rename(tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
            refused(folder, complete, name, f"{name}: a link")
            (tmp_path / "elsewhere").unlink()
    assert done >= 12 * len(names)
    with restored(folder, tmp_path / "backup"):
        used(folder)  # and as it was, it is whole


def test_what_is_lost_is_told(pair: tuple[bool, Path, Path], tmp_path: Path) -> None:
    complete, folder, _ = pair
    with restored(folder, tmp_path / "backup"):
        (folder / "release.json").unlink()
        with pytest.raises(ReleaseError, match="holds no release"):
            Release.load(folder)
    if not complete:
        with restored(folder, tmp_path / "backup"):  # made again, of the measurements
            (folder / "table-1.npy").unlink()
            used(folder)
            expected = Release.load(folder).synthetic
        with restored(folder, tmp_path / "backup"):  # a later one is there
            (folder / "table-0.npy").unlink()
            used(folder)
            assert Release.load(folder).synthetic.equals(expected)
        with restored(folder, tmp_path / "backup"):
            (folder / "table-0.npy").unlink()
            (folder / "table-1.npy").unlink()
            with pytest.raises(MeasurementError, match="table 0 of the run is gone"):
                used(folder)
    else:
        with restored(folder, tmp_path / "backup"):
            (folder / "synthetic.parquet").unlink()
            with pytest.raises(ReleaseError, match="has no synthetic table yet"):
                release_page(Release.load(folder))
            with pytest.raises(ReleaseError, match="is missing"):
                Release.load(folder).save(tmp_path / "copy")
            used(Synthesizer.resume(folder).release_.folder)  # it is made again


def test_a_folder_behind_a_link(pair: tuple[bool, Path, Path], tmp_path: Path) -> None:
    complete, folder, _ = pair
    for name in ("measurements", "external"):
        with restored(folder, tmp_path / "backup"):
            (folder / name).rename(tmp_path / name)
            (folder / name).symlink_to(tmp_path / name)
            refused(folder, complete, name, name)


def test_files_that_are_not_listed_are_not_read(tmp_path: Path) -> None:
    """External measurements and a number of rows that the release was not made with."""
    folder = tmp_path / "r"
    synth = Synthesizer(SCHEMA, 1.0, rows=40, mechanism="one-shot", projector=QUICK)
    synth.fit(TABLE, release=folder)
    other = made(tmp_path / "other", 1, complete=True)
    for name in ("n_records.json", "selections.json"):
        shutil.copy(other / name, folder / name)
    shutil.copytree(other / "external", folder / "external")
    release = Release.load(folder)
    assert (release.n_records(), release.selections(), release.external()) == (None, [], None)
    assert not (release.save(tmp_path / "copy").folder / "external").exists()


# Forgers, whose checksums are right


def entries(folder: Path, **files: Any) -> dict[str, Any]:
    listed: dict[str, Any] = document_of(folder)["files"]
    return {**listed, **files}


def listed(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize(
    "name",
    [
        *("../victim.txt", "/tmp/victim.txt", "measurements/../../victim.txt", "external/x", ""),
        *("measurements/arrays-0123456789abcdef.npz", "run.json", "table-0.npy", ".", ".."),
        *("measurements/arrays-../../victim.npz", "schema.toml/", "a\0b", "synthetic.parquet\n"),
    ],
)
def test_a_name_that_no_release_has(name: str, tmp_path: Path) -> None:
    folder = made(tmp_path / "one", 0, complete=True)
    victim = tmp_path / "one" / "victim.txt"
    victim.write_text("mine")
    target = tmp_path / "two" / "copy"
    (tmp_path / "two" / "victim.txt").parent.mkdir()
    (tmp_path / "two" / "victim.txt").write_text("mine, too")
    rewrite(folder, files=entries(folder, **{name: listed(b"mine")}))
    with pytest.raises(ReleaseError, match="the list of files"):
        Release(folder).save(target)
    assert not target.exists()
    assert (tmp_path / "two" / "victim.txt").read_text() == "mine, too"


def renamed(folder: Path, arrays: str) -> None:
    """Measurements whose document names another file of arrays."""
    path = folder / "measurements.json"
    document = json.loads(path.read_text())
    content = (folder / document["arrays"]).read_bytes()
    document["arrays"] = arrays
    document["sha256"] = _checksum(document)
    path.write_bytes(to_json(document))
    victim = folder / arrays
    if not victim.exists():
        victim.write_bytes(content)


def test_measurements_that_name_a_file_elsewhere(tmp_path: Path) -> None:
    """It is neither read, nor copied over, nor removed."""
    folder = made(tmp_path / "one", 0, complete=True)
    renamed(folder / "measurements", "../../arrays-escaped.npz")
    forged = (folder / "measurements" / "measurements.json").read_bytes()
    name = "measurements/measurements.json"
    rewrite(folder, files=entries(folder, **{name: listed(forged)}))
    with pytest.raises(GsdError):
        Release.load(folder).measurements()
    victim = tmp_path / "two" / "arrays-escaped.npz"
    victim.parent.mkdir()
    victim.write_text("mine")
    copy = Release.load(folder).save(tmp_path / "two" / "copy" / "deep")
    with pytest.raises(GsdError):
        copy.measurements()
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", ["precious.txt", "../precious.txt", "measurements.json"])
def test_saving_removes_no_file_by_a_forged_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    mine = Measurements.from_marginals(SCHEMA, 500, [(["sex"], [250.0, 250.0], 3.0)], private=True)
    mine.save(folder)
    if name != "measurements.json":
        (folder / name).write_text("precious")
    renamed(folder, name)
    with pytest.raises(MeasurementError, match="as its file of arrays"):
        Measurements.load(folder)
    with pytest.raises(MeasurementError, match="cannot be read"):
        Measurements.tidy(folder)
    Measurements.from_marginals(SCHEMA, 500, [(["sex"], [1.0, 2.0], 3.0)], private=True).save(
        folder
    )
    assert (folder / name).exists()
    assert Measurements.load(folder).counts.tolist() == [1.0, 2.0]


def test_a_damaged_document_does_not_cost_the_arrays(tmp_path: Path) -> None:
    """What tidies up believes no name in a document whose checksum is wrong."""
    folder = tmp_path / "m"
    Measurements.from_marginals(SCHEMA, 500, [(["sex"], [250.0, 250.0], 3.0)], private=True).save(
        folder
    )
    (arrays,) = folder.glob("arrays-*.npz")
    path = folder / "measurements.json"
    good = path.read_text()
    path.write_text(good.replace(arrays.name, "arrays-0123456789abcdef.npz"))
    with pytest.raises(MeasurementError, match="cannot be read"):
        Measurements.tidy(folder)
    path.write_text(good)
    assert Measurements.load(folder).counts.tolist() == [250.0, 250.0]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "release.json")
    with pytest.raises(ReleaseError, match="not a plain file"):
        Release.load(tmp_path)


def test_a_release_of_before_there_was_a_manifest(tmp_path: Path) -> None:
    old = {"format": "private-gsd release", "version": 1, "complete": True, "settings": {}}
    (tmp_path / "release.json").write_text(json.dumps(old))
    with pytest.raises(ReleaseError, match="of version 1; read it with the private-gsd that made"):
        Release.load(tmp_path)


# Bombs: small files that would unpack to gigabytes

GIGABYTE = 2**30


@contextmanager
def little_memory(most: int = 2**26) -> Iterator[None]:
    """At most 64 MiB are taken meanwhile."""
    tracemalloc.start()
    arrow = pa.total_allocated_bytes()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
        assert pa.total_allocated_bytes() - arrow < most
    finally:
        tracemalloc.stop()


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    form = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, form)
    return buffer.getvalue()


def packed(how: int, parts: list[bytes], name: str = "counts.npy") -> bytes:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", how) as file,
        file.open(name, "w", force_zip64=True) as member,
    ):
        for part in parts:
            member.write(part)
    return buffer.getvalue()


ZEROS = [header((GIGABYTE // 8,)), *[bytes(2**20)] * 1024]


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    few = io.BytesIO()
    np.savez(few, counts=np.zeros(3))
    return {
        "deflated": packed(zipfile.ZIP_DEFLATED, ZEROS),
        "lying header": packed(zipfile.ZIP_STORED, [header((GIGABYTE,)), bytes(8)]),
        "huge shape": packed(zipfile.ZIP_STORED, [header((2**40, 2**40)), bytes(8)]),
        "objects": packed(zipfile.ZIP_STORED, [header((1,), "|O"), bytes(8)]),
        "wide texts": packed(zipfile.ZIP_STORED, [header((1,), "<U500000000"), bytes(8)]),
        "other names": few.getvalue().replace(b"counts", b"kounts"),
        "lying directory": few.getvalue().replace(
            (152).to_bytes(4, "little") * 2, (2**31).to_bytes(4, "little") * 2
        ),
        "torn": few.getvalue()[:-1],
        "nothing": b"",
    }


KINDS = [
    *("deflated", "lying header", "huge shape", "objects", "wide texts", "other names"),
    *("lying directory", "torn", "nothing"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_that_are_larger_than_their_file(
    kind: str, bombs: dict[str, bytes], tmp_path: Path
) -> None:
    content = bombs[kind]
    assert set(KINDS) == set(bombs)
    assert len(content) < 2**21
    with little_memory(), pytest.raises(ValueError, match=r"."):
        load_arrays(content, "counts")
    folder = tmp_path / "m"
    Measurements.from_marginals(SCHEMA, 500, [(["sex"], [250.0, 250.0], 3.0)], private=True).save(
        folder
    )
    document = json.loads((folder / "measurements.json").read_text())
    (folder / document["arrays"]).write_bytes(content)
    document["arrays_sha256"] = hashlib.sha256(content).hexdigest()
    document["sha256"] = _checksum(document)
    (folder / "measurements.json").write_bytes(to_json(document))
    with little_memory(), pytest.raises(MeasurementError, match="not whole"):
        Measurements.load(folder)


def forged(folder: Path, name: str, content: bytes) -> None:
    """Put a file in, with the right checksum."""
    (folder / name).write_bytes(content)
    rewrite(folder, files=entries(folder, **{name: listed(content)}))


def test_bombs_in_a_release(bombs: dict[str, bytes], tmp_path: Path) -> None:
    folder = made(tmp_path / "one", 0, complete=True)
    good = (folder / "workload.npz").read_bytes()
    for kind in KINDS:
        forged(folder, "workload.npz", bombs[kind])
        with little_memory(), pytest.raises(ReleaseError, match="cannot be read"):
            _ = Release.load(folder).workload
    forged(folder, "workload.npz", good)
    half = made(tmp_path / "two", 0, complete=False)
    for shape in ((GIGABYTE,), (2**40, 2**40)):
        content = header(shape) + bytes(8)
        run = RunFolder(half)
        (half / "table-1.npy").write_bytes(run._mark(1, content) + content)
        with little_memory(), pytest.raises(ReleaseError, match="another size"):
            run.table(1)


def test_synthetic_tables_that_unpack_to_gigabytes(tmp_path: Path) -> None:
    folder = made(tmp_path / "one", 0, complete=True)
    good = Release.load(folder).synthetic

    def write(table: pa.Table, **options: Any) -> bytes:
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(table, buffer, **{"compression": "none", **options})
        return buffer.getvalue()

    def rows(number: int) -> pa.Table:
        return good.take(pa.array([0] * number))

    many = write(rows(2**20))  # a few kilobytes
    assert len(many) < 2**14
    cases = {"rows, not the": [many, write(good.slice(0, 39))]}
    cases["is compressed"] = [write(good, compression=how) for how in ("snappy", "zstd", "gzip")]
    cases["other columns"] = [write(good.select(["sex"])), write(good.rename_columns(list("abc")))]
    cases["cannot be read"] = [b"", b"PAR1", many[:-9], b"PAR1" + many[4:-8] + b"\xff" * 8]
    for words, contents in cases.items():
        for content in contents:
            forged(folder, "synthetic.parquet", content)
            with little_memory(), pytest.raises(ReleaseError, match=words):
                _ = Release.load(folder).synthetic
    # Settings that were forged along with it: a bound that is public.
    forged(folder, "synthetic.parquet", write(good))
    settings = document_of(folder)["settings"]
    rewrite(folder, settings={**settings, "rows": 2**40})
    with pytest.raises(ReleaseError, match="rows, not the"):
        _ = Release.load(folder).synthetic


def test_a_long_text_in_many_rows() -> None:
    """It stands in the file once, and would stand in memory 65,536 times."""
    text, rows = "x" * 2**20, 2**16
    schema = Schema([*SCHEMA.select(["age"]).columns, Categorical("text", values=[text, "y"])])
    coded = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), [text])
    fields = [pa.field("age", pa.int64(), False), pa.field("text", coded.type, False)]
    forgery = pa.table([pa.array([1] * rows), coded], schema=pa.schema(fields))
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(forgery, buffer, compression="none", store_schema=False)
    assert len(buffer.getvalue()) < 2**22
    with little_memory(), pytest.raises(ValueError, match="takes more than"):
        read_table(buffer.getvalue(), schema, rows)


def test_a_table_that_could_not_be_read_again_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("private_gsd.system.memory.available", lambda: float("inf"))
    with pytest.raises(ReleaseError, match="ask for fewer rows"):
        Synthesizer(SCHEMA, 1.0, rows=2**30).fit(TABLE, release=tmp_path / "r")
    assert not (tmp_path / "r" / "release.json").exists()


# Documents


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ("[" * 102 + "]" * 102, "nested too deeply"),
        ("9" * 5000, "a whole number of 5,000 digits"),
        ('{"rows": -' + "9" * 400_000 + "}", "400,001 digits"),
        ("[1, 2", "Expecting"),
        (b"\xff\xfe", "decode"),
    ],
)
def test_documents_that_no_one_should_write(text: str | bytes, words: str, tmp_path: Path) -> None:
    content = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ValueError, match=words):
        parse_json(content)
    folder = tmp_path / "m"
    folder.mkdir()
    for name, load in (("measurements.json", Measurements.load), ("release.json", Release.load)):
        (folder / name).write_bytes(content)
        with pytest.raises(GsdError, match=words):
            load(folder)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(GIGABYTE)  # takes no room on the disk
    with little_memory(), pytest.raises(ValueError, match="more than the 1,000 bytes"):
        read_file(path, 1000)


@pytest.mark.slow
def test_forged_settings_are_one_line(tmp_path: Path) -> None:
    """Values of any kind, with the right checksum: an error of ours, and no other."""
    folder = made(tmp_path / "one", 0, complete=False)
    settings, run = document_of(folder)["settings"], document_of(folder, "run.json")
    values: list[Any] = [None, [], {}, "x", -1, 1e308, 10**39, "\ud800", "a\0b", [[]], {"a": 1}]
    noticed = 0
    parts = [
        (part, name)
        for part, inner in settings.items()
        if isinstance(inner, dict)
        for name in [*inner, "other"]
    ]
    for name, value in itertools.product([*settings, *parts, *run], values):
        with restored(folder, tmp_path / "backup"):
            if isinstance(name, tuple):
                part = {**settings[name[0]], name[1]: value}
                rewrite(folder, settings={**settings, name[0]: part})
            elif name in settings:
                rewrite(folder, settings={**settings, name: value})
            else:
                rewrite(folder, "run.json", **{name: value})
            try:
                Synthesizer.resume(folder, TABLE)
            except GsdError:
                noticed += 1
    assert noticed > 100


def test_sealing_is_exact() -> None:
    document = {"a": [1, 2.5, None, True], "ü": "\udcff\x1b", "nested": {"x": {}}}
    content = seal(document)
    assert unseal(content) == document
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            with pytest.raises(ValueError, match=r"."):
                unseal(bytes(flipped))
