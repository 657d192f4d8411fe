"""MST and AIM: what they may measure, what they select, what they spend, and killed at any step."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from private_gsd import Boolean, Categorical, Measurements, Schema, Sweep, Synthesizer, datasets
from private_gsd import workloads as asked
from private_gsd.counting.comparison import query_errors
from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError, LedgerError, MeasurementError, WorkloadError
from private_gsd.mechanisms import Mechanism, is_picky, measurable, planned_units, single_columns
from private_gsd.mechanisms.aim import _fitting, weights_of
from private_gsd.mechanisms.base import Run
from private_gsd.mechanisms.candidates import scopes_of
from private_gsd.mechanisms.mst import independent_shares, nearest_chances
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.projection import projector_of
from private_gsd.runs.release import Release
from private_gsd.runs.runner import Runner
from private_gsd.schema import Discrete
from private_gsd.workloads import Workload
from private_gsd.workloads.specs import workload_of
from tests.synthesis.test_synthesizer import Killed, durable_steps, outcome

MST, AIM = Mechanism(name="mst"), Mechanism(name="aim")
CENSUS = datasets.census_schema().select(["sex", "age", "marital"])
PEOPLE = datasets.census(400, seed=2).select(CENSUS.names)


def chain(rows: int = 3000) -> tuple[Schema, pa.Table]:
    """A Markov chain c0 → c1 → … → c4, with columns that stand in another order."""
    rng = np.random.default_rng(4)
    values = [rng.integers(3, size=rows)]
    for _ in range(4):
        new = rng.integers(3, size=rows)
        values.append(np.where(rng.random(rows) < 0.7, values[-1], new))
    order = [3, 0, 4, 2, 1]
    schema = Schema([Categorical(f"c{n}", values=list("abc")) for n in order])
    return schema, pa.table({f"c{n}": np.array(list("abc"))[values[n]] for n in order})


def names_of(release: Release, mechanism: Mechanism) -> list[str]:
    """What was selected, in words."""
    everything = measurable(mechanism, release.workload)
    return [everything.describe(group) for epoch in release.epochs() for group in epoch]


def spent(release: Release) -> int:
    with Ledger(Path(f"{release.folder}.ledger.db"), create=True) as ledger:
        return sum(charge.units for charge in ledger.charges("table"))


def test_what_may_be_measured() -> None:
    schema = datasets.census_schema().select(["sex", "age", "marital", "citizen", "income"])
    questions = workload_of(schema, ["categorical:3", "tree:2:3"])
    parts = measurable(AIM, questions)
    scopes = scopes_of(parts)
    assert len(set(scopes)) == len(scopes)
    assert single_columns(parts) == 5
    assert [len(scope) for scope in scopes] == sorted(len(scope) for scope in scopes)
    for scope in scopes_of(questions):
        for number in range(1, len(scope) + 1):
            assert set(itertools.combinations(scope, number)) <= set(scopes)
    # The column by itself is asked as the questions ask it: three levels of a tree.
    assert parts.describe(1) == "age"
    assert parts.group_sizes[1] == 2 + 4 + 8
    assert (1, 4) not in scopes  # nobody asks of age by income
    # Questions keep their names, by which an evaluation finds their noise.
    names = {parts.describe(group) for group in range(parts.num_groups)}
    assert {questions.describe(group) for group in range(questions.num_groups)} <= names
    pairs = measurable(MST, questions)
    assert len(scopes_of(pairs)) == 5 + math.comb(5, 2)
    assert (1, 4) in scopes_of(pairs)
    # Its levels go together, as those of two numbers do by default.
    tree = asked.tree_marginals(schema, 2, 3, categorical=0)
    both = scopes_of(pairs).index((1, 4))
    assert pairs.group_sizes[both] == tree.group_sizes[0]
    assert measurable(Mechanism(), questions) is questions


def test_parts_count_the_same_as_sums_of_the_whole() -> None:
    schema = datasets.census_schema().select(["sex", "marital", "citizen"])
    questions = asked.categorical_marginals(schema, 3)
    matrix = np.column_stack([np.arange(60) % 2, np.arange(60) % 4, np.arange(60) % 2]).astype(
        float
    )
    parts = measurable(AIM, questions)
    whole = count(questions, matrix)
    sizes = [len(c.values) + c.nullable for c in schema if isinstance(c, Discrete)]
    for group, scope in enumerate(scopes_of(parts)):
        others = tuple(axis for axis in range(3) if axis not in scope)
        found = count(parts, matrix)[parts.offsets[group] : parts.offsets[group + 1]]
        np.testing.assert_array_equal(found, whole.reshape(sizes).sum(axis=others).ravel())


@pytest.mark.parametrize("projector", ["gsd", "pgm:iterations=50"])
def test_mst_finds_the_tree_of_a_markov_chain(projector: str, tmp_path: Path) -> None:
    schema, table = chain()
    synth = Synthesizer(
        schema,
        100.0,
        workload=["categorical:2"],
        mechanism="mst",
        projector=projector,
        rows=1000,
        release=tmp_path / "r",
    ).fit(table)
    found = {frozenset(name.split(" x ")) for name in names_of(synth.release, MST)}
    assert found == {frozenset((f"c{n}", f"c{n + 1}")) for n in range(4)}
    measured = synth.release.measurements()
    assert measured is not None
    assert measured.workload.num_groups == 5 + 4
    # The tree says it all: also of pairs that were not measured.
    far = asked.categorical_marginals(schema, sets=[["c0", "c2"], ["c1", "c4"]])
    assert query_errors(far, table, synth.sample()).max < 0.06
    budget = RhoBudget.from_epsilon(100.0, 1 / table.num_rows**2)
    assert spent(synth.release) == budget.units


def test_the_thirds_of_mst(tmp_path: Path) -> None:
    schema, table = chain(500)
    synth = Synthesizer(schema, 1.0, mechanism="mst", rows=50, release=tmp_path / "r").fit(table)
    charges = synth.release.privacy["charges"]
    steps = [charge["run"].split(" ", 1)[1] for charge in charges]
    pairs = [f"pair {n}: select" for n in (1, 2, 3, 4)]
    assert steps == ["columns: measure", *pairs, "pairs: measure"]
    rho = [charge["rho"] for charge in charges]
    assert rho[0] == pytest.approx(sum(rho) / 3)
    assert rho[1:5] == [pytest.approx(sum(rho) / 12)] * 4
    assert rho[5] == pytest.approx(sum(rho) / 3)
    measured = synth.release.measurements()
    assert measured is not None
    for part in (measured.scales[:5], measured.scales[5:]):
        np.testing.assert_allclose(part, part[0], rtol=1e-9)


def copies(rows: int = 2000) -> tuple[Schema, pa.Table]:
    """The second column is the first; the others know of nothing."""
    rng = np.random.default_rng(1)
    schema = Schema([Categorical(name, values=list("pqrs")) for name in "abcd"])
    values = {name: np.array(list("pqrs"))[rng.integers(4, size=rows)] for name in "acd"}
    return schema, pa.table({name: values["a" if name == "b" else name] for name in "abcd"})


def test_aim_selects_what_columns_do_not_explain(tmp_path: Path) -> None:
    schema, table = copies()
    settings: dict[str, Any] = {"rows": 1000, "workload": ["categorical:2"]}
    synth = Synthesizer(schema, 5.0, mechanism="aim", release=tmp_path / "r", **settings)
    synth.fit(table)
    assert names_of(synth.release, AIM)[0] == "a x b"
    questions = workload_of(schema, ["categorical:2"])
    alone = Synthesizer(schema, 5.0, rows=1000, workload=["categorical:1"]).fit(table).sample()
    errors = query_errors(questions, table, synth.sample())
    without = query_errors(questions, table, alone)
    assert errors.max < 0.05 < 0.15 < without.max
    assert errors.mean < 0.6 * without.mean


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ["mst", "aim"])
def test_the_budget_is_spent_to_the_last_unit(name: str, neighbours: str, tmp_path: Path) -> None:
    for epsilon in (0.3, 7.0):
        folder = tmp_path / str(epsilon)
        synth = Synthesizer(
            CENSUS,
            epsilon,
            delta=1e-6,
            workload=["categorical:2", "tree:2:2"],
            mechanism=name,
            neighbours=neighbours,
            rows=40,
            release=folder,
        ).fit(PEOPLE)
        budget = RhoBudget.from_epsilon(epsilon, 1e-6)
        assert spent(synth.release) == budget.units
        mechanism = Mechanism(name=name)  # type: ignore[arg-type]
        everything = measurable(mechanism, synth.release.workload)
        assert planned_units(mechanism, everything, budget, neighbours) == budget.units  # type: ignore[arg-type]
        assert synth.release.privacy["spent"]["epsilon"] == pytest.approx(epsilon)
        with Ledger(Path(f"{folder}.ledger.db"), create=True) as ledger:
            assert ledger.account("table").reserved == 0


def test_rounds_have_four_times_as_much_where_little_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the rule itself, from all tables of a run."""
    schema, people = copies(800)
    tables: dict[int, np.ndarray] = {}
    real = Runner._project

    def watched(self: Runner, measured: Measurements, start: Any, number: int) -> np.ndarray:
        tables[number] = real(self, measured, start, number)
        return tables[number]

    monkeypatch.setattr(Runner, "_project", watched)
    synth = Synthesizer(
        schema, 2.0, workload=["categorical:2"], mechanism="aim", rows=300, release=tmp_path / "r"
    ).fit(people)
    measured = synth.release.measurements()
    assert measured is not None
    with Ledger(tmp_path / "r.ledger.db", create=True) as ledger:
        units = [charge.units for charge in ledger.charges("table")]
    columns, rounds = units[0], list(zip(units[1::2], units[2::2], strict=True))
    total = sum(units)
    assert columns == pytest.approx(0.9 * total / 16, rel=1e-9)
    assert sum(rounds[0]) == pytest.approx(total / 64, rel=1e-9)
    assert len(rounds) == len(tables) - 1
    quiet = []
    everything = measurable(AIM, synth.release.workload)
    for number, [group] in enumerate(synth.release.epochs(), start=1):
        one = everything.select([group])
        moved = np.abs(count(one, tables[number]) - count(one, tables[number - 1])).sum()
        noise = measured.scales[4 + number - 1]
        quiet.append(moved / 300 * 800 <= math.sqrt(2 / math.pi) * noise * one.size)
    for before, after, still in zip(rounds[:-2], rounds[1:-1], quiet, strict=False):
        assert after == tuple(4 * each for each in before) if still else after == before
    assert any(quiet)
    assert not all(quiet)
    for select, measure in rounds:
        assert select / (select + measure) == pytest.approx(0.1, rel=1e-6)
    # The last round is the one that would leave less than another.
    assert sum(rounds[-1]) < 2 * (4 if quiet[-2] else 1) * sum(rounds[-2])


