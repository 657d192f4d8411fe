"""Simulated tables for examples, tests and benchmarks.

Nothing here is real: the census is a simulation, with no real person and no real survey behind it.
Its numbers are invented to be plausible, and its columns depend on each other.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from private_gsd.schema import Boolean, Categorical, Date, Datetime, Integer, Real, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from private_gsd.schema import Column

Array = npt.NDArray[Any]
Rng = np.random.Generator

# Rows are always simulated in whole chunks, each with its own generator. A short table is thus the
# beginning of a long one, whatever the batch size.
CHUNK_ROWS = 65_536


class _Job(NamedTuple):
    """An occupation; education is the typical level, pay the log of a full-time year's income."""

    name: str
    people: float
    education: float
    women: float
    pay: float
    remote: float
    losses: float
    industries: tuple[int, ...]


_JOBS = (
    _Job("manager", 6.0, 5.0, 0.38, 11.15, 0.25, 0.020, (33, 47, 65, 71)),
    _Job("engineer", 4.0, 5.5, 0.20, 11.00, 0.30, 0.004, (33, 21, 71)),
    _Job("software developer", 4.0, 5.3, 0.22, 11.05, 0.60, 0.008, (62, 65)),
    _Job("scientist", 1.5, 6.6, 0.45, 10.95, 0.30, 0.002, (71, 85)),
    _Job("physician", 1.5, 6.8, 0.50, 11.45, 0.05, 0.010, (87,)),
    _Job("nurse", 5.0, 4.6, 0.87, 10.65, 0.02, 0.001, (87,)),
    _Job("teacher", 6.0, 5.6, 0.72, 10.60, 0.10, 0.001, (85,)),
    _Job("accountant", 3.5, 5.0, 0.58, 10.80, 0.40, 0.010, (65, 71)),
    _Job("technician", 5.0, 4.0, 0.25, 10.55, 0.10, 0.004, (33, 21, 62)),
    _Job("office clerk", 10.0, 3.3, 0.72, 10.35, 0.30, 0.001, (84, 65, 71, 52)),
    _Job("sales worker", 9.0, 2.8, 0.57, 10.10, 0.08, 0.030, (47,)),
    _Job("care worker", 6.0, 2.8, 0.85, 10.00, 0.03, 0.004, (87, 96)),
    _Job("cook or waiter", 5.0, 2.2, 0.53, 9.90, 0.01, 0.020, (56,)),
    _Job("police or guard", 3.0, 3.3, 0.20, 10.50, 0.01, 0.000, (84, 96)),
    _Job("electrician or mechanic", 6.0, 3.2, 0.06, 10.50, 0.02, 0.015, (41, 33, 21)),
    _Job("builder", 5.0, 2.2, 0.04, 10.30, 0.01, 0.025, (41,)),
    _Job("driver", 5.0, 2.2, 0.08, 10.25, 0.01, 0.020, (52,)),
    _Job("farmer", 3.0, 2.4, 0.30, 10.00, 0.30, 0.120, (10,)),
    _Job("machine operator", 6.0, 2.0, 0.28, 10.20, 0.01, 0.001, (33,)),
    _Job("cleaner or labourer", 7.0, 1.3, 0.60, 9.85, 0.01, 0.005, (96, 56, 33, 41)),
)
_REGIONS = ("01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12")
_INDUSTRIES = (10, 21, 33, 41, 47, 52, 56, 62, 65, 71, 84, 85, 87, 96)
_MARITAL = ("single", "married", "cohabiting", "divorced", "widowed")
_TENURES = ("own", "mortgage", "rent", "free", "institution")
_EMPLOYMENT = ("employed", "unemployed", "student", "retired", "homemaker", "inactive")
_EDUCATION = (
    *("none", "primary", "lower secondary", "upper secondary"),
    *("vocational", "bachelor", "master", "doctorate"),
)
_OCCUPATIONS = tuple(job.name for job in _JOBS)
_CENSUS_DAY, _LAST_MINUTE = dt.date(2021, 6, 1), dt.datetime(2021, 8, 31, 23, 59)

