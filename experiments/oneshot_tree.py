"""Figure 6: every categorical column by every number's binary tree, one-shot, by the budget."""

from __future__ import annotations

from experiments.comparison import Comparison, System, comparison

PAPER = Comparison(
    workload="tree:2",
    systems=(
        System(name="GSD", projector="gsd", rows=2000),
        System(name="GSD, not denoised", projector="gsd:denoise=false", rows=2000),
        System(name="RP", projector="rap", rows=50_000),
        System(name="GN", projector="gem", rows=50_000),
    ),
)
FULL = Comparison(
    workload="tree:2",
    systems=(
        System(name="GSD", projector="gsd", rows=2000),
        System(name="GSD, not denoised", projector="gsd:denoise=false", rows=2000),
        System(name="RP", projector="rap", rows=50_000, seeds=1),
        System(name="GN", projector="gem", rows=50_000, seeds=1),
    ),
    reduced=("RP and GN run with one seed",),
)
QUICK = Comparison(
    workload="tree:2",
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
    name="oneshot_tree",
    shows="Figure 6: max and mean error on all 2-way binary-tree marginals, one-shot",
    claim="GSD is level with RP and GN, without cutting numbers to pieces first.",
    paper=PAPER,
    full=FULL,
    quick=QUICK,
)