def test_weights_are_how_much_of_the_questions_a_candidate_shares() -> None:
    schema = Schema([Boolean(name) for name in "abcd"])
    questions = asked.categorical_marginals(schema, sets=[["a", "b", "c"], ["a", "b"], ["d"]])
    parts = measurable(AIM, questions)
    words = {parts.describe(g): w for g, w in enumerate(weights_of(parts, questions))}
    assert words == {
        "a": 2,
        "b": 2,
        "c": 1,
        "d": 1,
        "a x b": 4,
        "a x c": 3,
        "b x c": 3,
        "a x b x c": 5,
    }


def run_of(workload: Workload, why_infeasible: Any) -> Run:
    nothing: Any = None
    facts = dict.fromkeys(Run.__dataclass_fields__, nothing)
    return Run(**{**facts, "workload": workload, "why_infeasible": why_infeasible})


def test_aim_leaves_out_what_would_make_a_model_too_large() -> None:
    schema = Schema([Boolean(name) for name in "abcd"])
    parts = measurable(AIM, asked.categorical_marginals(schema, 3))
    looked: list[tuple[list[int], float]] = []

    def why_infeasible(groups: list[int], share: float = 1.0) -> str | None:
        looked.append((groups, share))
        return None if parts.describe(groups[-1]) == "a x d" else "too large"

    abc = scopes_of(parts).index((0, 1, 2))
    found = [
        parts.describe(group) for group in _fitting(run_of(parts, why_infeasible), [[abc]], 0.25)
    ]
    # Nothing new is joined within a x b x c, which was measured; all else is asked about.
    assert found == [*"abcd", "a x b", "a x c", "a x d", "b x c", "a x b x c"]
    assert {share for _, share in looked} == {0.25}
    assert all(groups[:-1] == [0, 1, 2, 3, abc] for groups, _ in looked)
    everything = _fitting(run_of(parts, None), [], 0.1)
    assert everything == list(range(parts.num_groups))


