"""Every projector: finds what is known, twice the same, refuses by name, and resumes its runs."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from private_gsd import (
    Adaptive,
    Encoder,
    ExactCounts,
    GeneticSearch,
    Measurements,
    Sweep,
    Synthesizer,
    datasets,
    evolve,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import (
    GsdError,
    MissingExtraError,
    ProjectionError,
    WorkloadError,
    require,
)
from private_gsd.projection import NAMES, Projection, Projector, projector_of
from private_gsd.projection.baselines import gem, optional, products
from private_gsd.projection.baselines.gem import GEM
from private_gsd.projection.baselines.pgm import PGM
from private_gsd.projection.baselines.rap import RAP
from private_gsd.projection.baselines.rap_plus_plus import RAPPlusPlus
from tests.fitting import fitted
from tests.projection.baselines.known import SCHEMA, SPECS, measured, table

pytestmark = pytest.mark.worker("baselines")

ROWS = 4000

TABLE = table(ROWS)

MARGINALS = workloads.categorical_marginals(SCHEMA, 2) + workloads.tree_marginals(SCHEMA, 2, 2)

# JAX compiles for the others: they are slow.
EACH = [
    pytest.param(name, id=name, marks=() if name == "gsd" else pytest.mark.slow) for name in NAMES
]

MIXED = workloads.random_prefixes(SCHEMA, 60) + workloads.random_halfspaces(SCHEMA, 60)


@pytest.mark.parametrize("name", EACH)
def test_a_known_distribution_is_found(name: str) -> None:
    measurements = measured(MARGINALS, TABLE)
    found = projector_of(SPECS[name]).project(measurements, rows=ROWS, seed=3)
    errors = np.abs(count(MARGINALS, found.matrix) / ROWS - measurements.shares)
    # Four standard deviations of what drawing so many rows leaves, and a little.
    sampling = np.sqrt(measurements.shares * (1 - measurements.shares) / ROWS)
    assert (errors <= 4 * sampling + 0.002).all()
    # The values are those of the schema, and come back from a table of its types.
    again = Encoder(SCHEMA).encode(Encoder(SCHEMA).decode(found.matrix))
    np.testing.assert_array_equal(again, found.matrix)


@pytest.mark.parametrize(
    ("name", "mean", "largest"),
    [("gsd", 2e-4, 1e-3), pytest.param("rap++", 0.01, 0.1, marks=pytest.mark.slow)],
)
def test_prefixes_and_halfspaces_are_met(name: str, mean: float, largest: float) -> None:
    """Relaxed rows come near; what their sigmoids say is not quite what is counted."""
    measurements = measured(MIXED, TABLE)
    found = projector_of(SPECS[name]).project(measurements, rows=ROWS, seed=3)
    errors = np.abs(count(MIXED, found.matrix) / ROWS - measurements.shares)
    assert errors.mean() < mean
    assert errors.max() < largest


QUICK = {
    "gsd": "gsd:denoise=false",
    "rap": "rap:mixtures=20,batch=50,iterations=10",
    "gem": "gem:mixtures=20,batch=50,iterations=10",
    "rap++": "rap++:points=40,temperatures=2,iterations=10",
    "pgm": "pgm:iterations=50",
}


@pytest.mark.parametrize("name", EACH)
def test_the_seed_decides(name: str) -> None:
    np.random.seed(1)  # noqa: NPY002
    measurements = measured(workloads.categorical_marginals(SCHEMA, 2), TABLE[:300])
    projector = projector_of(QUICK[name])
    reports: list[tuple[str, float, float | None]] = []
    one = projector.project(
        measurements,
        rows=50,
        seed=2**40 + 5,
        progress=lambda *each: reports.append(each),
    )
    two = projector.project(measurements, rows=50, seed=2**40 + 5)
    np.testing.assert_array_equal(one.matrix, two.matrix)
    what, done, total = reports[-1]
    assert what == ("searching" if name == "gsd" else "fitting")
    assert done >= 1
    assert total is None or done == total
    assert one.loss == two.loss
    # A projection that is stopped makes a table of what was found so far.
    stopped = projector.project(measurements, rows=50, seed=1, progress=lambda *_: True)
    assert stopped.reason == "stopped"
    assert stopped.matrix.shape == one.matrix.shape == (50, len(SCHEMA))
    assert not np.array_equal(one.matrix, stopped.matrix, equal_nan=True)
    assert np.random.random() == pytest.approx(0.417022004702574)  # noqa: NPY002


@pytest.mark.parametrize("name", [each for each in EACH if each.id != "gem"])  # as rap
@pytest.mark.parametrize("kind", ["discrete", "numeric"])
def test_schemas_of_one_kind_and_columns_that_nothing_measures(name: str, kind: str) -> None:
    names = ["colour", "member"] if kind == "discrete" else ["age", "income", "rate"]
    schema = SCHEMA.select(names)
    matrix = TABLE[:200, [SCHEMA.names.index(each) for each in names]]
    asked = (
        workloads.categorical_marginals(schema, sets=[["member"]])
        if kind == "discrete"
        else workloads.tree_marginals(schema, depth=2, sets=[["age"]])
    )
    found = projector_of(QUICK[name]).project(measured(asked, matrix), rows=30)
    again = Encoder(schema).encode(Encoder(schema).decode(found.matrix))
    np.testing.assert_array_equal(again, found.matrix)


def test_what_cannot_be_served_is_refused_by_name() -> None:
    sql = workloads.predicates(SCHEMA, ["age < 3 OR member"])
    function = workloads.functions(SCHEMA, {"old": lambda row: row["age"] > 3})
    for name in ("rap", "gem", "pgm"):
        for asked, kind in (
            (workloads.random_prefixes(SCHEMA, 2), "prefixes"),
            (workloads.random_halfspaces(SCHEMA, 2), "halfspaces"),
        ):
            message = f"'{name}' cannot serve {kind} .* it serves marginals.* gsd or rap"
            with pytest.raises(WorkloadError, match=message):
                projector_of(name).check(MARGINALS + asked)
            with pytest.raises(WorkloadError, match=message):
                projector_of(name).project(measured(asked, TABLE), rows=10)
    sums = workloads.sums(SCHEMA)
    for name in ("rap", "gem", "pgm", "rap++"):
        with pytest.raises(WorkloadError, match=r"cannot serve sums .* use the projector gsd$"):
            projector_of(name).check(MARGINALS + sums)
        message = f"'{name.replace('+', '.')}' cannot serve conditions in SQL .* projector gsd$"
        with pytest.raises(WorkloadError, match=message):
            projector_of(name).check(sql)
        with pytest.raises(WorkloadError, match="cannot serve Python functions"):
            projector_of(name).check(function)
    projector_of("rap++").check(MARGINALS + MIXED)
    projector_of("gsd").check(MARGINALS + MIXED + sql + function)


class Killed(BaseException):
    """A kill."""


def new_files(folder: Path) -> dict[str, Any]:
    """A release and a ledger that a fit makes."""
    return {"release": folder / "r", "ledger": folder / "l", "create_ledger": True}


@pytest.mark.parametrize("name", ["rap", "gem", "rap++"])
def test_too_many_products_are_found_before_anything_is_spent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "LARGEST", 1000)
    synth = Synthesizer(CENSUS, 1.0, projector=name)
    with pytest.raises(WorkloadError, match="too many for 1,000 product distributions"):
        synth.fit(PEOPLE, **new_files(tmp_path))
    assert list(tmp_path.iterdir()) == []


CENSUS = datasets.census_schema().select(["sex", "age", "marital"])

PEOPLE = datasets.census(400, seed=2).select(CENSUS.names)


@pytest.mark.parametrize("mechanism", ["one-shot", "adaptive"])
@pytest.mark.parametrize("name", EACH)
def test_a_killed_run_is_resumed_with_its_projector(
    name: str, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at the first projection of a one-shot run, or the second of an adaptive one."""
    data = tmp_path / "people.csv"
    pyarrow.csv.write_csv(PEOPLE, data)
    options: dict[str, Any] = {
        "workload": ["categorical:2", "tree:2:2"],
        "mechanism": Adaptive(epochs=2) if mechanism == "adaptive" else mechanism,
        "rows": 30,
        "insecure_noise_seed": 1,
        "projector": QUICK[name],
    }
    whole = fitted(CENSUS, 5.0, str(data), **options).release_
    kind = type(projector_of(name))
    real, calls = kind.project, itertools.count()

    def killed(self: Projector, *arguments: Any, **settings: Any) -> Projection:
        if next(calls) == (mechanism == "adaptive"):
            raise Killed
        return real(self, *arguments, **settings)

    folder = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(kind, "project", killed)
        with pytest.raises(Killed):
            fitted(CENSUS, 5.0, str(data), release=folder, **options)
    again = Synthesizer.resume(folder).release_
    assert again.synthetic.equals(whole.synthetic)
    assert again.privacy["spent"] == whole.privacy["spent"]


