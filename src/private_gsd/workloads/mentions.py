"""Mentions: which columns the queries of a workload depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.sql.expressions import columns_of_truth
from private_gsd.workloads.layout import QueryLayout

if TYPE_CHECKING:
    from private_gsd.workloads.workload import Workload


def unmentioned_columns(workload: Workload) -> list[str]:
    """The names of the columns that no query depends on, as far as that is known."""
    schema = workload.schema
    layout = QueryLayout.of([family for family in workload.families if not family.fine])
    if layout.halfspaces or layout.functions:  # they look at whole rows
        return []
    found = {feature.position for table in layout.tables for feature in table.features}
    found |= {feature.position for family in workload.families for feature in family.histograms}
    for family in layout.conjunctions:
        found |= {*np.unique(family.category).tolist(), *np.unique(family.numbers).tolist()}
    for _, truth in layout.conditions:
        found |= columns_of_truth(truth)
    for query in layout.sums:
        for part, truth in zip(query.parts, query.truths, strict=True):
            found |= columns_of_truth(truth)
            if part.column is not None:
                found.add(schema.names.index(part.column))
    return [name for place, name in enumerate(schema.names) if place not in found]
