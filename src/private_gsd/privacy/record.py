"""The privacy record: the guarantee for a dataset, in words and numbers, to be published.

The guarantee is for the *total* of a dataset's account. A ledger refuses charges that would exceed
the total, and so the guarantee holds even if later queries depend on earlier answers (a privacy
filter): for zCDP by Feldman and Zrnic, "Individual Privacy Accounting via a Rényi Filter" (2021);
for Gaussian noise see ``conversions``. No such guarantee holds for the amount spent so far, where
spending depends on answers (a privacy odometer). The record calls that amount accounting.

A record is a plain dictionary for JSON. Every statement about privacy (in a report, a notebook, the
command line) is read from a record. There is a guarantee only if its list ``not_private_because``
is empty.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING, Any

from private_gsd.privacy.budget import INSECURE, MAX_RHO, UNITS_PER_RHO, epsilon_of, units_to_rho
from private_gsd.privacy.tradeoff import largest_powers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from private_gsd.privacy.accounts import Account, Charge
    from private_gsd.privacy.budget import Conversion

NEIGHBOURS = {
    "replace-one": "those with the same number of records, of which one record differs; the number "
    "of records is public",
    "add-remove": "those of which one has all records of the other and one more",
}
NEIGHBOURS_OF_UNITS = {
    "replace-one": "those with the same number of units, of which all records of one unit are "
    "replaced by those of another; the number of units is public",
    "add-remove": "those of which one has all records of the other, and those of one more unit",
}
CONVERSIONS = {
    "zcdp": "the least epsilon by Proposition 12 of Canonne, Kamath and Steinke, The Discrete "
    "Gaussian for Differential Privacy",
    "paper": "epsilon = rho + 2 sqrt(rho ln(1/delta))",
    "gdp": "the least epsilon of Gaussian noise of this rho: delta = "
    "Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu) with mu = sqrt(2 rho), by "
    "Theorem 8 of Balle and Wang, Improving the Gaussian Mechanism for Differential Privacy; the "
    "noise drawn is the discrete Gaussian, with a variance that is larger by 3 to keep it",
}
ACCOUNTING = (
    "spent, reserved and remaining are accounting: how much of the total is used. They are no "
    "guarantee; their epsilons only convert amounts of rho."
)
# The guarantee is stated for persons with this many rows, or for so many units, and for tests with
# these probabilities of a false alarm.
GROUPS = (2, 5, 10)
FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1)
# The claims of a release: its sources other than the measurements that its ledger paid for.
CLAIMS = ("public_counts", "external_groups", "external_private", "derived_statistics")


def privacy_record(account: Account, charges: Sequence[Charge]) -> dict[str, Any]:
    """The guarantee, the terms it holds under and every charge, ready for JSON."""
    budget = account.budget
    record = {
        "dataset": account.dataset,
        "neighbours": account.neighbours,
        "unit": account.unit,
        "conversion": budget.conversion,
        "delta": budget.delta,
        "units_per_rho": UNITS_PER_RHO,
        "total": _amounts(account, budget.units),
        "spent": _amounts(account, account.spent),
        "reserved": _amounts(account, account.reserved),
        "remaining": _amounts(account, account.remaining),
        "charges": [
            {
                "id": charge.id,
                # The day is enough: how long a run took from one charge to the next may depend on
                # the data.
                "at": charge.at[:10],
                "run": charge.run,
                "mechanism": charge.mechanism,
                "groups": list(charge.groups),
                "units": charge.units,
                "rho": charge.rho,
            }
            for charge in charges
        ],
    }
    return restated(record)


def release_record(
    record: Mapping[str, Any], claims: Mapping[str, Any], *, alone: bool
) -> dict[str, Any]:
    """The record of one release.

    Args:
        record: The ledger's record of the dataset.
        claims: The sources other than the measurements that the ledger paid for (see ``CLAIMS``).
        alone: Whether the ledger was made for this release, so that it does not add up the charges
            of other releases of the same data.
    """
    return restated({**record, "claims": dict(claims), "this_release_alone": alone})


def restated(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record whose statements are written anew from its numbers, charges and claims.

    Raises:
        LookupError, TypeError, ValueError, AttributeError, ArithmeticError, BudgetError: The
            document is not a record.
    """
    total, conversion = record["total"], record["conversion"]
    amounts = [record[part][kind] for part in ("total", "spent") for kind in ("rho", "epsilon")]
    if not all(type(number) in (int, float) and math.isfinite(number) for number in amounts):
        raise ValueError("amounts must be numbers")
    # A claim with an unknown name would not be read, and the guarantee would omit its restriction.
    unknown = sorted(set(record.get("claims") or {}) - set(CLAIMS))
    if unknown:
        raise ValueError(f"unknown claims: {', '.join(map(repr, unknown))}")
    unit = record.get("unit")
    if not isinstance(unit, str | None) or (unit is not None and not unit.isprintable()):
        raise ValueError("the unit of protection must be the name of a column")
    reasons = _reasons(record)
    groups = "groups_of_rows" if unit is None else "groups_of_units"
    first = {
        "dataset": record["dataset"],
        "private": not reasons,
        "not_private_because": reasons,
        "guarantee": _guarantee(record, reasons),
        "this_release_alone": record.get("this_release_alone", False),
        "unit": unit,
        "neighbours": record["neighbours"],
        "neighbours_in_words": _neighbours(record),
        "conversion": conversion,
        "conversion_in_words": CONVERSIONS[conversion],
        "delta": record["delta"],
        "units_per_rho": record["units_per_rho"],
        "total": total,
        groups: [] if reasons else [_group(record, number) for number in GROUPS],
        "tests": [] if reasons else _tests(total["rho"], conversion),
        "accounting": ACCOUNTING,
    }
    return {**first, **{key: value for key, value in record.items() if key not in first}}


