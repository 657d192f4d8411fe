"""An adapter with the interface of SmartNoise's synthesizers, so that ours can be swapped in.

One thing is different: the values and bounds of the columns come from a public schema and are never
learned from the data, so that no part of the budget goes to them and nothing is disclosed by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from private_gsd.errors import SchemaError, did_you_mean
from private_gsd.privacy.budget import Budget
from private_gsd.schema import Discrete, Numeric, Schema
from private_gsd.synthesis.synthesizer import Synthesizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.privacy.budget import Conversion
    from private_gsd.workloads import Neighbours


class GsdSynthesizer:
    """A synthesizer with ``fit``, ``sample`` and ``fit_sample``.

    >>> from private_gsd import datasets
    >>> schema = datasets.census_schema().select(["sex", "age"])
    >>> frame = datasets.census(500).select(schema.names).to_pandas()
    >>> synth = GsdSynthesizer(epsilon=1.0, schema=schema, rows=100)
    >>> synth.fit_sample(frame, categorical_columns=["sex"], continuous_columns=["age"]).shape
    (100, 2)

    Args:
        epsilon: The ε of the budget.
        schema: The public schema.
        delta: The δ of the budget; see ``Budget``.
        neighbours: The neighbouring relation; see ``Budget``.
        conversion: The conversion from (ε, δ) to ρ; see ``Budget``.
        settings: Other parameters of ``Synthesizer``.

    Attributes:
        synthesizer: The synthesizer that does the work.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        schema: Schema | None = None,
        delta: float | None = None,
        neighbours: Neighbours = "replace-one",
        conversion: Conversion | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(schema, Schema):
            raise SchemaError(
                "a public schema is needed: what the data holds must not be learned from it. "
                "'private-gsd schema draft' writes one to start from"
            )
        budget = Budget(epsilon, delta, neighbours, conversion)
        self.synthesizer = Synthesizer(schema, budget, **settings)

    def fit(
        self,
        data: Any,
        *,
        categorical_columns: Sequence[str] = (),
        ordinal_columns: Sequence[str] = (),
        continuous_columns: Sequence[str] = (),
        preprocessor_eps: float = 0.0,
        **options: Any,
    ) -> None:
        """Spend the budget on a table, and make a synthetic table.

        Args:
            data: The table.
            categorical_columns: Columns that the schema must have as discrete ones.
            ordinal_columns: Columns that the schema must have, of any kind.
            continuous_columns: Columns that the schema must have as numbers or dates.
            preprocessor_eps: The budget of learning bounds; must be 0, since none are learned.
            options: Other parameters of ``Synthesizer.fit``, such as ``ledger``.
        """
        if preprocessor_eps:
            raise SchemaError("preprocessor_eps must be 0: bounds come from the public schema")
        self._check(categorical_columns, Discrete, "categorical or boolean")
        self._check(ordinal_columns, object, "any")
        self._check(continuous_columns, Numeric, "integer, real, date or datetime")
        self.synthesizer.fit(data, **options)

    def sample(self, rows: int | None = None) -> Any:
        """Rows of the synthetic table, as the type of frame that was fitted."""
        return self.synthesizer.sample(rows)

    def fit_sample(self, data: Any, **options: Any) -> Any:
        """Fit, and sample as many rows as the synthetic table has.

        Args:
            data: The table.
            options: Parameters of ``fit``.
        """
        self.fit(data, **options)
        return self.sample()

    def _check(self, names: Sequence[str], kind: type, words: str) -> None:
        """Whether the schema knows some columns, and as what was said of them."""
        schema = self.synthesizer.schema
        for name in names:
            if name not in schema:
                hint = did_you_mean(str(name), schema.names)
                raise SchemaError(f"no column {name!r} in the schema{hint}")
            column = schema[name]
            if not isinstance(column, kind):
                raise SchemaError(
                    f"column {name!r} is {column.kind} in the schema, and was said to be {words}"
                )
