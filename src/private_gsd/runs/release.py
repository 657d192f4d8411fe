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

Every file is written whole or not at all. None holds a row of the data or an exact count.
``release.json`` lists the files of the release with their checksums (see ``manifest``) and has one
of its own; every file is held against it when it is read. A saved release has no ``run.json``. The
ledger of a run that was given none lies beside the folder: a copy of the folder then has no ledger
of its own to draw under.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import platform
import shutil
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from private_gsd.data.encoding import Encoder
from private_gsd.errors import BudgetError, MeasurementError, ReleaseError
from private_gsd.measurements.measurements import UNSOUND, Measurements, check_rows
from private_gsd.privacy.measuring import NoisyTotal
from private_gsd.privacy.record import at_most, restated, uncovered
from private_gsd.runs.manifest import DOCUMENT, INPUTS, OPTIONAL, OUTPUTS, Manifest
from private_gsd.runs.synthetic_table import check_size, read_table, table_bytes
from private_gsd.schema import Schema
from private_gsd.system import durable_files
from private_gsd.system.markup import html_table
from private_gsd.system.untrusted_files import (
    MAX_ARRAYS,
    MAX_DOCUMENT,
    load_array,
    load_arrays,
    parse_json,
    read_file,
    seal,
    to_json,
    unseal,
)
from private_gsd.workloads.serialisation import ARRAY_NAMES, dump_workload, load_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]
    Before = Callable[[str], object]

# What reading a damaged file may raise.
DAMAGED = (OSError, *UNSOUND, BudgetError, MeasurementError, pa.ArrowException)
# What was drawn, and where it is kept.
KEPT = {
    "total": "total.json",
    "epochs": "epochs.json",
    "measurements": "measurements/measurements.json",
}
# What run.json says, and of what kind it is.
RUN: dict[str, Any] = {"run": str, "ledger": str, "data": str | None, "opened": bool}
FORMAT = "private-gsd release"
VERSION = 2
# A workload whose document is larger could be paid for, and not be read again.
MAX_WORKLOAD = MAX_DOCUMENT // 4