_SCHEMA = Schema(
    [
        Categorical("region", values=_REGIONS, description="Region of residence"),
        Categorical("sex", values=("female", "male"), description="Sex"),
        Integer("age", lower=0, upper=99, description="Years of age on census day, 2021-06-01"),
        Date("birth_date", lower=dt.date(1921, 6, 2), upper=_CENSUS_DAY, description="Birth date"),
        Categorical("marital", values=_MARITAL, description="Marital status"),
        Boolean("citizen", description="Holds citizenship"),
        Integer("household_size", lower=1, upper=12, description="People in the household"),
        Integer("children", lower=0, upper=8, nullable=True, description="Own children at home"),
        Categorical("tenure", values=_TENURES, description="How the home is held"),
        Real("rent", lower=0, upper=1e4, decimals=2, nullable=True, description="Monthly rent"),
        Categorical("education", values=_EDUCATION, nullable=True, description="Highest level"),
        Boolean("in_school", description="Attends school or university"),
        Categorical("employment", values=_EMPLOYMENT, nullable=True, description="Main activity"),
        Categorical("occupation", values=_OCCUPATIONS, nullable=True, description="Work done"),
        Categorical("industry", values=_INDUSTRIES, nullable=True, description="Employer's code"),
        Integer("hours", lower=1, upper=99, nullable=True, description="Hours worked a week"),
        Integer("commute_minutes", lower=0, upper=180, nullable=True, description="Way to work"),
        Real(
            "income", lower=-1e4, upper=2e6, decimals=2, nullable=True, description="Yearly income"
        ),
        Boolean("veteran", nullable=True, description="Served in the armed forces"),
        Boolean("vision_difficulty", description="Serious difficulty seeing"),
        Boolean("hearing_difficulty", description="Serious difficulty hearing"),
        Boolean("mobility_difficulty", description="Serious difficulty walking"),
        Real("weight", lower=1, upper=500, decimals=1, description="Survey weight"),
        Datetime(
            "interviewed_at",
            lower=dt.datetime(2021, 6, 1),
            upper=_LAST_MINUTE,
            resolution="minute",
            description="When the interview took place",
        ),
    ]
)
_ARROW_SCHEMA = _SCHEMA.arrow_schema


def census_schema() -> Schema:
    """The public schema of the simulated census: 24 columns of all kinds.

    Returns:
        The schema that every table of ``census`` meets.
    """
    return _SCHEMA


def census(rows: int, seed: int = 0) -> pa.Table:
    """Simulate a census: invented people, no real person and no real survey.

    Nulls mean "not applicable": a child has no income, and only employed people an occupation.

    >>> census(1000).num_columns
    24

    Args:
        rows: The number of people. A short table is the beginning of a longer one.
        seed: Which population; the same seed gives the same people.

    Returns:
        A table with the columns and the Arrow types of ``census_schema``.
    """
    return pa.Table.from_batches(census_batches(rows, seed), schema=_ARROW_SCHEMA)


