"""The keys of a schema file: conversion of keys to a column and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from private_gsd.errors import SchemaError, did_you_mean
from private_gsd.schema.columns import Boolean, Categorical, Column, Integer, Numeric, Real
from private_gsd.schema.temporal import Date, Datetime

KINDS: dict[str, type[Column]] = {
    column.kind: column for column in (Categorical, Integer, Real, Date, Datetime, Boolean)
}


# The keys that a column of each kind must have.
NEEDED: dict[str, tuple[str, ...]] = {
    kind: ("lower", "upper") if issubclass(column, Numeric) else ()
    for kind, column in KINDS.items()
} | {"categorical": ("values",)}


def column_from_dict(name: str, keys: dict[str, Any]) -> Column:
    """Build a column from its keys in a schema file."""
    prefix = f"column {name!r}:"
    if not isinstance(keys, dict):
        raise SchemaError(f"{prefix} expected a table of keys such as kind, not {keys!r}")
    kind = keys.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        listed = ", ".join(KINDS)
        if kind is None:
            raise SchemaError(f"{prefix} kind is missing; it must be one of {listed}")
        hint = did_you_mean(str(kind), KINDS)
        raise SchemaError(f"{prefix} unknown kind {kind!r}; expected one of {listed}{hint}")
    known = {field.name: field for field in fields(KINDS[kind]) if field.name != "name"}
    for key in keys.keys() - {"kind"}:
        if key not in known:
            raise SchemaError(
                f"{prefix} unknown key {key!r}; a {kind} column takes "
                f"{', '.join(known)}{did_you_mean(key, known)}"
            )
    missing = [key for key in NEEDED[kind] if key not in keys]
    if missing:
        raise SchemaError(
            f"{prefix} {' and '.join(missing)} missing; a {kind} column needs "
            f"{' and '.join(NEEDED[kind])}, from public knowledge"
        )
    return KINDS[kind](name, **{key: value for key, value in keys.items() if key != "kind"})


def column_to_dict(column: Column) -> dict[str, Any]:
    """The keys of a column for a schema file, without defaults."""
    keys: dict[str, Any] = {"kind": column.kind}
    shared = {each.name for each in fields(Column)}
    # The keys of the kind come first, then the keys that all kinds share.
    for each in sorted(fields(column), key=lambda each: each.name in shared):
        value = getattr(column, each.name)
        if each.name != "name" and value != each.default:
            keys[each.name] = list(value) if isinstance(value, tuple) else value
    return keys