class Release:
    """A release folder; also the checkpoint of the run that fills it.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()

    def __repr__(self) -> str:
        return f"<Release {self.name}>"

    @property
    def name(self) -> str:
        """The name of its folder, to be shown: bytes that are not UTF-8 are replaced."""
        return os.fsencode(self.folder.name).decode(errors="replace")

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("complete", "yes" if self.complete else "not yet")]
        if self.finished:
            record = self.privacy
            total, spent = record["total"], record["spent"]
            alone = record["this_release_alone"]
            reasons = "; ".join(record["not_private_because"])
            rows.append(("private", f"NO: {reasons}" if reasons else "yes"))
            if not reasons:
                scope = "this release alone" if alone else "all that its ledger pays for"
                rows += [
                    ("guarantee of", scope),
                    ("epsilon", at_most(total["epsilon"], 4)),
                    ("at delta", at_most(record["delta"], 4)),
                ]
                rows += [("not covered", words) for words in uncovered(record)]
            rows += [
                ("accounting: rho spent so far", f"{spent['rho']:.4g} of {total['rho']:.4g}"),
                ("synthetic rows", f"{self.synthetic.num_rows:,}"),
            ]
        return html_table(f"Release {self.name}", ("", "value"), rows, words=(1,))

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
        check_size(workload.schema, settings["rows"])
        families, arrays = dump_workload(workload)
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
            durable_files.write(self.folder / "schema.toml", workload.schema.to_toml().encode())
            durable_files.write(self.folder / "workload.npz", buffer.getvalue())
            durable_files.write(self.folder / "workload.json", questions)
            if outside is not None:
                folder = self._subfolder("evidence")
                outside.save(folder)
                names += self._named(folder)
            document = {
                "format": FORMAT,
                "version": VERSION,
                "complete": False,
                "run": run["run"],
                "settings": settings,
                "software": _software(),
                "files": Manifest.of(self.folder, names).document(),
            }
            durable_files.write(self.folder / "release.json", seal(document))

    @property
    def is_one(self) -> bool:
        """Whether the folder holds a release, whatever else is wrong with it."""
        try:
            document = parse_json(read_file(self.folder / "release.json", MAX_DOCUMENT))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            return True
        return not isinstance(document, dict) or document.get("format") == FORMAT

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
        # What a killed beginning left is ours. Files of the same names may be the user's.
        try:
            begun = self._unsealed("run.json") is not None
        except ReleaseError:
            begun = False
        mine = {*INPUTS, "run.json", "evidence"} if begun else set()
        others = [path.name for path in self.folder.iterdir() if path.name not in mine]
        others = [name for name in others if not durable_files.TEMPORARY.fullmatch(name)]
        if others:
            raise ReleaseError(
                f"{self.folder}: is not empty ({sorted(others)[0]!r} is there); a release needs a "
                "folder of its own"
            )

    def check_inputs(self) -> None:
        """Refuse to go on with another schema, workload or claim than the run began with."""
        self._manifest.check(self.folder, but=OUTPUTS)

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
        measured = self._subfolder("measurements")
        with self._reading(), self._writing():
            for name in KEPT.values():
                durable_files.recover(self.folder / name, kept_at)
            for path in self.folder.glob(".*.tmp"):
                if durable_files.TEMPORARY.fullmatch(path.name):
                    path.unlink()
        Measurements.tidy(measured)

    def digest(self, kind: str) -> str:
        """Of the "total", the "epochs" or the "measurements", as they were kept."""
        with self._reading():
            return durable_files.digest_of(self.folder / KEPT[kind])

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Open a release, complete or not; anything else is refused."""
        release = cls(folder)
        # A synthetic table that is gone can be made again, of the measurements.
        gone = () if release.finished else ("synthetic.parquet",)
        release._manifest.check(release.folder, but=gone)
        return release

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else works on this release meanwhile, or two runs would draw under one charge."""
        with self._writing():
            durable_files.make_folder(self.folder)
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
        document = self._unsealed("run.json")
        if document is None:
            raise ReleaseError(f"{self.folder}: has no run.json, and so no run to go on with")
        for name, kind in RUN.items():
            value = document.get(name)
            if not isinstance(value, kind) or (isinstance(value, str) and not _is_path(value)):
                raise ReleaseError(f"{self.folder}: run.json is damaged: {name!r}")
        if document["run"] != self._document["run"]:
            raise ReleaseError(f"{self.folder}: run.json is of another release; put its own back")
        return document

    @property
    def complete(self) -> bool:
        """Whether the run came to its end."""
        return self._document["complete"] is True

    @property
    def finished(self) -> bool:
        """Whether it is complete, and its synthetic table still there."""
        return self.complete and (self.folder / "synthetic.parquet").exists()

    @property
    def schema(self) -> Schema:
        """The public schema."""
        with self._reading("schema.toml"):
            return Schema.from_toml(self._listed("schema.toml").decode())

    @property
    def workload(self) -> Workload:
        """The questions."""
        schema = self.schema
        with self._reading("workload.json"):
            families = parse_json(self._listed("workload.json"))["families"]
            arrays = load_arrays(self._listed("workload.npz"), ARRAY_NAMES)
            return load_workload(schema, families, arrays)

    @property
    def privacy(self) -> dict[str, Any]:
        """What was promised and spent."""
        if not self.complete:
            raise ReleaseError(f"{self.folder}: not complete yet, and so without a privacy record")
        with self._reading("privacy.json"):
            # Its words follow from its numbers, charges and claims.
            return restated(parse_json(self._listed("privacy.json")))

    @property
    def synthetic(self) -> pa.Table:
        """The synthetic table, in the schema's types."""
        if not self.finished:
            raise ReleaseError(
                f"{self.folder}: has no synthetic table yet; 'private-gsd resume {self.folder}' "
                "goes on"
            )
        schema = self.schema
        with self._reading("synthetic.parquet"):
            return read_table(self._listed("synthetic.parquet"), schema, self.settings["rows"])

    @property
    def matrix(self) -> Matrix:
        """The synthetic table, encoded."""
        table = self.synthetic.combine_chunks()
        return Encoder(self.schema).encode(table.to_batches()[0])

    def measurements(self) -> Measurements | None:
        """The noisy answers, if anything was measured."""
        return self._measurements("measurements")

    def outside(self) -> Measurements | None:
        """Measurements made elsewhere, if any were given."""
        return self._measurements("evidence")

    def _measurements(self, name: str) -> Measurements | None:
        folder = self._subfolder(name)
        if self.complete or name == "evidence":  # their checksums are known
            if f"{name}/{DOCUMENT}" not in self._manifest.entries:
                return None
            for each in self._named(folder):
                self._listed(each)
        elif not (folder / DOCUMENT).exists():
            return None
        return Measurements.load(folder)

    def epochs(self) -> list[list[int]]:
        """The groups that were selected, epoch by epoch."""
        document = self._kept("epochs.json")
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
        with self._reading(path.name):
            content = read_file(path, MAX_ARRAYS)
            if content[:64] != self._mark(epoch, content[64:]):
                raise ReleaseError(f"{path}: was changed or is torn, or is of another run")
            values: Matrix = load_array(content[64:])
        return values

    def _mark(self, epoch: int, content: bytes) -> bytes:
        """A checksum of a table that is right in its own place alone."""
        place = f"{self._document['run']} {epoch} ".encode()
        return hashlib.sha256(place + content).hexdigest().encode()

    def total(self) -> NoisyTotal | None:
        """The number of rows, if it was measured."""
        document = self._kept("total.json")
        if document is None:
            return None
        try:
            return NoisyTotal(
                check_rows(document["rows"]), float(document["scale"]), document["private"] is True
            )
        except (*UNSOUND, MeasurementError):
            raise ReleaseError(f"{self.folder}: total.json is damaged") from None

    def keep_total(self, total: NoisyTotal, before: Before) -> None:
        """Keep the number of rows."""
        with self._writing():
            document = {"run": self._document["run"], **total._asdict()}
            durable_files.publish(self.folder / KEPT["total"], seal(document), before)

    def keep_epochs(self, epochs: list[list[int]], before: Before) -> None:
        """Keep which groups were selected."""
        with self._writing():
            document = {"run": self._document["run"], "epochs": epochs}
            durable_files.publish(self.folder / KEPT["epochs"], seal(document), before)

    def keep_measurements(self, measurements: Measurements, before: Before) -> None:
        """Keep what was measured."""
        measurements.save(self._subfolder("measurements"), before)

    def keep_table(self, epoch: int, table: Matrix) -> None:
        """Keep a synthetic table, and the one before it."""
        buffer = io.BytesIO()
        np.save(buffer, table, allow_pickle=False)
        mark = self._mark(epoch, buffer.getvalue())
        with self._writing():
            durable_files.write(self.folder / f"table-{epoch}.npy", mark + buffer.getvalue())
            for old in self.folder.glob("table-*.npy"):
                if old.stem not in (f"table-{epoch}", f"table-{epoch - 1}"):
                    old.unlink(missing_ok=True)

    def change_rows(self, rows: int) -> None:
        """Let the synthetic table, which is not there yet, have another number of rows."""
        check_size(self.schema, rows)
        with self._writing():
            settings = {**self.settings, "rows": rows}
            document = {**self._document, "settings": settings}
            durable_files.write(self.folder / "release.json", seal(document))

    def note(self, **facts: Any) -> None:
        """Keep a fact about the run."""
        with self._writing():
            durable_files.write(self.folder / "run.json", seal({**self.run, **facts}))

    def save(self, folder: str | Path) -> Release:
        """Copy a complete release to another folder, which must not hold one."""
        if not self.complete:
            raise ReleaseError(f"{self.folder}: not complete yet, and so not to be handed on")
        other = Release(folder)
        other.check_free()
        # The names are those that releases have, and all is whole before anything is copied.
        manifest = self._manifest
        manifest.check(self.folder)
        with other._writing():
            durable_files.make_folder(other.folder)
            for name in manifest.entries:
                target = other.folder / name
                if target.parent != other.folder:
                    durable_files.make_folder(other._subfolder(target.parent.name))
                durable_files.write(target, manifest.read(self.folder, name))
            # The document comes last: without it there is no release.
            durable_files.write(other.folder / "release.json", seal(self._document))
        return other

    def finish(self, table: pa.RecordBatch, privacy: dict[str, Any]) -> None:
        """Write the synthetic table and the privacy record, and say that all is there."""
        inputs = [name for name in self._manifest.entries if name.startswith((*INPUTS, "evidence"))]
        kept = [name for name in OPTIONAL if (self.folder / name).exists()]
        measured = self._named(self._subfolder("measurements"))
        with self._writing():
            durable_files.write(self.folder / "synthetic.parquet", table_bytes(table))
            durable_files.write(self.folder / "privacy.json", to_json(privacy))
            names = [*inputs, *kept, *measured, *OUTPUTS]
            files = Manifest.of(self.folder, names).document()
            document = {**self._document, "complete": True, "files": files}
            durable_files.write(self.folder / "release.json", seal(document))

    @property
    def _document(self) -> dict[str, Any]:
        """What release.json says, if it is whole."""
        path = self.folder / "release.json"
        with self._reading("release.json"):
            try:
                content = read_file(path, MAX_DOCUMENT)
            except FileNotFoundError:
                raise ReleaseError(
                    f"{self.folder}: holds no release (there is no release.json)"
                ) from None
            document = parse_json(content)
            if not isinstance(document, dict):
                raise ReleaseError(f"{path}: not what a release has there")
            format_, number = document.get("format"), document.get("version")
            if format_ != FORMAT or number != VERSION:
                old = format_ == FORMAT and type(number) is int and number < VERSION
                raise ReleaseError(
                    f"{self.folder}: expected {FORMAT!r} of version {VERSION}, found "
                    f"{format_!r:.80} of version {number!r:.80}"
                    + ("; read it with the private-gsd that made it, or make it anew" * old)
                )
            document = unseal(content)
            sound = isinstance(document.get("settings"), dict) and isinstance(
                document.get("run"), str
            )
            if not sound or not isinstance(document.get("complete"), bool):
                raise ReleaseError(f"{self.folder}: release.json is damaged")
            return document

    @property
    def _manifest(self) -> Manifest:
        """The files that release.json lists."""
        document = self._document
        with self._reading("release.json"):
            return Manifest.parse(document.get("files"), complete=document["complete"])

    def _listed(self, name: str) -> bytes:
        """A file that the manifest lists."""
        return self._manifest.read(self.folder, name)

    def _unsealed(self, name: str) -> dict[str, Any] | None:
        """A document with its own checksum, if it is there."""
        with self._reading(name):
            try:
                return unseal(read_file(self.folder / name, MAX_DOCUMENT))
            except FileNotFoundError:
                return None

    def _kept(self, name: str) -> dict[str, Any] | None:
        """What was drawn by this run, if it was."""
        document = self._document
        if document["complete"]:
            if name not in self._manifest.entries:
                return None
            self._listed(name)
        found = self._unsealed(name)
        if found is not None and found.get("run") != document["run"]:
            raise ReleaseError(f"{self.folder}: {name} is of another release; put its own back")
        return found

    def _subfolder(self, name: str) -> Path:
        """A folder of measurements; a link to another place is refused."""
        folder = self.folder / name
        if folder.is_symlink():
            raise ReleaseError(f"{folder}: is a symbolic link, and a release has none")
        return folder

    @staticmethod
    def _named(folder: Path) -> list[str]:
        """The names of the files of a folder of measurements."""
        return [f"{folder.name}/{each}" for each in Measurements.files(folder)]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ReleaseError(f"{self.folder}: cannot be written: {error.strerror}") from None

    @contextmanager
    def _reading(self, name: str = "") -> Iterator[None]:
        try:
            yield
        except DAMAGED as error:
            where = self.folder / name if name else self.folder
            raise ReleaseError(f"{where}: cannot be read: {error}") from None


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
