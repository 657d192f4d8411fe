"""The registry of mechanisms. A new mechanism is one file, and one line here."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from private_gsd.errors import BudgetError, did_you_mean
from private_gsd.mechanisms.adaptive import Adaptive
from private_gsd.mechanisms.aim import AIM
from private_gsd.mechanisms.base import Mechanism
from private_gsd.mechanisms.joint_last import JointLast
from private_gsd.mechanisms.mst import MST
from private_gsd.mechanisms.numbers_first import NumbersFirst
from private_gsd.mechanisms.one_shot import Layered, OneShot
from private_gsd.mechanisms.strongest_pairs import StrongestPairs

if TYPE_CHECKING:
    from private_gsd.privacy.budget import Conversion

MECHANISMS: dict[str, type[Mechanism]] = {
    each.name: each
    for each in (OneShot, Layered, Adaptive, MST, AIM, StrongestPairs, JointLast, NumbersFirst)
}
# The choice is the program's, from public facts: one-shot or layered, after numbers first.
AUTO = "auto"


def mechanism_of(given: Any) -> Mechanism | None:
    """The mechanism that a name stands for, or the mechanism itself; None for "auto".

    >>> mechanism_of("adaptive")
    Adaptive(epochs=25, queries_per_epoch=1, selection_fraction=0.5)
    """
    if isinstance(given, Mechanism):
        return given
    if given == AUTO:
        return None
    if isinstance(given, str) and given in MECHANISMS:
        return MECHANISMS[given]()
    names = ", ".join(repr(name) for name in (AUTO, *MECHANISMS))
    hint = did_you_mean(str(given), [AUTO, *MECHANISMS]) if isinstance(given, str) else ""
    raise BudgetError(f"mechanism must be one of {names}, or a Mechanism, not {given!r:.80}{hint}")


def mechanism_with(name: str, **settings: Any) -> Mechanism | str:
    """The mechanism of a name, with the settings that are not None; or "auto", which has none.

    >>> mechanism_with("adaptive", epochs=4, queries_per_epoch=None)
    Adaptive(epochs=4, queries_per_epoch=1, selection_fraction=0.5)
    """
    named = mechanism_of(name)
    known = [] if named is None else [each.name for each in fields(named)]  # type: ignore[arg-type]
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        if key not in known:
            words = f"its settings are {', '.join(known)}" if known else "it has no settings"
            raise BudgetError(f"the mechanism {name!r} has no setting {key!r}; {words}")
    return AUTO if named is None else type(named)(**given)


def mechanism_from_dict(document: Any) -> Mechanism:
    """The mechanism that ``Mechanism.to_dict`` gave."""
    settings = dict(document)
    kind = MECHANISMS[settings.pop("name")]
    known = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type]
    needed = {name for name, default in known.items() if default is not None}
    if not needed <= set(settings) <= set(known):
        raise BudgetError(f"the settings of {kind.name} are {sorted(known)}, not {settings!r:.80}")
    for name in ("first", "then"):
        if name in settings:
            settings[name] = mechanism_from_dict(settings[name])
    return kind(**settings)


def mechanism_for_models(mechanism: Mechanism, column: str) -> Mechanism:
    """The mechanism, with less noise on the marginals with a column that models will predict.

    >>> mechanism_for_models(Layered(), "income")
    Layered(for_models='income')
    """
    if isinstance(mechanism, NumbersFirst):
        return replace(mechanism, then=mechanism_for_models(mechanism.then, column))
    if isinstance(mechanism, OneShot) and mechanism.for_models in (None, column):
        return replace(mechanism, for_models=column)
    raise BudgetError(
        f"for_models is a setting of one-shot and layered, not of {mechanism!r:.80}; leave out one "
        "of the two"
    )


def conversion_of(mechanism: Mechanism | None) -> Conversion:
    """The conversion that states least ε for what a mechanism spends."""
    return "gdp" if mechanism is None or mechanism.gaussian_noise_only else "zcdp"


def check_conversion(
    conversion: str, mechanism: Mechanism | None, where: str = "the budget has"
) -> None:
    """Refuse a mechanism for which the conversion does not hold.

    Args:
        conversion: From ρ to (ε, δ).
        mechanism: The mechanism; None for "auto".
        where: What has the conversion, in words.
    """
    if mechanism is not None and conversion == "gdp" != conversion_of(mechanism):
        raise BudgetError(
            f"{where} the conversion 'gdp', which is of Gaussian noise alone, and the "
            f"mechanism {mechanism.name!r} selects with other noise; use one-shot or layered, or, "
            "for a table of which nothing was released yet, a ledger with the conversion 'zcdp'"
        )