def census_batches(
    rows: int, seed: int = 0, batch_rows: int = CHUNK_ROWS
) -> Iterator[pa.RecordBatch]:
    """Simulate the same invented people as ``census``, in memory that does not grow with the rows.

    Args:
        rows: The number of people.
        seed: The seed of the population.
        batch_rows: The number of people in a batch; the last batch may have fewer.

    Returns:
        Batches that together are ``census(rows, seed)``; none if ``rows`` is 0.
    """
    # Checked here, since a generator raises only when its first batch is requested.
    for name, value, least in (("rows", rows, 0), ("seed", seed, 0), ("batch_rows", batch_rows, 1)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return _stream(int(rows), int(seed), int(batch_rows))


def _stream(rows: int, seed: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    waiting = _ARROW_SCHEMA.empty_table()
    for start in range(0, rows, CHUNK_ROWS):
        # The child that SeedSequence(seed).spawn would give at this position.
        child = np.random.SeedSequence(seed, spawn_key=(start // CHUNK_ROWS,))
        chunk = _simulate(Rng(np.random.PCG64(child))).slice(0, rows - start)
        waiting = pa.concat_tables([waiting, chunk])
        last = start + CHUNK_ROWS >= rows
        while waiting.num_rows >= batch_rows or (last and waiting.num_rows):
            yield from waiting.slice(0, batch_rows).combine_chunks().to_batches()
            waiting = waiting.slice(batch_rows)


def _weights(base: npt.ArrayLike, *tilts: npt.ArrayLike) -> Array:
    """Weights of choices (last axis) by group (first axes): a base, and a factor for each axis."""
    table = np.asarray(base, dtype=np.float64)
    for tilt in tilts:
        table = table[..., None, :] * np.asarray(tilt)
    return table


def _draw(rng: Rng, weights: Array, *groups: Array) -> Array:
    """Draw a choice for every row, with the weights of the row's groups."""
    row: Array = np.zeros(CHUNK_ROWS, dtype=np.int64)
    for size, group in zip(weights.shape[:-1], groups, strict=True):
        row = row * size + group
    sums = weights.reshape(-1, weights.shape[-1]).cumsum(axis=1)
    uniform = rng.random(CHUNK_ROWS)
    # One pass over all rows for each choice is faster than a binary search for each row.
    choice = np.zeros(CHUNK_ROWS, dtype=np.int64)
    for bound in (sums / sums[:, -1:]).T[:-1].copy():
        choice += uniform >= bound.take(row)
    return choice


def _flag(rng: Rng, probability: Array | float) -> Array:
    return rng.random(CHUNK_ROWS) < probability


def _heap(rng: Rng, values: Array, step: int, share: float) -> Array:
    """Whole numbers, of which a share is rounded to a step, as in answers to surveys."""
    return np.where(_flag(rng, share), np.rint(values / step) * step, np.rint(values))


# The parameters of the simulation. Weights need not sum to 1; shifts are of a logarithm.
_AGES = np.arange(100)
_FIRST_BIRTH, _LAST_BIRTH = (
    np.array([dt.date(last - age, 6, day) for age in _AGES.tolist()], dtype="datetime64[D]")
    for last, day in ((2020, 2), (2021, 1))
)
_KNOTS = (14, 18, 22, 30, 40, 50, 60, 70, 85)


def _by_age(*curves: tuple[float, ...]) -> Array:
    """For each age, curves through the values at the ``_KNOTS``, constant outside them."""
    return np.stack([np.interp(_AGES, _KNOTS, curve) for curve in curves], axis=-1)


_POPULATION = _weights((18, 14, 12, 11, 9, 8, 7, 6, 5, 4, 3, 2))
_URBAN = np.array((95, 75, 60, 55, 70, 45, 40, 50, 30, 35, 20, 25)) / 100
_REGION_SHIFT = np.array((24, 10, 5, 0, 12, -5, -8, 2, -12, -10, -18, -15)) / 100
_FIVE_YEARS = _weights(
    (52, 54, 56, 57, 60, 64, 67, 68, 66, 64, 65, 68, 66, 58, 48, 37, 26, 15, 6, 1.5),
    np.exp(np.outer((0.15, -0.15), np.linspace(-1, 1, 20))),  # towns are younger
)
_MALE = np.interp(_AGES, (0, 50, 75, 99), (0.513, 0.5, 0.45, 0.25))
_FRAIL, _SERVED, _CHILDREN, _OTHERS, _LEARNT, _SKILL = _by_age(
    (0.015, 0.02, 0.02, 0.03, 0.045, 0.08, 0.14, 0.25, 0.6),
    (0.0, 0.005, 0.03, 0.06, 0.07, 0.09, 0.14, 0.3, 0.45),  # in the armed forces, if a man
    (0.0, 0.03, 0.2, 0.9, 1.6, 1.2, 0.4, 0.08, 0.02),
    (1.7, 1.9, 1.3, 0.5, 0.3, 0.25, 0.2, 0.15, 0.15),  # at home, but neither partner nor child
    (0.0, 0.0, 0.0, 0.2, 0.15, 0.0, -0.25, -0.6, -1.0),  # education was shorter in the past
    (-0.9, -0.8, -0.6, -0.2, 0.0, 0.08, 0.05, -0.1, -0.3),  # pay grows with experience
).T
_MARRIAGE = _weights(
    _by_age(
        (100, 97, 85, 45, 22, 15, 11, 7, 5),
        (0, 0.5, 4, 35, 56, 60, 62, 60, 38),
        (0, 2.5, 11, 17, 11, 7, 4, 2, 1),
        (0, 0, 0.5, 4, 11, 17, 18, 14, 7),
        (0, 0, 0, 0.2, 0.6, 2, 5, 14, 49),
    ),
    ((0.9, 1, 1, 1.1, 1.6), (1.1, 1, 1, 0.9, 0.45)),  # women outlive their husbands
)
_PARENTHOOD = np.array((0.2, 1.2, 0.9, 0.7, 0.4))
_AT_SCHOOL = np.interp(
    _AGES, (2, 3, 5, 6, 15, 16, 25, 40), (0, 0.5, 0.9, 0.99, 0.99, 0.3, 0.1, 0.01)
)
# Thresholds of a normal score between the levels, and the highest possible level at each age.
_EDUCATION_CUTS = np.array((-2.3, -1.7, -1.0, 0.1, 0.6, 1.3, 2.3))
_REACHED = np.searchsorted((11, 15, 18, 20, 21, 23, 26), _AGES, side="right")
_ACTIVITY = _weights(
    _by_age(
        (0, 18, 50, 80, 84, 82, 62, 12, 1.5),
        (0, 3, 9, 6, 4.5, 4.5, 4, 0.5, 0),
        (100, 75, 34, 4, 1, 0.4, 0.1, 0, 0),
        (0, 0, 0, 0, 0.2, 1, 22, 84, 95),
        (0, 0.5, 3, 6, 7, 6, 5, 2, 1),
        (0, 3.5, 5, 4, 4.5, 6.5, 9, 4, 3),
    ),
    ((0.95, 0.9, 1.1, 0.95, 1.8, 1), (1.1, 1.1, 0.9, 1, 0.2, 1)),  # women, men
    [(0.6 + 0.15 * level, 1.3 - 0.1 * level, 1, 1, 1, 1) for level in range(len(_EDUCATION))],
    ((1, 1, 1, 1, 1, 1), (0.35, 1, 0.8, 1.2, 1, 4)),  # without and with difficulty walking
)
_OCCUPATION = _weights(
    [
        [job.people * np.exp(-0.5 * (job.education - level) ** 2) for job in _JOBS]
        for level in range(len(_EDUCATION))
    ],
    ([job.women for job in _JOBS], [1 - job.women for job in _JOBS]),
)
_INDUSTRY = _weights([[0.02 + (code in job.industries) for code in _INDUSTRIES] for job in _JOBS])
_PAY, _REMOTE, _LOSSES = np.array([(job.pay, job.remote, job.losses) for job in _JOBS]).T
_BENEFIT = np.array((0, 9.0, 8.5, 9.7, 8.6, 9.2))  # log income of those without work
_PENNILESS = np.array((0, 0.25, 0.4, 0.02, 0.6, 0.35))
_TENURE = _weights(
    _by_age(
        (22, 26, 20, 15, 20, 30, 45, 62, 64),
        (42, 40, 22, 33, 47, 45, 32, 17, 5),
        (31, 29, 50, 48, 29, 21, 19, 17, 18),
        (4, 4, 7, 4, 3, 3, 3, 2.5, 4),
        (0.3, 0.8, 2.5, 0.6, 0.6, 0.7, 0.8, 1.2, 5),
    ),
    ((1, 1, 1, 1, 1), (0.75, 0.95, 1.6, 0.9, 1)),  # country, town
    ((0.7, 0.6, 1.7, 1.3, 1.5), (1, 1, 1, 1, 1), (1.3, 1.4, 0.55, 0.7, 0.6)),  # standing
    ((1, 1, 1, 1, 1), (1, 0.8, 1.1, 1, 6)),  # without and with difficulty walking
)


def _simulate(rng: Rng) -> pa.Table:
    """Simulate one chunk of people, each column given the columns before it."""
    size = CHUNK_ROWS
    region = _draw(rng, _POPULATION)
    urban = _flag(rng, _URBAN[region])
    age = 5 * _draw(rng, _FIVE_YEARS, urban) + rng.integers(0, 5, size)
    days = (_LAST_BIRTH - _FIRST_BIRTH).astype(np.int64) + 1
    birth = _FIRST_BIRTH[age] + (rng.random(size) * days[age]).astype(np.int64)
    male = _flag(rng, _MALE[age])
    citizen = _flag(rng, 0.97 - 0.08 * urban - 0.06 * ((age > 20) & (age < 45)))
    veteran = _flag(rng, _SERVED[age] * np.where(male, 1, 0.15) * np.where(citizen, 1, 0.1))
    # Two latent variables: the standing of the family, and poor health.
    standing = rng.standard_normal(size)
    frail = _flag(rng, _FRAIL[age])
    vision, hearing, walking = (
        _flag(rng, np.where(frail, often, 0.005 + seldom * age))
        for often, seldom in ((0.3, 0.0002), (0.38, 0.0004), (0.55, 0.0003))
    )

    marital = _draw(rng, _MARRIAGE, age, male)
    partner = np.isin(marital, [_MARITAL.index(each) for each in ("married", "cohabiting")])
    wealth = np.searchsorted((-0.5, 0.5), standing)
    tenure = _draw(rng, _TENURE, age, urban, wealth, walking)
    housed = tenure != _TENURES.index("institution")
    children = np.minimum(rng.poisson(_CHILDREN[age] * _PARENTHOOD[marital]), 8) * housed
    others = rng.poisson(_OTHERS[age] * np.where(partner, 0.3, 1)) + (age < 15)
    household = np.minimum(1 + (partner + children + others) * housed, 12)
    rent = 6.4 + 1.5 * _REGION_SHIFT[region] + 0.12 * household + 0.2 * standing
    rent = np.exp(rent + 0.25 * rng.standard_normal(size))

    score = rng.standard_normal(size) + 0.5 * standing + 0.3 * urban + _LEARNT[age]
    education = np.minimum(np.searchsorted(_EDUCATION_CUTS, score), _REACHED[age])
    activity = _draw(rng, _ACTIVITY, age, male, education, walking)
    employed, student = (activity == _EMPLOYMENT.index(each) for each in ("employed", "student"))
    in_school = (student & (age >= 15)) | _flag(rng, _AT_SCHOOL[age])
    occupation = _draw(rng, _OCCUPATION, education, male)
    mother = ~male & (children > 0)
    part_time = _flag(rng, 0.08 + 0.15 * ~male + 0.25 * mother + 0.3 * ((age < 22) | (age > 66)))
    hours = np.where(part_time, 22, 40 + 2 * male) + 6 * rng.standard_normal(size)
    hours = np.clip(_heap(rng, hours, 5, 0.7), 1, 99)
    commute = np.exp(2.9 + 0.25 * urban + 0.7 * rng.standard_normal(size))
    commute = _heap(rng, commute, 5, 0.7) * ~_flag(rng, _REMOTE[occupation])

    income = _PAY[occupation] + _SKILL[age] + 0.1 * male + 0.9 * np.log(hours / 40)
    income = np.where(employed, income, _BENEFIT[activity]) + _REGION_SHIFT[region]
    income += 0.06 * (education - 3) + 0.2 * standing
    income = np.exp(income + 0.4 * rng.standard_normal(size))
    # A Pareto tail on the lognormal body, then those with no income and those who lost money.
    income *= np.where(_flag(rng, 0.01 * (1 + education)), 1 + rng.pareto(1.3, size), 1)
    income *= ~_flag(rng, _PENNILESS[activity])
    loss = employed & _flag(rng, _LOSSES[occupation])
    income = np.where(loss, -2500 * rng.standard_exponential(size), income)

    young_man = male & (age >= 18) & (age < 30)  # they answer less often, and weigh more
    weight = 15 * np.sqrt(_POPULATION[region]) * (1 + 0.4 * young_man)
    weight *= np.exp(0.3 * rng.standard_normal(size))
    day = (92 * rng.random(size) ** np.where(urban, 1.6, 1.1)).astype(np.int64)
    day += (day % 7 == 5) & _flag(rng, 0.8)  # Sundays are left for Monday
    minute = np.clip(rng.normal(830, 160, size) + 60 * employed, 0, 1439).astype(np.int64)
    moment = np.datetime64(_CENSUS_DAY, "us") + (1440 * day + minute).astype("timedelta64[m]")

    values = (
        *(region, male, age, birth, marital, citizen, household, children, tenure, rent, education),
        *(in_school, activity, occupation, _draw(rng, _INDUSTRY, occupation), hours, commute),
        *(income, veteran, vision, hearing, walking, weight, moment),
    )
    # The rows to which a nullable column applies; other columns apply to all rows.
    applies = {
        **dict.fromkeys(("children", "employment", "income"), age >= 15),
        **dict.fromkeys(("occupation", "industry", "hours", "commute_minutes"), employed),
        "rent": tenure == _TENURES.index("rent"),
        "education": age >= 3,
        "veteran": age >= 17,
    }
    arrays = [
        _array(column, each, applies.get(column.name))
        for column, each in zip(_SCHEMA, values, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=_ARROW_SCHEMA)


def _array(column: Column, values: Array, applies: Array | None) -> pa.Array:
    """Put simulated values into the column's domain and Arrow type; null where not applicable."""
    mask = None if applies is None else ~applies
    if isinstance(column, Categorical):
        return pa.array(column.values).take(pa.array(values.astype(np.int64), mask=mask))
    if isinstance(column, Integer | Real):
        values = np.clip(values, column.lower, column.upper)
    if isinstance(column, Integer):
        values = values.astype(np.int64)
    if isinstance(column, Real):
        values = np.round(values, column.decimals or 0) + 0.0  # no negative zero
    return pa.array(values, type=column.arrow_type, mask=mask)
