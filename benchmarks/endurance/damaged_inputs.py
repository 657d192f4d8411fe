"""Damaged inputs: schemas, tables and external measurements."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.csv
import pyarrow.parquet

from benchmarks.endurance.children import call, command
from benchmarks.endurance.looking import QUICK, Looked, Subject
from benchmarks.endurance.scenes import SCHEMA, TABLE
from private_gsd import Measurements, Schema, datasets, exact_counts, workloads
from private_gsd.errors import GsdError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.endurance.scenes import Reference


def inputs(reference: Reference, folder: Path) -> Iterator[Subject]:  # noqa: ARG001
    """Schemas and tables."""
    template, place = folder / "inputs-template", folder / "inputs"
    template.mkdir(parents=True)
    table = datasets.census(3000, seed=4).select(SCHEMA.names)
    SCHEMA.write(template / "schema.toml")
    pyarrow.csv.write_csv(table, template / "people.csv")
    text = (template / "people.csv").read_bytes()
    (template / "people.csv.gz").write_bytes(gzip.compress(text, mtime=0))
    parquet = template / "people.parquet"
    pyarrow.parquet.write_table(table, parquet, write_page_checksum=True)
    footer = len(parquet.read_bytes()) - 8 - int.from_bytes(parquet.read_bytes()[-8:-4], "little")
    asked = workloads.categorical_marginals(SCHEMA, k=3) + workloads.tree_marginals(SCHEMA, 1, 6)
    exact = exact_counts(asked, table)
    true = {"rows": exact.n_records, "counts": exact.counts.tolist()}
    files = ("schema.toml", "people.csv", "people.csv.gz", "people.parquet")
    look = _LookAtInput(asked, true, footer)
    yield Subject("input", template, place, files, look)


@dataclass(frozen=True)
class _LookAtInput:
    """Check and synthesize, and compare what was read."""

    asked: workloads.Workload
    true: dict[str, Any]
    footer: int

    def __call__(self, place: Path, name: str, begin: int) -> Looked:
        looked = Looked()
        data = "people.csv" if name == "schema.toml" else name
        # What has a checksum must notice. The footer of a Parquet file has none.
        checked = name.endswith(".gz") or (name.endswith(".parquet") and begin < self.footer)
        lost = "silent" if checked else "changed"
        command_words = ["schema", "check", "schema.toml", data]
        looked.take(command(command_words, place), lambda: True, "schema check")

        def same() -> bool:
            if name == "schema.toml":
                return Schema.read(place / name) == SCHEMA
            exact = exact_counts(self.asked, place / name)
            return {"rows": exact.n_records, "counts": exact.counts.tolist()} == self.true

        def read() -> None:
            print(json.dumps(same()))

        def same_in_a_child() -> bool:
            found = call(read, place)
            return found.code == 0 and found.out.strip() == "true"

        words = ["synthesize", data, "--schema", "schema.toml", "--epsilon", "1", "-o", "out.csv"]
        ended = command([*words, "--delta", "1e-6", *QUICK], place)
        looked.take(ended, same_in_a_child, "synthesize", lost)
        return looked


def external_measurements(reference: Reference, folder: Path) -> Iterator[Subject]:  # noqa: ARG001
    """Measurements that were made elsewhere."""
    template, place = folder / "external-template", folder / "external"
    other = folder / "external-other"
    for number, target in enumerate((template, other)):
        marginals = [(["sex", "citizen"], [150.0, 20.0, 110.0 - number, 20.0 + number], 5.0)]
        made = Measurements.from_marginals(SCHEMA, 300, marginals, private=True)
        target.mkdir(parents=True)
        made.save(target / "measured")
        if number == 0:
            true = made
            pyarrow.csv.write_csv(TABLE, target / "people.csv")
            SCHEMA.write(target / "schema.toml")
    files = tuple(sorted(f"measured/{path.name}" for path in (template / "measured").iterdir()))
    look = _LookAtExternal(true)
    yield Subject("external measurements", template, place, files, look, other)


@dataclass(frozen=True)
class _LookAtExternal:
    """Synthesize with them, and compare what was read."""

    true: Measurements

    def __call__(self, place: Path, name: str, begin: int) -> Looked:  # noqa: ARG002
        looked = Looked()

        def same() -> bool:
            try:
                found = Measurements.load(place / "measured")
            except GsdError:
                return False
            one, other = found, self.true
            return (one.counts.tolist(), one.scales.tolist(), one.n_records, one.private) == (
                *(other.counts.tolist(), other.scales.tolist(), other.n_records, other.private),
            )

        words = ["synthesize", "people.csv", "--schema", "schema.toml", "--epsilon", "1"]
        words += ["-o", "out.csv", "--delta", "1e-6", "--external", "measured", *QUICK]
        looked.take(command(words, place), same, "synthesize")
        return looked
