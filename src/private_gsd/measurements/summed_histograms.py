"""Summed histograms: marginals of coarse cells in place of histograms, for who fits marginals."""

from __future__ import annotations

import numpy as np

from private_gsd.measurements.column_distributions import column_distributions, without_histograms
from private_gsd.measurements.measurements import Measurements
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.features import Feature
from private_gsd.workloads.layout import marginal_tables
from private_gsd.workloads.marginals import Marginal

# The largest number of cells of a column that no marginal cuts.
MOST_CELLS = 64


def summed_histograms(measured: Measurements) -> Measurements:
    """The measurements with histograms summed to marginals of one column each.

    The cells are those of the column in other marginals, or of about the same mass where there are
    none.
    """
    columns = column_distributions(measured)
    if not columns:
        return measured
    rest = without_histograms(measured)
    schema = measured.workload.schema
    breaks: dict[int, set[float]] = {place: set() for place in columns}
    for table in [] if rest is None else marginal_tables(rest.workload):
        for feature in table.features:
            if feature.position in columns:
                breaks[feature.position].update(feature.breaks)
    groups, counts, scales = [], [], []
    for place, column in columns.items():
        cuts = tuple(sorted(breaks[place])) or column.grid.breaks(column.cut_points(MOST_CELLS))
        starts = column.grid.starts(cuts)
        feature = Feature(place, tuple(range(len(starts))), cuts, column.nullable)
        groups.append(Marginal(((feature,),)))
        counts.append(column.shares_between(starts))
        if column.nullable:
            counts.append(np.array([column.null_share]))
        scales.append(column.scale_of(starts))
    summed = Measurements(
        Workload(schema, (Marginals(schema, groups),)),
        np.concatenate(counts) * measured.n_records,
        np.array(scales),
        measured.n_records,
        ("",) * len(groups),
        measured.private,
        measured.neighbours,
    )
    return summed if rest is None else rest + summed