def test_the_size_of_a_model_grows_with_the_budget_spent() -> None:
    pgm = projector_of("pgm:cells=100")
    schema = Schema([Categorical(name, values=list("pqrs")) for name in "abc"])
    chain_of = asked.categorical_marginals(schema, sets=[["a", "b"], ["b", "c"]])  # 32 cells
    assert pgm.why_infeasible(chain_of, 0.32) is None
    assert "more than the 31 allowed" in str(pgm.why_infeasible(chain_of, 0.31))
    triple = asked.categorical_marginals(schema, 3)
    assert pgm.why_infeasible(triple) is None
    assert pgm.why_infeasible(triple, 0.5) is not None


def test_mst_with_pairs_that_a_model_cannot_take(tmp_path: Path) -> None:
    """The tree is smaller, and what was not spent on selecting measures its pairs."""
    schema, table = chain(500)
    cells = 3 * 9 - 1  # two pairs and a column have 9 + 9 + 3
    settings: dict[str, Any] = {"rows": 50, "mechanism": "mst", "workload": ["categorical:2"]}
    settings["projector"] = f"pgm:iterations=10,cells={cells}"
    synth = Synthesizer(schema, 1.0, release=tmp_path / "r", **settings).fit(table)
    assert 0 < len(synth.release.epochs()) < 4
    assert spent(synth.release) == RhoBudget.from_epsilon(1.0, 1 / 500**2).units
    measured = synth.release.measurements()
    assert measured is not None
    assert projector_of(settings["projector"]).why_infeasible(measured.workload) is None
    pairs = measurable(MST, workload_of(schema, ["categorical:2"]))
    assert is_picky(projector_of(settings["projector"]), MST, pairs)
    assert not is_picky(projector_of("pgm"), MST, pairs)
    assert is_picky(projector_of("pgm"), MST, pairs, outside=pairs)
    assert is_picky(projector_of("pgm"), AIM, pairs)
    assert not is_picky(projector_of("gsd"), AIM, pairs)
    settings["projector"] = "pgm:cells=17"  # a pair and three columns have 18
    files: dict[str, Any] = {"release": tmp_path / "s", "ledger": tmp_path / "l"}
    again = Synthesizer(schema, 1.0, create_ledger=True, **files, **settings)
    with pytest.raises(WorkloadError, match=r"more than the 17 allowed.*use another projector"):
        again.fit(table)
    assert not (tmp_path / "l").exists()


