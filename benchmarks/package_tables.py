"""Tables that ship in Python packages, and an income whose upper bound is too large.

    pip install statsmodels
    python -m benchmarks.package_tables [--seeds 3] [--epsilons 0.5 1 3] [--folder FOLDER]

Default settings, and schemas that a new user would write from the notes of the data sets: ``fair``
(extramarital affairs), ``randhie`` (visits to doctors) and ``anes96`` (voters), all of statsmodels.
Synthetic tables are made of four fifths of the rows. Reported, as means over the seeds: shares of
zeros; the Kolmogorov-Smirnov distance of each number to those four fifths; means of a column by
group, with the mean absolute difference to the real mean; and a regression: its coefficients, how
many of those that are significant on real rows (robust, z beyond 3) keep their sign, and the
share of the deviance of the held-out rows that it explains.

Then 30,000 people, 13 % of them without income: their incomes at ε = 1 with an upper bound of
200,000 and of 10 and 100 times as much.

With ``--folder``, tables are kept there as Parquet files, and those already there, perhaps made by
another version, are not made again. The noise is seeded; a release would not be private.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from rich.console import Console
from rich.table import Table
from scipy.stats import ks_2samp
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from private_gsd import Categorical, Column, Integer, Real, Schema, Synthesizer

SIGNIFICANT, TINY = 3, 1e-9
PEOPLE = 30_000
BOUNDS = (200_000, 2_000_000, 20_000_000)  # of the income
Frames = list[pd.DataFrame]


def scales(lower: int, upper: int, *names: str) -> list[Categorical]:
    """Columns of numbered answers."""
    return [Categorical(name, values=list(range(lower, upper + 1))) for name in names]


@dataclass(frozen=True)
class Case:
    """A table, its public schema, and what people ask of it; means by group are of ``key``."""

    name: str
    columns: list[Column]
    key: str
    groups: tuple[str, ...]
    family: sm.families.Family
    outcome: str
    inputs: tuple[str, ...] = ()  # of the regression; all other columns by default

    def rows(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Four fifths of the rows, and the others."""
        frame = getattr(sm.datasets, self.name).load_pandas().data
        kinds = {each.name: float if type(each) is Real else int for each in self.columns}
        frame = frame[list(kinds)].astype(kinds)
        order = np.random.default_rng(0).permutation(len(frame))
        fifth = len(frame) // 5
        return frame.iloc[order[fifth:]], frame.iloc[order[:fifth]]

    def variables(self, frame: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame]:
        """The outcome (affairs: any or none) and inputs (population: its logarithm)."""
        others = [each.name for each in self.columns if each.name != self.outcome]
        inputs = frame[list(self.inputs) or others].astype(float)
        outcome = frame[self.outcome].astype(float)
        inputs.insert(0, "const", 1.0)
        if "popul" in inputs:
            inputs["popul"] = np.log(inputs["popul"] + 0.1)
        return (outcome > 0).astype(float) if self.outcome == "affairs" else outcome, inputs

    def regression(self, frame: pd.DataFrame) -> sm.GLM:
        """The fitted regression, with robust standard errors."""
        with warnings.catch_warnings():  # a synthetic outcome may be the same in all rows
            warnings.simplefilter("ignore", PerfectSeparationWarning)
            return sm.GLM(*self.variables(frame), family=self.family).fit(cov_type="HC1")

    def explained(self, fitted: sm.GLM, held_out: pd.DataFrame) -> float:
        """The share of the deviance of held-out rows that a regression explains."""
        truth, inputs = self.variables(held_out)
        null = self.family.deviance(truth, np.full(len(truth), truth.mean()))
        return float(1 - self.family.deviance(truth, fitted.predict(inputs)) / null)


CASES = (
    Case(
        "fair",
        [
            *scales(1, 5, "rate_marriage"),
            Real("age", lower=15, upper=50, decimals=1),
            Real("yrs_married", lower=0, upper=30, decimals=1),
            Real("children", lower=0, upper=10, decimals=1),
            *scales(1, 4, "religious"),
            Integer("educ", lower=5, upper=20),
            *scales(1, 6, "occupation", "occupation_husb"),
            Real("affairs", lower=0, upper=60),
        ],
        key="affairs",
        groups=("rate_marriage <= 2", "rate_marriage == 5", "religious == 1", "yrs_married > 15"),
        family=sm.families.Binomial(),
        outcome="affairs",
    ),
    Case(
        "randhie",
        [
            Integer("mdvis", lower=0, upper=100),
            Real("lncoins", lower=0, upper=5),
            *scales(0, 1, "idp"),
            Real("lpi", lower=0, upper=8),
            Real("fmde", lower=0, upper=10),
            Real("physlm", lower=0, upper=1),
            Real("disea", lower=0, upper=60),
            *scales(0, 1, "hlthg", "hlthf", "hlthp"),
        ],
        key="mdvis",
        groups=("idp == 1", "lncoins > 4", "physlm == 0", "physlm > 0.5", "disea > 20"),
        family=sm.families.Poisson(),
        outcome="mdvis",
    ),
    Case(
        "anes96",
        [
            Integer("popul", lower=0, upper=10_000),
            Integer("TVnews", lower=0, upper=7),
            *scales(1, 7, "selfLR", "ClinLR", "DoleLR"),
            *scales(0, 6, "PID"),
            Integer("age", lower=18, upper=100),
            *scales(1, 7, "educ"),
            Integer("income", lower=1, upper=24),
            *scales(0, 1, "vote"),
        ],
        key="popul",
        groups=("PID <= 1", "PID >= 5", "vote == 1", "educ <= 3", "age < 35", "age >= 65"),
        family=sm.families.Gaussian(),
        outcome="PID",
        inputs=("popul", "selfLR", "age", "educ", "income"),
    ),
)


