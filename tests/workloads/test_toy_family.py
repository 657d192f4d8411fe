"""A new family is one class and one line in the registry: parities, all the way to a release.

The class has no kernel: ``met`` says which rows meet a query, and everything else follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from private_gsd import (
    Boolean,
    Encoder,
    GeneticSearch,
    Integer,
    Measurements,
    Release,
    Schema,
    Synthesizer,
    evaluate,
    evolve,
    exact_counts,
)
from private_gsd.counting.exact import count
from private_gsd.workloads import Family, Workload
from private_gsd.workloads.families import FAMILIES
from private_gsd.workloads.family import Arrays, SingleQueries
from private_gsd.workloads.specs import SPECS, Spec, workload_of
from tests.workloads.contract import FamilyContract, Row, random_rows

SCHEMA = Schema([*(Boolean(name) for name in "abcd"), Integer("age", lower=0, upper=99)])


class Parities(SingleQueries):
    """How many rows have an odd number of trues among some boolean columns; a group each."""

    name: ClassVar[str] = "parities"
    title: ClassVar[str] = "parities"

    def __init__(self, schema: Schema, sets: Sequence[Sequence[int]]) -> None:
        self.schema = schema
        self.sets = [list(each) for each in sets]

    @property
    def size(self) -> int:
        return len(self.sets)

    def select(self, groups: NDArray[np.int64]) -> Family:
        return Parities(self.schema, [self.sets[group] for group in groups.tolist()])

    def describe(self, group: int) -> str:
        return f"parity of {', '.join(self.schema.names[place] for place in self.sets[group])}"

    def met(self, matrix: NDArray[np.float64]) -> NDArray[np.bool_]:
        odd = [matrix[:, places].sum(axis=1) % 2 == 1 for places in self.sets]
        return np.stack(odd, axis=1)

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        return {"sets": self.sets}, {}

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Family:  # noqa: ARG003
        return cls(schema, values["sets"])


def parities(schema: Schema, k: int) -> Workload:
    """The parities of all sets of k boolean columns."""
    places = [place for place, column in enumerate(schema) if column.kind == "boolean"]
    return Workload(schema, (Parities(schema, list(itertools.combinations(places, k))),))


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(FAMILIES, Parities.name, Parities)
    monkeypatch.setitem(SPECS, "parity", Spec("parity:K, parities of K columns", parities))
    yield


class TestParities(FamilyContract):
    name: ClassVar[str] = "parities"

    def make(self) -> Workload:
        return parities(SCHEMA, 2)

    def contributions(self, family: Family, row: Row) -> list[int]:
        assert isinstance(family, Parities)
        return [int(sum(row[place] for place in places) % 2) for places in family.sets]


def test_a_table_is_found_that_was_measured(tmp_path: Path) -> None:
    workload = workload_of(SCHEMA, ["parity:3", "categorical:1"])
    assert workload.describe(0) == "parity of a, b, c"
    table = Encoder(SCHEMA).decode(random_rows(SCHEMA, 100))
    exact = exact_counts(workload, table)
    groups = workload.num_groups
    measured = Measurements(
        workload, exact.counts.astype(float), np.ones(groups), 100, ("",) * groups, private=False
    )
    measured.save(tmp_path)
    found = evolve(Measurements.load(tmp_path), GeneticSearch(rows=100, denoise=False), seed=1)
    assert np.abs(count(workload, found.matrix) - exact.counts).max() <= 2


def test_a_release_of_them(tmp_path: Path) -> None:
    table = Encoder(SCHEMA).decode(random_rows(SCHEMA, 500))
    synth = Synthesizer(
        SCHEMA,
        epsilon=5.0,
        workload=["parity:2", "categorical:1"],
        projector=GeneticSearch(denoise=False),
        rows=100,
    )
    forecast = synth.plan(table)
    assert forecast.groups[0].name == "parity of a, b"
    assert forecast.seconds > 0
    synth.fit(table, release=tmp_path / "release")
    release = Release(tmp_path / "release")
    assert isinstance(release.workload.families[0], Parities)
    found = evaluate(
        synth.sample(100), table, schema=SCHEMA, workload=release.workload, targets=[], sample=500
    )
    assert any(group.name == "parity of a, b" for group in found.errors.groups)
