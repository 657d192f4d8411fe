"""Releases: a folder that holds all that may leave the house, and what a killed run goes on from.

    release.json         what it is: settings, versions, whether it is complete
    schema.toml          the public schema
    workload.json, .npz  the questions
    measurements/        the noisy answers
    epochs.json          of an adaptive run, the groups selected
    table-N.npy          the encoded synthetic table at the end of epoch N (0 for one-shot)
    synthetic.parquet    the synthetic table
    privacy.json         what was promised and spent

Every file is written whole or not at all. None holds a row of the data or an exact count.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import platform
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from private_gsd.encoding import Encoder
from private_gsd.errors import ReleaseError, SchemaError, WorkloadError
from private_gsd.measurement import Measurements, make_folder, write_durably
from private_gsd.schema import Schema
from private_gsd.workloads.serial import dump_workload, load_workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

FORMAT = "private-gsd release"
VERSION = 1


class Release:
    """A release folder; also the checkpoint of the run that fills it.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"<Release {self.folder}>"

    @classmethod
    def create(cls, folder: str | Path, settings: dict[str, Any], workload: Workload) -> Release:
        """Begin a release; a folder that holds one already is refused.

        Args:
            folder: Where.
            settings: All that a run needs to go on, for JSON.
            workload: The questions.
        """
        release = cls(folder)
        if (release.folder / "release.json").exists():
            raise ReleaseError(
                f"{release.folder}: holds a release already; go on with it ('private-gsd resume "
                f"{release.folder}'), or choose another folder"
            )
        families, arrays = dump_workload(workload)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        with release._writing():
            make_folder(release.folder)
            write_durably(release.folder / "schema.toml", workload.schema.to_toml().encode())
            write_durably(release.folder / "workload.npz", buffer.getvalue())
            release._write("workload.json", {"families": families})
            document = {
                "format": FORMAT,
                "version": VERSION,
                "complete": False,
                "settings": settings,
                "software": _software(),
            }
            release._write("release.json", document)
        return release

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
            file = (self.folder / ".lock").open("ab")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ReleaseError(f"{self.folder}: another process is working on it") from None
            yield

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run."""
        settings: dict[str, Any] = self._document["settings"]
        return settings

    @property
    def complete(self) -> bool:
        """Whether the run came to its end."""
        return bool(self._document["complete"])

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
        except (OSError, ValueError, LookupError, SchemaError, WorkloadError) as error:
            raise ReleaseError(f"{self.folder}: the workload cannot be read: {error}") from None

    @property
    def privacy(self) -> dict[str, Any]:
        """What was promised and spent."""
        record = self._read("privacy.json")
        if record is None:
            raise ReleaseError(f"{self.folder}: not complete yet, and so without a privacy record")
        return record

    @property
    def synthetic(self) -> pa.Table:
        """The synthetic table, in the schema's types."""
        path = self.folder / "synthetic.parquet"
        if not path.exists():
            raise ReleaseError(
                f"{self.folder}: not complete yet; 'private-gsd resume {self.folder}' goes on"
            )
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

    def epochs(self) -> list[list[int]]:
        """The groups that were selected, epoch by epoch."""
        document = self._read("epochs.json")
        return [] if document is None else document["epochs"]

    def table(self, epoch: int) -> Matrix | None:
        """The encoded synthetic table at the end of an epoch."""
        path = self.folder / f"table-{epoch}.npy"
        if not path.exists():
            return None
        try:
            values: Matrix = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise ReleaseError(f"{path}: cannot be read: {error}") from None
        return values

    def keep_epochs(self, epochs: list[list[int]]) -> None:
        """Keep which groups were selected."""
        with self._writing():
            self._write("epochs.json", {"epochs": epochs})

    def keep_measurements(self, measurements: Measurements) -> None:
        """Keep what was measured."""
        measurements.save(self.folder / "measurements")

    def keep_table(self, epoch: int, table: Matrix) -> None:
        """Keep a synthetic table, and the one before it."""
        buffer = io.BytesIO()
        np.save(buffer, table, allow_pickle=False)
        with self._writing():
            write_durably(self.folder / f"table-{epoch}.npy", buffer.getvalue())
            for old in self.folder.glob("table-*.npy"):
                if old.stem not in (f"table-{epoch}", f"table-{epoch - 1}"):
                    old.unlink(missing_ok=True)

    def settle(self, **settings: Any) -> None:
        """Add to the settings what is known only now."""
        with self._writing():
            document = self._document
            self._write("release.json", {**document, "settings": {**self.settings, **settings}})

    def save(self, folder: str | Path) -> Release:
        """Copy a complete release to another folder, which must not hold one."""
        if not self.complete:
            raise ReleaseError(f"{self.folder}: not complete yet, and so not to be handed on")
        other = Release(folder)
        if (other.folder / "release.json").exists():
            raise ReleaseError(f"{other.folder}: holds a release already; choose another folder")
        with other._writing():
            make_folder(other.folder)
            names = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
            # The document comes last: without it there is no release.
            for path in sorted(names, key=lambda path: path.name == "release.json"):
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
        return document

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ReleaseError(f"{path}: cannot be read: {error}") from None
        if not isinstance(document, dict):
            raise ReleaseError(f"{path}: not what a release has there")
        return document

    def _write(self, name: str, document: dict[str, Any]) -> None:
        text = json.dumps(document, indent=1, ensure_ascii=False)
        write_durably(self.folder / name, text.encode())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ReleaseError(f"{self.folder}: cannot be written: {error.strerror}") from None


def _software() -> dict[str, str]:
    """What made the release."""
    return {
        "private-gsd": version("private-gsd"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
