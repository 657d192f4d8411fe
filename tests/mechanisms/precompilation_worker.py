"""Fit a table in a new process, and print the kernels that were loaded after the first charge.

Run as ``python -m tests.mechanisms.precompilation_worker NAME``.
"""

from __future__ import annotations

import json
import pkgutil
import sys
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest import mock

from private_gsd import (
    Adaptive,
    Budget,
    Knowledge,
    Schema,
    Sweep,
    Synthesizer,
    datasets,
    kernels,
    workloads,
)
from private_gsd.kernels.caching import KernelCache
from private_gsd.privacy.noise import InsecureSeededNoise

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "income", "citizen"])
TABLE = datasets.census(1000, seed=2).select(SCHEMA.names)
RULED = replace(SCHEMA, constraints=("marital <> 'married' OR age >= 15",))
QUICK = "gsd:denoise=false"


def mixed(schema: Schema) -> Any:
    return (
        workloads.categorical_marginals(schema, 2)
        + workloads.random_prefixes(schema, 5)
        + workloads.random_halfspaces(schema, 5)
        + workloads.predicates(schema, ["age < 30 AND sex = 'male'"])
    )


CASES: dict[str, dict[str, Any]] = {
    "default": {"rows": 60},
    "islands": {"rows": 9000, "projector": QUICK},
    "adaptive": {
        "rows": 60,
        "projector": QUICK,
        "workload": mixed(SCHEMA),
        "mechanism": Adaptive(epochs=5),
    },
    "known": {
        "schema": RULED,
        "rows": 60,
        "workload": ["categorical:2", "tree:1"],
        "knowledge": Knowledge(
            public_counts={"sex = 'male'": 500}, derived_statistics=["mean(age)"]
        ),
    },
    "aim": {"rows": 60, "projector": QUICK, "mechanism": "aim", "workload": ["categorical:2"]},
}


def loaded() -> set[str]:
    """All kernels with the forms that this process has of them."""
    found = set()
    for info in pkgutil.iter_modules(kernels.__path__):
        module = import_module(f"private_gsd.kernels.{info.name}")
        for name, each in vars(module).items():
            if isinstance(getattr(each, "_cache", None), KernelCache):
                found |= {f"{name}{signature}" for signature in each.overloads}
    return found


def main(name: str) -> None:
    before: set[str] = set()

    def note(what: str, done: float, total: float | None) -> None:
        if what == "adding noise" and not before:
            before.update(loaded())

    if name == "sweep":
        sweep = Sweep(SCHEMA, TABLE, ["categorical:2"])
        settings: list[dict[str, Any]] = [
            {"rows": 60},
            {"rows": 60, "mechanism": Adaptive(epochs=1)},
        ]
        real = InsecureSeededNoise.gaussian

        def gaussian(noise: InsecureSeededNoise, *arguments: Any) -> Any:
            note("adding noise", 0, None)
            return real(noise, *arguments)

        with mock.patch.object(InsecureSeededNoise, "gaussian", gaussian):
            sweep.run([1.0], settings=settings, insecure=True, n_jobs=1)
    else:
        options = dict(CASES[name])
        schema = options.pop("schema", SCHEMA)
        Synthesizer(schema, Budget(1.0, delta=1e-6), **options).fit(TABLE, progress=note)
    sys.stdout.write(json.dumps([len(before), sorted(loaded() - before)]))


if __name__ == "__main__":
    main(sys.argv[1])
