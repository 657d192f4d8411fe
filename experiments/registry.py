"""All experiments by name, in the order of the docs."""

from __future__ import annotations

from experiments import (
    adaptive_categorical,
    bound,
    convergence,
    halfspace,
    machine_learning,
    oneshot_categorical,
    oneshot_tree,
    population,
    prefix,
    rates,
    relaxation,
)

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        prefix,
        halfspace,
        oneshot_categorical,
        oneshot_tree,
        adaptive_categorical,
        machine_learning,
        convergence,
        population,
        rates,
        relaxation,
        bound,
    )
}
