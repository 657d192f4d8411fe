"""Small tables to fit, and fits of settings that are given together."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

from private_gsd import Adaptive, Budget, Schema, Synthesizer, datasets

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen", "tenure"])
TABLE = datasets.census(800, seed=2).select(SCHEMA.names)
# Denoising is turned off where nothing depends on how good the table is.
QUICK = "gsd:denoise=false"
SMALL: dict[str, Any] = {
    "rows": 60,
    "threads": 1,
    "mechanism": "one-shot",
    "projector": QUICK,
}
LAYERED: dict[str, Any] = {**SMALL, "mechanism": "layered", "workload": ["categorical:3"]}
ADAPTIVE: dict[str, Any] = {
    **SMALL,
    "mechanism": Adaptive(epochs=3, queries_per_epoch=2),
    "workload": ["categorical:2", "tree:2:3"],
}
# Of a table whose number of records is private.
ADD_REMOVE: dict[str, Any] = {"delta": 1e-6, "neighbours": "add-remove", **SMALL}

PARAMETERS = set(inspect.signature(Synthesizer).parameters)
TERMS = {field.name for field in fields(Budget)}


def synthesizer(schema: Schema, epsilon: Any, **settings: Any) -> Synthesizer:
    """A synthesizer; terms of its budget are given beside its parameters."""
    terms = {name: settings.pop(name) for name in TERMS & set(settings)}
    return Synthesizer(schema, Budget(epsilon, **terms), **settings)


def fitted(schema: Schema, epsilon: Any, data: Any, **settings: Any) -> Synthesizer:
    """A fit; what ``fit`` takes is given beside the parameters of the synthesizer."""
    mine = {name: value for name, value in settings.items() if name in PARAMETERS | TERMS}
    rest = {name: value for name, value in settings.items() if name not in mine}
    return synthesizer(schema, epsilon, **mine).fit(data, **rest)