SELECTIVE: dict[str, dict[str, Any]] = {
    "mst": {"mechanism": "mst", "workload": ["categorical:2", "tree:2:2"]},
    "aim": {"mechanism": "aim", "workload": ["categorical:2"]},
}


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", SELECTIVE)
def test_a_run_killed_at_any_step_goes_on_as_if_it_was_not(
    name: str, neighbours: str, tmp_path: Path
) -> None:
    """The same table, the same measurements, and a ledger with each charge once."""
    schema = CENSUS.select(["sex", "marital"]) if name == "aim" else CENSUS
    data = tmp_path / "table.csv"
    pyarrow.csv.write_csv(PEOPLE.select(schema.names), data)

    def fit(folder: Path) -> None:
        Synthesizer(
            schema,
            epsilon=20.0,
            delta=1e-6,
            release=folder,
            ledger=folder.with_suffix(".db"),
            create_ledger=True,
            insecure_noise_seed=5,
            neighbours=neighbours,
            rows=40,
            threads=1,
            **SELECTIVE[name],
        ).fit(str(data))

    fit(tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        steps = durable_steps(patch, -1)
        fit(tmp_path / "again")
    assert "keep" in steps
    number = 2 * len(steps)
    expected = outcome(tmp_path / "whole", tmp_path / "whole.db")
    assert outcome(tmp_path / "again", tmp_path / "again.db") == expected
    resumed = 0
    # All steps of MST; of AIM all of the first rounds, some of the many after, all of the last.
    last = number - 12
    kills = list(range(number)) if name == "mst" else [*range(48), *range(48, last, 9)]
    kills = sorted({*kills, *range(last, number)})
    for kill_at in kills if neighbours == "replace-one" else kills[::4]:
        folder = tmp_path / f"killed-{kill_at}"
        with pytest.MonkeyPatch.context() as patch:
            durable_steps(patch, kill_at)
            try:
                fit(folder)
                continue
            except Killed:
                pass
        if (folder / "release.json").exists():
            Synthesizer.resume(folder)
            resumed += 1
        else:
            fit(folder)
        assert outcome(folder, folder.with_suffix(".db")) == expected
    assert resumed >= 10


@pytest.mark.parametrize("name", SELECTIVE)
def test_what_was_lost_is_not_drawn_again(name: str, tmp_path: Path) -> None:
    for lost, kinds in (
        ("epochs.json", (MeasurementError, LedgerError)),
        ("measurements/measurements.json", (MeasurementError, LedgerError)),
    ):
        folder = tmp_path / lost.replace("/", "-")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Release, "finish", lambda *_: (_ for _ in ()).throw(Killed()))
            with pytest.raises(Killed):
                Synthesizer(CENSUS, 2.0, rows=40, release=folder, **SELECTIVE[name]).fit(PEOPLE)
        (folder / lost).unlink()
        with pytest.raises(kinds):
            Synthesizer.resume(folder, PEOPLE)
        with Ledger(Path(f"{folder}.ledger.db"), create=True) as ledger:
            charges = [charge.run for charge in ledger.charges("table")]
        assert len(set(charges)) == len(charges)


