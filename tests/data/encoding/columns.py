"""A column of each kind, all called x, and how an array of one is encoded."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import pyarrow as pa

from private_gsd import Boolean, Categorical, Column, Date, Datetime, Encoder, Integer, Real, Schema

NAN = float("nan")


AGE = Integer("x", lower=0, upper=120, nullable=True, null_values=("", "N"))


PAY = Real("x", lower=-10, upper=10, nullable=True)


TEXT = Categorical("x", values=("a", "1", "2", "007"), nullable=True, null_values=("", "?"))


CODE = Categorical("x", values=(7, 1, 2), nullable=True)


FLAG = Boolean("x", nullable=True)


DAY = Date("x", lower=dt.date(1960, 1, 1), upper=dt.date(2030, 1, 1), nullable=True)


def encode(
    column: Column,
    values: Any,
    kind: pa.DataType | None = None,
    on_invalid: Literal["error", "coerce"] = "error",
) -> list[float]:
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    batch = pa.record_batch({"x": array})
    matrix = Encoder(Schema([column]), on_invalid=on_invalid).encode(batch)
    return list(matrix[:, 0])


WRITTEN = Date(
    "x", lower=dt.date(1960, 1, 1), upper=dt.date(2030, 1, 1), format="%d/%m/%Y", nullable=True
)


MOMENT = Datetime("x", lower=dt.datetime(1960, 1, 1), upper=dt.datetime(2030, 1, 1), nullable=True)


NOON_UTC = dt.datetime(2020, 7, 1, 12, tzinfo=dt.UTC)
