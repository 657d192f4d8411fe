"""The result of an evaluation: every figure, as values, JSON and a page; not to be published."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.errors import GsdError
from private_gsd.runs.release import Release
from private_gsd.system.markup import html_table

if TYPE_CHECKING:
    from private_gsd.evaluation.metrics.associations import Associations
    from private_gsd.evaluation.metrics.attacks import Attacks
    from private_gsd.evaluation.metrics.distributions import ColumnComparison
    from private_gsd.evaluation.metrics.k_marginals import KMarginal
    from private_gsd.evaluation.metrics.machine_learning import Task
    from private_gsd.evaluation.metrics.propensity import Propensity
    from private_gsd.evaluation.metrics.query_errors import WorkloadErrors
    from private_gsd.schema import Schema

ALARM = "NOT FOR PUBLICATION: this evaluation was made from the real, sensitive data."
# A document does not hold more groups than this, the worst of them.
GROUPS = 10_000


class Line(NamedTuple):
    """One line of the short table.

    Attributes:
        measure: What was measured.
        value: What came out, in words.
        best: What a perfect table would give.
    """

    measure: str
    value: str
    best: str


class Tables(NamedTuple):
    """How many rows there were, and how many of them the samples hold."""

    real: int
    synthetic: int
    held: int | None
    real_sample: int
    synthetic_sample: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A synthetic table compared with the real one. It holds figures of the real data.

    Attributes:
        schema: The public schema.
        tables: The numbers of rows.
        columns: Each column.
        associations: Each pair of columns.
        errors: The answers to the workload.
        kmarginals: NIST's score, for pairs and triples of columns.
        propensity: How well models tell the tables apart; None with too few rows.
        tasks: What models learn from the synthetic table.
        attacks: What simple attacks found; None with too few rows.
        rules: Each rule of the schema, and the share of real and synthetic rows that break it.
        privacy: The privacy record of the release; None for a table that is none.
        name: What was evaluated.
        seed: Of sampling and training.
    """

    schema: Schema
    tables: Tables
    columns: tuple[ColumnComparison, ...]
    associations: Associations
    errors: WorkloadErrors
    kmarginals: tuple[KMarginal, ...]
    propensity: Propensity | None
    tasks: tuple[Task, ...]
    attacks: Attacks | None
    rules: tuple[tuple[str, float, float], ...]
    privacy: dict[str, Any] | None
    name: str
    seed: int

    def __repr__(self) -> str:
        return f"<Evaluation of {self.name}: not for publication>"

    def table(self) -> list[Line]:
        """The figures that matter most, in words."""
        distances = [column.distance for column in self.columns]
        errors, pair = self.errors, self.associations
        lines = [
            Line("error of an answer, mean", f"{errors.mean:.3%}", "0%"),
            Line("error of an answer, largest", f"{errors.largest:.2%}", "0%"),
        ]
        if errors.noise and errors.measured_rms is not None:
            ratio = errors.measured_rms / errors.noise
            lines.append(Line("error against the noise floor", f"{ratio:.2f} times", "0"))
        lines += [
            Line("distance of a column, mean", f"{np.mean(distances):.3f}", "0"),
            Line("distance of a column, largest", f"{max(distances):.3f}", "0"),
            Line("difference of an association, mean", f"{pair.mean_difference:.3f}", "0"),
        ]
        lines += [
            Line(f"{each.k}-marginal score", f"{each.score:.0f}", "1000")
            for each in self.kmarginals
        ]
        if self.propensity is not None:
            words = f"{self.propensity.pmse:.4f}"
            lines.append(Line("propensity mean squared error", words, "0"))
            lines.append(Line("telling the tables apart, AUC", f"{self.propensity.auc:.3f}", "0.5"))
        for task in self.tasks:
            measure = f"F1 of predicting {task.target}"
            lines.append(Line(measure, f"{task.f1('synthetic'):.3f}", f"{task.f1('real'):.3f}"))
        if self.rules:
            broken = max(synthetic for _, _, synthetic in self.rules)
            lines.append(Line("rows that break a rule, most", f"{broken:.2%}", "0%"))
        if self.attacks is not None and self.attacks.membership is not None:
            area = self.attacks.membership
            words = f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f})"
            lines.append(Line("membership attack, AUC", words, "0.5"))
        return lines

    def document(self) -> dict[str, Any]:
        """Every figure, for JSON."""
        own = {
            field.name: _plain(getattr(self, field.name))
            for field in fields(self)
            if field.name not in ("schema", "errors")
        }
        errors = _plain(self.errors)
        errors["groups"] = errors["groups"][:GROUPS]
        errors["groups_left_out"] = max(0, len(self.errors.groups) - GROUPS)
        return {
            "warning": ALARM,
            "publishable": False,
            **own,
            "errors": errors,
            "findings": [] if self.attacks is None else self.attacks.findings,
            "summary": [line._asdict() for line in self.table()],
        }

    def html(self) -> str:
        """The evaluation report, one page of HTML that needs nothing else."""
        from private_gsd.evaluation.report.evaluation_report import evaluation_page

        return evaluation_page(self)

    def write(self, path: str | Path) -> None:
        """Write the report, or with a name that ends in .json every figure."""
        path = Path(path)
        refuse_release_folder(path)
        text = self.json() if path.suffix == ".json" else self.html()
        path.write_text(text, encoding="utf-8")

    def json(self) -> str:
        """Every figure as JSON text."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _repr_html_(self) -> str:
        return html_table(ALARM, ["measure", "value", "perfect"], self.table())


def refuse_release_folder(path: Path) -> None:
    """Refuse to write what must not be published into a folder that is."""
    for folder in path.resolve().parents:
        if Release(folder).is_one:
            raise GsdError(
                f"{path}: is in the release {folder}, which may be published; an evaluation reads "
                "the real data and must not be. Choose another place"
            )


def _plain(value: Any) -> Any:
    """Anything of an evaluation as what JSON knows."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