@pytest.mark.parametrize("name", SELECTIVE)
def test_the_seeds_decide(name: str) -> None:
    settings = {"rows": 40, **SELECTIVE[name]}
    one, two, other = (
        Synthesizer(CENSUS, 2.0, insecure_noise_seed=seed, random_state=3, **settings).fit(PEOPLE)
        for seed in (1, 1, 2)
    )
    assert one.release.synthetic.equals(two.release.synthetic)
    assert one.release.epochs() == two.release.epochs()
    counts = [each.release.measurements() for each in (one, other)]
    assert counts[0] is not None
    assert counts[1] is not None
    assert counts[0].counts[:10].tolist() != counts[1].counts[:10].tolist()
    assert one.release.privacy["private"] is False


def test_sweeps_run_them_too() -> None:
    sweep = Sweep(CENSUS, PEOPLE, ["categorical:2"])
    settings = [{"rows": 30, "mechanism": name} for name in ("mst", "aim", "one-shot")]
    runs = sweep.run([1.0], settings=settings, insecure=True, evaluate=True, n_jobs=1)
    assert [run.table.num_rows for run in runs] == [30] * 3
    assert all(run.errors is not None for run in runs)


@pytest.mark.parametrize("name", ["mst", "aim"])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (asked.random_halfspaces(CENSUS, 3), "cannot measure halfspaces .such as halfspace 0"),
        (asked.random_prefixes(CENSUS, 3, k=2), "cannot measure prefixes"),
        (asked.sums(CENSUS), "cannot measure sums"),
    ],
)
def test_what_is_no_marginal_is_refused_by_name(
    name: str, more: Workload, message: str, tmp_path: Path
) -> None:
    synth = Synthesizer(
        CENSUS,
        1.0,
        workload=asked.categorical_marginals(CENSUS, 2) + more,
        mechanism=name,
        release=tmp_path / "r",
        ledger=tmp_path / "l",
        create_ledger=True,
    )
    for act in (synth.fit, synth.plan):
        with pytest.raises(WorkloadError, match=f"'{name}' {message}.*one-shot or adaptive"):
            act(PEOPLE)
    sql = asked.predicates(CENSUS, ["age < 30 OR sex = 'male'"])
    with pytest.raises(WorkloadError, match=f"'{name}' cannot measure conditions in SQL"):
        measurable(Mechanism(name=name), sql)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_other_refusals(tmp_path: Path) -> None:
    single = Synthesizer(
        CENSUS,
        1.0,
        workload=asked.categorical_marginals(CENSUS, 1, columns=["sex"]),
        mechanism="mst",
    )
    with pytest.raises(WorkloadError, match=r"'mst' needs a pair of columns.* asks of sex alone"):
        single.fit(PEOPLE)
    many = Schema([Boolean(f"b{n}") for n in range(9)])
    with pytest.raises(WorkloadError, match="more than 8 columns, too many to look for its parts"):
        measurable(AIM, asked.categorical_marginals(many, 9))
    tiny = RhoBudget(100, 1e-6)
    pairs = measurable(AIM, asked.categorical_marginals(many, 2))
    with pytest.raises(BudgetError, match="too small for 144 rounds"):
        planned_units(AIM, pairs, tiny)
    with pytest.raises(BudgetError, match="too small"):
        planned_units(
            MST, measurable(MST, asked.categorical_marginals(many, 2)), RhoBudget(9, 1e-6)
        )
    with pytest.raises(BudgetError, match="'layered' or 'adaptive' or 'mst' or 'aim', not 'mts'"):
        Synthesizer(CENSUS, 1.0, mechanism="mts").fit(PEOPLE)
    derived = Synthesizer(
        CENSUS,
        1.0,
        workload=["categorical:2", "tree:2:3"],
        derived=["median(age) WHERE sex = 'female'"],
        mechanism="aim",
        release=tmp_path / "r",
    )
    with pytest.raises(MeasurementError, match="does not follow"):  # it may not be measured
        derived.fit(PEOPLE)
    derived.derived = ["median(age)"]
    derived.rows = 40
    assert derived.fit(PEOPLE).sample().num_rows == 40


