"""The privacy statement, a section of both reports: what a release guarantees.

Every sentence follows from the privacy record and is true for (ε, δ). No sentence says that
something happens with a probability of δ: that is not what δ means.
"""

from __future__ import annotations

from typing import Any

from private_gsd.evaluation.report.drawings import figure, power_curves
from private_gsd.evaluation.report.page import joined, key, paragraph, side_by_side, wide_table
from private_gsd.privacy.record import at_most, uncovered, unit_in_words
from private_gsd.privacy.tradeoff import largest_powers
from private_gsd.system.markup import Markup, escape

# The power at 1 % false alarms above which little protection is left.
WEAK = 0.9
# The number of points of a drawn line.
POINTS = 60


def privacy_statement(record: dict[str, Any]) -> Markup:
    """The guarantee of a release in words and in numbers, from its privacy record."""
    reasons = record["not_private_because"]
    if reasons:
        words = f"This release is NOT private: {'; '.join(reasons)}. "
        warning = escape(words + "It must not be published as if it were.")
        parts = [Markup(f'<p class="found">{warning}</p>'), _numbers(record)]
    else:
        parts = [_guarantee(record), _tests(record), _numbers(record), _several_rows(record)]
        parts.append(paragraph("As the privacy record states it: ", record["guarantee"]))
    return joined([*parts, *_claims(record.get("claims") or {})])


def _guarantee(record: dict[str, Any]) -> Markup:
    """The guarantee in plain words."""
    if record["this_release_alone"]:
        scope = (
            "It is counted alone: nobody adds up what other releases of the same data spend, and "
            "with each of them the data are protected less than is said here."
        )
    else:
        scope = (
            "The guarantee is about all noisy answers that the same ledger has paid for or will "
            "pay for, seen together, and what is computed from them alone. It is not about what is "
            "released of the same data otherwise. Other releases may have used public counts or "
            "external measurements too; their own records say so."
        )
    [power] = largest_powers(record["total"]["rho"], [0.01], record["conversion"])
    weak = (
        f" With this total a test that raises 1 % false alarms may recognise a {_noun(record)} "
        f"with a probability of up to {_percent(power)}: that is little protection."
    )
    others = " and ".join(uncovered(record))
    limit = f" It does not cover what {others}, which were used too, disclose."
    return paragraph(
        "This release was made under differential privacy. ",
        scope,
        limit * bool(others),
        weak * (power > WEAK),
    )


def _noun(record: dict[str, Any]) -> str:
    """What is protected."""
    return "row" if record["unit"] is None else "unit"


def _tests(record: dict[str, Any]) -> Markup:
    """How well somebody who knows all units of protection but one can test what that one is."""
    noun = _noun(record)
    rho, conversion = record["total"]["rho"], record["conversion"]
    if record["neighbours"] == "replace-one":
        question = "has two candidates for it, A and B, and tests which of them is in the data"
        alarm, right = "it says A where B is in the data", "says A where A is in the data"
    else:
        question = "tests whether it is in the data as well"
        alarm, right = f"it says so where the {noun} is not in", f"says so where the {noun} is in"
    [power] = largest_powers(rho, [0.01], conversion)
    text = (
        f"Take one {noun}, and somebody who knows all other {noun}s of the data and {question}. "
        f"The test raises a false alarm if {alarm}. "
        "Without any release, or other knowledge that tells the two cases apart, a test that "
        f"raises false alarms with a probability of 1 % {right} with a probability of 1 % as well. "
        "With all that is covered here, that probability is at most "
        f"{_percent(power)}. This holds for every test, however much is computed, if nothing else "
        "tells the two cases apart. It also holds for somebody who does not know the other "
        f"{noun}s, if what they believe of those {noun}s is the same in both cases. Where {noun}s "
        "depend on each other, as in a household, somebody who knows fewer of them may learn more "
        "about one, since the release then says something about all of them. That is no failure "
        f"of the guarantee: what the data say about many {noun}s together is what a release is "
        "for, and may say something about anybody, in the data or not."
    )
    table = wide_table(
        f"How well any test can recognise one {noun}",
        ("false alarms", "rightly recognised, at most", "without any release"),
        [
            (
                _percent(test["false_alarms"]),
                _percent(test["largest_power"]),
                _percent(test["false_alarms"]),
            )
            for test in record["tests"]
        ],
    )
    alarms = [(step / POINTS) ** 2 for step in range(POINTS + 1)]
    lines = [
        (f"one {noun}", "synthetic", largest_powers(rho, alarms, conversion)),
        (f"ten {noun}s", "other", largest_powers(100 * rho, alarms, conversion)),
    ]
    label = "How well any test can recognise somebody, at most"
    drawing = figure(power_curves(alarms, lines, label), Markup(f"<strong>{label}</strong>"))
    with_one, with_ten = f"with one {noun}", f"with ten {noun}s"
    keys = key(("synthetic", with_one), ("other", with_ten), ("mark", "without"))
    return joined([paragraph(text), table, keys, side_by_side([drawing])])


