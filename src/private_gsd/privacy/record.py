"""The privacy record: what is promised about a dataset, in words and numbers, to be published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from private_gsd.privacy.budget import INSECURE, UNITS_PER_RHO, units_to_rho

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.privacy.ledger import Account, Charge

NEIGHBOURS = {
    "replace-one": "tables with the same number of rows, of which one row differs; the number of "
    "rows is public",
    "add-remove": "tables of which one has all rows of the other and one more",
}
CONVERSIONS = {
    "tight": "the least epsilon by Proposition 12 of Canonne, Kamath and Steinke, The Discrete "
    "Gaussian for Differential Privacy",
    "paper": "epsilon = rho + 2 sqrt(rho ln(1/delta))",
    "gaussian": "the least epsilon of Gaussian noise, as all of it is: delta = "
    "Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu) with mu = sqrt(2 rho), by "
    "Theorem 8 of Balle and Wang, Improving the Gaussian Mechanism for Differential Privacy",
}


def privacy_record(account: Account, charges: Sequence[Charge]) -> dict[str, Any]:
    """The guarantee, the terms it holds under and every charge, ready for JSON."""
    budget = account.budget
    amounts = {
        "total": _amounts(account, budget.units),
        "spent": _amounts(account, account.spent),
        "held": _amounts(account, account.held),
        "remaining": _amounts(account, account.remaining),
    }
    spent = amounts["spent"]
    insecure = [str(charge.id) for charge in charges if INSECURE in charge.mechanism]
    so = ", since its noise is Gaussian," if budget.conversion == "gaussian" else " so"
    guarantee = (
        "All that was released of this dataset through this ledger, taken together, is "
        f"rho-zero-concentrated differentially private with rho = {spent['rho']!r}, and{so} "
        f"(epsilon, delta)-differentially private with epsilon = {spent['epsilon']!r} and "
        f"delta = {budget.delta!r}. Nothing will be released beyond a total of rho = "
        f"{budget.rho!r}, which is epsilon = {amounts['total']['epsilon']!r}. Neighbours "
        f"are {NEIGHBOURS[account.neighbours]}. What is protected is one row: a person "
        "with several rows is protected less."
    )
    if insecure:
        guarantee = (
            f"NONE: the noise of charges {', '.join(insecure)} came from a seed, and whoever "
            "knows or guesses the seed can take it off again."
        )
    return {
        "dataset": account.dataset,
        "private": not insecure,
        "guarantee": guarantee,
        "neighbours": account.neighbours,
        "neighbours_in_words": NEIGHBOURS[account.neighbours],
        "conversion": budget.conversion,
        "conversion_in_words": CONVERSIONS[budget.conversion],
        "delta": budget.delta,
        "units_per_rho": UNITS_PER_RHO,
        **amounts,
        "charges": [
            {
                "id": charge.id,
                "at": charge.at,
                "run": charge.run,
                "mechanism": charge.mechanism,
                "groups": list(charge.groups),
                "units": charge.units,
                "rho": charge.rho,
            }
            for charge in charges
        ],
    }


def _amounts(account: Account, units: int) -> dict[str, float]:
    return {"units": units, "rho": units_to_rho(units), "epsilon": account.epsilon_of(units)}