def synthetic(
    real: pd.DataFrame, schema: Schema, epsilon: float, seeds: int, folder: Path | None, name: str
) -> Frames:
    """A table for each seed by default settings, or those in the folder."""
    frames = []
    for seed in range(seeds):
        file = folder and folder / f"{name}-{epsilon:g}-{seed}.parquet"
        if file and file.exists():
            frames.append(pd.read_parquet(file).astype(real.dtypes))
            continue
        synth = Synthesizer(schema, epsilon, random_state=seed)
        made = synth.fit(real, insecure_noise_seed=seed).sample()
        frames.append(made.astype(real.dtypes))  # numbered answers come as categories
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            frames[-1].to_parquet(file)
    return frames


def mean(statistic: Callable[[pd.DataFrame], float], frames: Frames, digits: int = 3) -> str:
    """The mean of a statistic over tables, as text."""
    return f"{np.mean([statistic(each) for each in frames]):,.{digits}f}"


def zeros(name: str) -> Callable[[pd.DataFrame], float]:
    """The share of zeros of a column."""
    return lambda frame: float(np.mean(frame[name] == 0))


def distance(real: pd.DataFrame, name: str) -> Callable[[pd.DataFrame], float]:
    """The Kolmogorov-Smirnov distance of a column to the real one."""
    return lambda frame: float(ks_2samp(real[name], frame[name]).statistic)


def report(case: Case, made: dict[str, Frames], console: Console) -> None:
    """Print all that is asked of one table."""
    real, held_out = case.rows()
    columns = Table(case.name, "real", "held out", *made, title="zeros, and KS of numbers")
    everything = [[real], [held_out], *made.values()]
    columns.add_row("rows", *(mean(len, each, 0) for each in everything))
    numbers = [each.name for each in case.columns if not isinstance(each, Categorical)]
    for name in numbers:
        columns.add_row(f"{name}: zeros", *(mean(zeros(name), each) for each in everything))
        columns.add_row("KS", *(mean(distance(real, name), each) for each in everything))
    groups = Table(f"mean {case.key}", "rows", "real", *made, title="means by group")
    for group in (f"{case.key} >= 0", *case.groups):
        texts, chosen = [], real.query(group)[case.key]
        for frames in made.values():
            means = np.array([each.query(group)[case.key].mean() for each in frames])
            texts.append(f"{means.mean():.2f} ±{np.abs(means - chosen.mean()).mean():.2f}")
        groups.add_row(group, str(len(chosen)), f"{chosen.mean():.2f}", *texts)

    fits = [[case.regression(each) for each in frames] for frames in made.values()]
    truth = case.regression(real)
    strong = (truth.tvalues.abs() > SIGNIFICANT) & (truth.params.index != "const")
    regression = Table("coefficient", "real", "z", *made, title=f"regression of {case.outcome}")
    for name, value in truth.params.items():
        found = [f"{np.mean([fit.params[name] for fit in each]):.3f}" for each in fits]
        regression.add_row(str(name), f"{value:.3f}", f"{truth.tvalues[name]:.1f}", *found)
    kept = [[(fit.params * truth.params > TINY)[strong] for fit in each] for each in fits]
    found = [f"{np.mean(each) * strong.sum():.1f}" for each in kept]
    regression.add_row("signs kept", f"of {strong.sum()}", "", *found, style="bold")
    scores = [[case.explained(fit, held_out) for fit in each] for each in ([truth], *fits)]
    best, *others = [f"{np.mean(each):.1%}" for each in scores]
    regression.add_row("explained", best, "", *others, style="bold")
    console.print(columns, groups, regression)


def people() -> pd.DataFrame:
    """People with an income that depends on their sex, region and age; 13 % have none."""
    rng = np.random.default_rng(0)
    sex, region = rng.integers(0, 2, PEOPLE), rng.integers(0, 8, PEOPLE)
    age = rng.integers(18, 90, PEOPLE)
    logs = np.log(27_000) + 0.2 * (sex - 0.5) + 0.05 * (region - 3.5) - ((age - 50) / 60) ** 2 + 0.1
    income = np.minimum(np.rint(np.exp(logs + rng.normal(0, 0.7, PEOPLE))), BOUNDS[0])
    income[rng.random(PEOPLE) < 0.13] = 0
    return pd.DataFrame({"sex": sex, "region": region, "age": age, "income": income.astype(int)})


def main() -> None:
    """Make tables and report."""
    parser = argparse.ArgumentParser(description="Tables that ship in Python packages.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--folder", type=Path, help="where synthetic tables are kept")
    options = parser.parse_args()
    seeds, folder, console = options.seeds, options.folder, Console(width=120)
    for case in CASES:
        real, _ = case.rows()
        made, schema = {}, Schema(case.columns)
        for epsilon in options.epsilons:
            frames = synthetic(real, schema, epsilon, seeds, folder, case.name)
            made[f"ε = {epsilon:g}"] = frames
        report(case, made, console)

    real = people()
    tables = {"real rows": [real]}
    for bound in BOUNDS:
        numbers = [Integer("age", lower=18, upper=100), Integer("income", lower=0, upper=bound)]
        schema = Schema([*scales(0, 1, "sex"), *scales(0, 7, "region"), *numbers])
        tables[f"{bound:,}"] = synthetic(real, schema, 1.0, seeds, folder, f"income-{bound}")
    incomes = Table("upper bound", "mean", "zeros", "KS", title="income")
    for name, frames in tables.items():
        average = mean(lambda frame: frame["income"].mean(), frames, 0)
        others = [mean(each, frames) for each in (zeros("income"), distance(real, "income"))]
        incomes.add_row(name, average, *others)
    console.print(incomes)


if __name__ == "__main__":
    main()