@pytest.mark.slow
def test_sweeps_take_a_projector() -> None:
    sweep = Sweep(CENSUS, PEOPLE, ["categorical:2"])
    settings = [
        {"rows": 20, "projector": QUICK["rap"]},
        {"rows": 20, "projector": QUICK["pgm"], "mechanism": Adaptive(epochs=1)},
    ]
    runs = sweep.run([1.0], settings=settings, insecure=True, n_jobs=1)
    assert [run.table.num_rows for run in runs] == [20, 20]
    with pytest.raises(ProjectionError, match="no projector is called 'rop'"):
        sweep.run([1.0], settings=[{"projector": "rop"}], insecure=True)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rapp", r"no projector is called 'rapp' \(did you mean 'rap'\?\); there are gsd, rap"),
        (None, "projector must be a name or a Projector, not None"),
        ("gsd:row=5", r"gsd has no 'row' \(did you mean 'rows'\?\); its settings are rows"),
        ("gsd:denoise=maybe", "denoise must be true or false, not 'maybe'"),
        ("rap:mixture=5", r"no 'mixture' \(did you mean 'mixtures'\?\); its settings are mixtures"),
        ("rap:batch=many", "batch must be a whole number"),
        ("rap:iterations=5,iterations=6", "iterations is given twice"),
        ("rap:batch=5, batch =6", "batch is given twice"),
        ("rap:batch=5,", "rap has no ''"),
        ("rap:batch=0", "batch must be a whole number from 1"),
        (
            "rap++:learning_rate=nan",
            "must be a number above 0 and at most 10, not nan",
        ),
        ("gem:learning_rate=x", "learning_rate must be a number above 0"),
        (f"gem:learning_rate={10**400}", "learning_rate must be a number above 0"),
    ],
)
def test_names_and_settings_that_make_no_sense(spec: Any, message: str) -> None:
    with pytest.raises(ProjectionError, match=message):
        projector_of(spec)
    with pytest.raises(ProjectionError, match=message):
        Synthesizer(CENSUS, 1.0, projector=spec)


