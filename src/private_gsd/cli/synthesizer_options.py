"""The options of a synthesizer, for every command that makes one."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from private_gsd.cli import options
from private_gsd.cli.panels import PRIVACY, QUERIES, SYNTHESIS
from private_gsd.errors import SchemaError
from private_gsd.measurements.knowledge import Knowledge
from private_gsd.measurements.measurements import Measurements
from private_gsd.measurements.public_counts import read_public_counts
from private_gsd.mechanisms.registry import AUTO, MECHANISMS, mechanism_with
from private_gsd.privacy.budget import Budget, Conversion
from private_gsd.projection.projectors import NAMES
from private_gsd.schema import Schema, Unit
from private_gsd.schema.neighbours import Neighbours
from private_gsd.schema.unit import Weighting
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.workloads import read_predicates
from private_gsd.workloads.specs import listed_specs, workload_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_gsd.workloads import Workload

WorkloadNames = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="NAME",
        rich_help_panel=QUERIES,
        help="Queries of the target workload, repeatable. By default single columns, pairs or "
        f"triples, as the budget allows. {listed_specs()}.",
    ),
]


@dataclass(frozen=True)
class SynthesizerOptions:
    """The settings of a synthesizer, as given on the command line."""

    schema: options.SchemaFile
    epsilon: Annotated[
        float, typer.Option(rich_help_panel=PRIVACY, help="The ε of the budget of this release.")
    ]
    delta: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="The δ of the budget. By default the ledger's, or 1 / (number of records)².",
        ),
    ] = None
    neighbours: Annotated[
        Neighbours,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="The neighbouring relation: replace-one, where the number of records is public, "
            "or add-remove, where that number is measured too.",
        ),
    ] = "replace-one"
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=PRIVACY,
            help="The column with the ids of the unit of protection, such as patient_id: all rows "
            "with the same id are protected together. By default as the schema says.",
        ),
    ] = None
    at_most: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            rich_help_panel=PRIVACY,
            help="The most rows that are taken of one unit, from public knowledge.",
        ),
    ] = None
    weighting: Annotated[
        Weighting | None,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="What counts one: each unit (units, the default), or each row that is taken of a "
            "unit (rows).",
        ),
    ] = None
    conversion: Annotated[
        Conversion | None,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="The conversion from (ε, δ) to ρ. By default the ledger's, or the mechanism's.",
        ),
    ] = None
    workload: WorkloadNames = None
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=QUERIES,
            help="A file of conditions in SQL, one per line, that the target workload counts.",
        ),
    ] = None
    public_counts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=SYNTHESIS,
            help="A CSV file of public counts to match, with the columns condition (SQL) and "
            "count.",
        ),
    ] = None
    derived_statistics: Annotated[
        list[str] | None,
        typer.Option(
            "--derived-statistic",
            metavar="STATISTIC",
            rich_help_panel=SYNTHESIS,
            help="A statistic that the table matches as measured, such as 'median(age)' or "
            "'mean(income) WHERE age < 30'; repeatable.",
        ),
    ] = None
    external_measurements: Annotated[
        list[Path] | None,
        typer.Option(
            "--external",
            metavar="FOLDER",
            rich_help_panel=SYNTHESIS,
            help="A folder of external measurements, weighted by their variances; repeatable.",
        ),
    ] = None
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=SYNTHESIS,
            help=f"The mechanism, which spends the budget: {', '.join((AUTO, *MECHANISMS))}.",
            autocompletion=lambda: [AUTO, *MECHANISMS],
        ),
    ] = AUTO
    epochs: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=SYNTHESIS, help="The number of epochs of the adaptive mechanism."
        ),
    ] = None
    queries_per_epoch: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=SYNTHESIS,
            help="The number of query groups that the adaptive mechanism selects in an epoch.",
        ),
    ] = None
    selection_fraction: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=SYNTHESIS,
            help="The fraction of the budget that the adaptive mechanism spends on selection.",
        ),
    ] = None
    pairs_per_column: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=SYNTHESIS,
            help="The number of pairs that the mechanism strongest-pairs selects, as a multiple of "
            "the number of columns.",
        ),
    ] = None
    projector: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=SYNTHESIS,
            help=f"The projector, which makes the table: {', '.join(NAMES)}. Settings follow a "
            "colon, as in rap:iterations=200.",
            autocompletion=lambda: list(NAMES),
        ),
    ] = "gsd"
    for_models: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=SYNTHESIS,
            help="The column that models trained on the table will predict: its marginals with "
            "other columns get half of the budget of all others.",
        ),
    ] = None
    rows: options.Rows = None
    random_state: options.RandomState = 0
    threads: options.Threads = None

    def synthesizer(self) -> Synthesizer:
        """The synthesizer with these settings."""
        schema = self._with_unit(Schema.read(self.schema))
        counts = {} if self.public_counts is None else read_public_counts(self.public_counts)
        external = [Measurements.load(folder) for folder in self.external_measurements or ()]
        return Synthesizer(
            schema,
            Budget(self.epsilon, self.delta, self.neighbours, self.conversion),
            workload=self.target(schema),
            mechanism=mechanism_with(
                self.mechanism,
                epochs=self.epochs,
                queries_per_epoch=self.queries_per_epoch,
                selection_fraction=self.selection_fraction,
                pairs_per_column=self.pairs_per_column,
            ),
            projector=self.projector,
            rows=self.rows,
            knowledge=Knowledge(counts, self.derived_statistics or (), external),
            random_state=self.random_state,
            threads=self.threads,
            for_models=self.for_models,
        )

    def _with_unit(self, schema: Schema) -> Schema:
        """The schema with the unit of protection that the options name."""
        stated = {"column": self.unit, "at_most": self.at_most, "weighting": self.weighting}
        given = {name: value for name, value in stated.items() if value is not None}
        if not given:
            return schema
        known = {} if schema.unit is None else schema.unit.to_dict()
        if "column" not in {**known, **given}:
            option = "--at-most" if self.at_most is not None else "--weighting"
            raise SchemaError(
                f"{option} goes with a unit of protection: name the column of its ids with --unit, "
                "or in the schema's [unit]"
            )
        return schema.with_unit(Unit.from_dict({**known, **given}))

    def target(self, schema: Schema) -> Workload | list[str] | None:
        """The target workload: names, a file of conditions, or both; None for the default."""
        if self.queries is None:
            return self.workload or None
        conditions = read_predicates(schema, self.queries)
        return workload_of(schema, self.workload) + conditions if self.workload else conditions

    def files(self) -> dict[str, Path | None]:
        """The files that are read; the keys say what they are."""
        return {
            "the schema": self.schema,
            "the public counts": self.public_counts,
            "the queries": self.queries,
        }


def with_synthesizer_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of ``SynthesizerOptions``; it takes them as ``stated``."""
    hints = get_type_hints(SynthesizerOptions, include_extras=True)
    stated = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[each.name],
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
        )
        for each in fields(SynthesizerOptions)
    ]
    names = {each.name for each in stated}
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    first = [each for each in own if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    rest = [each for each in own if each not in first and each.name != "stated"]

    @wraps(command)
    def wrapped(**given: Any) -> None:
        settings = {name: given.pop(name) for name in names}
        command(stated=SynthesizerOptions(**settings), **given)

    parameters = [*first, *stated, *rest]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped
