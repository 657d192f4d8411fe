"""Releases: a folder that holds all that may leave the house, and what a killed run goes on from.

    release.json         what it is: settings, versions, whether it is complete
    run.json             what only the run needs: where the data and the ledger are
    schema.toml          the public schema
    workload.json, .npz  the questions
    evidence/            noisy answers from elsewhere, if any were given
    measurements/        the noisy answers
    total.json           the number of rows, where it was measured
    epochs.json          of an adaptive run, the groups selected
    table-N.npy          the encoded synthetic table at the end of epoch N (0 for one-shot)
    synthetic.parquet    the synthetic table
    privacy.json         what was promised and spent

Every file is written whole or not at all. None holds a row of the data or an exact count. A saved
release has no ``run.json``. The ledger of a run that was given none lies beside the folder: a copy
of the folder then has no ledger of its own to draw under.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import platform
import shutil
import zipfile
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from private_gsd.encoding import Encoder
from private_gsd.errors import MeasurementError, ReleaseError, SchemaError, WorkloadError
from private_gsd.markup import html_table
from private_gsd.measurement import (
    Measurements,
    check_rows,
    digest_of,
    make_folder,
    publish,
    recover,
    write_durably,
)
from private_gsd.privacy.release import NoisyTotal
from private_gsd.schema import Schema
from private_gsd.workloads.serial import dump_workload, load_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]
    Before = Callable[[str], object]

# What reading a damaged file may raise.
DAMAGED = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, zipfile.BadZipFile),
    *(SchemaError, WorkloadError, pa.ArrowException),
)
INPUTS = ("schema.toml", "workload.json", "workload.npz")
OUTSIDE = "evidence/measurements.json"
# Settings that say what was claimed.
CLAIMS = ("totals", "derived")
# What was drawn, and where it is kept.
KEPT = {
    "total": "total.json",
    "epochs": "epochs.json",
    "measurements": "measurements/measurements.json",
}
# What run.json says, and of what kind it is.
RUN: dict[str, Any] = {"run": str, "ledger": str, "data": str | None, "opened": bool}
FORMAT = "private-gsd release"
VERSION = 1


class Release:
    """A release folder; also the checkpoint of the run that fills it.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()

    def __repr__(self) -> str:
        return f"<Release {self.folder.name}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("complete", "yes" if self.complete else "not yet")]
        if self.finished:
            record = self.privacy
            rows += [
                ("private", "yes" if record["private"] else "NO: the noise came from a seed"),
                ("epsilon spent so far", f"{record['spent']['epsilon']:.4g}"),
                ("at delta", f"{record['delta']:.3g}"),
                ("synthetic rows", f"{self.synthetic.num_rows:,}"),
            ]
        return html_table(f"Release {self.folder.name}", ("", "value"), rows, words=(1,))

    def begin(
        self,
        settings: dict[str, Any],
        run: dict[str, Any],
        workload: Workload,
        outside: Measurements | None = None,
    ) -> None:
        """Begin a release, in a folder that is locked and holds nothing of another one.

        Args:
            settings: The settings of the run, for JSON.
            run: What only this run needs, for JSON.
            workload: The questions.
            outside: Measurements made elsewhere.
        """
        self.check_free()
        families, arrays = dump_workload(workload)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        with self._writing():
            write_durably(self.folder / "schema.toml", workload.schema.to_toml().encode())
            write_durably(self.folder / "workload.npz", buffer.getvalue())
            self._write("workload.json", {"families": families})
            self._write("run.json", run)
            if outside is not None:
                outside.save(self.folder / "evidence")
            document = {
                "format": FORMAT,
                "version": VERSION,
                "complete": False,
                "settings": settings,
                "inputs_sha256": self._inputs(settings),
                "software": _software(),
            }
            self._write("release.json", document)

    @property
    def is_one(self) -> bool:
        """Whether the folder holds a release, whatever else is wrong with it."""
        try:
            document = self._read("release.json")
        except ReleaseError:
            return True
        return document is not None and document.get("format") == FORMAT

    def check_free(self) -> None:
        """Refuse a folder that holds a release, or anything that could be taken for one."""
        if not self.folder.exists():
            return
        if (self.folder / "release.json").exists():
            raise ReleaseError(
                f"{self.folder}: holds a release already; go on with it ('private-gsd resume "
                f"{self.folder}'), or choose another folder"
            )
        if not self.folder.is_dir():
            raise ReleaseError(f"{self.folder}: is a file, and a release needs a folder")
        # What a killed beginning left is ours; anything else could be taken for it.
        mine = {*INPUTS, "run.json", "evidence"}
        others = [path.name for path in self.folder.iterdir() if path.name not in mine]
        others = [name for name in others if not (name.startswith(".") and name.endswith(".tmp"))]
        if others:
            raise ReleaseError(
                f"{self.folder}: is not empty ({sorted(others)[0]!r} is there); a release needs a "
                "folder of its own"
            )

    def _inputs(self, settings: dict[str, Any]) -> str:
        """A digest of what the run is about."""
        names = [*INPUTS]
        if (self.folder / OUTSIDE).exists():
            names.append(OUTSIDE)
        parts = [digest_of(self.folder / name) for name in names]
        claims = {name: settings.get(name) for name in CLAIMS if settings.get(name)}
        if claims:
            parts.append(json.dumps(claims, sort_keys=True))
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def check_inputs(self) -> None:
        """Refuse to go on with another schema or workload than the run began with."""
        with self._reading():
            if self._inputs(self.settings) != self._document.get("inputs_sha256"):
                raise ReleaseError(
                    f"{self.folder}: the schema, the workload or what was claimed was changed "
                    "since the run began; put it back, or begin anew"
                )

    def discard(self) -> None:
        """Remove what ``begin`` wrote, where nothing was paid for."""
        for name in ("release.json", "run.json", *INPUTS):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "evidence", ignore_errors=True)

    def tidy(self, kept_at: Callable[[str], int]) -> None:
        """Before anything is drawn: show what was kept when a kill came, and remove the rest.

        Args:
            kept_at: By a digest, when the ledger took it down; see ``recover``.
        """
        with self._writing():
            for name in KEPT.values():
                recover(self.folder / name, kept_at)
            for path in self.folder.glob(".*.tmp"):
                path.unlink()
        Measurements.tidy(self.folder / "measurements")

    def digest(self, kind: str) -> str:
        """Of the "total", the "epochs" or the "measurements", as they were kept."""
        with self._reading():
            return digest_of(self.folder / KEPT[kind])

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Open a release, complete or not; anything else is refused."""
        release = cls(folder)
        document = release._read("release.json")
        if document is None:
            raise ReleaseError(f"{release.folder}: holds no release (there is no release.json)")
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise ReleaseError(
                f"{release.folder}: expected {FORMAT!r} of version {VERSION}, found "
                f"{document.get('format')!r} of version {document.get('version')!r}"
            )
        return release

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else works on this release meanwhile, or two runs would draw under one charge."""
        with self._writing():
            make_folder(self.folder)
            descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ReleaseError(f"{self.folder}: another process is working on it") from None
            except OSError as error:
                raise ReleaseError(f"{self.folder}: cannot be locked: {error.strerror}") from None
            yield
        finally:
            os.close(descriptor)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run."""
        settings: dict[str, Any] = self._document["settings"]
        return settings

    @property
    def run(self) -> dict[str, Any]:
        """What only the run needs; a release that was handed on has none."""
        document = self._read("run.json")
        if document is None:
            raise ReleaseError(f"{self.folder}: has no run.json, and so no run to go on with")
        for name, kind in RUN.items():
            if not isinstance(document.get(name), kind):
                raise ReleaseError(f"{self.folder}: run.json is damaged: {name!r}")
        return document

    @property
    def complete(self) -> bool:
        """Whether the run came to its end."""
        return bool(self._document["complete"])

    @property
    def finished(self) -> bool:
        """Whether it is complete, and its synthetic table still there."""
        return self.complete and (self.folder / "synthetic.parquet").exists()

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return Schema.read(self.folder / "schema.toml")

    @property
    def workload(self) -> Workload:
        """The questions."""
        document = self._read("workload.json")
        try:
            with np.load(self.folder / "workload.npz", allow_pickle=False) as arrays:
                return load_workload(self.schema, (document or {})["families"], dict(arrays))
        except DAMAGED as error:
            raise ReleaseError(f"{self.folder}: the workload cannot be read: {error}") from None

    @property
    def privacy(self) -> dict[str, Any]:
        """What was promised and spent."""
        record = self._read("privacy.json")
        if record is None:
            raise ReleaseError(f"{self.folder}: not complete yet, and so without a privacy record")
        spent = record.get("spent")
        numbers = [record.get("delta"), *(spent.values() if isinstance(spent, dict) else [None])]
        if not (
            all(isinstance(number, int | float) for number in numbers)
            and isinstance(spent, dict)
            and {"rho", "epsilon"} <= set(spent)
            and {"dataset", "neighbours", "private"} <= set(record)
        ):
            raise ReleaseError(f"{self.folder}: privacy.json is damaged")
        return record

    @property
    def synthetic(self) -> pa.Table:
        """The synthetic table, in the schema's types."""
        if not self.finished:
            raise ReleaseError(
                f"{self.folder}: has no synthetic table yet; 'private-gsd resume {self.folder}' "
                "goes on"
            )
        path = self.folder / "synthetic.parquet"
        with self._reading():
            if digest_of(path) != self._document.get("synthetic_sha256"):
                raise ReleaseError(f"{path}: was changed or is torn")
            return pyarrow.parquet.read_table(path)

    @property
    def matrix(self) -> Matrix:
        """The synthetic table, encoded."""
        table = self.synthetic.combine_chunks()
        return Encoder(self.schema).encode(table.to_batches()[0])

    def measurements(self) -> Measurements | None:
        """The noisy answers, if anything was measured."""
        folder = self.folder / "measurements"
        return Measurements.load(folder) if (folder / "measurements.json").exists() else None

    def outside(self) -> Measurements | None:
        """Measurements made elsewhere, if any were given."""
        folder = self.folder / "evidence"
        return Measurements.load(folder) if (self.folder / OUTSIDE).exists() else None

    def epochs(self) -> list[list[int]]:
        """The groups that were selected, epoch by epoch."""
        document = self._read("epochs.json")
        epochs = [] if document is None else document.get("epochs")
        if not isinstance(epochs, list) or not all(
            isinstance(epoch, list) and all(type(group) is int for group in epoch)
            for epoch in epochs
        ):
            raise ReleaseError(f"{self.folder}: epochs.json is damaged")
        return epochs

    def table(self, epoch: int) -> Matrix | None:
        """The encoded synthetic table at the end of an epoch."""
        path = self.folder / f"table-{epoch}.npy"
        if not path.exists():
            return None
        with self._reading():
            content = path.read_bytes()
            digest, content = content[:64], content[64:]
            if hashlib.sha256(content).hexdigest().encode() != digest:
                raise ReleaseError(f"{path}: was changed or is torn")
            values: Matrix = np.load(io.BytesIO(content), allow_pickle=False)
        return values

    def total(self) -> NoisyTotal | None:
        """The number of rows, if it was measured."""
        document = self._read("total.json")
        if document is None:
            return None
        try:
            return NoisyTotal(
                check_rows(document["rows"]), float(document["scale"]), document["private"] is True
            )
        except (LookupError, TypeError, ValueError, MeasurementError):
            raise ReleaseError(f"{self.folder}: total.json is damaged") from None

    def keep_total(self, total: NoisyTotal, before: Before) -> None:
        """Keep the number of rows."""
        with self._writing():
            publish(self.folder / KEPT["total"], _json(total._asdict()), before)

    def keep_epochs(self, epochs: list[list[int]], before: Before) -> None:
        """Keep which groups were selected."""
        with self._writing():
            publish(self.folder / KEPT["epochs"], _json({"epochs": epochs}), before)

    def keep_measurements(self, measurements: Measurements, before: Before) -> None:
        """Keep what was measured."""
        measurements.save(self.folder / "measurements", before)

    def keep_table(self, epoch: int, table: Matrix) -> None:
        """Keep a synthetic table, and the one before it."""
        buffer = io.BytesIO()
        np.save(buffer, table, allow_pickle=False)
        digest = hashlib.sha256(buffer.getvalue()).hexdigest().encode()
        with self._writing():
            write_durably(self.folder / f"table-{epoch}.npy", digest + buffer.getvalue())
            for old in self.folder.glob("table-*.npy"):
                if old.stem not in (f"table-{epoch}", f"table-{epoch - 1}"):
                    old.unlink(missing_ok=True)

    def note(self, **facts: Any) -> None:
        """Keep a fact about the run."""
        with self._writing():
            self._write("run.json", {**self.run, **facts})

    def save(self, folder: str | Path) -> Release:
        """Copy a complete release to another folder, which must not hold one."""
        if not self.complete:
            raise ReleaseError(f"{self.folder}: not complete yet, and so not to be handed on")
        other = Release(folder)
        if (other.folder / "release.json").exists():
            raise ReleaseError(f"{other.folder}: holds a release already; choose another folder")
        with other._writing():
            make_folder(other.folder)
            names = ["schema.toml", "workload.npz", "workload.json", "total.json", "epochs.json"]
            for folder_ in ("measurements", "evidence"):
                path = self.folder / folder_ / "measurements.json"
                if path.exists():
                    arrays = json.loads(path.read_text())["arrays"]
                    names += [f"{folder_}/{arrays}", f"{folder_}/measurements.json"]
            # The document comes last: without it there is no release.
            names += ["synthetic.parquet", "privacy.json", "release.json"]
            for path in (self.folder / name for name in names):
                if path.name in ("total.json", "epochs.json") and not path.exists():
                    continue
                target = other.folder / path.relative_to(self.folder)
                make_folder(target.parent)
                write_durably(target, path.read_bytes())
        return other

    def finish(self, table: pa.RecordBatch, privacy: dict[str, Any]) -> None:
        """Write the synthetic table and the privacy record, and say that all is there."""
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pa.Table.from_batches([table]), buffer)
        content = buffer.getvalue()
        with self._writing():
            write_durably(self.folder / "synthetic.parquet", content)
            self._write("privacy.json", privacy)
            digest = hashlib.sha256(content).hexdigest()
            document = {**self._document, "complete": True, "synthetic_sha256": digest}
            self._write("release.json", document)

    @property
    def _document(self) -> dict[str, Any]:
        document = self._read("release.json")
        if document is None:
            raise ReleaseError(f"{self.folder}: holds no release (there is no release.json)")
        if not isinstance(document.get("settings"), dict) or "complete" not in document:
            raise ReleaseError(f"{self.folder}: release.json is damaged")
        return document

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise ReleaseError(f"{path}: cannot be read: {error}") from None
        if not isinstance(document, dict):
            raise ReleaseError(f"{path}: not what a release has there")
        return document

    def _write(self, name: str, document: dict[str, Any]) -> None:
        write_durably(self.folder / name, _json(document))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ReleaseError(f"{self.folder}: cannot be written: {error.strerror}") from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except DAMAGED as error:
            raise ReleaseError(f"{self.folder}: cannot be read: {error}") from None


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, ensure_ascii=False).encode()


def _software() -> dict[str, str]:
    """What made the release."""
    return {
        "private-gsd": version("private-gsd"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
