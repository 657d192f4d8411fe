"""An adapter with the shape of SmartNoise's synthesizers, so that ours can be swapped in.

What is different: the values and bounds of the columns come from a public schema and are never
learned from the data, so that no part of the budget goes to them and nothing is disclosed by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from private_gsd.errors import SchemaError, did_you_mean
from private_gsd.schema import Discrete, Numeric, Schema
from private_gsd.synthesis.synthesizer import Synthesizer

if TYPE_CHECKING:
    from collections.abc import Sequence


class GsdSynthesizer:
    """A synthesizer with ``fit``, ``sample`` and ``fit_sample``.

    >>> from private_gsd import datasets
    >>> schema = datasets.census_schema().select(["sex", "age"])
    >>> frame = datasets.census(500).select(schema.names).to_pandas()
    >>> synth = GsdSynthesizer(epsilon=1.0, schema=schema, rows=100)
    >>> synth.fit_sample(frame, categorical_columns=["sex"], continuous_columns=["age"]).shape
    (100, 2)

    Args:
        epsilon: The budget.
        schema: The public schema.
        delta: By default 1/N².
        settings: As for ``Synthesizer``.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        schema: Schema | None = None,
        delta: float | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(schema, Schema):
            raise SchemaError(
                "a public schema is needed: what the data hold must not be learned from them. "
                "'private-gsd schema draft' writes one to start from"
            )
        self.synthesizer = Synthesizer(schema, epsilon, delta=delta, **settings)

    def fit(
        self,
        data: Any,
        *,
        categorical_columns: Sequence[str] = (),
        ordinal_columns: Sequence[str] = (),
        continuous_columns: Sequence[str] = (),
        preprocessor_eps: float = 0.0,
    ) -> None:
        """Spend the budget on a table, and make a synthetic one.

        Args:
            data: The table.
            categorical_columns: Columns that the schema must have as discrete ones.
            ordinal_columns: Columns that the schema must have, of any kind.
            continuous_columns: Columns that the schema must have as numbers or dates.
            preprocessor_eps: Must be 0: no bounds are learned.
        """
        if preprocessor_eps:
            raise SchemaError("preprocessor_eps must be 0: bounds come from the public schema")
        self._check(categorical_columns, Discrete, "categorical or boolean")
        self._check(ordinal_columns, object, "any")
        self._check(continuous_columns, Numeric, "integer, real, date or datetime")
        self.synthesizer.fit(data)

    def sample(self, rows: int | None = None) -> Any:
        """Rows of the synthetic table, as the kind of frame that was fitted."""
        return self.synthesizer.sample(rows)

    def fit_sample(self, data: Any, **columns: Any) -> Any:
        """Fit, and sample as many rows as the synthetic table has.

        Args:
            data: The table.
            columns: As for ``fit``.
        """
        self.fit(data, **columns)
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
