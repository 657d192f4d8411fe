"""Figure 7: all triples of categorical columns, adaptively, by the budget."""

from __future__ import annotations

from experiments.comparison import EPOCHS, Comparison, System, comparison

PAPER = Comparison(
    workload="categorical:3",
    systems=(
        System(name="GSD", projector="gsd", rows=2000, epochs=EPOCHS),
        System(name="RAP", projector="rap", rows=50_000, epochs=EPOCHS),
        System(name="GEM", projector="gem", rows=50_000, epochs=EPOCHS),
        System(name="PGM+EM", projector="pgm", rows=0, epochs=EPOCHS),
    ),
)
FULL = Comparison(
    workload="categorical:3",
    systems=(
        System(name="GSD", projector="gsd", rows=2000, epochs=(25, 50), seeds=1),
        System(name="RAP", projector="rap:iterations=100", rows=50_000, epochs=(25,), seeds=1),
        System(name="GEM", projector="gem:iterations=100", rows=50_000, epochs=(25,), seeds=1),
        System(name="PGM+EM", projector="pgm", rows=0, epochs=(10,), seeds=1),
    ),
    reduced=(
        "GSD runs with T = 25 and 50 and one seed alone",
        "RAP and GEM run with T = 25 and one seed alone, and 100 pairs of steps an epoch, not "
        "1,000",
        "PGM+EM runs with T = 10 and one seed alone: its model grows too large with more epochs",
    ),
)
QUICK = Comparison(
    workload="categorical:3",
    systems=(
        System(name="GSD", projector="gsd", rows=500, epochs=(5, 10)),
        System(name="RAP", projector="rap:iterations=30,mixtures=100", rows=2000, epochs=(3,)),
        System(
            name="GEM",
            projector="gem:iterations=30,mixtures=100,learning_rate=0.003",
            rows=2000,
            epochs=(3,),
        ),
        System(name="PGM+EM", projector="pgm:iterations=50", rows=0, epochs=(3,)),
    ),
    epsilons=(0.23, 1.0),
    seeds=1,
    reduced=("two budgets, one seed, T up to 10, and few steps of RAP, GEM and PGM+EM",),
)

EXPERIMENT = comparison(
    name="adaptive_categorical",
    shows="Figure 7: max error on all 3-way categorical marginals, adaptive",
    claim="GSD is level with RAP, GEM and PGM+EM.",
    paper=PAPER,
    full=FULL,
    quick=QUICK,
)