def test_chances_nearest_to_noisy_shares() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        noisy = rng.normal(0.2, 0.3, size=rng.integers(1, 8))
        found = nearest_chances(noisy, whole=True)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        # No other chances are nearer.
        for other in rng.dirichlet(np.ones(len(noisy)), 20):
            assert ((found - noisy) ** 2).sum() <= ((other - noisy) ** 2).sum() + 1e-12
    assert nearest_chances(np.array([0.2, -0.1]), whole=False).tolist() == [0.2, 0]
    assert nearest_chances(np.array([0.9, 0.5]), whole=False).sum() == pytest.approx(1)


def test_independent_shares_are_products() -> None:
    questions = workload_of(CENSUS, ["categorical:2", "tree:2:2"])
    pairs = measurable(MST, questions)
    singles = pairs.select(range(3))
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 50, size=singles.size).astype(float)
    measured = Measurements(singles, counts, np.ones(3), 100, ("",) * 3, False)
    shares = independent_shares(pairs, measured)
    assert ((shares >= 0) & (shares <= 1)).all()
    both = scopes_of(pairs).index((0, 2))
    found = shares[pairs.offsets[both] : pairs.offsets[both + 1]]
    sex, marital = (shares[pairs.offsets[g] : pairs.offsets[g + 1]] for g in (0, 2))
    np.testing.assert_allclose(found, np.outer(sex, marital).ravel())


def test_a_plan_says_what_they_would_do() -> None:
    for name, searches in (("mst", 1), ("aim", 46)):
        forecast = Synthesizer(
            CENSUS, 1.0, workload=["categorical:2", "tree:2:2"], mechanism=name
        ).plan(PEOPLE)
        document = json.loads(json.dumps(forecast.document()))
        assert document["mechanism"] == name
        assert document["epochs"] == searches
        assert document["selection_noise_rows"] > 0
        names = [group.name for group in forecast.groups]
        assert names[:4] == ["sex", "age", "marital", "sex x age"]
        assert forecast.seconds > 0
