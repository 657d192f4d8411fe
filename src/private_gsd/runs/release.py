"""Releases: a folder with all that may be published, and what a killed run resumes from.

    release.json         what it is: settings, versions, whether it is complete
    run.json             what only the run needs: where the data and the ledger are; until it ends,
                         the key that chooses rows of units
    schema.toml          the public schema
    workload.json, .npz  the target workload
    external/            external measurements, if any were given
    measurements/        the noisy answers
    n_records.json       the number of records, where it was measured
    selections.json      the groups that were selected, step by step
    table-N.npy          the N-th encoded synthetic table of the run
    synthetic.parquet    the synthetic table
    privacy.json         what is guaranteed and what was spent

Every file is written whole or not at all. None holds a row of the data or an exact count.
``release.json`` lists the files of the release with their checksums (see ``manifest``) and has one
of its own; every file is compared with it when it is read. A saved release has no ``run.json``. The
ledger of a run that was given none lies beside the folder: a copy of the folder then has no ledger
of its own to draw under. ``run_folder`` has what a run does with the folder.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from private_gsd.data.encoding import Encoder
from private_gsd.errors import BudgetError, MeasurementError, ReleaseError
from private_gsd.measurements.measurements import UNSOUND, Measurements, check_n_records
from private_gsd.privacy.measuring import NoisyRecordCount
from private_gsd.privacy.record import at_most, restated, uncovered
from private_gsd.runs.manifest import DOCUMENT, INPUTS, Manifest
from private_gsd.runs.settings import RunSettings
from private_gsd.runs.synthetic_table import read_table
from private_gsd.schema import Schema
from private_gsd.system import durable_files
from private_gsd.system.file_systems import is_link
from private_gsd.system.folder_locks import LOCK
from private_gsd.system.markup import html_table
from private_gsd.system.untrusted_files import (
    MAX_DOCUMENT,
    load_arrays,
    parse_json,
    read_file,
    seal,
    unseal,
)
from private_gsd.workloads.serialisation import ARRAY_NAMES, load_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]
    Before = Callable[[str], object]

# What reading a damaged file may raise.
DAMAGED = (OSError, *UNSOUND, BudgetError, MeasurementError, pa.ArrowException)
FORMAT = "private-gsd release"
VERSION = 3


class Release:
    """A release folder, to be read; ``Release.load`` opens one and checks it.

    Args:
        folder: The path of the folder.
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

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a release, complete or not; anything else is refused."""
        release = cls(folder)
        # A synthetic table that is gone can be made again, of the measurements.
        gone = () if release.finished else ("synthetic.parquet",)
        release._manifest.check(release.folder, but=gone)
        return release

    @property
    def settings(self) -> RunSettings:
        """The settings of the run."""
        try:
            return RunSettings.from_dict(self._document["settings"], self.external())
        except ReleaseError as error:
            raise ReleaseError(f"{self.folder}: {error}") from None

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
            return read_table(
                self._listed("synthetic.parquet"), schema, self._document["settings"]["rows"]
            )

    @property
    def matrix(self) -> Matrix:
        """The synthetic table, encoded."""
        table = self.synthetic.combine_chunks()
        return Encoder(self.schema).encode(table.to_batches()[0])

    def measurements(self) -> Measurements | None:
        """The noisy answers, if anything was measured."""
        return self._measurements("measurements")

    def external(self) -> Measurements | None:
        """The external measurements; None if none were given."""
        return self._measurements("external")

    def _measurements(self, name: str) -> Measurements | None:
        folder = self._subfolder(name)
        if self.complete or name == "external":  # their checksums are known
            if f"{name}/{DOCUMENT}" not in self._manifest.entries:
                return None
            for each in self._named(folder):
                self._listed(each)
        elif not (folder / DOCUMENT).exists():
            return None
        return Measurements.load(folder)

    def selections(self) -> list[list[int]]:
        """The groups that were selected, step by step."""
        document = self._drawn("selections.json")
        selections = [] if document is None else document.get("selections")
        if not isinstance(selections, list) or not all(
            isinstance(groups, list) and all(type(group) is int for group in groups)
            for groups in selections
        ):
            raise ReleaseError(f"{self.folder}: selections.json is damaged")
        return selections

    def n_records(self) -> NoisyRecordCount | None:
        """The number of records; None if it was not measured."""
        document = self._drawn("n_records.json")
        if document is None:
            return None
        try:
            return NoisyRecordCount(
                check_n_records(document["n_records"]),
                float(document["scale"]),
                document["private"] is True,
            )
        except (*UNSOUND, MeasurementError):
            raise ReleaseError(f"{self.folder}: n_records.json is damaged") from None

    def persist(self) -> None:
        """Do not remove the folder, where it is a temporary one."""

    def check_free(self) -> None:
        """Refuse a folder that holds a release, or anything that could be taken for one."""
        if not self.folder.exists():
            return
        if (self.folder / "release.json").exists():
            raise ReleaseError(
                f"{self.folder}: holds a release already; resume it ('private-gsd resume "
                f"{self.folder}'), or choose another folder"
            )
        if not self.folder.is_dir():
            raise ReleaseError(f"{self.folder}: is a file, and a release needs a folder")
        # What a killed beginning left is ours. Files of the same names may be the user's.
        try:
            begun = self._unsealed("run.json") is not None
        except ReleaseError:
            begun = False
        mine = {*INPUTS, "run.json", "external"} if begun else set()
        mine.add(LOCK)
        others = [path.name for path in self.folder.iterdir() if path.name not in mine]
        others = [name for name in others if not durable_files.TEMPORARY.fullmatch(name)]
        if others:
            raise ReleaseError(
                f"{self.folder}: is not empty ({sorted(others)[0]!r} is there); a release needs a "
                "folder of its own"
            )

    def save(self, folder: str | Path) -> Release:
        """Copy a complete release to another folder, which must not hold one."""
        other = Release(folder)
        other.write_files(self.files())
        return other

    def files(self) -> dict[str, bytes]:
        """The files of a complete release, by name; ``release.json`` comes last."""
        if not self.complete:
            raise ReleaseError(f"{self.folder}: not complete yet, and so not to be published")
        # The names are those that releases have, and all is whole before anything is copied.
        manifest = self._manifest
        manifest.check(self.folder)
        found = {name: manifest.read(self.folder, name) for name in manifest.entries}
        return {**found, "release.json": seal(self._document)}

    def write_files(self, files: Mapping[str, bytes]) -> None:
        """Fill the folder, which must not hold a release, with the files of another release."""
        self.check_free()
        with self._writing():
            durable_files.make_folder(self.folder)
            for name, content in files.items():
                target = self.folder / name
                if target.parent != self.folder:
                    durable_files.make_folder(self._subfolder(target.parent.name))
                durable_files.write(target, content)

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

    def _drawn(self, name: str) -> dict[str, Any] | None:
        """What the run drew; None if it did not yet."""
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
        if is_link(folder):
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
