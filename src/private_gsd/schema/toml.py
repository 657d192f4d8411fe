"""Schema files: TOML text to plain keys and back, with comments for readers."""

from __future__ import annotations

import datetime as dt
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from private_gsd.errors import SchemaError, did_you_mean
from private_gsd.schema.keys import NEEDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DRAFT_WARNING = (
    "This schema was learned from the data: its categories and bounds may disclose facts about\n"
    "single people. Before a private release, replace every one of them by public knowledge\n"
    "(a codebook, a law, common sense), then delete the line 'drafted = true'."
)

_TOP_KEYS = ("constraints", "drafted", "unit", "columns")
_LINE_WIDTH = 100

# More digits than any column allows; Python does not print numbers of more than 4,300 digits.
_LONGEST = 1_000
TOO_LONG = "a number has too many digits for any column"


def check_numbers(value: object) -> None:
    """Refuse a document with numbers that are too long to be printed in a message."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            check_numbers(each)
    elif isinstance(value, int) and abs(value) >= 10**_LONGEST:
        raise SchemaError(TOO_LONG)


def loads(text: str) -> dict[str, Any]:
    """Parse a schema file to its keys; error messages name the place."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        twice = re.search(r"(?:Cannot declare|Cannot overwrite).*", str(error))
        hint = " (is a column named twice?)" if twice else ""
        raise SchemaError(f"not valid TOML: {error}{hint}") from None
    except RecursionError:
        raise SchemaError("not valid TOML: nested too deeply") from None
    except ValueError:  # Python limits the digits of a number
        raise SchemaError(TOO_LONG) from None
    check_numbers(document)
    for key in document:
        if key not in _TOP_KEYS:
            raise SchemaError(
                f"unknown key {key!r} at the top of the file; expected [columns.NAME] tables, "
                f"[unit], constraints or drafted{did_you_mean(key, _TOP_KEYS)}"
            )
    columns = document.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise SchemaError("no columns; expected a table [columns.NAME] for each column")
    for name, keys in columns.items():
        for key in ("constraints", "drafted"):
            if isinstance(keys, dict) and key in keys:
                raise SchemaError(
                    f"{key} stands inside column {name!r}; "
                    "move it to the top of the file, before the first [columns.…]"
                )
    return document


def dumps(
    columns: Mapping[str, Mapping[str, Any]],
    *,
    constraints: Sequence[str] = (),
    unit: Mapping[str, Any] | None = None,
    drafted: bool = False,
    notes: Sequence[str] = (),
) -> str:
    """Write keys as a schema file, with a comment for each key that a column still lacks."""
    lines = []
    if drafted:
        lines += [f"# {line}" for line in f"DRAFT. {DRAFT_WARNING}".splitlines()]
        lines += ["drafted = true", ""]
    lines += [f"# {note}" for note in notes]
    if notes:
        lines.append("")
    if constraints:
        lines += [f"constraints = {_value(list(constraints), len('constraints = '))}", ""]
    if unit is not None:
        lines.append("[unit]")
        lines += [f"{key} = {_value(value, len(key) + 3)}" for key, value in unit.items()]
        lines.append("")
    for name, keys in columns.items():
        lines.append(f"[columns.{_key(name)}]")
        lines += [f"{key} = {_value(value, len(key) + 3)}" for key, value in keys.items()]
        missing = [key for key in NEEDED.get(keys.get("kind", ""), ()) if key not in keys]
        lines += [f"# {key} =    (to be added, from public knowledge)" for key in missing]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    # JSON's escapes are valid TOML, except that JSON does not escape one control character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object, indent: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dt.date):  # and datetime, which is a date
        return value.isoformat()
    if isinstance(value, list) and value:
        items = [_value(item, 0) for item in value]
        inline = f"[{', '.join(items)}]"
        if indent + len(inline) <= _LINE_WIDTH:
            return inline
        return "[\n" + "".join(f"    {line},\n" for line in _wrap(items)) + "]"
    raise SchemaError(f"a schema file cannot hold {value!r}")


def _wrap(items: list[str]) -> list[str]:
    """Join items by commas into lines that fit the width."""
    lines = [items[0]]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 8 > _LINE_WIDTH:
            lines.append(item)
        else:
            lines[-1] += f", {item}"
    return lines
