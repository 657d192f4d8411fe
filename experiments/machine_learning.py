"""Figures 8 and 10: models that learn from synthetic rows, tested on real ones.

Four fifths of the rows are what synthetic tables are made of, the others what models are tested on.
Targets are the paper's four where the data has them (``acs:multitask``), and a few columns of
different kinds elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from experiments.comparison import EPSILONS, Comparison, System, made_by
from experiments.comparison import plan as plan_comparison
from experiments.data import GIVE_AWAY, Data
from experiments.drawing import OTHERS, STYLES, below, figure
from experiments.experiment import Config, Experiment, Row, Settings, averages
from private_gsd.evaluation.metrics.classifiers import MODELS
from private_gsd.evaluation.metrics.machine_learning import default_targets, learn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCORES = (("f1", "F1 score"), ("accuracy", "accuracy"))
REAL, NOTHING = "real rows", "most frequent class"


@dataclass(frozen=True, kw_only=True)
class Learning(Config):
    """What tables are made of, by whom.

    Attributes:
        trees: The first questions, all measured at once.
        halfspaces: The others, measured adaptively.
        systems: Who makes the tables; the epochs are those of halfspaces, which others leave out.
        epsilons: The budgets.
        queries: How many halfspaces, instead of the number in ``halfspaces``.
        only: The systems to run; all by default.
    """

    trees: str = "tree:2"
    halfspaces: str = "halfspace:200000"
    systems: tuple[System, ...]
    epsilons: tuple[float, ...] = EPSILONS
    queries: int = 0
    only: tuple[str, ...] = ()


def plan(config: Learning, data: Data | None) -> list[Settings]:
    """A run for each kind of question, system, budget and seed."""
    runs: list[Settings] = []
    at_once = tuple(replace(each, epochs=()) for each in config.systems)
    in_epochs = tuple(each for each in config.systems if each.epochs)
    for words, workload, once in (("BT", config.trees, True), ("HS", config.halfspaces, False)):
        asked = Comparison(
            workload=workload,
            systems=at_once if once else in_epochs,
            epsilons=config.epsilons,
            seeds=config.seeds,
            queries=0 if once else config.queries,
            only=config.only if once else tuple(set(config.only) & {e.name for e in in_epochs}),
        )
        if config.only and not asked.only:
            continue
        runs += [{"questions": words, **run} for run in plan_comparison(asked, data)]
    return runs


def prepare(data: Data) -> Data:
    """Rows held out, and no column that gives a target away."""
    kept = data.split().without(GIVE_AWAY.get(data.name, ()))
    return (
        kept
        if kept.targets
        else replace(kept, targets=tuple(default_targets(kept.schema, kept.matrix)))
    )


def perform(run: Settings, data: Data | None) -> list[Row]:
    """Scores of logistic regressions of each target: on this table, on real rows, on nothing."""
    assert data is not None
    made = made_by(run, data)
    tasks = learn(
        data.schema, made.matrix, data.matrix, data.holdout, data.targets, seed=run["seed"]
    )
    return [
        {
            "target": task.target,
            "trained_on": score.trained_on,
            "f1": score.f1_macro,
            "accuracy": score.accuracy,
            "search_seconds": made.seconds,
        }
        for task in tasks
        for score in task.scores
        if score.model == MODELS[0] or score.trained_on == "nothing"
    ]


def summary(rows: Sequence[Row]) -> list[Row]:
    """Scores by data, target and budget, averaged over seeds."""
    told = []
    for row in rows:
        trained = {"real": REAL, "nothing": NOTHING}.get(row["trained_on"])
        told.append({**row, "trained_on": trained or f"{row['system']} ({row['questions']})"})
    by = ("data", "target", "trained_on", "epsilon")
    return list(averages(told, by, ("f1", "accuracy")).values())


def draw(rows: Sequence[Row], path: Path) -> None:
    """For each data set a figure: F1 above accuracy, a column for each target."""
    table = summary(rows)
    kinds = list(dict.fromkeys(row["data"] for row in table))
    for data in kinds:
        mine = [row for row in table if row["data"] == data]
        draw_one(mine, path if len(kinds) == 1 else path.with_name(f"{path.name}_{data}"))


def draw_one(table: Sequence[Row], path: Path) -> None:
    """One data set's."""
    targets = list(dict.fromkeys(row["target"] for row in table))
    names = sorted(dict.fromkeys(row["trained_on"] for row in table), key=order)
    with figure(path, len(SCORES), len(targets), 2.5, 2.1) as panels:
        for column, target in enumerate(targets):
            for line, (score, words) in enumerate(SCORES):
                panel = panels[line, column]
                for name in names:
                    found = sorted(
                        (row["epsilon"], row[score])
                        for row in table
                        if (row["target"], row["trained_on"]) == (target, name)
                    )
                    panel.plot(*zip(*found, strict=True), label=name, **look(name))
                panel.ticklabel_format(axis="y", useOffset=False)
                if line == 0:
                    panel.set_title(target.replace(" (", "\n("))
                else:
                    panel.set_xlabel("privacy budget ε")
                if column == 0:
                    panel.set_ylabel(words)
        below(panels[0, 0], 3)


def order(name: str) -> tuple[bool, str]:
    """Systems first, then what they are held against."""
    return name in (REAL, NOTHING), name


def look(name: str) -> dict[str, str]:
    """Halfspaces are dashed; what systems are held against is grey."""
    if name in (REAL, NOTHING):
        return {"color": "#777777", "linestyle": "-" if name == REAL else ":", "marker": ""}
    system, _, questions = name.partition(" (")
    colour, mark = STYLES.get(system, (OTHERS[-1], "o"))
    return {"color": colour, "marker": mark, "linestyle": "-" if questions == "BT)" else "--"}


PAPER = Learning(
    systems=(
        System(name="GSD", projector="gsd", rows=2000, epochs=(50,)),
        System(name="GSD, not denoised", projector="gsd:denoise=false", rows=2000),
        System(name="RAP++", projector="rap++", rows=1000, epochs=(25,)),
    ),
)
FULL = Learning(
    systems=(
        System(name="GSD", projector="gsd", rows=2000, epochs=(25,)),
        System(name="GSD, not denoised", projector="gsd:denoise=false", rows=2000),
        System(name="RAP++", projector="rap++", rows=1000, epochs=(25,)),
    ),
    seeds=1,
    reduced=(
        "one seed",
        "halfspaces are asked with T = 25",
    ),
)
QUICK = Learning(
    systems=(
        System(name="GSD", projector="gsd", rows=500, epochs=(5,)),
        System(name="RAP++", projector="rap++:iterations=10,temperatures=4", rows=300, epochs=(2,)),
    ),
    halfspaces="halfspace:2000",
    epsilons=(0.23, 1.0),
    seeds=1,
    reduced=("2,000 halfspaces, two budgets, one seed, and hardly any steps of RAP++",),
)

EXPERIMENT = Experiment(
    name="machine_learning",
    shows="Figures 8 and 10: F1 score and accuracy of logistic regression on synthetic rows",
    claim=(
        "GSD with binary trees is a good choice among the synthetic tables; all are worse than "
        "real rows, even at ε = 1."
    ),
    paper=PAPER,
    full=FULL,
    quick=QUICK,
    plan=plan,
    perform=perform,
    draw=draw,
    summary=summary,
    prepare=prepare,
)
