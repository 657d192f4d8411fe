"""Drawings of nothing are drawings, and every drawing has a text alternative."""

from __future__ import annotations

import re

import numpy as np
import pytest

from private_gsd.evaluation.report.drawings import (
    Series,
    bars,
    heat_map,
    histogram,
    intervals,
    power_curves,
    ranked,
)
from private_gsd.system.markup import Markup

ZERO = Series("real", "real", np.zeros(1))


@pytest.mark.parametrize(
    ("drawing", "spoken"),
    [
        (bars(["a"], [ZERO], "bars"), "real, largest first: a 0.0%"),
        (histogram(["null"], [ZERO], "nulls"), "real, largest first: null 0.0%"),
        (histogram(["any"], [ZERO, ZERO], "one bin"), "real, largest first: any 0.0%"),
        (heat_map(["a"], np.eye(1), 1.0, "one column"), "There is one column only"),
        (ranked(["a"], np.zeros(1), np.full(1, np.nan), "groups"), "a: 0.00%"),
        (intervals(["a"], [(0.5, 0.4, 0.6)], 0.5, "attacks"), "a: 0.500, from 0.400 to 0.600"),
        (power_curves([0, 0.1, 1], [("one row", "x", [0, 0.12, 1])], "power"), "at most 12.0%"),
    ],
)
def test_drawings_have_a_text_alternative(drawing: Markup, spoken: str) -> None:
    assert drawing.startswith("<svg ")
    assert spoken in drawing.split('aria-label="')[1].split('"')[0]
    assert "nan" not in drawing


def test_rare_labels_share_a_bar() -> None:
    labels = [f"label {number}" for number in range(30)]
    drawing = bars(labels, [Series("real", "real", np.arange(30.0) / 435)], "bars")
    assert "19 others" in drawing
    assert ">label 29<" in drawing
    assert ">label 0<" not in drawing


def test_a_spike_is_a_thin_bar_with_its_number() -> None:
    labels = ["below 5", "5 or more", "exactly 0", "exactly 9", "null"]
    real = Series("real", "real", np.array([0.2, 0.1, 0.6, 0.05, 0.05]))
    made = Series("synthetic", "synthetic", np.array([0.8, 0.1, 0, 0.05, 0.05]))
    drawing = histogram(labels, [real, made], "spikes", [0.0, 1.8])
    paths = dict(re.findall(r'<path class="([^"]*)" d="([^"]*)"', drawing))
    # Two bins and a bar for null; the line of the bins is one piece.
    assert paths["real"].count("M") == 3
    assert paths["line synthetic"].count("M") == 2
    # At 0, and at nine tenths of the way; the tallest of all bars is that of 80 %.
    assert paths["real spike"] == "M32 108V36h4V108zM278.6 108V102h4V108z"
    assert paths["line synthetic spike"].startswith("M30.8 108V108h6.4V108M")
    assert "gap" not in paths
    assert ">0</text>" in drawing
    assert ">9</text>" in drawing
    assert ">5 or more</text>" in drawing
    assert "exactly 0 60.0%" in drawing


def test_nulls_do_not_flatten_the_other_bars() -> None:
    values = Series("real", "real", np.array([0.1, 0.2, 0.7]))
    drawing = histogram(["a", "b", "null"], [values], "nulls")
    assert ">20%</text>" in drawing  # the scale
    assert drawing.count('class="gap"') == 1
    assert "null 70.0%" in drawing
    alone = histogram(["any", "null"], [Series("real", "real", np.array([0, 1.0]))], "nulls")
    assert ">100%</text>" in alone
    assert "gap" not in alone


def test_numbers_of_spikes_do_not_overlap() -> None:
    labels = ["below 5", "5 or more", *(f"exactly {number}" for number in range(10))]
    real = Series("real", "real", np.array([0, 0, *np.arange(1, 11) / 55]))
    drawing = histogram(labels, [real], "spikes", np.linspace(0, 2, 10).tolist())
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*class="s halo"', drawing)]
    assert 2 <= len(places) < 10
    assert ">9</text>" in drawing  # the tallest
    assert np.diff(np.sort(places)).min() > 30
