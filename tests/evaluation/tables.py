"""Tables and releases that several tests of evaluation look at."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import private_gsd as gsd
from private_gsd import Categorical, Integer, Schema, datasets
from private_gsd.evaluation.table_sample import TableSample

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NAMES = ("region", "sex", "age", "marital", "employment", "income", "citizen")
SCHEMA = datasets.census_schema().select(NAMES)
HOSTILE = '<script>alert("x")</script>&\'"'


def census(rows: int, seed: int = 0, schema: Schema = SCHEMA) -> pa.Table:
    return datasets.census(rows, seed).select(schema.names)


def parts(rows: int) -> tuple[pa.Table, pa.Table]:
    """Two halves of one census: one to make a table from, one held out."""
    table = census(2 * rows)
    return table.slice(0, rows), table.slice(rows)


TRAIN, HELD_OUT = parts(1500)


def quick(schema: Schema = SCHEMA, epsilon: float = 1.0, **settings: Any) -> gsd.Synthesizer:
    """A synthesizer that does not denoise, and is fast for that."""
    return gsd.Synthesizer(schema, epsilon, projector=gsd.GeneticSearch(denoise=False), **settings)


def shuffled(table: pa.Table) -> pa.Table:
    """The same columns, each in an order of its own."""
    rng = np.random.default_rng(1)
    arrays = [column.take(pa.array(rng.permutation(len(table)))) for column in table.columns]
    return pa.table(arrays, names=table.column_names)


def constant(table: pa.Table) -> pa.Table:
    """The first row, again and again."""
    return table.take(pa.array(np.zeros(len(table), dtype=np.int64)))


def matrix_of(*columns: ArrayLike) -> NDArray[np.float64]:
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def sample_of(matrix: NDArray[np.float64]) -> TableSample:
    """An encoded table as what an evaluation reads of it, without queries and rules."""
    none = np.empty(0, dtype=np.int64)
    return TableSample(matrix, len(matrix), np.isnan(matrix).sum(axis=0), none, none)


def hostile() -> tuple[Schema, pa.Table]:
    """A schema and a table whose names and values try to break a page."""
    name = HOSTILE + " x"
    schema = Schema(
        [
            Categorical(HOSTILE, values=[HOSTILE, "</style><b>", "]]>"], description=HOSTILE),
            Integer(name, lower=0, upper=100),
        ]
    )
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            HOSTILE: rng.choice([HOSTILE, "</style><b>", "]]>"], 60),
            name: rng.integers(0, 100, 60),
        }
    )
    return schema, table


class Outline(HTMLParser):
    """What a screen reader goes by."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.tags: list[str] = []
        self.tables_with_caption = 0
        self.loose_heads = 0
        self.figures: list[str | None] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        if tag not in ("meta", "link"):
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        if tag == "caption":
            self.tables_with_caption += 1
        if tag == "th" and values.get("scope") not in ("row", "col"):
            self.loose_heads += 1
        if tag == "svg":
            assert values.get("role") == "img"
            self.figures.append(values.get("aria-label"))
        if tag == "a":
            self.links.append(values["href"] or "")
        if values.get("id"):
            self.ids.append(values["id"] or "")

    def handle_startendtag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()


def check_page(text: str) -> Outline:
    """Everything that both pages promise, as far as it shows in the text."""
    outline = Outline(text)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings[:-1], outline.headings[1:], strict=True))
    assert outline.tags.count("table") == outline.tables_with_caption
    assert outline.loose_heads == 0
    assert all(outline.figures)
    assert outline.tags.count("figure") == outline.tags.count("svg")
    assert {"header", "nav", "main", "footer"} <= set(outline.tags)
    assert "script" not in outline.tags
    assert "img" not in outline.tags
    assert len(outline.ids) == len(set(outline.ids))
    assert all(link.startswith("#") and link[1:] in outline.ids for link in outline.links)
    assert "http://" not in text
    assert "https://" not in text
    return outline
