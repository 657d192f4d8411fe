"""Release: paid before noise exists, with the sensitivity of the workload, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import private_gsd
from private_gsd import datasets, exact_counts, workloads
from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.privacy.accountant import LedgerAccountant, LocalAccountant
from private_gsd.privacy.budget import Conversion, RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.measuring import release_counts, release_n_records, select_groups
from private_gsd.privacy.noise import InsecureSeededNoise, SecureNoise, gaussian_scale

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen", "income"])
WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, 2)
    + workloads.tree_marginals(SCHEMA, 2)
    + workloads.random_prefixes(SCHEMA, 20)
)
EXACT = exact_counts(WORKLOAD, datasets.census(2000).select(SCHEMA.names))
BUDGET = RhoBudget.from_epsilon(1, 1e-9)


class Watch:
    """Records what happened in which order; an accountant and a noise source at once."""

    private = True
    conversion: Conversion = "zcdp"

    def __init__(self, refuse: bool = False) -> None:
        self.events: list[Any] = []
        self.refuse = refuse

    def charge(self, units: int, mechanism: str, groups: Any, neighbours: str) -> str:
        if self.refuse:
            raise BudgetError("no")
        self.events.append(("charge", units, mechanism, tuple(groups), neighbours))
        return "7"

    def gaussian(self, counts: np.ndarray, scale: float) -> np.ndarray:
        self.events.append(("noise", scale, len(counts)))
        return counts

    def top_k(self, scores: np.ndarray, k: int, scale: float) -> list[int]:
        self.events.append(("select", scores.tolist(), k, scale))
        return list(range(k))


def test_the_charge_comes_before_the_noise() -> None:
    watch = Watch()
    noisy = release_counts(EXACT, [0, 5, 20], [100, 200, 300], accountant=watch, noise=watch)
    assert [event[0] for event in watch.events] == ["charge", "noise", "noise", "noise"]
    assert watch.events[0][1:3] == (600, "discrete gaussian")
    assert watch.events[0][3] == tuple(WORKLOAD.describe(group) for group in (0, 5, 20))
    assert noisy.charge == "7"
    expected = [
        EXACT.counts[WORKLOAD.offsets[group] : WORKLOAD.offsets[group + 1]] for group in (0, 5, 20)
    ]
    np.testing.assert_array_equal(noisy.counts, np.concatenate(expected))
    squares = WORKLOAD.squared_sensitivities()[[0, 5, 20]]
    for scale, square, units in zip(noisy.scales, squares, (100, 200, 300), strict=True):
        assert scale == gaussian_scale(square, units, "zcdp")


def test_add_remove_has_its_own_scale() -> None:
    options = {"accountant": Watch(), "noise": Watch()}
    one = release_counts(EXACT, [0], [2**40], **options).scales  # type: ignore[arg-type]
    two = release_counts(EXACT, [0], [2**40], neighbours="add-remove", **options).scales
    assert one[0] / two[0] == pytest.approx(np.sqrt(2))


def test_nothing_is_drawn_when_the_charge_is_refused() -> None:
    watch, refusing = Watch(), Watch(refuse=True)
    for act in (
        lambda: release_counts(EXACT, [0], [5], accountant=refusing, noise=watch),
        lambda: release_n_records(EXACT, 5, accountant=refusing, noise=watch),
        lambda: select_groups(
            EXACT, EXACT.counts / 2000, 2000, [0, 1], 1, 5, accountant=refusing, noise=watch
        ),
    ):
        with pytest.raises(BudgetError, match="no"):
            act()
    assert watch.events == []


def test_nothing_is_charged_for_what_cannot_be_done() -> None:
    watch = Watch()
    bad: list[tuple[Any, Any]] = [
        ([0, 0], [5, 5]),
        ([0], [5, 5]),
        ([], []),
        ([0], [0]),
        ([0], [-1]),
        ([-1], [5]),
        ([0.9], [5]),
        ([10**6], [5]),
    ]
    for groups, units in bad:
        with pytest.raises((BudgetError, WorkloadError)):
            release_counts(EXACT, groups, units, accountant=watch, noise=watch)
    good: dict[str, Any] = {
        "shares": EXACT.counts / 2000,
        "rows": 2000,
        "candidates": [0, 1],
        "k": 1,
        "units": 5,
    }
    for name, value in (
        ("k", 3),
        ("k", 0),
        ("rows", None),
        ("rows", 0),
        ("rows", 2.5),
        ("units", 0),
        ("candidates", [0, 0]),
        ("candidates", [-1, 0]),
        ("candidates", [0.5]),
        ("shares", EXACT.counts[:-1] / 2000),
        ("shares", np.full(WORKLOAD.size, np.nan)),
        ("shares", np.full(WORKLOAD.size, np.inf)),
        ("shares", np.full(WORKLOAD.size, -1e17)),
        ("shares", np.full(WORKLOAD.size, 1.01)),
    ):
        with pytest.raises((BudgetError, WorkloadError)):
            select_groups(EXACT, **{**good, name: value}, accountant=watch, noise=watch)
    assert watch.events == []


def test_other_neighbours_than_promised_are_refused() -> None:
    """Noise for add-remove neighbours is too little for replace-one ones."""
    for promised, used in (("replace-one", "add-remove"), ("add-remove", "replace-one")):
        accountant = LocalAccountant(BUDGET, promised)
        with pytest.raises(BudgetError, match=f"is for {promised} neighbours, the release for"):
            release_counts(
                EXACT,
                [0],
                [5],
                accountant=accountant,
                noise=SecureNoise(),
                neighbours=used,  # type: ignore[arg-type]
            )
        assert accountant.spent == 0


def test_the_ledger_keeps_its_promise_about_neighbours(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("census", BUDGET, "replace-one")
        accountant = LedgerAccountant(ledger, "census", "run")
        with pytest.raises(BudgetError, match="the release for add-remove"):
            release_n_records(EXACT, 5, accountant=accountant, noise=SecureNoise())
        assert ledger.account("census").spent == 0


def test_the_ledger_is_told_of_insecure_noise(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("census", BUDGET)
        accountant = LedgerAccountant(ledger, "census", "run")
        assert ledger.privacy_record("census")["private"] is True
        release_counts(EXACT, [1], [5], accountant=accountant, noise=InsecureSeededNoise(1))
        record = ledger.privacy_record("census")
        with pytest.raises(BudgetError, match="takes none for noise without a seed"):
            release_counts(EXACT, [0], [5], accountant=accountant, noise=SecureNoise())
    assert record["private"] is False
    assert record["guarantee"].startswith("NONE: the noise of charges 1 came from a seed")
    assert record["charges"][0]["mechanism"] == "discrete gaussian (INSECURE seeded noise)"


def test_a_spent_budget() -> None:
    accountant = LocalAccountant(BUDGET)
    parts = BUDGET.split([1, 1, 1])
    release_counts(EXACT, [0, 1, 2], parts, accountant=accountant, noise=SecureNoise())
    assert accountant.spent == sum(parts)
    with pytest.raises(BudgetError, match="exceeds what is left"):
        release_counts(EXACT, [3], [9], accountant=accountant, noise=SecureNoise())
    assert accountant.spent == sum(parts)


def test_noise_has_the_scale_that_is_stated() -> None:
    """Over all cells of all groups: standardised noise has unit variance, within 6 errors."""
    units = BUDGET.split([1.0] * WORKLOAD.num_groups)
    groups = list(range(WORKLOAD.num_groups))
    deviations = []
    for _ in range(5):
        accountant = LocalAccountant(BUDGET)
        noisy = release_counts(EXACT, groups, units, accountant=accountant, noise=SecureNoise())
        scales = np.repeat(noisy.scales, WORKLOAD.group_sizes)
        deviations.append((noisy.counts - EXACT.counts) / scales)
    together = np.concatenate(deviations)
    assert together.var() == pytest.approx(1, abs=6 * np.sqrt(2 / len(together)))
    assert together.mean() == pytest.approx(0, abs=6 / np.sqrt(len(together)))


def test_the_scores_of_selection() -> None:
    watch = Watch()
    shares = EXACT.counts / EXACT.rows
    shares[WORKLOAD.offsets[3]] += 0.1
    chosen = select_groups(EXACT, shares, 2000, [2, 3, 4], 2, 2**40, accountant=watch, noise=watch)
    assert chosen.groups == (2, 3)
    assert chosen.private
    assert [event[0] for event in watch.events] == ["charge", "select"]
    assert watch.events[1][1] == [0, 200, 0]
    assert watch.events[0][2] == "noisy top-k"


def test_one_person_moves_no_score_by_more_than_one() -> None:
    table = datasets.census(300, seed=5).select(SCHEMA.names)
    people = datasets.census(300, seed=6).select(SCHEMA.names)
    rng = np.random.default_rng(0)
    shares = rng.random(WORKLOAD.size)
    scores = []
    for row in range(60):
        other = pa.concat_tables([table.slice(0, 299), people.slice(row, 1)])
        watch = Watch()
        exact = exact_counts(WORKLOAD, other)
        everything = list(range(WORKLOAD.num_groups))
        select_groups(exact, shares, 300, everything, 1, 2**40, accountant=watch, noise=watch)
        scores.append(watch.events[1][1])
    spread = np.ptp(np.array(scores), axis=0)
    assert spread.max() == 1


def test_a_measured_total() -> None:
    accountant = LocalAccountant(BUDGET, "add-remove")
    total = release_n_records(EXACT, BUDGET.units, accountant=accountant, noise=SecureNoise())
    assert abs(total.rows - 2000) < 10 * total.scale
    assert total.private
    tiny = release_n_records(EXACT, 10, accountant=Watch(), noise=InsecureSeededNoise(3))
    assert tiny.rows >= 1
    assert not tiny.private


SOURCES = sorted(Path(private_gsd.__file__).parent.rglob("*.py"))


def test_noise_is_drawn_in_the_privacy_package_alone() -> None:
    """Who imports OpenDP, and who calls a normal, Laplace or Gumbel sampler."""
    drawing = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(a.name for a in node.names)]
                if any(name.split(".")[0] == "opendp" for name in names):
                    drawing.add(path)
            samplers = ("gumbel", "laplace", "gauss", "normalvariate")
            if isinstance(node, ast.Attribute) and node.attr in samplers:
                drawing.add(path)
    package = Path(private_gsd.__file__).parent
    assert {path.relative_to(package).parts[0] for path in drawing} == {"privacy"}


def test_exact_counts_are_opened_in_the_privacy_package_alone() -> None:
    """Outside of it and of answering itself nobody reads ``.counts`` of ``ExactCounts``."""
    opening = {
        path.name
        for path in SOURCES
        if "ExactCounts" in path.read_text() and ".counts" in path.read_text()
    }
    assert opening <= {"answering.py", "release.py", "measurement.py"}
    text = (Path(private_gsd.__file__).parent / "measurement.py").read_text()
    assert "exact.counts" not in text


PROJECTORS = ("genetic", "baselines", "projection.py")


def sensitive_imports(text: str) -> list[str]:
    """What a module imports of the sensitive side."""
    sensitive = ("private_gsd.counting.exact", "private_gsd.privacy", "private_gsd.data.sources")
    found = []
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        found += [name for name in names if name.startswith(sensitive)]
    return found


def test_projectors_see_measurements_and_nothing_before_them() -> None:
    """What makes tables of measurements imports neither exact answers nor what opens them."""
    assert sensitive_imports("from private_gsd.counting.exact import ExactCounts")
    assert sensitive_imports("def f():\n    from private_gsd import answering")
    assert sensitive_imports("import private_gsd.privacy.measuring")
    assert not sensitive_imports("from private_gsd.measurements.measurements import Measurements")
    package = Path(private_gsd.__file__).parent
    for path in SOURCES:
        if path.relative_to(package).parts[0] in PROJECTORS:
            assert not sensitive_imports(path.read_text()), path
