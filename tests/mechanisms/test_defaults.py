"""Defaults: workload, mechanism and number of rows, from public facts alone."""

from __future__ import annotations

from dataclasses import replace

from private_gsd import (
    AIM,
    MST,
    Adaptive,
    Boolean,
    Categorical,
    Layered,
    NumbersFirst,
    OneShot,
    Schema,
    datasets,
)
from private_gsd.mechanisms.base import Task
from private_gsd.mechanisms.defaults import (
    choose_mechanism,
    choose_rows,
    choose_specs,
    default_rows,
    few_triples,
)
from private_gsd.mechanisms.numbers_first import num_fine
from private_gsd.privacy.allocation import allocate
from private_gsd.privacy.budget import RhoBudget
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.workloads.specs import default_specs, workload_of
from tests.fitting import SCHEMA, TABLE


def noise_of(schema: Schema, specs: list[str], budget: RhoBudget) -> float:
    """The noise on marginals that get four fifths of a budget."""
    mechanism = NumbersFirst()
    candidates = mechanism.candidates(workload_of(schema, specs))
    marginals = candidates.select(range(num_fine(candidates), candidates.num_groups))
    plan = mechanism.plan(Task(candidates, candidates, budget))
    left = replace(budget, units=sum(plan.units[num_fine(candidates) :]))
    return max(group.scale for group in allocate(marginals, left).groups)


def test_auto_chooses_a_mechanism_from_public_facts() -> None:
    """Layered where three columns are asked together, one-shot elsewhere."""
    for specs, name in (
        (["categorical:2"], "one-shot"),
        (["categorical:3"], "layered"),
    ):
        assert choose_mechanism(workload_of(SCHEMA, specs)).name == name
    cases: list[tuple[float, list[str] | None, str]] = [
        (10.0, ["categorical:2"], "one-shot"),
        (0.02, ["categorical:3"], "layered"),
        (0.02, None, "numbers-first"),
    ]
    for epsilon, asked, name in cases:
        synth = Synthesizer(SCHEMA, epsilon, workload=asked, rows=60)
        assert synth.fit(TABLE).release_.settings.mechanism.name == name


def test_auto_chooses_questions_from_public_facts() -> None:
    """Triples, pairs or single columns, by the noise that they would have."""
    schema, budget = datasets.census_schema(), RhoBudget.from_epsilon(1.0, 1e-6)
    singles, pairs, triples = (default_specs(schema, k) for k in (1, 2, 3))
    assert (singles[0], pairs[2], triples[0]) == ("categorical:1", "numeric:2", "categorical:3")
    on_triples = noise_of(schema, triples, budget)
    assert choose_specs(schema, budget, int(on_triples * 51)) == triples
    assert choose_specs(schema, budget, int(on_triples * 49)) == pairs
    on_pairs = noise_of(schema, pairs, budget)
    assert choose_specs(schema, budget, int(on_pairs * 5.1)) == pairs
    assert choose_specs(schema, budget, int(on_pairs * 4.9)) == singles
    # The same of neighbouring tables: the number of rows is all that is looked at.
    few = Synthesizer(SCHEMA, 0.01, rows=60).fit(TABLE)
    many = Synthesizer(SCHEMA, 50.0, rows=60).fit(TABLE)
    assert few.release_.workload.size < many.release_.workload.size


def test_many_triples_are_not_asked_by_default() -> None:
    wide = Schema([Boolean(f"b{number}") for number in range(30)])
    assert not few_triples(wide)
    assert few_triples(Schema(wide.columns[:19]))  # 969 of them
    large = [Categorical(f"c{number}", values=[str(v) for v in range(102)]) for number in range(3)]
    assert not few_triples(Schema(large))
    assert not few_triples(Schema(wide.columns[:2]))
    generous = RhoBudget.from_epsilon(100.0, 1e-6)
    assert choose_specs(wide, generous, 10**9) == ["categorical:2"]


def test_rows_by_the_noise() -> None:
    """Sixty within a standard deviation of the least noise, from 5,000 to 20,000."""
    asked = workload_of(SCHEMA, ["categorical:2", "categorical:3"])
    budget = RhoBudget.from_epsilon(1.0, 1e-9)
    noise = allocate(asked, budget).groups[0].scale
    layered = Layered()
    for share, rows in ((1 / 50, 5000), (1 / 200, 12_000), (1 / 10_000, 20_000)):
        n_records = round(noise / share)
        assert choose_rows(OneShot(), asked, budget, n_records) == rows
        # Pairs have most of the budget.
        assert choose_rows(layered, asked, budget, n_records) >= rows
        for selective in (Adaptive(), MST(), AIM()):
            assert choose_rows(selective, asked, budget, n_records) == 5000
    assert choose_rows(OneShot(), asked, budget, None) == 5000


def test_a_table_has_as_many_rows_as_the_data() -> None:
    """Up to a bound, and no fewer than are fitted."""
    found = [default_rows(12_000, n) for n in (1, 11_999, 12_001, 99_999, 10**9)]
    assert found == [12_000, 12_000, 12_001, 99_999, 100_000]
