"""Predicates: queries that are conditions in SQL, as in a WHERE clause."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import WorkloadError, expect_type
from private_gsd.kernels.predicates import count_clauses, mark_clauses
from private_gsd.sql.expressions import (
    FALSE,
    TRUE,
    And,
    ColumnTest,
    ConstantTruth,
    Or,
    both,
    columns_of_truth,
)
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads.checks import require_sound
from private_gsd.workloads.family import Family
from private_gsd.workloads.offsets import starts_of
from private_gsd.workloads.programs import compiled, cut_columns, depth_of
from private_gsd.workloads.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.schema.neighbours import Neighbours
    from private_gsd.sql.expressions import Truth
    from private_gsd.workloads.family import Arrays
    from private_gsd.workloads.layout import QueryLayout

MAX_PREDICATES = 100_000
# The largest group that is compared in pairs, and the largest number of alternatives of a
# predicate that is compared.
MAX_COMPARED = 300
MAX_BOXES = 32


class Predicates(Family):
    """Conditions in SQL, in groups.

    Args:
        schema: The public schema.
        texts: The conditions, group after group.
        sizes: The number of conditions in each group.
        truths: The parsed conditions, if they were parsed already.
    """

    name: ClassVar[str] = "predicates"
    title: ClassVar[str] = "conditions in SQL"

    def __init__(
        self,
        schema: Schema,
        texts: Sequence[str],
        sizes: Sequence[int],
        truths: Sequence[Truth] | None = None,
    ) -> None:
        self.schema = schema
        self.texts = tuple(texts)
        self._sizes = np.array(sizes, dtype=np.int64)
        if len(self.texts) > MAX_PREDICATES:
            raise WorkloadError(
                f"{len(self.texts):,} predicates are more than the {MAX_PREDICATES:,} allowed"
            )
        whole = self._sizes.sum() == len(self.texts) and (self._sizes >= 1).all()
        require_sound(whole, "groups of predicates")
        if truths is None:
            truths = [_numbered(schema, n, text) for n, text in enumerate(self.texts)]
        self.truths = tuple(truths)

    def __getstate__(self) -> dict[str, object]:
        return {"schema": self.schema, "texts": self.texts, "sizes": self._sizes.tolist()}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of conditions in each group."""
        return self._sizes

    @cached_property
    def _most(self) -> NDArray[np.float64]:
        """For each group, the largest number of its conditions that one row can meet."""
        return np.array([most_at_once(group) for group in self._groups], dtype=np.float64)

    @property
    def _groups(self) -> list[tuple[Truth, ...]]:
        starts = starts_of(self._sizes).tolist()
        return [self.truths[start:end] for start, end in itertools.pairwise(starts)]

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """The largest number of counts that can change, each by 1.

        These are the counts of the conditions that one row meets (add-remove) or two rows meet
        (replace-one). A group of K conditions has at most K; fewer if it is proven that a row meets
        only some of them, as in a partition.
        """
        if neighbours == "add-remove":
            return self._most
        return np.minimum(self._sizes, 2 * self._most)

    def select(self, groups: NDArray[np.int64]) -> Predicates:
        """The family of some of the groups."""
        starts = starts_of(self._sizes).tolist()
        places = [
            place for group in groups.tolist() for place in range(starts[group], starts[group + 1])
        ]
        return Predicates(
            self.schema,
            [self.texts[place] for place in places],
            self._sizes[groups].tolist(),
            [self.truths[place] for place in places],
        )

    def join(self, other: Family) -> Predicates | None:
        """Both families of predicates as one."""
        if not isinstance(other, Predicates):
            return None
        sizes = [*self._sizes.tolist(), *other._sizes.tolist()]
        truths = (*self.truths, *other.truths)
        return Predicates(self.schema, (*self.texts, *other.texts), sizes, truths)

    def describe(self, group: int) -> str:
        """The first condition, and the number of the others."""
        first = self.query(group, 0)
        shown = first if len(first) <= 60 else first[:59] + "…"
        more = int(self._sizes[group]) - 1
        return shown + (f" and {more} more" if more else "")

    def query(self, group: int, cell: int) -> str:
        """The condition, on one line."""
        return " ".join(self.texts[int(self._sizes[:group].sum()) + cell].split())

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Add rows to a state."""
        count_clauses(*self._compiled, matrix, state)

    def met(self, matrix: NDArray[np.float64]) -> NDArray[np.bool_]:
        """For each row and each condition, whether the row meets the condition."""
        found = np.empty((len(matrix), len(self.texts)), dtype=np.bool_)
        mark_clauses(*self._compiled, matrix, found)
        return found

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The texts and the sizes of the groups."""
        return {"texts": list(self.texts), "groups": self._sizes.tolist()}, {}

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Predicates:  # noqa: ARG003
        """The inverse of ``to_document``."""
        texts, sizes = values["texts"], values["groups"]
        require_sound(texts and all(type(size) is int for size in sizes), "predicates")
        return cls(schema, texts, sizes)

    def lay_out(self, layout: QueryLayout) -> None:
        """Add the conditions to a layout."""
        layout.add_conditions(self.truths)

    @cached_property
    def _compiled(self) -> tuple[Any, ...]:
        """The programs and the further arguments of the kernels."""
        cuts, kernel_cuts = cut_columns(self.schema, self.truths)
        tested = set().union(*(columns_of_truth(truth) for truth in self.truths))
        return (
            compiled(self.schema, self.truths, np.arange(len(self.texts)), cuts),
            np.array(sorted(tested), dtype=np.int64),
            kernel_cuts,
            depth_of(self.truths),
        )


