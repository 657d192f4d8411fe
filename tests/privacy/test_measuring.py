"""Measuring: paid before noise is drawn, with the sensitivity of the workload, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_gsd
from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.privacy.accountant import LedgerAccountant, LocalAccountant
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.measuring import release_counts, release_n_records
from private_gsd.privacy.noise import (
    InsecureSeededNoise,
    SecureNoise,
    gaussian_scale,
)
from tests.privacy.census_counts import BUDGET, EXACT, WORKLOAD, Watch

SOURCES = sorted(Path(private_gsd.__file__).parent.rglob("*.py"))


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
    assert watch.events == []


def test_a_charge_says_that_noise_is_insecure(tmp_path: Path) -> None:
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


def test_a_measured_number_of_records() -> None:
    accountant = LocalAccountant(BUDGET, "add-remove")
    counted = release_n_records(EXACT, BUDGET.units, accountant=accountant, noise=SecureNoise())
    assert abs(counted.n_records - 2000) < 10 * counted.scale
    assert counted.private
    tiny = release_n_records(EXACT, 10, accountant=Watch(), noise=InsecureSeededNoise(3))
    assert tiny.n_records >= 1
    assert not tiny.private


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
    """Nobody else reads ``.counts`` of ``ExactCounts``, but counting and evaluations of it."""
    package = Path(private_gsd.__file__).parent
    opening = {
        path.relative_to(package).as_posix()
        for path in SOURCES
        if "ExactCounts" in path.read_text() and re.search(r"\.counts\b", path.read_text())
    }
    doors = {"privacy/measuring.py", "privacy/selection.py"}
    counting = {"counting/exact.py", "counting/comparison.py"}
    assert opening == {"measurements/measurements.py", *counting, *doors}
    assert "exact.counts" not in (package / "measurements" / "measurements.py").read_text()


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
    """What makes tables of measurements imports neither exact counts nor what opens them."""
    assert sensitive_imports("from private_gsd.counting.exact import ExactCounts")
    assert sensitive_imports("def f():\n    from private_gsd.privacy import noise")
    assert sensitive_imports("import private_gsd.privacy.measuring")
    assert not sensitive_imports("from private_gsd.measurements.measurements import Measurements")
    package = Path(private_gsd.__file__).parent
    for path in SOURCES:
        if path.relative_to(package).parts[0] == "projection":
            assert not sensitive_imports(path.read_text()), path
