"""The registry of projectors. A new projector is one file and one line here."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import Any

from private_gsd.errors import ProjectionError, did_you_mean
from private_gsd.projection.baselines.gem import GEM
from private_gsd.projection.baselines.pgm import PGM
from private_gsd.projection.baselines.rap import RAP
from private_gsd.projection.baselines.rap_plus_plus import RAPPlusPlus
from private_gsd.projection.genetic import GeneticSearch
from private_gsd.projection.protocol import MOST_ROWS, Projector
from private_gsd.workloads.checks import whole

PROJECTORS: dict[str, type[Projector]] = {
    "gsd": GeneticSearch,
    "rap": RAP,
    "rap++": RAPPlusPlus,
    "gem": GEM,
    "pgm": PGM,
}
NAMES = tuple(PROJECTORS)
TRUTHS = {"true": True, "false": False}


def projector_of(given: Any) -> Projector:
    """The projector with a name, with settings after a colon; a projector is returned as it is.

    >>> projector_of("rap:iterations=200,learning_rate=0.1")
    RAP(mixtures=1000, batch=5000, iterations=200, learning_rate=0.1)
    """
    if isinstance(given, Projector):
        return given
    if not isinstance(given, str):
        raise ProjectionError(
            f"projector must be a name or a Projector, not {given!r:.80}; there are "
            f"{', '.join(NAMES)}"
        )
    name, _, rest = (each.strip() for each in given.partition(":"))
    if name not in PROJECTORS:
        raise ProjectionError(
            f"no projector is called {name!r}{did_you_mean(name, NAMES)}; there are "
            f"{', '.join(NAMES)}"
        )
    known = [each.name for each in fields(PROJECTORS[name])]  # type: ignore[arg-type]
    settings: dict[str, Any] = {}
    for part in rest.split(",") if rest else []:
        key, _, value = (each.strip() for each in part.partition("="))
        if key not in known:
            raise ProjectionError(
                f"projector {given!r}: {name} has no {key!r}{did_you_mean(key, known)}; its "
                f"settings are {', '.join(known)}"
            )
        if key in settings:
            raise ProjectionError(f"projector {given!r}: {key} is given twice")
        settings[key] = _value(value)
    try:
        return PROJECTORS[name](**settings)
    except ProjectionError as error:
        raise ProjectionError(f"projector {given!r}: {error}") from None


def projector_from_dict(document: Any) -> Projector:
    """The projector from the result of ``Projector.to_dict``."""
    settings = dict(document)
    return PROJECTORS[settings.pop("name")](**settings)


def rows_of(rows: Any, projector: Projector) -> int | None:
    """The number of rows, given as one or as a setting of the projector."""
    if rows is not None:
        rows = whole("rows", rows, 1, MOST_ROWS, ProjectionError)
    named: int | None = getattr(projector, "rows", None)  # a setting of some projectors
    if named is not None and rows not in (None, named):
        raise ProjectionError(f"rows is {rows:,}, and the projector's is {named:,}; give one")
    return rows if named is None else named


def _value(text: str) -> Any:
    """A setting from its text: true, false, a number, or else the text."""
    if text in TRUTHS:
        return TRUTHS[text]
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text