def _numbers(record: dict[str, Any]) -> Markup:
    """The guarantee in numbers; without a guarantee, only what was spent."""
    total, spent, delta = record["total"], record["spent"], record["delta"]
    scope = "this release alone" if record["this_release_alone"] else "all that its ledger pays for"
    rows = [
        ("dataset", record["dataset"]),
        ("counted", scope),
        ("epsilon of the total", at_most(total["epsilon"])),
        ("at delta", at_most(delta)),
        ("total, rho (zCDP)", at_most(total["rho"])),
        (
            "accounting: rho spent so far",
            f"{spent['rho']:.6g}, {spent['rho'] / total['rho']:.0%} of the total",
        ),
        *([("unit of protection", unit_in_words(record["unit"]))] if record["unit"] else ()),
        ("neighbouring datasets", record["neighbours_in_words"]),
        ("conversion from rho to epsilon", record["conversion_in_words"]),
    ]
    if record["private"]:
        return wide_table("The guarantee in numbers", ("term", "value"), rows, words=(1,))
    spent_only = [row for row in rows if "epsilon" not in row[0] and "delta" not in row[0]]
    return wide_table("Accounting, and no guarantee", ("term", "value"), spent_only, words=(1,))


def _several_rows(record: dict[str, Any]) -> Markup:
    """The guarantee for somebody with several rows, or for several units."""
    name = f"{_noun(record)}s"
    several = record[f"groups_of_{name}"]
    rows = []
    for each in ({name: 1, **record["total"]}, *several):
        [power] = largest_powers(each["rho"], [0.01], record["conversion"])
        epsilon = each["epsilon"]
        text = "no meaningful bound" if epsilon is None else at_most(epsilon, 4)
        rows.append((each[name], text, _percent(power)))
    return joined(
        [
            paragraph(
                "The unit of protection is one row. Somebody with several rows is protected less: "
                "with k rows as if rho were k times k as large."
                if name == "rows"
                else f"The unit of protection is {unit_in_words(record['unit'])}. Several units "
                "together, such as a family, are protected less: k of them as if rho were k times "
                "k as large."
            ),
            wide_table(
                "The guarantee for somebody with several rows"
                if name == "rows"
                else "The guarantee for several units together",
                (
                    "rows of one person" if name == "rows" else "units",
                    f"epsilon, at delta = {at_most(record['delta'], 4)}",
                    "rightly recognised at 1 % false alarms, at most",
                ),
                rows,
            ),
        ]
    )


def _percent(share: float) -> str:
    """A probability, rounded up."""
    return f"{at_most(round(100 * share, 12), 3)} %"


def _claims(claims: dict[str, Any]) -> list[Markup]:
    """The knowledge that was used in addition to the measurements of this release."""
    parts = []
    counts = claims.get("public_counts") or {}
    if counts:
        parts.append(
            paragraph(
                "The data holder claims that these counts are public. They were matched as they "
                "are, and the guarantee does not cover them."
            )
        )
        rows = [(condition, f"{number:,}") for condition, number in counts.items()]
        parts.append(wide_table("Public counts", ("condition", "records"), rows))
    groups = claims.get("external_groups") or 0
    if groups:
        text = f"External measurements of {groups:,} query groups were used too. "
        if claims.get("external_private") is True:
            text += (
                "Whoever supplied them declares them to be private, which nobody has checked here. "
                "Whatever guarantee they have is outside this ledger, and the one above does not "
                "cover them."
            )
        else:
            text += "Whoever supplied them declares them to be NOT private."
        parts.append(paragraph(text))
    if claims.get("derived_statistics"):
        parts.append(
            paragraph(
                "Derived statistics, which follow from the measurements and cost nothing: ",
                "; ".join(claims["derived_statistics"]),
            )
        )
    return parts
