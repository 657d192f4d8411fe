"""Every registered family keeps the contract."""

from __future__ import annotations

import itertools
import math
from datetime import date, datetime, timedelta
from typing import ClassVar

import numpy as np

from private_gsd import Date, Datetime, Integer, Schema, workloads
from private_gsd.schema import Discrete
from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.expressions import TRUE
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import (
    Conjunctions,
    Family,
    Functions,
    Halfspaces,
    Predicates,
    Sums,
    Workload,
)
from private_gsd.workloads.families import FAMILIES
from private_gsd.workloads.features import Feature
from private_gsd.workloads.histograms import first_histograms
from private_gsd.workloads.patterns import Patterns, patterns_of
from private_gsd.workloads.sums import STEPS, Part
from tests.sql.people import SCHEMA
from tests.workloads import twins
from tests.workloads.contract import FamilyContract, Row

NUMBER = {"age": [(0, 17), (18, 64)], "pay": [(0, 100), (50, 1000)]}


def cell_of(feature: Feature, row: Row) -> int:
    """The cell of a row in a feature, by its definition; -1 for none."""
    value = row[feature.position]
    if math.isnan(value):
        return feature.size - 1
    if isinstance(SCHEMA.columns[feature.position], Discrete):
        return feature.segments[int(value)]
    return feature.segments[sum(value >= cut for cut in feature.breaks)]


class TestMarginals(FamilyContract):
    name: ClassVar[str] = "marginals"

    def make(self) -> Workload:
        return (
            workloads.categorical_marginals(SCHEMA, 2)
            + workloads.tree_marginals(SCHEMA, 2, 2)
            + workloads.range_marginals(SCHEMA, {**NUMBER, "job": ...})
        )

    def contributions(self, family: Family, row: Row) -> list[int]:
        found = []
        for marginal in family.marginals:
            for features in marginal.tables:
                mine = tuple(cell_of(feature, row) for feature in features)
                cells = itertools.product(*(range(feature.size) for feature in features))
                found += [int(cell == mine) for cell in cells]
        return found


class TestHistograms(FamilyContract):
    name: ClassVar[str] = "histograms"

    def make(self) -> Workload:
        return Workload(SCHEMA, (first_histograms(SCHEMA),))

    def contributions(self, family: Family, row: Row) -> list[int]:
        return [
            int(cell == cell_of(feature, row))
            for feature in family.histograms
            for cell in range(feature.size)
        ]


class TestPatterns(FamilyContract):
    name: ClassVar[str] = "patterns"
    schema = Schema(
        [
            Integer("steps", lower=-3000, upper=9000, nullable=True),
            Date("day", lower=date(1960, 1, 1), upper=date(2020, 12, 31)),
            Datetime("moment", lower=datetime(2020, 1, 1), upper=datetime(2024, 6, 30)),
        ]
    )

    def make(self) -> Workload:
        return Workload(self.schema, (Patterns(self.schema, patterns_of(self.schema)),))

    def contributions(self, family: Family, row: Row) -> list[int]:
        assert isinstance(family, Patterns)
        found = []
        for pattern in family.patterns:
            value = row[pattern.position]
            if math.isnan(value):
                mine = pattern.size - 1
            elif pattern.kind == "round":
                mine = max(n for n, each in enumerate(pattern.divisors) if value % each == 0)
            else:
                days = value if pattern.position == 1 else value // 86_400
                day = date(1970, 1, 1) + timedelta(days=days)
                mine = day.weekday() if pattern.kind == "weekday" else day.month - 1
            found += [int(cell == mine) for cell in range(pattern.size)]
        return found


class TestConjunctions(FamilyContract):
    name: ClassVar[str] = "conjunctions"

    def make(self) -> Workload:
        return workloads.random_prefixes(SCHEMA, 40, seed=1)

    def contributions(self, family: Family, row: Row) -> list[int]:
        assert isinstance(family, Conjunctions)
        return twins.conjunctions(family, np.array([row]))


class TestHalfspaces(FamilyContract):
    name: ClassVar[str] = "halfspaces"

    def make(self) -> Workload:
        return workloads.random_halfspaces(SCHEMA, 40, seed=1)

    def contributions(self, family: Family, row: Row) -> list[int]:
        assert isinstance(family, Halfspaces)
        return twins.halfspaces(family, np.array([row]))


class TestPredicates(FamilyContract):
    name: ClassVar[str] = "predicates"

    def make(self) -> Workload:
        parts = ["age < 18", "age BETWEEN 18 AND 64", "age > 64", "age IS NULL"]
        return workloads.predicates(
            SCHEMA, [parts, "hours > age", ["pay > 3", "pay\n> 500"], "job = 'a' OR owner"]
        )

    def contributions(self, family: Family, row: Row) -> list[int]:
        assert isinstance(family, Predicates)
        truths = [parse_predicate(SCHEMA, text) for text in family.texts]
        return [int(truth_of(truth, row) == TRUE) for truth in truths]


class TestSums(FamilyContract):
    name: ClassVar[str] = "sums"

    def make(self) -> Workload:
        queries = [
            [Part(1, "age")],
            [Part(1, "pay", "job = 'a' OR age > 40")],
            [Part(3, "hours", "owner"), Part(-7, None, "owner"), Part(2, None)],
        ]
        return Workload(SCHEMA, (Sums(SCHEMA, queries),))

    def contributions(self, family: Family, row: Row) -> list[int]:
        assert isinstance(family, Sums)
        return [sum(self.part(part, row) for part in parts) for parts in family.queries]

    def part(self, part: Part, row: Row) -> int:
        if part.where and truth_of(parse_predicate(SCHEMA, part.where), row) != TRUE:
            return 0
        if part.column is None:
            return part.factor
        value = row[SCHEMA.names.index(part.column)]
        if math.isnan(value):
            return 0
        low, high = SCHEMA[part.column].bounds
        return part.factor * int((value - low) / (high - low) * STEPS + 0.5)


class TestFunctions(FamilyContract):
    name: ClassVar[str] = "functions"
    saved: ClassVar[bool] = False

    def make(self) -> Workload:
        return workloads.functions(
            SCHEMA,
            {
                "paid by age": lambda rows: rows["pay"] > 10 * rows["age"],
                "no a": lambda rows: rows["job"] != "a",
            },
        )

    def contributions(self, family: Family, row: Row) -> list[int]:
        assert isinstance(family, Functions)
        named = dict(zip(SCHEMA.names, row, strict=True))
        return [int(named["pay"] > 10 * named["age"]), int(named["job"] != 0)]


def test_every_registered_family_keeps_the_contract() -> None:
    tested = {each.name for each in FamilyContract.__subclasses__()}
    assert set(FAMILIES) <= tested
    assert all(family.name == name for name, family in FAMILIES.items())
