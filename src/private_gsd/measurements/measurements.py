"""Measurements: noisy answers and their variances. Only they leave the steward's side.

Measurements are saved before any search starts, so that a run that died resumes from them and
spends nothing more. A saved folder has ``measurements.json`` and one file of arrays. The JSON is
written last, in one step, and has the checksum of the arrays: either both files are complete, or
the folder has no measurements.
"""

from __future__ import annotations

import hashlib
import io
import json
import operator
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from private_gsd.errors import MeasurementError, NotCommittedError, SchemaError, WorkloadError
from private_gsd.privacy.measuring import MAX_RECORDS, NoisyRecordCount, release_counts
from private_gsd.privacy.selection import Selection
from private_gsd.schema import Schema
from private_gsd.schema.neighbours import records_are_public
from private_gsd.system import durable_files
from private_gsd.system.untrusted_files import (
    MAX_ARRAYS,
    MAX_DOCUMENT,
    load_arrays,
    parse_json,
    read_file,
    to_json,
)
from private_gsd.workloads import Neighbours, Workload, categorical_marginals
from private_gsd.workloads.checks import group_numbers
from private_gsd.workloads.serialisation import ARRAY_NAMES, dump_workload, load_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.noise import NoiseSource

    Before = Callable[[str], object]

FORMAT = "private-gsd measurements"
VERSION = 2
# The name of a file of arrays; a document cannot name any other file.
ARRAYS = re.compile(r"arrays-[0-9a-f]{16}\.npz")