def unit_in_words(unit: str | None) -> str:
    """The unit of protection in words.

    >>> unit_in_words(None), unit_in_words("patient_id")
    ('one row', "all records with the same 'patient_id'")
    """
    return "one row" if unit is None else f"all records with the same {unit!r}"


def uncovered(record: Mapping[str, Any]) -> list[str]:
    """The sources of a release that the guarantee does not cover, in words."""
    claims = record.get("claims") or {}
    beside = {
        "counts that are claimed to be public": claims.get("public_counts"),
        "external measurements": claims.get("external_groups"),
    }
    return [words for words, there in beside.items() if there]


def at_most(number: float, digits: int = 6) -> str:
    """A bound in a few digits, rounded up, so that the printed number is a bound, too.

    >>> at_most(0.99999999), at_most(1.0000001), at_most(1 / 30_000**2, 3)
    ('1', '1.00001', '1.12e-09')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(repr(number)))
    return f"{float(rounded):.{digits}g}"


def _reasons(record: Mapping[str, Any]) -> list[str]:
    """The reasons why there is no guarantee; empty if there is one."""
    reasons = []
    seeded = [str(each["id"]) for each in record["charges"] if INSECURE in each["mechanism"]]
    if seeded:
        reasons.append(
            f"the noise of charges {', '.join(seeded)} came from a seed, and whoever knows or "
            "guesses the seed can take it off again"
        )
    claims = record.get("claims") or {}
    groups = claims.get("external_groups") or 0
    if groups and claims.get("external_private") is not True:
        reasons.append(
            f"external measurements that are not private were used ({groups:,} query "
            f"{'group' if groups == 1 else 'groups'}), and nothing bounds what they disclose about "
            "a single row"
        )
    return reasons


def _guarantee(record: Mapping[str, Any], reasons: list[str]) -> str:
    """The guarantee in words."""
    if reasons:
        return f"NONE: {'; '.join(reasons)}."
    total, spent = record["total"], record["spent"]
    so = ", since its noise is Gaussian," if record["conversion"] == "gdp" else " so"
    said = [
        f"Everything released of dataset {record['dataset']!r} through this ledger, now and later, "
        "taken together, is rho-zero-concentrated differentially private with rho = "
        f"{total['rho']!r}, which is the total of the dataset's account, and{so} (epsilon, delta)-"
        f"differentially private with epsilon = {total['epsilon']!r} and delta = "
        f"{record['delta']!r}.",
        "The ledger refuses what would exceed the total, so that this holds although later "
        "queries may depend on earlier answers.",
        "Released through it are the noisy answers that it has paid for, and what is computed from "
        "them without another look at the data. The schema, the queries and the settings are taken "
        "to be public knowledge.",
    ]
    if record.get("this_release_alone"):
        said.append(
            "The ledger was made for this release alone: nobody adds up what other releases of "
            "the same data spend, and the guarantee does not cover them."
        )
    claims = record.get("claims") or {}
    if claims.get("public_counts"):
        said.append(
            "Counts that the data holder claims to be public were matched as they are; the "
            "guarantee does not cover them."
        )
    if claims.get("external_groups"):
        said.append(
            "External measurements were used beside those that this ledger paid for. Whoever "
            "supplied them declares them to be private, which nobody has checked. Whatever "
            "guarantee they have is outside this ledger, and this one does not cover them: where "
            "they are about the same records, both losses add up."
        )
    if record.get("unit") is None:
        protected = (
            "The unit of protection is one row: for a person with several rows the guarantee is "
            "weaker (groups_of_rows)."
        )
    else:
        protected = (
            f"The unit of protection is {unit_in_words(record['unit'])}, however many they are: "
            "for several units together the guarantee is weaker (groups_of_units)."
        )
    said += [
        f"Neighbouring datasets are {_neighbours(record)}.",
        protected,
        f"What is spent so far, rho = {spent['rho']!r}, is accounting, and no guarantee by itself.",
    ]
    return " ".join(said)


def _neighbours(record: Mapping[str, Any]) -> str:
    """What neighbouring datasets are, in words."""
    words = NEIGHBOURS if record.get("unit") is None else NEIGHBOURS_OF_UNITS
    return words[record["neighbours"]]


def _tests(rho: float, conversion: Conversion) -> list[dict[str, float]]:
    """For each probability of a false alarm, the power that no test of one unit exceeds."""
    powers = largest_powers(rho, FALSE_ALARMS, conversion)
    return [
        {"false_alarms": alarm, "largest_power": power}
        for alarm, power in zip(FALSE_ALARMS, powers, strict=True)
    ]


def _group(record: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The guarantee for several rows, or units; epsilon is None where ρ exceeds the maximum.

    Two tables that differ in k of them are k steps from neighbour to neighbour apart, and their
    answers differ by at most k times as much as those of neighbours. A mechanism that is ρ-zCDP is
    k²ρ-zCDP for them (Bun and Steinke, "Concentrated Differential Privacy", 2016, on group
    privacy): this holds for each charge and so for their total. For Gaussian noise μ is k times as
    large, which is k²ρ in the conversion "gdp". The proof in ``conversions`` for noise on whole
    numbers holds for any vector of whole numbers by which the answers may differ, with the same
    added variance, whatever the length of the vector.
    """
    rho = number**2 * record["total"]["rho"]
    epsilon = None if rho > MAX_RHO else epsilon_of(rho, record["delta"], record["conversion"])
    name = "rows" if record.get("unit") is None else "units"
    return {name: number, "rho": rho, "epsilon": epsilon}


def _amounts(account: Account, units: int) -> dict[str, float]:
    return {"units": units, "rho": units_to_rho(units), "epsilon": account.epsilon_of(units)}
