"""Unledgered fits: a warning if several fits of this process use the same data without a ledger.

Each of these fits has its own guarantee. Together they spend the sum of their budgets, and no
ledger adds it up; running a notebook cell again is an example. The second fit of the same data
warns before it pays.

No row is read to decide whether two fits use the same data. Two files are the same data if their
paths are the same. Two other tables, or a file and another table, are treated as the same data if
they are the same object or their schemas have the same columns, since a frame that is built again
is another object. A false alarm is acceptable because this only warns.
"""

from __future__ import annotations

import warnings
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.privacy.budget import epsilon_of, units_to_rho
from private_gsd.privacy.record import at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from private_gsd.privacy.budget import Conversion, RhoBudget


class UncountedWarning(UserWarning):
    """Several fits use the same data, and no ledger adds up their budgets."""


@dataclass(frozen=True)
class UnledgeredFit:
    """The data and the budget of one fit without a ledger.

    Attributes:
        path: The path of the data, if the data is a file, a folder or a glob.
        frame: Returns the data, if the data is an object that still exists; else None.
        columns: The columns that are read.
        budget: The budget that is spent.
        neighbours: The neighbouring relation, with its unit of protection.
    """

    path: str | None
    frame: Callable[[], object | None]
    columns: frozenset[str]
    budget: RhoBudget
    neighbours: str

    @classmethod
    def of(
        cls, data: Any, columns: Iterable[str], budget: RhoBudget, neighbours: str
    ) -> UnledgeredFit:
        """The fit of a path or of any other data."""
        path, frame = None, _nothing
        if isinstance(data, str | Path):
            path = str(Path(data).resolve())
        else:
            try:
                frame = weakref.ref(data)
            except TypeError:  # an object that takes no weak reference
                frame = _nothing
        return cls(path, frame, frozenset(columns), budget, neighbours)

    def same_data(self, other: UnledgeredFit) -> bool:
        """Whether both fits may use the same data."""
        if self.path is not None and other.path is not None:
            return self.path == other.path
        mine = self.frame()
        return self.columns == other.columns or (mine is not None and mine is other.frame())


FITS: list[UnledgeredFit] = []


def remember(fit: UnledgeredFit) -> None:
    """Remember a fit that has been charged."""
    FITS.append(fit)


def warn_if_repeated(fit: UnledgeredFit) -> None:
    """Warn before a fit is charged, if earlier fits used the same data."""
    fits = [fit, *(each for each in FITS if each.same_data(fit))]
    if len(fits) == 1:
        return
    relations = {each.neighbours for each in fits}
    # Replacing a record is two steps (remove one, add one), which costs four times the ρ.
    mixed = len({relation.partition(" ")[0] for relation in relations}) > 1
    weight = {each: 4 if mixed and each.startswith("add-remove") else 1 for each in relations}
    units = {relation.partition(" ")[2] for relation in relations}
    more = "They protect different units, and of each of them more is spent. " * (len(units) > 1)
    rho = units_to_rho(sum(each.budget.units * weight[each.neighbours] for each in fits))
    gaussian = all(each.budget.conversion == "gdp" for each in fits)
    conversion: Conversion = "gdp" if gaussian else "zcdp"
    delta = max(each.budget.delta for each in fits)
    epsilon = epsilon_of(rho, delta, conversion)
    warnings.warn(
        f"{len(fits):,} fits of this process spend on the same data without a ledger, this one "
        f"included. Together they spend rho = {at_most(rho, 4)}, which converts to epsilon = "
        f"{at_most(epsilon, 4)} at delta = {at_most(delta, 4)}, and each "
        f"release states its own part alone. {more}A notebook cell that is run again spends "
        "again. Give all fits of the data one ledger, made with 'private-gsd ledger create', which "
        "adds up and refuses what is over its total. (Tables in memory are taken for the same "
        "where they have the same columns.)",
        UncountedWarning,
        stacklevel=3,
    )


def _nothing() -> None:
    """Returns None, in place of a weak reference."""
