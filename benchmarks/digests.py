"""Digests of what the code gives, to hold a change against that must not change results.

    python -m benchmarks.digests record FILE [--only TEXT]
    python -m benchmarks.digests compare FILE [--only TEXT]

Every mechanism by every projector, family of queries and neighbour relation, on a small simulated
table with seeded noise; a few runs more with rules, public counts and derived statistics, with
denoising; sweeps. A digest is of the noisy counts with their scales and of the synthetic table. A
combination that is refused is recorded as refused. Digests depend on the processor and on the
versions of NumPy and JAX: record and compare on the same machine.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from private_gsd import (
    Adaptive,
    Budget,
    Categorical,
    GsdError,
    Integer,
    Knowledge,
    Mechanism,
    Real,
    Schema,
    Sweep,
    Synthesizer,
    workloads,
)

MECHANISMS: dict[str, Mechanism | str] = {
    "one-shot": "one-shot",
    "layered": "layered",
    "adaptive": Adaptive(epochs=3, queries_per_epoch=2),
    "mst": "mst",
    "aim": "aim",
    "auto": "auto",
}
PROJECTORS = {
    "gsd": "gsd:denoise=false",
    "gsd denoised": "gsd",
    "rap": "rap:iterations=20,mixtures=20",
    "rap++": "rap++:iterations=20,points=20,temperatures=2",
    "gem": "gem:iterations=20",
    "pgm": "pgm:iterations=50",
}
MATRIX = ("one-shot", "layered", "adaptive", "mst", "aim")
RELATIONS = ("replace-one", "add-remove")
ROWS = 250


def table() -> tuple[Schema, pa.Table]:
    """Five columns of a small table, correlated, with nulls."""
    rng = np.random.default_rng(7)
    size = 500
    region = rng.integers(0, 4, size)
    smoker = (rng.random(size) < 0.2 + 0.15 * region).astype(int)
    marital = np.where(
        rng.random(size) < 0.1, None, np.array(["s", "m", "d"])[(region + smoker) % 3]
    )
    age = np.clip(rng.normal(35 + 8 * region, 10), 0, 99).astype(int)
    income = np.clip(rng.exponential(100 + 20.0 * age), 0, 9999)
    schema = Schema(
        [
            Categorical("region", values=["n", "e", "s", "w"]),
            Categorical("smoker", values=[0, 1]),
            Categorical("marital", values=["s", "m", "d"], nullable=True),
            Integer("age", lower=0, upper=99),
            Real("income", lower=0, upper=10_000),
        ]
    )
    columns = {
        "region": np.array(["n", "e", "s", "w"])[region],
        "smoker": smoker,
        "marital": pa.array([None if each is None else str(each) for each in list(marital)]),
        "age": age,
        "income": income,
    }
    return schema, pa.table(columns)


def questions(schema: Schema) -> dict[str, workloads.Workload]:
    """A workload of each family, and one of several."""
    sql = ["region = 'n' AND age < 40", "income > 2000 OR marital IS NULL", "age * 100 < income"]
    marginals = workloads.categorical_marginals(schema, 2)
    found = {
        "pairs": marginals,
        "triples": workloads.categorical_marginals(schema, 3),
        "trees": workloads.tree_marginals(schema, 2, 3),
        "prefixes": workloads.random_prefixes(schema, 30, seed=1),
        "halfspaces": workloads.random_halfspaces(schema, 30, seed=1),
        "predicates": workloads.predicates(schema, sql),
        "sums": workloads.sums(schema),
    }
    found["mixed"] = marginals + found["prefixes"] + found["predicates"]
    return found


def synthesized(
    schema: Schema,
    data: pa.Table,
    workload: Any,
    mechanism: str,
    projector: str,
    relation: str,
    **others: Any,
) -> str:
    """The digest of one fit."""
    synth = Synthesizer(
        schema,
        Budget(3.0, delta=1e-6, neighbours=relation),  # type: ignore[arg-type]
        workload=workload,
        mechanism=MECHANISMS[mechanism],
        rows=ROWS,
        projector=projector,
        random_state=5,
        knowledge=Knowledge(**others),
    )
    release = synth.fit(data, insecure_noise_seed=11).release_
    return digest(release.measurements(), release.matrix)


def digest(measurements: Any, matrix: Any) -> str:
    """Of noisy counts, scales, the number of records and an encoded table."""
    found = hashlib.sha256()
    for array in (
        measurements.counts,
        measurements.scales,
        np.array([measurements.n_records]),
        matrix,
    ):
        found.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return found.hexdigest()[:16]


def knowledge(schema: Schema, data: pa.Table) -> dict[str, Any]:
    """Runs with rules, public counts, derived statistics, and default questions."""
    ruled = Schema(schema.columns, constraints=["age >= 18 OR marital IS NULL"])
    base = {"projector": "gsd", "relation": "replace-one"}
    pairs = ["categorical:2", "tree:2:3"]
    return {
        "rules": lambda: synthesized(ruled, data, pairs, "one-shot", **base),
        "rules, adaptive": lambda: synthesized(ruled, data, pairs, "adaptive", **base),
        "public counts": lambda: synthesized(
            schema, data, pairs, "one-shot", **base, public_counts={"region = 'n'": 130}
        ),
        "derived": lambda: synthesized(
            schema,
            data,
            pairs,
            "one-shot",
            **base,
            derived_statistics=["median(age)", "mean(income)"],
        ),
        "defaults": lambda: synthesized(schema, data, None, "auto", **base),
    }


def swept(schema: Schema, data: pa.Table, mechanism: str) -> str:
    """The digest of a sweep of two runs."""
    sweep = Sweep(schema, data, ["categorical:2", "tree:1:3"], delta=1e-6)
    chosen = Adaptive(epochs=3) if mechanism == "adaptive" else mechanism
    settings = {"mechanism": chosen, "rows": ROWS}
    runs = sweep.run([1.0, 5.0], seeds=[3], settings=[settings], insecure=True, n_jobs=1)
    return " ".join(digest(run.measurements, run.matrix) for run in runs)


def cases() -> dict[str, Any]:
    """What is run, by name."""
    schema, data = table()
    found: dict[str, Any] = {}
    for (family, workload), mechanism, projector, relation in itertools.product(
        questions(schema).items(), MATRIX, PROJECTORS, RELATIONS
    ):
        name = f"{family} / {mechanism} / {projector} / {relation}"
        arguments = (schema, data, workload, mechanism, PROJECTORS[projector], relation)
        found[name] = lambda arguments=arguments: synthesized(*arguments)
    for name, run in knowledge(schema, data).items():
        found[f"knowledge / {name}"] = run
    for mechanism in MATRIX:
        found[f"sweep / {mechanism}"] = lambda mechanism=mechanism: swept(schema, data, mechanism)
    return found


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="cases whose names contain this text")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = json.loads(options.file.read_text()) if options.what == "compare" else {}
    found, different, begin = {}, [], time.perf_counter()
    for name, run in cases().items():
        if options.only not in name:
            continue
        try:
            found[name] = run()
        except GsdError:
            found[name] = "refused"
        if options.what == "compare" and known.get(name) != found[name]:
            different.append(name)
            print(f"{name}: {known.get(name)} before, {found[name]} now", flush=True)
    if options.what == "record":
        options.file.write_text(json.dumps(found, indent=1))
    refused = sum(each == "refused" for each in found.values())
    print(f"{len(found)} cases, {refused} refused, {time.perf_counter() - begin:.0f} s")
    if options.what == "compare":
        print(f"{len(different)} differ")
        sys.exit(bool(different))


if __name__ == "__main__":
    main()