def test_the_search_denoises_unless_it_is_set_not_to() -> None:
    workload = workloads.categorical_marginals(CENSUS, 1)
    counts = np.random.default_rng(0).normal(500, 50, workload.size)
    groups = workload.num_groups
    measured = Measurements(workload, counts, np.full(groups, 50.0), 1000, ("",) * groups, True)
    for spec, denoise in (("gsd", True), ("gsd:denoise=true", True), ("gsd:denoise=false", False)):
        found = projector_of(spec).project(measured, rows=100, seed=3).matrix
        expected = evolve(measured, GeneticSearch(rows=100, denoise=denoise), seed=3).matrix
        assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("name", ["rap", "gem", "rap++", "pgm"])
def test_a_missing_extra_is_named_before_anything_is_spent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(module: str, **words: str) -> Any:
        return require(f"{module}_not_installed", **words)

    monkeypatch.setattr(optional, "require", missing)
    synth = Synthesizer(CENSUS, 1.0, projector=name)
    message = rf"'{name.replace('+', '.')}' needs .* pip install 'private-gsd\[baselines\]'"
    with pytest.raises(MissingExtraError, match=message):
        synth.fit(PEOPLE, **new_files(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_measurements_and_nothing_else_go_in(name: str) -> None:
    projector = projector_of(QUICK[name])
    exact: Any = ExactCounts.__new__(ExactCounts)
    with pytest.raises(GsdError, match="needs Measurements, not ExactCounts"):
        projector.project(exact, rows=5)
    measurements = measured(workloads.categorical_marginals(SCHEMA, 2), TABLE[:20])
    for rows, seed in ((0, 0), (5, -1)):
        with pytest.raises(ProjectionError, match="must be a whole number"):
            projector.project(measurements, rows=rows, seed=seed)


def test_jax_is_not_imported_unless_it_is_used() -> None:
    code = "import sys, private_gsd.cli; print({'jax', 'optax', 'mbi'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_settings_may_have_spaces() -> None:
    assert projector_of(" rap : iterations = 5 , batch=7 ") == RAP(iterations=5, batch=7)


def test_the_defaults_are_those_of_the_paper_s_table() -> None:
    assert (RAP().mixtures, RAP().batch, RAP().iterations) == (1000, 5000, 1000)
    assert (GEM().mixtures, GEM().batch, GEM().iterations) == (1000, 5000, 1000)
    assert (RAP().learning_rate, GEM().learning_rate) == (0.03, 0.0003)
    assert (gem.HIDDEN, gem.INPUTS) == ((128, 256), 16)
    assert RAPPlusPlus().points == 1000
    assert 2.0 ** RAPPlusPlus().temperatures == 2048
    assert RAPPlusPlus().learning_rate in (0.0005, 0.001, 0.002, 0.005, 0.01)
    assert PGM().iterations == 250
    assert GeneticSearch().rows_of(None) == 2000
