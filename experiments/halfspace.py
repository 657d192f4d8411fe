"""Figure 4: random halfspaces, adaptively, by the budget."""

from __future__ import annotations

from experiments.comparison import EPOCHS, Comparison, System, comparison

PAPER = Comparison(
    workload="halfspace:200000",
    systems=(
        System(name="GSD", projector="gsd", rows=2000, epochs=EPOCHS),
        System(name="RAP++", projector="rap++", rows=1000, epochs=EPOCHS),
    ),
)
FULL = Comparison(
    workload="halfspace:200000",
    systems=(
        System(name="GSD", projector="gsd", rows=2000, epochs=(25, 100)),
        System(name="RAP++", projector="rap++", rows=1000, epochs=(25,)),
    ),
    seeds=1,
    reduced=("one seed", "GSD runs with T = 25 and 100 alone", "RAP++ runs with T = 25 alone"),
)
QUICK = Comparison(
    workload="halfspace:2000",
    systems=(
        System(name="GSD", projector="gsd", rows=500, epochs=(5, 10)),
        System(name="RAP++", projector="rap++:iterations=20,temperatures=5", rows=300, epochs=(3,)),
    ),
    epsilons=(0.23, 1.0),
    seeds=1,
    reduced=("2,000 halfspaces, two budgets, one seed, T up to 10, and hardly any steps of RAP++",),
)

EXPERIMENT = comparison(
    name="halfspace",
    shows="Figure 4: max and mean error on 200,000 random halfspaces, adaptive",
    claim="GSD has less max and less mean error than RAP++ at every budget.",
    paper=PAPER,
    full=FULL,
    quick=QUICK,
)
