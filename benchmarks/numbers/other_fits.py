"""How other systems are called: a program for their interpreters, without a module of ours.

    PYTHON other_fits.py FOLDER

The folder has the encoded rows (``real.npy``, null is NaN) and ``request.json``, both written by
``other_systems.py``; ``made.npy`` and ``seconds.json`` come to stand beside them.

**dpmm** has its defaults: PrivTree bins, their number found by "auto", and compressed domains. A
tenth of ε is for the bins, which is about the share of its defaults (0.1 beside 1) and within that
of its guide (10 to 20 %). Missing values are its own too. MST takes three minutes for the ACS; AIM
was not done after ten, with models of at most 80 MB, AIM's own default (the pipeline sets no
limit).

**opendp** estimates a contingency table, and is ρ-zCDP with the ρ of our conversion of (ε, δ).
Categories are public keys. Numbers have evenly spaced public cuts, as in DP Wizard, OpenDP's own
program: on the ACS at ε = 1, 64 cells do better than 20 by all errors of whole tables (queries on
pairs 0.0019 beside 0.0024), and worse by two of three F1 scores and for ages. There are no nulls in
columns with cuts, and its guide advises another key for them: here, a number below the bound. AIM
takes four minutes for the ACS with marginals of two columns, as dpmm's AIM has; with three, its
default, the first of some 350 rounds was not done after three minutes. MST of opendp 0.16.0 refuses
most budgets of tables with many columns, since a sum of shares is rounded above the total
("insufficient budget for query").

**smartnoise** takes tables of categories alone here. It finds the categories in the data.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

MODULES = {
    "dpmm": ["dpmm.pipelines"],
    "opendp": ["opendp.prelude", "mbi", "pandas"],
    "smartnoise": ["snsynth", "pandas"],
}
CELLS = 64
SHARE_OF_BINS = 0.1
MODEL_SIZE = 80


def dpmm(real: Any, request: dict[str, Any]) -> Any:
    """Rows made by dpmm."""
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

    frame, domain = {}, {}
    for (name, column), values in zip(request["columns"].items(), real.T, strict=True):
        if column["kind"] == "category":
            known = list(range(int(column["upper"]) + 1))
            codes = np.where(np.isnan(values), -1, values).astype(np.int64)
            frame[name] = pd.Series(pd.Categorical.from_codes(codes, pd.Index(known)))
            domain[name] = {"categories": known}
        else:
            whole = column["kind"] == "whole" and not np.isnan(values).any()
            frame[name] = pd.Series(values.astype(np.int64) if whole else values)
            domain[name] = {"lower": column["lower"], "upper": column["upper"]}
    pipelines = {"aim": AIMPipeline, "mst": MSTPipeline, "privbayes": PrivBayesPipeline}
    # Without numbers there are no bins to be found.
    numbers = any(column["kind"] != "category" for column in request["columns"].values())
    bins = SHARE_OF_BINS * request["epsilon"] if numbers else None
    model = pipelines[request["system"].partition("-")[2]](
        epsilon=request["epsilon"] - (bins or 0),
        delta=request["delta"],
        proc_epsilon=bins,
        max_model_size=MODEL_SIZE if request["system"] == "dpmm-aim" else None,
        n_jobs=1,
    )
    model.fit(pd.DataFrame(frame), domain, random_state=request["seed"])
    made = model.generate(n_records=len(real), random_state=request["seed"])
    return np.column_stack([made[name].astype(float) for name in frame])


def opendp(real: Any, request: dict[str, Any]) -> Any:
    """Rows made by OpenDP's contingency table."""
    import opendp.prelude as dp
    import polars as pl
    from opendp.extras.mbi import AIM, MST

    dp.enable_features("contrib")
    columns = request["columns"]
    frame = pl.DataFrame(real, schema=list(columns)).fill_nan(None)
    for name, column in columns.items():
        if column["kind"] != "category" and column["nullable"]:
            frame = frame.with_columns(pl.col(name).fill_null(column["lower"] - 1))
        if column["kind"] != "real":
            frame = frame.with_columns(pl.col(name).cast(pl.Int64))
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=request["rho"]),
        split_evenly_over=1,
    )
    table = (
        context.query()
        .select(*columns)
        .contingency_table(
            keys={
                name: list(range(int(column["upper"]) + 1))
                for name, column in columns.items()
                if column["kind"] == "category"
            },
            cuts={
                name: cuts(column)
                for name, column in columns.items()
                if column["kind"] != "category"
            },
            algorithm=AIM(queries=2) if request["system"] == "opendp-aim" else MST(),
        )
        .release()
    )
    np.random.seed(request["seed"])  # noqa: NPY002 - what the package draws from
    made = table.synthesize(len(real))
    rows = []
    for name, column in columns.items():
        values = made[name].cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        if column["kind"] != "category" and column["nullable"]:
            values[values <= column["lower"] - 1] = np.nan
        rows.append(values)
    return np.column_stack(rows)


def smartnoise(real: Any, request: dict[str, Any]) -> Any:
    """Rows made by SmartNoise, of categories alone."""
    import pandas as pd
    from snsynth import Synthesizer

    np.random.seed(request["seed"])  # noqa: NPY002 - what the package draws from
    names = list(request["columns"])
    # A missing value is a category of its own, -1.
    frame = pd.DataFrame(np.where(np.isnan(real), -1, real).astype(np.int64), columns=names)
    model = Synthesizer.create(
        request["system"].partition("-")[2], epsilon=request["epsilon"], delta=request["delta"]
    )
    made = model.fit_sample(frame, preprocessor_eps=0.0, categorical_columns=names)
    rows = made[names].to_numpy(dtype=float)
    return np.where(rows < 0, np.nan, rows)


def cuts(column: dict[str, Any]) -> list[Any]:
    """Evenly spaced cuts between the bounds, so that outer cells stand for the bounds themselves.

    A cell is a cut and what is between it and the cut before. Numbers above the last cut come to
    lie within one above it.
    """
    lower, upper = column["lower"], column["upper"]
    below = [lower - 1] if column["nullable"] else []
    if column["kind"] == "real":
        return [*below, *np.linspace(lower, upper, CELLS).tolist()]
    inner = np.linspace(lower, upper - 1, min(CELLS, int(upper - lower) + 1) - 1)
    return [int(cut) for cut in [*below, *np.unique(np.rint(inner))]]


def main() -> None:
    """Make the table that the folder asks for."""
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    resource.setrlimit(resource.RLIMIT_CPU, (request["limit"], request["limit"]))
    real = np.load(folder / "real.npy")
    package = request["system"].partition("-")[0]
    for module in MODULES[package]:
        import_module(module)
    fit = {"dpmm": dpmm, "opendp": opendp, "smartnoise": smartnoise}[package]
    begin, cpu = time.perf_counter(), time.process_time()
    made = fit(real, request)
    seconds = time.perf_counter() - begin, time.process_time() - cpu
    (folder / "seconds.json").write_text(json.dumps(seconds))
    np.save(folder / "made.npy", made)


if __name__ == "__main__":
    main()
