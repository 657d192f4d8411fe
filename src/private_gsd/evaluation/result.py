"""The result of an evaluation (confidential): its figures as values, as a table and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.errors import require
from private_gsd.evaluation.figures import (
    Figure,
    association_figures,
    attack_figures,
    column_figures,
    error_figures,
    prediction_figures,
    rule_figures,
    statistic_figures,
    summarised,
    table_of_figures,
    whole_table_figures,
)
from private_gsd.system.markup import html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from private_gsd.evaluation.metrics.associations import Associations
    from private_gsd.evaluation.metrics.attacks import Attacks
    from private_gsd.evaluation.metrics.distributions import ColumnComparison
    from private_gsd.evaluation.metrics.k_marginals import KMarginal
    from private_gsd.evaluation.metrics.machine_learning import PredictionTask
    from private_gsd.evaluation.metrics.propensity import Propensity
    from private_gsd.evaluation.metrics.summary_statistics import SummaryStatistics
    from private_gsd.evaluation.metrics.workload_errors import WorkloadErrors
    from private_gsd.schema import Schema

ALARM = "NOT FOR PUBLICATION: this evaluation was made from the real, sensitive data."
# Most query groups in a JSON document; those with the largest errors are included.
GROUPS = 10_000


class RowCounts(NamedTuple):
    """The numbers of rows of the tables and of their samples.

    Attributes:
        real: The number of real rows.
        synthetic: The number of synthetic rows.
        holdout: The number of held-out rows; None without held-out rows.
        real_sample: The number of sampled real rows.
        synthetic_sample: The number of sampled synthetic rows.
        units: The number of units of protection of the real table; None where that is a row.
        taken: The number of real rows that are taken of units.
    """

    real: int
    synthetic: int
    holdout: int | None
    real_sample: int
    synthetic_sample: int
    units: int | None = None
    taken: int | None = None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The comparison of a synthetic table with the real table. It holds sensitive figures.

    ``figures`` has all numbers in one table; ``write_report`` writes the confidential report.

    Attributes:
        schema: The public schema.
        tables: The numbers of rows.
        columns: The comparison of each column.
        statistics: The summary statistics of numeric columns, and of groups of rows.
        associations: The associations of all pairs of columns.
        errors: The errors of the answers to the workload.
        kmarginals: NIST's k-marginal scores, for pairs and triples of columns.
        propensity: How well models tell the tables apart; None with too few rows.
        tasks: The scores of models that are trained on the synthetic table.
        attacks: The results of simple attacks; None with too few rows.
        rules: Each rule of the schema, and the shares of real and synthetic rows that break it.
        privacy: The privacy record of the release; None for a table without a release.
        name: The name of the release, or "synthetic table".
        random_state: The seed of sampling and training.
    """

    schema: Schema
    tables: RowCounts
    columns: tuple[ColumnComparison, ...]
    statistics: SummaryStatistics
    associations: Associations
    errors: WorkloadErrors
    kmarginals: tuple[KMarginal, ...]
    propensity: Propensity | None
    tasks: tuple[PredictionTask, ...]
    attacks: Attacks | None
    rules: tuple[tuple[str, float, float], ...]
    privacy: dict[str, Any] | None
    name: str
    random_state: int

    def __repr__(self) -> str:
        return f"<Evaluation of {self.name}: not for publication>"

    @cached_property
    def figures(self) -> pa.Table:
        """Every figure as a number: a table with one row per figure.

        Its columns are ``metric``; ``of``, the column, value of a column, group of rows, pair of
        columns, query group, target or rule (empty for the whole table); ``value``; ``reference``,
        the value for the real data or for a perfect synthetic table, where there is one; and the
        95 % interval from ``low`` to ``high``, where there is one.
        """
        return table_of_figures(self._figures)

    @property
    def summary(self) -> list[Figure]:
        """The figures that matter most."""
        return summarised(self._figures)

    @property
    def findings(self) -> list[str]:
        """A sentence for each attack that found something."""
        return [] if self.attacks is None else self.attacks.findings

    def to_pandas(self) -> Any:
        """``figures`` as a pandas frame."""
        require("pandas", what="A frame of figures", extra="pandas")
        return self.figures.to_pandas()

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
            "findings": self.findings,
            "summary": _plain(self.summary),
        }

    def json(self) -> str:
        """Every figure as JSON text."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _repr_html_(self) -> str:
        rows = [figure.texts() for figure in self.summary]
        return html_table(ALARM, ("metric", "value", "reference"), rows)

    @cached_property
    def _figures(self) -> list[Figure]:
        return [
            *error_figures(self.errors),
            *column_figures(self.columns),
            *statistic_figures(self.statistics),
            *association_figures(self.associations),
            *whole_table_figures(self.kmarginals, self.propensity),
            *prediction_figures(self.tasks),
            *rule_figures(self.rules),
            *attack_figures(self.attacks),
        ]


def _plain(value: Any) -> Any:
    """A value of an evaluation as JSON values."""
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
