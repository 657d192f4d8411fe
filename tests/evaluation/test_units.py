"""Reports of releases of units: what they say of the unit, and what is compared."""

from __future__ import annotations

import warnings

import pyarrow.compute as pc

from private_gsd import evaluate
from private_gsd.evaluation import release_page
from private_gsd.evaluation.report.evaluation_report import evaluation_page
from tests import fitting
from tests.counting.visits import schema, visits

TABLE = visits(150)


def test_the_release_report_names_the_unit() -> None:
    for weighting, words in (
        ("units", "150 units, each with noise of the standard deviation given. At most 3 rows of "),
        ("rows", "rows of units, each with noise of the standard deviation given. At most 3 rows"),
    ):
        settings = {**fitting.SMALL, "workload": "categorical:1", "delta": 1e-6}
        synth = fitting.fitted(schema(3, weighting), 1.0, TABLE, **settings)
        page = " ".join(release_page(synth.release_).split())
        assert words in page
        assert ("a table of about " in page) == (weighting == "rows")
        assert "The unit of protection is all records with the same" in page
        assert "Take one unit, and somebody who knows all other units of the data" in page
        assert "The unit of protection is one row" not in page


def test_an_evaluation_compares_all_rows() -> None:
    settings = {**fitting.SMALL, "workload": "categorical:1", "delta": 1e-6, "rows": 200}
    synth = fitting.fitted(schema(3), 1.0, TABLE, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(synth.release_, TABLE, targets=[])
    sizes = pc.value_counts(TABLE["patient"]).to_pylist()
    assert found.tables.real == len(TABLE)
    assert found.tables.units == 150
    assert found.tables.taken == sum(min(each["counts"], 3) for each in sizes)
    text = evaluation_page(found)
    assert f"of whose {len(TABLE)} rows {found.tables.taken} are taken" in text
