"""Schemas in the formats of other tools, converted to the keys of a schema file.

Each function takes the parsed document and returns the keys of every column that it can convert,
and a note on every other column. Keys that the other format does not have (SDV has no bounds) are
missing, and an error asks for them when a schema is made from the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from private_gsd.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Keys = dict[str, dict[str, Any]]

MAX_SIZE = 1_000_000
# A YAML file may refer to a part of itself many times, and so may each of these parts.
MAX_PARTS = 10_000_000


def check_size(document: Any) -> None:
    """Refuse a document whose parts, repeated as often as they are referred to, are too many."""
    sizes: dict[int, int] = {}

    def size_of(part: Any) -> int:
        if not isinstance(part, dict | list | tuple | set):
            return 1
        if id(part) not in sizes:
            sizes[id(part)] = MAX_PARTS + 1  # in case the part contains itself
            inner = part.values() if isinstance(part, dict) else part
            sizes[id(part)] = 1 + sum(size_of(each) for each in inner)
        return sizes[id(part)]

    if size_of(document) > MAX_PARTS:
        raise SchemaError(f"it has more than {MAX_PARTS:,} parts, each as often as it is named")


def from_sdv(document: Any, table: str | None = None) -> tuple[Keys, list[str]]:
    """SDV metadata of one table, or of several tables of which ``table`` names one."""
    if isinstance(document, dict) and isinstance(document.get("tables"), dict):
        tables = document["tables"]
        if table is None and len(tables) != 1:
            raise SchemaError(f"the metadata holds several tables; name one of {', '.join(tables)}")
        name = table if table is not None else next(iter(tables))
        if name not in tables:
            raise SchemaError(f"no table {name!r}; the metadata holds {', '.join(tables)}")
        document = tables[name]
    columns = document.get("columns") if isinstance(document, dict) else None
    if not isinstance(columns, dict):
        raise SchemaError("not SDV metadata: expected an object with 'columns' or 'tables'")
    keys: Keys = {}
    notes = []
    for name, spec in columns.items():
        sdtype = spec.get("sdtype") if isinstance(spec, dict) else None
        if sdtype == "numerical":
            whole = "int" in str(spec.get("computer_representation", "")).lower()
            keys[name] = {"kind": "integer" if whole else "real"}
        elif sdtype == "categorical":
            keys[name] = {"kind": "categorical"}
            if _listable(spec.get("order")):
                keys[name]["values"] = spec["order"]
        elif sdtype == "boolean":
            keys[name] = {"kind": "boolean"}
        elif sdtype == "datetime":
            pattern = spec.get("datetime_format")
            if pattern is not None and not isinstance(pattern, str):
                raise SchemaError(f"column {name!r}: datetime_format must be text, not {pattern!r}")
            timed = pattern is None or any(code in pattern for code in ("%H", "%I", "%T", "%X"))
            keys[name] = {"kind": "datetime" if timed else "date"}
            if pattern not in (None, "%Y-%m-%d", "%Y-%m-%d %H:%M:%S"):
                keys[name]["format"] = pattern
        else:
            notes.append(f"Left out: column {name!r} (sdtype {sdtype!r} is no statistical column).")
    return keys, notes


def from_mbi(document: Any) -> tuple[Keys, list[str]]:
    """An mbi domain: each column has a size, and its values are 0 … size - 1."""
    if not isinstance(document, dict):
        raise SchemaError('not an mbi domain: expected an object such as {"age": 85, "sex": 2}')
    for name, size in document.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SchemaError(f"column {name!r}: expected a size of 1 or more, not {size!r}")
        if size > MAX_SIZE:
            raise SchemaError(f"column {name!r}: {size:,} values are more than {MAX_SIZE:,}")
    return {
        name: {"kind": "categorical", "values": list(range(size))}
        for name, size in document.items()
    }, []


def from_dpsynth(document: Any) -> tuple[Keys, list[str]]:
    """A dpsynth domain: ``possible_values``, or ``min_value`` and ``max_value``."""
    if not isinstance(document, dict):
        raise SchemaError("not a dpsynth domain: expected a mapping of columns")
    keys: Keys = {}
    notes = []
    for name, spec in document.items():
        if not isinstance(name, str):
            raise SchemaError(
                f"column {name!r}: write the name in quotes; YAML reads it as no text"
            )
        spec = spec if isinstance(spec, dict) else {}
        described = {"description": str(spec["description"])} if spec.get("description") else {}
        if "possible_values" in spec:
            keys[name] = _dpsynth_categorical(name, spec) | described
        elif "min_value" in spec or "max_value" in spec:
            keys[name] = _dpsynth_numerical(name, spec) | described
        else:
            notes.append(f"Left out: column {name!r} (an open set or free text has no domain).")
    return keys, notes


def _dpsynth_categorical(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    values = spec["possible_values"]
    index = spec.get("out_of_domain_index", 0)
    if not _listable(values) or not isinstance(index, int):
        raise SchemaError(f"column {name!r}: possible_values must be a list of texts or numbers")
    if values and all(isinstance(value, float) for value in values):
        values = [str(value) for value in values]
    keys: dict[str, Any] = {"kind": "categorical", "values": values}
    if 0 <= index < len(values):
        keys["other"] = values[index]
    return keys


def _dpsynth_numerical(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    whole = spec.get("dtype", "float") == "int"
    keys: dict[str, Any] = {"kind": "integer" if whole else "real"}
    for key, bound in (("lower", "min_value"), ("upper", "max_value")):
        value = spec.get(bound)
        if value is None:
            continue
        if not isinstance(value, int | float) or (whole and value != value // 1):
            raise SchemaError(
                f"column {name!r}: {bound} must be a {'whole ' * whole}number, not {value!r}"
            )
        keys[key] = int(value) if whole else float(value)
    # The state of dpsynth for values outside the domain becomes null.
    if spec.get("clip_to_range") is False:
        keys["nullable"] = True
    return keys


def _listable(values: object) -> bool:
    """Whether a list has only values that a schema file can represent."""
    return isinstance(values, list) and all(
        isinstance(value, str | int | float) for value in values
    )


CONVERTERS: dict[str, Callable[..., tuple[Keys, list[str]]]] = {
    "sdv": from_sdv,
    "mbi": from_mbi,
    "dpsynth": from_dpsynth,
}


def guess_format(document: Any) -> str:
    """Guess the format of a document from its structure."""
    if not isinstance(document, dict):
        raise SchemaError("expected an object of columns at the top of the file")
    if "columns" in document or "tables" in document:
        return "sdv"
    if document and all(isinstance(size, int) for size in document.values()):
        return "mbi"
    return "dpsynth"
