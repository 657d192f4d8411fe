"""Every projector: finds what is known, twice the same, refuses by name, and runs like ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from private_gsd import (
    Categorical,
    Encoder,
    ExactCounts,
    GeneticSearch,
    Measurements,
    Release,
    Schema,
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
from private_gsd.mechanisms import EndedEarlyWarning
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.projection import NAMES, projector_of
from private_gsd.projection.baselines import optional, products
from private_gsd.projection.watch import Progress
from private_gsd.runs.runner import Runner
from tests.projection.baselines.known import SCHEMA, SPECS, measured, table

pytestmark = pytest.mark.worker("baselines")

ROWS = 4000
TABLE = table(ROWS)
MARGINALS = workloads.categorical_marginals(SCHEMA, 2) + workloads.tree_marginals(SCHEMA, 2, 2)
MIXED = workloads.random_prefixes(SCHEMA, 60) + workloads.random_halfspaces(SCHEMA, 60)


@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize(("name", "mean", "largest"), [("gsd", 2e-4, 1e-3), ("rap++", 0.01, 0.1)])
def test_prefixes_and_halfspaces_are_met(name: str, mean: float, largest: float) -> None:
    """Relaxed rows come near; what their sigmoids say is not quite what is counted."""
    measurements = measured(MIXED, TABLE)
    found = projector_of(SPECS[name]).project(measurements, rows=ROWS, seed=3)
    errors = np.abs(count(MIXED, found.matrix) / ROWS - measurements.shares)
    assert errors.mean() < mean
    assert errors.max() < largest


QUICK = {
    "gsd": "gsd",
    "rap": "rap:mixtures=20,batch=50,iterations=10",
    "gem": "gem:mixtures=20,batch=50,iterations=10",
    "rap++": "rap++:points=40,temperatures=2,iterations=10",
    "pgm": "pgm:iterations=50",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides(name: str) -> None:
    np.random.seed(1)  # noqa: NPY002
    measurements = measured(workloads.categorical_marginals(SCHEMA, 2), TABLE[:300])
    projector = projector_of(QUICK[name])
    told: list[Progress] = []
    one = projector.project(measurements, rows=50, seed=2**40 + 5, callback=told.append)
    two = projector.project(measurements, rows=50, seed=2**40 + 5)
    np.testing.assert_array_equal(one.matrix, two.matrix)
    assert told
    assert told[-1].generation >= 1
    assert one.loss == two.loss
    # A stop is heard, and a table is made of what there is.
    stopped = projector.project(measurements, rows=50, seed=1, callback=lambda _: True)
    assert stopped.reason == "callback"
    assert stopped.matrix.shape == one.matrix.shape == (50, len(SCHEMA))
    assert not np.array_equal(one.matrix, stopped.matrix, equal_nan=True)
    assert np.random.random() == pytest.approx(0.417022004702574)  # noqa: NPY002


@pytest.mark.parametrize("name", ["gsd", "rap", "rap++", "pgm"])  # gem's columns are rap's
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


MANY = Schema([Categorical(f"c{n}", values=list("abcdefgh")) for n in range(5)])
SMALL = "pgm:iterations=50,cells=300"  # four pairs have 256 cells; a triangle would have 512


def test_a_model_that_would_be_too_large(tmp_path: Path) -> None:
    pairs = workloads.categorical_marginals(MANY, 2)
    projector = projector_of(SMALL)
    reason = projector.why_infeasible(pairs)
    assert reason is not None
    assert "these 10 marginals would have 32,768 cells" in reason
    assert "join c0 x c1 x c2 x c3 x c4" in reason
    assert projector.why_infeasible(pairs.select(range(4))) is None  # a star
    rows = np.zeros((5, 5))
    with pytest.raises(WorkloadError, match="Measure fewer marginals, or adaptively"):
        projector.project(measured(pairs, rows), rows=5)
    data = {name: ["a", "b"] * 30 for name in MANY.names}
    for settings, message in (
        ({"mechanism": "one-shot"}, "use the adaptive mechanism, which selects some"),
        ({"mechanism": "adaptive", "groups": 2}, "say groups=1"),
        ({"mechanism": "adaptive", "projector": "pgm:cells=63"}, "no marginal alone is small"),
    ):
        options: dict[str, Any] = {"workload": pairs, "projector": SMALL, **settings}
        files: dict[str, Any] = {"release": tmp_path / "r", "ledger": tmp_path / "l"}
        synth = Synthesizer(MANY, 1.0, create_ledger=True, **files, **options)
        with pytest.raises(WorkloadError, match=message):
            synth.fit(pyarrow.table(data))
        with pytest.raises(WorkloadError, match=message):
            synth.plan(pyarrow.table(data))
        assert list(tmp_path.iterdir()) == []  # nothing was spent


@pytest.mark.parametrize("name", ["rap", "gem", "rap++"])
def test_too_many_products_are_found_before_anything_is_spent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "LARGEST", 1000)
    files: dict[str, Any] = {"release": tmp_path / "r", "ledger": tmp_path / "l"}
    synth = Synthesizer(CENSUS, 1.0, projector=name, create_ledger=True, **files)
    with pytest.raises(WorkloadError, match="too many for 1,000 product distributions"):
        synth.fit(PEOPLE)
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_kept_small_by_what_is_selected(tmp_path: Path) -> None:
    """Only groups that still fit are selected; where none is left, the run ends with its table."""
    data = pyarrow.table({name: ["a", "b", "c"] * 30 for name in MANY.names})
    synth = Synthesizer(
        MANY,
        1.0,
        workload=["categorical:2"],
        projector=SMALL,
        mechanism="adaptive",
        epochs=5,
        rows=20,
        release=tmp_path / "r",
    )
    message = r"ended after 4 epochs and gave back .* none of the 6 groups that are left .* fewer"
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.warns(EndedEarlyWarning, match=message),
        pytest.raises(Killed),
    ):
        patch.setattr(Release, "finish", lambda *_: (_ for _ in ()).throw(Killed()))
        synth.fit(data)
    # Killed after what was held was given back, it still comes to its end.
    with pytest.warns(EndedEarlyWarning, match=message):
        release = Synthesizer.resume(tmp_path / "r", data).release
    assert release.synthetic.num_rows == 20
    measurements = release.measurements()
    assert measurements is not None
    assert measurements.workload.num_groups == 4
    assert projector_of(SMALL).why_infeasible(measurements.workload) is None
    with Ledger(tmp_path / "r.ledger.db", create=True) as ledger:
        account = ledger.account("table")
        assert account.reserved == 0
        assert account.spent == pytest.approx(0.8 * account.budget.units, rel=1e-6)
        assert account.remaining == account.budget.units - account.spent
        assert release.privacy["spent"]["rho"] == pytest.approx(0.8 * account.budget.rho, rel=1e-6)


CENSUS = datasets.census_schema().select(["sex", "age", "marital"])
PEOPLE = datasets.census(400, seed=2).select(CENSUS.names)


@pytest.mark.parametrize("mechanism", ["one-shot", "adaptive"])
@pytest.mark.parametrize("name", NAMES)
def test_a_killed_run_goes_on_with_its_projector(
    name: str, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "people.csv"
    pyarrow.csv.write_csv(PEOPLE, data)
    options: dict[str, Any] = {
        "workload": ["categorical:2", "tree:2:2"],
        "mechanism": mechanism,
        "epochs": 2,
        "rows": 30,
        "insecure_noise_seed": 1,
        "projector": QUICK[name],
    }
    told = []
    whole = Synthesizer(CENSUS, 5.0, **options)
    whole.fit(str(data), tell=lambda what, _: told.append(what))
    assert "searching" in told
    assert whole.release.settings["projector"] == QUICK[name]
    folder = tmp_path / "killed"
    project = Runner._project

    def kill(self: Runner, found: Measurements, start: Any, number: int) -> Any:
        if number == (mechanism == "adaptive"):
            raise Killed
        return project(self, found, start, number)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_project", kill)
        with pytest.raises(Killed):
            Synthesizer(CENSUS, 5.0, release=folder, **options).fit(str(data))
    again = Synthesizer.resume(folder)
    assert again.projector == QUICK[name]
    assert again.release.synthetic.equals(whole.release.synthetic)
    assert again.release.privacy["spent"] == whole.release.privacy["spent"]


def test_sweeps_take_a_projector() -> None:
    sweep = Sweep(CENSUS, PEOPLE, ["categorical:2"])
    settings = [
        {"rows": 20, "projector": QUICK["rap"]},
        {"rows": 20, "projector": QUICK["pgm"], "mechanism": "adaptive", "epochs": 1},
    ]
    runs = sweep.run([1.0], settings=settings, insecure=True, n_jobs=1)
    assert [run.table.num_rows for run in runs] == [20, 20]
    for wrong, message in (
        ({"projector": "rap", "generations": 3}, "'generations' is of the genetic search"),
        ({"projector": "rop"}, "no projector is called 'rop'"),
    ):
        with pytest.raises(ProjectionError, match=message):
            sweep.run([1.0], settings=[wrong], insecure=True)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rapp", r"no projector is called 'rapp' \(did you mean 'rap'\?\); there are gsd, rap"),
        (None, "projector must be a name, not None"),
        ("gsd:rows=5", "gsd has no 'rows'; its settings are denoise"),
        ("gsd:denoise=maybe", "denoise must be true or false, not 'maybe'"),
        ("rap:mixture=5", r"no 'mixture' \(did you mean 'mixtures'\?\); its settings are mixtures"),
        ("rap:batch=many", "batch must be a whole number, not 'many'"),
        ("rap:iterations=5,iterations=6", "iterations is given twice"),
        ("rap:batch=5, batch =6", "batch is given twice"),
        ("rap:batch=5,", "rap has no ''"),
        ("rap:batch=0", "batch must be a whole number from 1"),
        (
            "rap++:learning_rate=nan",
            "must be a number above 0 and at most 10, not nan",
        ),
        ("gem:learning_rate=x", "learning_rate must be a number, not 'x'"),
    ],
)
def test_names_and_settings_that_make_no_sense(spec: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectionError, match=message):
        projector_of(spec)
    synth = Synthesizer(CENSUS, 1.0, projector=spec, release=tmp_path / "r")
    with pytest.raises(ProjectionError, match=message):
        synth.fit(PEOPLE)
    assert list(tmp_path.iterdir()) == []


def test_the_search_smooths_unless_it_is_told_not_to() -> None:
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
    files: dict[str, Any] = {"release": tmp_path / "r", "ledger": tmp_path / "l"}
    synth = Synthesizer(CENSUS, 1.0, projector=name, create_ledger=True, **files)
    message = rf"'{name.replace('+', '.')}' needs .* pip install 'private-gsd\[baselines\]'"
    with pytest.raises(MissingExtraError, match=message):
        synth.fit(PEOPLE)
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


def test_noise_is_weighed_by_the_graphical_model() -> None:
    """Of two measurements of one column, the better one counts."""
    asked = workloads.categorical_marginals(SCHEMA, 1, columns=["member"])
    good, bad = measured(asked, TABLE, 0.01), measured(asked, TABLE[::-1], 1000.0)
    wrong = Measurements(asked, bad.counts[::-1].copy(), bad.scales, ROWS, ("",), False)
    found = projector_of("pgm").project(good + wrong, rows=ROWS)
    shares = count(asked, found.matrix) / ROWS
    np.testing.assert_allclose(shares, good.shares, atol=1e-3)