def predicates(schema: Schema, texts: Sequence[str | Sequence[str]]) -> Workload:
    """Queries that are conditions in SQL, each as in a WHERE clause.

    >>> from private_gsd import datasets
    >>> schema = datasets.census_schema()
    >>> texts = ["age < 30 AND income > 50000", ["age < 18", "age BETWEEN 18 AND 64", "age > 64"]]
    >>> workload = predicates(schema, texts)
    >>> workload, workload.squared_sensitivities().tolist()
    (<Workload of 4 queries in 2 groups: predicates>, [1.0, 2.0])

    Args:
        schema: The public schema.
        texts: The conditions. A list of conditions is one group, which is measured and selected as
            a whole; each other condition is a group of its own. A group gets less noise if its
            conditions can be proven to exclude each other.
    """
    if isinstance(texts, str) or not texts:
        raise WorkloadError(f"give a list of conditions in SQL, not {texts!r:.80}")
    groups = [[each] if isinstance(each, str) else list(each) for each in texts]
    if not all(groups):
        raise WorkloadError("a group of conditions is empty")
    flat = list(itertools.chain(*groups))
    return Workload(schema, (Predicates(schema, flat, [len(group) for group in groups]),))


def read_predicates(schema: Schema, path: Path) -> Workload:
    """Conditions from a file with one condition on each line and ``--`` before comments.

    Successive conditions that can be proven to exclude each other form one group.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WorkloadError(f"{path}: not UTF-8 text") from None
    groups: list[list[str]] = []
    together: list[Truth] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("--"):
            together = []  # a comment or a blank line separates groups
            continue
        try:
            truth = parse_predicate(schema, text.removesuffix(";"))
        except WorkloadError as error:
            raise WorkloadError(f"{path}, line {number}: {error}") from None
        apart = all(disjoint(truth, other) for other in together)
        if together and apart and len(together) < MAX_COMPARED:
            groups[-1].append(text.removesuffix(";"))
            together.append(truth)
        else:
            groups.append([text.removesuffix(";")])
            together = [truth]
    if not groups:
        raise WorkloadError(f"{path}: holds no condition; write one a line, such as age < 30")
    return predicates(schema, groups)


def most_at_once(truths: Sequence[Truth]) -> int:
    """A proven bound on the number of conditions that one row can meet.

    The conditions are put into classes whose members exclude each other. A row meets at most one
    condition of each class.
    """
    if len(truths) > MAX_COMPARED:
        return len(truths)
    classes: list[list[list[dict[int, ColumnTest]] | None]] = []
    for truth in truths:
        mine = boxes(truth)
        for members in classes:
            if all(_apart(mine, other) for other in members):
                members.append(mine)
                break
        else:
            classes.append([mine])
    return len(classes)


def disjoint(one: Truth, other: Truth) -> bool:
    """Whether it is proven that no row meets both."""
    return _apart(boxes(one), boxes(other))


def boxes(truth: Truth) -> list[dict[int, ColumnTest]] | None:
    """Boxes that together contain all rows that meet a condition; None if there are too many.

    A box is a test for some of the columns. Comparisons of columns are assumed to be met.
    """
    if isinstance(truth, ColumnTest):
        return [{truth.position: truth}]
    if isinstance(truth, ConstantTruth):
        return [{}] if truth.truth == TRUE else []
    if isinstance(truth, Or):
        parts = [boxes(part) for part in truth.parts]
        found = [box for part in parts for box in part or []]
        return None if None in parts or len(found) > MAX_BOXES else found
    if isinstance(truth, And):
        product: list[dict[int, ColumnTest]] = [{}]
        for part in truth.parts:
            inner = boxes(part)
            if inner is None:
                continue  # the part may be met in every box
            product = [
                joined
                for box in product
                for each in inner
                if (joined := _within(box, each)) is not None
            ]
            if len(product) > MAX_BOXES:
                return None
        return product
    return [{}]


def _within(
    one: dict[int, ColumnTest], other: dict[int, ColumnTest]
) -> dict[int, ColumnTest] | None:
    """The intersection of two boxes; None if it is empty."""
    found = dict(one)
    for position, test in other.items():
        if position in found:
            joined = both([found[position], test])
            if isinstance(joined, ConstantTruth):
                if joined.truth == FALSE:
                    return None
                continue
            found[position] = expect_type(ColumnTest, joined)
        else:
            found[position] = test
        mine = found[position]
        if TRUE not in mine.truths and mine.null != TRUE:
            return None
    return found


def _apart(
    one: list[dict[int, ColumnTest]] | None, other: list[dict[int, ColumnTest]] | None
) -> bool:
    if one is None or other is None:
        return False
    return all(_within(mine, theirs) is None for mine in one for theirs in other)


def _numbered(schema: Schema, number: int, text: str) -> Truth:
    try:
        return parse_predicate(schema, text)
    except WorkloadError as error:
        raise WorkloadError(f"predicate {number + 1}: {error}") from None
