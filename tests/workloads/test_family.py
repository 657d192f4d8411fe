"""The family: what a class has that defines no more than it must."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from private_gsd import Boolean, Schema
from private_gsd.errors import WorkloadError
from private_gsd.workloads import Family, Workload
from private_gsd.workloads.family import SingleQueries
from private_gsd.workloads.layout import QueryLayout
from private_gsd.workloads.serialisation import dump_workload

SCHEMA = Schema([Boolean("a"), Boolean("b")])


class Everyone(SingleQueries):
    """Counts rows, and says of none whether it is met."""

    name: ClassVar[str] = "everyone"
    title: ClassVar[str] = "numbers of rows"

    def __init__(self, size: int) -> None:
        self.schema = SCHEMA
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def select(self, groups: NDArray[np.int64]) -> Family:
        return Everyone(len(groups))

    def describe(self, group: int) -> str:
        return f"all rows, {group}"


class Women(Everyone):
    """The same, where ``met`` is known."""

    def met(self, matrix: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.repeat(matrix[:, :1] == 1, self.size, axis=1)


def test_what_follows_from_met() -> None:
    family = Women(3)
    state = family.start()
    family.count(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), state)
    assert family.finish(state).tolist() == [2, 2, 2]
    assert family.group_sizes.tolist() == [1, 1, 1]
    assert family.query(1, 0) == family.describe(1)
    assert family.max_contributions.tolist() == [1, 1, 1]
    assert family.search_cost == pytest.approx(0.2 * 3 * len(SCHEMA))
    assert family.join(family) is None
    assert QueryLayout.of([family]).functions[0].met == family.met


def test_what_is_not_defined_is_said() -> None:
    family = Everyone(2)
    with pytest.raises(WorkloadError, match="the genetic search has no kernel for Everyone"):
        family.met(np.zeros((1, 2)))
    with pytest.raises(WorkloadError, match="a family of Everyone cannot be saved"):
        dump_workload(Workload(SCHEMA, (family,)))
    with pytest.raises(WorkloadError, match="unknown family of queries 'everyone'"):
        Everyone.from_document(SCHEMA, {}, {})
