"""The schema: all public knowledge about a table, as one frozen value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.errors import SchemaError, did_you_mean, require
from private_gsd.schema import other_formats, toml
from private_gsd.schema.columns import Column
from private_gsd.schema.draft import draft_columns, stream_batches
from private_gsd.schema.keys import column_from_dict, column_to_dict
from private_gsd.schema.unit import Unit
from private_gsd.system.markup import html_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from private_gsd.schema.draft import ArrowStream


@dataclass(frozen=True)
class Schema:
    """The public knowledge about a table: its columns, its rules and its unit of protection.

    >>> from private_gsd import Boolean, Categorical, Integer, Schema
    >>> schema = Schema([
    ...     Integer("age", lower=0, upper=120),
    ...     Categorical("sex", values=["1", "2"], nullable=True),
    ...     Boolean("veteran"),
    ... ])
    >>> schema.names
    ('age', 'sex', 'veteran')
    >>> schema["age"].upper
    120

    Attributes:
        columns: The columns, in order.
        constraints: Rules that every row meets, as conditions in SQL. They are parsed when the
            schema is made; a rule that cannot be parsed is refused.
        unit: The unit of protection, where it is not a row: whose rows are protected together.
        drafted: Whether the schema was learned from data, and so is not public knowledge.
        notes: Remarks for readers, written as comments into the file.
    """

    columns: tuple[Column, ...]
    constraints: tuple[str, ...] = ()
    unit: Unit | None = None
    drafted: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __init__(
        self,
        columns: Iterable[Column],
        constraints: Sequence[str] = (),
        *,
        unit: Unit | None = None,
        drafted: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        columns = tuple(columns)
        if not columns:
            raise SchemaError("a schema needs at least one column")
        seen: set[str] = set()
        for column in columns:
            if not isinstance(column, Column):
                raise SchemaError(
                    f"expected columns such as Integer('age', lower=0, upper=120), not {column!r}"
                )
            if column.name in seen:
                raise SchemaError(f"column {column.name!r} is named twice")
            seen.add(column.name)
        if not isinstance(constraints, list | tuple) or not all(
            isinstance(rule, str) for rule in constraints
        ):
            raise SchemaError("constraints must be a list of texts")
        if not isinstance(drafted, bool):
            raise SchemaError(f"drafted must be true or false, not {drafted!r}")
        if unit is not None and not isinstance(unit, Unit):
            raise SchemaError(f"unit must be a Unit('patient_id', at_most=8), not {unit!r:.80}")
        if unit is not None and unit.column in seen:
            raise SchemaError(
                f"column {unit.column!r} names the unit of protection, and would be published as a "
                "column; leave it out of the columns: synthetic rows have no ids of the data"
            )
        set_field = object.__setattr__
        set_field(self, "columns", columns)
        set_field(self, "constraints", tuple(constraints))
        set_field(self, "unit", unit)
        set_field(self, "drafted", drafted)
        set_field(self, "notes", tuple(notes))
        if self.constraints:
            # Imported here, since ``sql`` itself imports the columns of this package.
            from private_gsd.sql.rules import rules_of

            rules_of(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow types of decoded tables; a field is nullable if its column is."""
        return pa.schema(
            [pa.field(each.name, each.arrow_type, nullable=each.nullable) for each in self.columns]
        )

    @property
    def read_names(self) -> tuple[str, ...]:
        """The names of the columns that are read: those of the schema, and the ids of units."""
        return self.names if self.unit is None else (*self.names, self.unit.column)

    @property
    def unit_column(self) -> str | None:
        """The column with the ids of the unit of protection; None where it is a row."""
        return None if self.unit is None else self.unit.column

    def with_unit(self, unit: Unit | None) -> Schema:
        """The schema with another unit of protection; with None the unit is a row."""
        return replace(self, unit=unit)

    def __len__(self) -> int:
        return len(self.columns)

    def _repr_html_(self) -> str:
        title = "Schema, DRAFTED from data" if self.drafted else "Schema"
        return html_table(
            title if self.unit is None else f"{title}; unit of protection: {self.unit.in_words}",
            ("column", "kind", "null", "domain", "description"),
            [
                (each.name, each.kind, "yes" * each.nullable, each.domain, each.description)
                for each in self.columns
            ],
            words=(1, 2, 3, 4),
        )

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name!r} in the schema{did_you_mean(name, self.names)}")

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of some of the columns, in the given order and without rules."""
        return replace_columns(self, (self[name] for name in names))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Schema:
        """Build a schema from the keys of a schema file.

        All columns are checked before an error is raised, so that one error names every problem.
        """
        columns = []
        problems = []
        for name, keys in document.get("columns", {}).items():
            try:
                columns.append(column_from_dict(name, keys))
            except SchemaError as error:
                problems.append(str(error))
        if problems:
            raise SchemaError("\n  ".join(problems))
        return cls(
            columns,
            document.get("constraints", ()),
            unit=Unit.from_dict(document["unit"]) if "unit" in document else None,
            drafted=document.get("drafted", False),
        )

    def to_dict(self) -> dict[str, Any]:
        """The keys of a schema file; the inverse of ``from_dict``."""
        document: dict[str, Any] = {"drafted": True} if self.drafted else {}
        if self.constraints:
            document["constraints"] = list(self.constraints)
        if self.unit is not None:
            document["unit"] = self.unit.to_dict()
        document["columns"] = {column.name: column_to_dict(column) for column in self.columns}
        return document

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        text = _read_text(path)
        try:
            return cls.from_toml(text)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from the text of a file."""
        return cls.from_dict(toml.loads(text))

    def write(self, path: str | Path) -> None:
        """Write the schema as a TOML file; ``read`` returns an equal schema."""
        Path(path).write_text(self.to_toml(), encoding="utf-8", newline="\n")

    def to_toml(self) -> str:
        """The text of the schema file."""
        return toml.dumps(
            {column.name: column_to_dict(column) for column in self.columns},
            constraints=self.constraints,
            unit=None if self.unit is None else self.unit.to_dict(),
            drafted=self.drafted,
            notes=self.notes,
        )

    @classmethod
    def draft(cls, source: ArrowStream) -> Schema:
        """Propose a schema from data. The proposal is NOT public knowledge.

        Args:
            source: Any object with the Arrow stream protocol: a pandas, Polars or PyArrow
                table, a DuckDB relation, or a file opened with ``private_gsd.open_source``.

        Returns:
            A schema with ``drafted=True``. Its categories and bounds come from the data, and must
            be replaced by public knowledge before a private release.
        """
        return cls.draft_batches(stream_batches(source))

    @classmethod
    def draft_batches(cls, batches: Iterable[pa.RecordBatch]) -> Schema:
        """Propose a schema from record batches; otherwise like ``draft``."""
        columns, notes = draft_columns(batches)
        if not columns:
            raise SchemaError("no column could be drafted:\n  " + "\n  ".join(notes))
        return cls(columns, drafted=True, notes=notes)

    @classmethod
    def from_sdv(
        cls,
        path: str | Path,
        *,
        columns: Mapping[str, Mapping[str, Any]] | None = None,
        table: str | None = None,
    ) -> Schema:
        """Read SDV metadata (JSON), which has neither bounds nor categories.

        Args:
            path: The metadata file.
            columns: Keys to add to each column: ``{"age": {"lower": 0, "upper": 120}}``.
            table: The name of the table, if the metadata has several.
        """
        return cls._converted(path, "sdv", columns, table=table)

    @classmethod
    def from_mbi(
        cls, path: str | Path, *, columns: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Schema:
        """Read an mbi domain (JSON, ``{column: size}``); values are 0 … size - 1."""
        return cls._converted(path, "mbi", columns)

    @classmethod
    def from_dpsynth(
        cls, path: str | Path, *, columns: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Schema:
        """Read a dpsynth domain (YAML, ``possible_values`` or ``min_value``/``max_value``)."""
        return cls._converted(path, "dpsynth", columns)

    @classmethod
    def _converted(
        cls,
        path: str | Path,
        style: str,
        extra: Mapping[str, Mapping[str, Any]] | None,
        **options: Any,
    ) -> Schema:
        keys, notes = read_foreign(path, style, **options)
        for name, more in (extra or {}).items():
            if name not in keys:
                raise SchemaError(f"{path}: no column {name!r}{did_you_mean(name, keys)}")
            keys[name] = keys[name] | dict(more)
        try:
            schema = cls.from_dict({"columns": keys})
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None
        return replace(schema, notes=tuple(notes))


def replace_columns(schema: Schema, columns: Iterable[Column]) -> Schema:
    """A copy of a schema with other columns and without rules."""
    return Schema(columns, unit=schema.unit, drafted=schema.drafted)


def read_foreign(
    path: str | Path, style: str | None = None, **options: Any
) -> tuple[other_formats.Keys, list[str]]:
    """The keys of a schema in another tool's format, which is guessed if ``style`` is None."""
    text = _read_text(path)
    if str(path).endswith((".yaml", ".yml")):
        yaml = require("yaml", what="Reading YAML", extra="yaml")
        load, failure = yaml.safe_load, yaml.YAMLError
    else:
        load, failure = json.loads, json.JSONDecodeError
    try:
        document = load(text)
        other_formats.check_size(document)
    except RecursionError:
        raise SchemaError(f"{path}: nested too deeply") from None
    except (
        *(failure, SchemaError, ValueError, TypeError),
        *(AttributeError, LookupError, ArithmeticError),
    ) as error:
        # Python limits the digits of a number; YAML may take invalid values for dates.
        why = toml.TOO_LONG if "digits" in str(error) else f"not valid: {error}"
        raise SchemaError(f"{path}: {why}") from None
    try:
        found = other_formats.CONVERTERS[style or other_formats.guess_format(document)](
            document, **options
        )
        toml.check_numbers(found[0])
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except (ValueError, OverflowError):  # a number that is too long to convert or to print
        raise SchemaError(f"{path}: {toml.TOO_LONG}") from None
    return found


def _read_text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SchemaError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise SchemaError(f"{path}: is a directory, not a schema file") from None
    except UnicodeDecodeError:
        raise SchemaError(f"{path}: not UTF-8 text") from None
