"""AIM: what it selects, how its rounds grow, and what it leaves out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from private_gsd import (
    AIM,
    Boolean,
    Categorical,
    Ledger,
    Schema,
    Synthesizer,
)
from private_gsd import workloads as asked
from private_gsd.counting.comparison import query_errors
from private_gsd.counting.exact import count
from private_gsd.mechanisms import Task
from private_gsd.mechanisms.aim import feasible, weights_of
from private_gsd.mechanisms.base import WhyInfeasible
from private_gsd.mechanisms.candidates import scopes_of
from private_gsd.privacy.budget import RhoBudget
from private_gsd.projection import projector_of
from private_gsd.runs.run_folder import RunFolder
from private_gsd.workloads import Workload
from private_gsd.workloads.specs import workload_of
from tests.mechanisms.tables import copies, names_of


def test_aim_selects_what_columns_do_not_explain(tmp_path: Path) -> None:
    schema, table = copies()
    settings: dict[str, Any] = {"rows": 1000, "workload": ["categorical:2"]}
    synth = Synthesizer(schema, 5.0, mechanism="aim", **settings)
    synth.fit(table, release=tmp_path / "r")
    assert names_of(synth.release_, AIM())[0] == "a x b"
    questions = workload_of(schema, ["categorical:2"])
    alone = Synthesizer(schema, 5.0, rows=1000, workload=["categorical:1"]).fit(table).sample()
    errors = query_errors(questions, table, synth.sample())
    without = query_errors(questions, table, alone)
    assert errors.max < 0.05 < 0.15 < without.max
    assert errors.mean < 0.6 * without.mean


def test_rounds_have_four_times_as_much_where_little_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the rule itself, from all tables of a run."""
    schema, people = copies(800)
    tables: dict[int, np.ndarray] = {}
    real = RunFolder.save_table

    def watched(folder: RunFolder, number: int, table: np.ndarray) -> None:
        tables[number] = table
        real(folder, number, table)

    monkeypatch.setattr(RunFolder, "save_table", watched)
    synth = Synthesizer(schema, 2.0, workload=["categorical:2"], mechanism="aim", rows=300).fit(
        people, release=tmp_path / "r"
    )
    measured = synth.release_.measurements()
    assert measured is not None
    with Ledger(tmp_path / "r.ledger.db", create=True) as ledger:
        units = [charge.units for charge in ledger.charges("table")]
    columns, rounds = units[0], list(zip(units[1::2], units[2::2], strict=True))
    total = sum(units)
    assert columns == pytest.approx(0.9 * total / 16, rel=1e-9)
    assert sum(rounds[0]) == pytest.approx(total / 64, rel=1e-9)
    assert len(rounds) == len(tables) - 1
    quiet = []
    everything = AIM().candidates(synth.release_.workload)
    for number, [group] in enumerate(synth.release_.selections(), start=1):
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
    parts = AIM().candidates(questions)
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


def task_of(workload: Workload, why_infeasible: WhyInfeasible | None) -> Task:
    return Task(workload, workload, RhoBudget.from_rho(1.0, 1e-6), "replace-one", why_infeasible)


def test_aim_leaves_out_what_would_make_a_model_too_large() -> None:
    schema = Schema([Boolean(name) for name in "abcd"])
    parts = AIM().candidates(asked.categorical_marginals(schema, 3))
    abc = scopes_of(parts).index((0, 1, 2))
    known = [parts.describe(group) for group in (0, 1, 2, 3, abc)]
    looked: list[tuple[set[str], float]] = []

    def why_infeasible(groups: Workload, share: float = 1.0) -> str | None:
        words = {groups.describe(group) for group in range(groups.num_groups)}
        looked.append((words, share))
        return None if "a x d" in words else "too large"

    found = [
        parts.describe(group) for group in feasible(task_of(parts, why_infeasible), [abc], 0.25)
    ]
    # Nothing new is joined within a x b x c, which was measured; all else is asked about.
    assert found == [*"abcd", "a x b", "a x c", "a x d", "b x c", "a x b x c"]
    assert {share for _, share in looked} == {0.25}
    assert all(set(known) < words and len(words) == len(known) + 1 for words, _ in looked)
    everything = feasible(task_of(parts, None), [], 0.1)
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
