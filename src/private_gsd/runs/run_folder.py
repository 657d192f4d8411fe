"""The folder of a run: a release that is being filled, and the run's checkpoint on disk."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from private_gsd.data.units.choosing import UnitKey
from private_gsd.errors import ReleaseError
from private_gsd.measurements.measurements import Measurements
from private_gsd.mechanisms.defaults import MOST_DEFAULT_ROWS
from private_gsd.runs.manifest import INPUTS, OPTIONAL, OUTPUTS, Manifest
from private_gsd.runs.release import FORMAT, VERSION, Release
from private_gsd.runs.synthetic_table import check_size, table_bytes
from private_gsd.system import durable_files, file_systems, folder_locks
from private_gsd.system.untrusted_files import (
    MAX_ARRAYS,
    MAX_DOCUMENT,
    load_array,
    read_file,
    seal,
    to_json,
)
from private_gsd.workloads.serialisation import dump_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from private_gsd.privacy.measuring import NoisyRecordCount
    from private_gsd.runs.checkpoint import Commit
    from private_gsd.runs.settings import RunSettings
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

# What was drawn, and the file that has it.
DRAWN = {
    "n_records": "n_records.json",
    "selections": "selections.json",
    "measurements": "measurements/measurements.json",
}
# What run.json says, and the type of each entry.
RUN: dict[str, Any] = {"run": str, "ledger": str, "data": str | None, "opened": bool}
# A workload whose document is larger could be paid for, and not be read again.
MAX_WORKLOAD = MAX_DOCUMENT // 4


class RunFolder(Release):
    """A release folder as the run that fills it sees it: a ``Checkpoint`` on disk."""

    def begin(
        self,
        settings: RunSettings,
        run: dict[str, Any],
        target: Workload,
        external: Measurements | None = None,
    ) -> None:
        """Begin a release, in a folder that is locked and holds nothing of another one.

        Args:
            settings: The settings of the run.
            run: What only this run needs, for JSON.
            target: The target workload.
            external: The external measurements.
        """
        self.check_free()
        check_size(target.schema, settings.rows or MOST_DEFAULT_ROWS)
        families, arrays = dump_workload(target)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        questions = to_json({"families": families})
        if len(questions) > MAX_WORKLOAD or len(buffer.getvalue()) > MAX_ARRAYS // 4:
            raise ReleaseError(
                f"{self.folder}: the workload takes {len(questions) + len(buffer.getvalue()):,} "
                "bytes, too many for a release; ask fewer queries"
            )
        names = [*INPUTS]
        with self._writing():
            # First: it shows that what a kill leaves here is ours (see ``check_free``).
            durable_files.write(self.folder / "run.json", seal(run))
            durable_files.write(self.folder / "schema.toml", target.schema.to_toml().encode())
            durable_files.write(self.folder / "workload.npz", buffer.getvalue())
            durable_files.write(self.folder / "workload.json", questions)
            if external is not None:
                folder = self._subfolder("external")
                external.save(folder)
                names += self._named(folder)
            document = {
                "format": FORMAT,
                "version": VERSION,
                "complete": False,
                "run": run["run"],
                "settings": settings.to_dict(),
                "software": _software(),
                "files": Manifest.of(self.folder, names).document(),
            }
            durable_files.write(self.folder / "release.json", seal(document))

    def check_inputs(self) -> None:
        """Refuse to resume with another schema, workload or claim than the run began with."""
        self._manifest.check(self.folder, but=OUTPUTS)

    def discard(self) -> None:
        """Remove what ``begin`` wrote, where nothing was paid for."""
        for name in ("release.json", "run.json", *INPUTS):
            file_systems.remove(self.folder / name)
        shutil.rmtree(self.folder / "external", ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else works on this release meanwhile, or two runs would draw under one charge."""
        with self._writing():
            durable_files.make_folder(self.folder)
        with ExitStack() as lock:
            try:
                lock.enter_context(folder_locks.locked(self.folder))
            except BlockingIOError:
                raise ReleaseError(f"{self.folder}: another process is working on it") from None
            except OSError as error:
                raise ReleaseError(f"{self.folder}: cannot be locked: {error.strerror}") from None
            yield

    @property
    def run(self) -> dict[str, Any]:
        """What only the run needs; a saved release has none."""
        document = self._unsealed("run.json")
        if document is None:
            raise ReleaseError(f"{self.folder}: has no run.json, and so no run to resume")
        for name, kind in RUN.items():
            value = document.get(name)
            if not isinstance(value, kind) or (isinstance(value, str) and not _is_path(value)):
                raise ReleaseError(f"{self.folder}: run.json is damaged: {name!r}")
        if document["run"] != self._document["run"]:
            raise ReleaseError(f"{self.folder}: run.json is of another release; put its own back")
        return document

    @property
    def unit_key(self) -> UnitKey | None:
        """The key that chooses rows of units; None where the unit is a row."""
        if self.schema.unit is None:
            return None
        with self._reading("run.json"):
            return UnitKey(str(self.run.get("unit_key")))

    def note(self, **facts: Any) -> None:
        """Save a fact about the run."""
        with self._writing():
            durable_files.write(self.folder / "run.json", seal({**self.run, **facts}))

    def change_rows(self, rows: int) -> None:
        """Save the number of rows of the synthetic table, which is not there yet."""
        check_size(self.schema, rows)
        with self._writing():
            settings = {**self._document["settings"], "rows": rows}
            document = {**self._document, "settings": settings}
            durable_files.write(self.folder / "release.json", seal(document))

    def table(self, number: int) -> Matrix | None:
        """One of the run's synthetic tables, encoded."""
        path = self.folder / f"table-{number}.npy"
        if not path.exists():
            return None
        with self._reading(path.name):
            content = read_file(path, MAX_ARRAYS)
            if content[:64] != self._mark(number, content[64:]):
                raise ReleaseError(f"{path}: was changed or is torn, or is of another run")
            values: Matrix = load_array(content[64:])
        return values

    def save_n_records(self, total: NoisyRecordCount, commit: Commit) -> None:
        """Save the number of records."""
        with self._writing():
            document = {"run": self._document["run"], **total._asdict()}
            durable_files.publish(self.folder / DRAWN["n_records"], seal(document), commit)

    def save_selections(self, selections: list[list[int]], commit: Commit) -> None:
        """Save which groups were selected."""
        with self._writing():
            document = {"run": self._document["run"], "selections": selections}
            durable_files.publish(self.folder / DRAWN["selections"], seal(document), commit)

    def save_measurements(self, measurements: Measurements, commit: Commit) -> None:
        """Save what was measured."""
        measurements.save(self._subfolder("measurements"), commit)

    def save_table(self, number: int, table: Matrix) -> None:
        """Save a synthetic table; all but the one before it go."""
        buffer = io.BytesIO()
        np.save(buffer, table, allow_pickle=False)
        mark = self._mark(number, buffer.getvalue())
        with self._writing():
            durable_files.write(self.folder / f"table-{number}.npy", mark + buffer.getvalue())
            for old in self.folder.glob("table-*.npy"):
                if old.stem not in (f"table-{number}", f"table-{number - 1}"):
                    file_systems.remove(old)

    def _mark(self, number: int, content: bytes) -> bytes:
        """A checksum that binds a table to its run and its number."""
        place = f"{self._document['run']} {number} ".encode()
        return hashlib.sha256(place + content).hexdigest().encode()

    def digest(self, kind: str) -> str:
        """The digest of what is saved: "n_records", "selections" or "measurements"."""
        with self._reading():
            return durable_files.digest_of(self.folder / DRAWN[kind])

    def tidy(self, committed_at: Callable[[str], int]) -> None:
        """Before anything is drawn: show what was committed when a kill came, remove the rest.

        Args:
            committed_at: When the ledger took down a digest; see ``durable_files.recover``.
        """
        measured = self._subfolder("measurements")
        with self._reading(), self._writing():
            for name in DRAWN.values():
                durable_files.recover(self.folder / name, committed_at)
            for path in self.folder.glob(".*.tmp"):
                if durable_files.TEMPORARY.fullmatch(path.name):
                    file_systems.remove(path)
        Measurements.tidy(measured)

    def finish(self, table: pa.RecordBatch, privacy: dict[str, Any]) -> None:
        """Write the synthetic table and the privacy record, and say that all is there."""
        inputs = [name for name in self._manifest.entries if name.startswith((*INPUTS, "external"))]
        drawn = [name for name in OPTIONAL if (self.folder / name).exists()]
        measured = self._named(self._subfolder("measurements"))
        with self._writing():
            durable_files.write(self.folder / "synthetic.parquet", table_bytes(table))
            durable_files.write(self.folder / "privacy.json", to_json(privacy))
            names = [*inputs, *drawn, *measured, *OUTPUTS]
            files = Manifest.of(self.folder, names).document()
            document = {**self._document, "complete": True, "files": files}
            durable_files.write(self.folder / "release.json", seal(document))


def _is_path(text: str) -> bool:
    """Whether a text can be a path here."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _software() -> dict[str, str]:
    """What made the release."""
    return {
        "private-gsd": version("private-gsd"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