# Exceptions that parsing a damaged document may raise.
UNSOUND = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError),
    *(RecursionError, SchemaError, WorkloadError),
)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy answers to the queries of some groups.

    Attributes:
        workload: The groups that were measured.
        counts: For every query, the noisy count of rows, or of units where each counts one.
        scales: For every group, the standard deviation of the noise, in rows or units.
        n_records: The number of records, or of units where each counts one; public or measured.
        charges: For every group, the charge that paid for it; empty for external measurements.
        private: Whether all noise came from a source that may be called private.
        neighbours: The neighbouring relation.
    """

    workload: Workload
    counts: NDArray[np.float64]
    scales: NDArray[np.float64]
    n_records: int
    charges: tuple[str, ...]
    private: bool
    neighbours: Neighbours = "replace-one"

    def __post_init__(self) -> None:
        groups = self.workload.num_groups
        for name in ("counts", "scales"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64:
                kind = getattr(array, "dtype", type(array).__name__)
                raise MeasurementError(f"{name} are noisy numbers, float64, not {kind}")
            own = array.copy()
            own.flags.writeable = False
            object.__setattr__(self, name, own)
        if self.counts.shape != (self.workload.size,) or self.scales.shape != (groups,):
            raise MeasurementError("there must be a count for every query, a scale for every group")
        if not isinstance(self.charges, tuple) or len(self.charges) != groups:
            raise MeasurementError("there must be a charge for every group")
        if not all(isinstance(charge, str) for charge in self.charges):
            raise MeasurementError("charges are numbers as text")
        if not np.isfinite(self.counts).all() or not (
            np.isfinite(self.scales).all() and (self.scales > 0).all()
        ):
            raise MeasurementError("counts and scales must be finite, and scales positive")
        if not isinstance(self.private, bool):
            raise MeasurementError(f"private must be true or false, not {self.private!r}")
        if self.private and self.workload.schema.drafted:
            raise MeasurementError(
                "the schema is a draft, learned from the data, so measurements by it are not "
                "private; replace it by public knowledge, or say private=False"
            )
        if self.neighbours not in get_args(Neighbours):
            raise MeasurementError(f"unknown neighbours {self.neighbours!r}")
        object.__setattr__(self, "n_records", check_n_records(self.n_records))

    @property
    def shares(self) -> NDArray[np.float64]:
        """For every query, the noisy share of rows, â in the paper; it may be outside [0, 1]."""
        return self.counts / self.n_records

    @property
    def variances(self) -> NDArray[np.float64]:
        """For every query, the variance of its noisy share."""
        return np.repeat((self.scales / self.n_records) ** 2, self.workload.group_sizes)

    def __add__(self, other: object) -> Measurements:
        if not isinstance(other, Measurements):
            return NotImplemented
        if (self.n_records, self.neighbours) != (other.n_records, other.neighbours):
            raise MeasurementError("measurements of different tables cannot be joined")
        return Measurements(
            self.workload + other.workload,
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.scales, other.scales]),
            self.n_records,
            self.charges + other.charges,
            self.private and other.private,
            self.neighbours,
        )

    def select(self, groups: Sequence[int] | NDArray[np.int64]) -> Measurements:
        """The measurements of some groups, which stay in order.

        Args:
            groups: The numbers of the groups, in ascending order.
        """
        chosen = np.zeros(self.workload.num_groups, dtype=np.bool_)
        chosen[list(groups)] = True
        return replace(
            self,
            workload=self.workload.select(groups),
            counts=self.counts[np.repeat(chosen, self.workload.group_sizes)],
            scales=self.scales[chosen],
            charges=tuple(self.charges[group] for group in groups),
        )

    def __repr__(self) -> str:
        private = "" if self.private else ", NOT private"
        return f"<Measurements of {self.workload.num_groups:,} groups{private}>"

    @classmethod
    def from_marginals(
        cls,
        schema: Schema,
        n_records: int,
        marginals: Iterable[tuple[Sequence[str], Any, float]],
        *,
        private: bool,
        neighbours: Neighbours = "replace-one",
    ) -> Measurements:
        """Noisy marginals that were measured elsewhere, to be used as external measurements.

        Args:
            schema: The public schema.
            n_records: The number of records of the table that was measured.
            marginals: For each marginal its columns (discrete ones), its noisy counts in the order
                of the columns' values (nulls last), and the standard deviation of its noise.
            private: Whether the marginals are private. This is not checked, and the ledger does not
                cover them.
            neighbours: The neighbouring relation.
        """
        parts = []
        for columns, values, sigma in marginals:
            workload = categorical_marginals(schema, sets=[columns])
            counts = np.asarray(values, dtype=np.float64).ravel()
            if counts.size != workload.size:
                raise MeasurementError(
                    f"the marginal of {' x '.join(columns)} has {workload.size:,} cells, "
                    f"not {counts.size:,}"
                )
            scale = np.array([sigma], dtype=np.float64)
            parts.append(cls(workload, counts, scale, n_records, ("",), private, neighbours))
        if not parts:
            raise MeasurementError("no marginals were given")
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def save(self, folder: str | Path, before: Before | None = None) -> None:
        """Write the measurements to a folder; earlier ones are replaced in one step, or not at all.

        Args:
            folder: The folder.
            before: Called with the digest after the file is written and before it is moved into
                place; optional (see ``publish``).
        """
        folder = Path(folder)
        families, arrays = dump_workload(self.workload)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, counts=self.counts, scales=self.scales, **arrays)
        content = buffer.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        document = {
            "format": FORMAT,
            "version": VERSION,
            "private": self.private,
            "n_records": self.n_records,
            "neighbours": self.neighbours,
            "charges": list(self.charges),
            "schema": self.workload.schema.to_toml(),
            "families": families,
            "arrays": f"arrays-{digest[:16]}.npz",
            "arrays_sha256": digest,
        }
        document["sha256"] = _checksum(document)
        try:
            durable_files.make_folder(folder)
            old = _arrays_named(folder)
            durable_files.write(folder / f"arrays-{digest[:16]}.npz", content)
            durable_files.publish(
                folder / "measurements.json", to_json(document), before or (lambda _: None)
            )
        except OSError as error:
            raise MeasurementError(f"{folder}: cannot be written: {error.strerror}") from None
        except NotCommittedError:
            Measurements.tidy(folder)
            raise
        if old is not None and old != document["arrays"]:
            with suppress(OSError):  # the new arrays are in place; old ones do no harm
                (folder / old).unlink()

    @staticmethod
    def tidy(folder: str | Path) -> None:
        """Remove the files that an interrupted ``save`` left in a folder.

        The leftover may hold a complete noisy draw, so it must be deleted before noise is drawn
        again. Call ``durable_files.recover`` first.
        """
        folder = Path(folder)
        named = _arrays_named(folder)
        if named is None and (folder / "measurements.json").exists():
            raise MeasurementError(f"{folder}: measurements.json cannot be read")
        try:
            for path in [*folder.glob("arrays-*.npz"), *folder.glob(".*.tmp")]:
                mine = ARRAYS.fullmatch(path.name) or durable_files.TEMPORARY.fullmatch(path.name)
                if mine and path.name != named:
                    path.unlink()
        except OSError as error:
            raise MeasurementError(f"{folder}: cannot be tidied: {error.strerror}") from None

    @staticmethod
    def files(folder: str | Path) -> list[str]:
        """The names of the files that ``save`` wrote; damaged documents are refused."""
        try:
            return ["measurements.json", str(_document_of(Path(folder))["arrays"])]
        except (OSError, *UNSOUND) as error:
            raise MeasurementError(f"{folder}/measurements.json: cannot be read: {error}") from None

    @classmethod
    def load(cls, folder: str | Path) -> Measurements:
        """Read the measurements that ``save`` wrote; damaged files are refused."""
        folder = Path(folder)
        path = folder / "measurements.json"
        try:
            document = _document_of(folder)
            arrays = folder / document["arrays"]
            content = read_file(arrays, MAX_ARRAYS)
            if hashlib.sha256(content).hexdigest() != document["arrays_sha256"]:
                raise MeasurementError(f"{arrays}: was changed or is torn")
            values = load_arrays(content, f"counts|scales|{ARRAY_NAMES}")
            schema = Schema.from_toml(document["schema"])
            return cls(
                load_workload(schema, document["families"], values),
                values["counts"],
                values["scales"],
                document["n_records"],
                tuple(document["charges"]),
                document["private"],
                document["neighbours"],
            )
        except FileNotFoundError as error:
            raise MeasurementError(f"{error.filename}: no such file") from None
        except OSError as error:
            raise MeasurementError(f"{folder}: cannot be read: {error.strerror}") from None
        except UNSOUND as error:
            raise MeasurementError(f"{path}: not whole: {error}") from None


def measure(
    exact: ExactCounts,
    groups: Sequence[int] | Selection,
    units: Sequence[int],
    *,
    accountant: Accountant,
    noise: NoiseSource,
    neighbours: Neighbours = "replace-one",
    n_records: int | NoisyRecordCount | None = None,
) -> Measurements:
    """Measure some groups with noise, each with its part of the budget.

    Args:
        exact: The exact counts of a workload.
        groups: The groups to be measured, or the result of a selection.
        units: For each group, its part of the budget, in units of 2^-52 of ρ.
        accountant: The accountant, which is charged before any noise is drawn.
        noise: The source of noise.
        neighbours: The neighbouring relation.
        n_records: The number of records to state. By default that of the table, which is public
            under "replace-one". Under "add-remove" a measured number must be given.
    """
    # Validate before charging.
    private = noise.private
    if isinstance(groups, Selection):
        private &= groups.private
        groups = groups.groups
    if isinstance(n_records, NoisyRecordCount):
        private &= n_records.private
        n_records = n_records.n_records
    if n_records is None and not records_are_public(neighbours, exact.workload.schema.unit):
        raise MeasurementError("the number of records is private: measure it first")
    n_records = check_n_records(exact.n_records if n_records is None else n_records)
    chosen = group_numbers(groups, exact.workload.num_groups)
    if len(units) != len(chosen):
        raise MeasurementError(f"{len(chosen):,} groups need as many shares, not {len(units):,}")
    order = np.argsort(chosen).tolist()
    chosen = chosen[order]
    noisy = release_counts(
        exact,
        chosen.tolist(),
        [operator.index(units[place]) for place in order],
        accountant=accountant,
        noise=noise,
        neighbours=neighbours,
    )
    return Measurements(
        exact.workload.select(chosen),
        noisy.counts,
        noisy.scales,
        n_records,
        (noisy.charge,) * len(chosen),
        private,
        neighbours,
    )


def check_n_records(n_records: Any) -> int:
    """Check a number of records; any integer type is accepted."""
    try:
        number = operator.index(n_records)
    except TypeError:
        number = 0
    if isinstance(n_records, bool) or not 1 <= number <= MAX_RECORDS:
        raise MeasurementError(
            f"n_records must be a whole number of at least 1, not {n_records!r:.50}"
        )
    return number


def _checksum(document: dict[str, Any]) -> str:
    """The checksum of a document without its checksum. It reveals damage, not forgery."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _document_of(folder: Path) -> dict[str, Any]:
    """The document of a folder, after checking its format, its checksum and its file name."""
    path = folder / "measurements.json"
    document: dict[str, Any] = parse_json(read_file(path, MAX_DOCUMENT))
    if document["format"] != FORMAT or document["version"] != VERSION:
        raise MeasurementError(
            f"{path}: expected {FORMAT!r} of version {VERSION}, "
            f"found {document['format']!r:.80} of version {document['version']!r:.80}"
        )
    if document["sha256"] != _checksum(document):
        raise MeasurementError(f"{path}: was changed or is torn")
    if not ARRAYS.fullmatch(document["arrays"]):
        raise MeasurementError(f"{path}: names {document['arrays']!r:.80} as its file of arrays")
    return document


def _arrays_named(folder: Path) -> str | None:
    """The file of arrays that the folder's document names; None if the document is damaged."""
    try:
        named: str = _document_of(folder)["arrays"]
    except (OSError, MeasurementError, *UNSOUND):
        return None
    return named
