"""Figure 5: all pairs of categorical columns, one-shot, by the budget."""

from __future__ import annotations

from experiments.comparison import Comparison, System, comparison

FULL = Comparison(
    workload="categorical:2",
    systems=(
        System(name="GSD", projector="gsd", rows=2000),
        System(name="GSD, not denoised", projector="gsd:denoise=false", rows=2000),
        System(name="RP", projector="rap", rows=50_000),
        System(name="GN", projector="gem", rows=50_000),
    ),
)
QUICK = Comparison(
    workload="categorical:2",
    systems=(
        System(name="GSD", projector="gsd", rows=500),
        System(name="RP", projector="rap:iterations=50,mixtures=100", rows=2000),
        System(
            name="GN", projector="gem:iterations=50,mixtures=100,learning_rate=0.003", rows=2000
        ),
    ),
    epsilons=(0.23, 1.0),
    seeds=1,
    reduced=("two budgets, one seed, 500 rows of GSD, and a twentieth of the steps of RP and GN",),
)

EXPERIMENT = comparison(
    name="oneshot_categorical",
    shows="Figure 5: max and mean error on all 2-way categorical marginals, one-shot",
    claim="GSD is level with RP and GN.",
    full=FULL,
    quick=QUICK,
)
