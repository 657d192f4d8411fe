"""The two pages: what they hold, what they must not hold, and that data cannot break them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import private_gsd as gsd
from private_gsd import Categorical, Integer, Schema
from private_gsd.evaluation import evaluate, release_page
from private_gsd.evaluation.report.figures import Series, bars, heat_map, histogram
from private_gsd.privacy.record import at_most
from private_gsd.system.markup import Markup, escape, html_table
from tests.evaluation.tables import HOSTILE, SCHEMA, check_page, parts
from tests.releases import reopen

WATCHED = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event in (
    "open", "sqlite3.connect") else None)
from private_gsd import Release
from private_gsd.evaluation import release_page
text = release_page(Release.load("release"))
print("\\n".join(opened))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, with its data and its ledger beside it."""
    folder = tmp_path_factory.mktemp("release")
    table = parts(400)[0]
    pyarrow.csv.write_csv(table, folder / "secret.csv")
    schema = Schema(SCHEMA.columns, ["NOT (age < 18 AND marital = 'married')"])
    gsd.Synthesizer(
        schema,
        epsilon=1.0,
        rows=200,
        workload=["categorical:2", "tree:1:3"],
        release=folder / "release",
        ledger=folder / "ledger.db",
        create_ledger=True,
    ).fit(folder / "secret.csv")
    return folder


def test_the_release_report_opens_nothing_but_the_release(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], cwd=folder, capture_output=True, text=True, check=True
    )
    opened = done.stdout.splitlines()
    assert any(name.endswith("synthetic.parquet") for name in opened)
    for secret in ("secret.csv", "ledger.db", "run.json"):
        assert not [name for name in opened if secret in name]


def test_the_release_report_is_of_the_release_alone(folder: Path, tmp_path: Path) -> None:
    with_run = release_page(gsd.Release.load(folder / "release"))
    # What was handed on, without its run, data and ledger, gives the same page.
    handed_on = gsd.Release.load(folder / "release").save(tmp_path / "release")
    assert not (tmp_path / "release" / "run.json").exists()
    assert release_page(handed_on) == with_run
    check_page(with_run)
    assert str(folder) not in with_run
    assert "secret.csv" not in with_run
    assert "NOT FOR PUBLICATION" not in with_run
    for words in (
        "made under differential privacy",
        "standard deviations of the noise",
        "Synthetic rows that break a rule",
        "region x sex",
    ):
        assert words in with_run
    for column in SCHEMA:
        assert f"<strong>{column.name}</strong>" in with_run


def test_a_release_that_is_not_private_says_so() -> None:
    synth = gsd.Synthesizer(
        SCHEMA.select(["sex"]), epsilon=1.0, rows=50, insecure_noise_seed=0
    ).fit(parts(100)[0].select(["sex"]))
    text = release_page(synth.release)
    assert "NOT PRIVATE" in text
    assert "made under differential privacy" not in text
    assert "NO: the noise" in synth.release._repr_html_()
    assert "recognise" not in text
    assert "epsilon" not in text.split('id="privacy"')[1].split("</section>")[0]


def test_the_page_says_what_a_test_can_reach(folder: Path) -> None:
    """The power of tests, for one row and for several, and nothing about a chance of delta."""
    release = gsd.Release.load(folder / "release")
    record, text = release.privacy, release_page(release)
    part = text.split('id="privacy"')[1].split("</section>")[0]
    assert "but for a chance" not in text
    assert "odds" not in text
    assert part.count("<svg ") == 1
    assert "the same ledger has paid for or will pay for, seen together" in part
    for test in record["tests"]:
        assert f"{at_most(100 * test['largest_power'], 3)} %" in part
    for group in record["groups_of_rows"]:
        assert f">{at_most(group['epsilon'], 4)}<" in part
    assert f"epsilon = {record['total']['epsilon']!r}" in part
    assert "accounting: rho spent so far" in part


def test_what_the_guarantee_does_not_cover_is_said() -> None:
    outside = gsd.Measurements.from_marginals(SCHEMA, 100, [(["sex"], [50, 50], 3.0)], private=True)
    synth = gsd.Synthesizer(
        SCHEMA, epsilon=1.0, rows=50, evidence=[outside], totals={"sex = 'male'": 40}
    ).fit(parts(100)[0])
    text = release_page(synth.release)
    assert (
        "does not cover what counts that are claimed to be public and external measurements, "
        "which were used too, disclose" in text
    )
    assert "declares them to be private, which nobody has checked" in text
    assert "<td>external measurements</td>" in synth.release._repr_html_()
    assert "NOT" not in text


def test_bounds_that_protect_nobody_are_called_so() -> None:
    synth = gsd.Synthesizer(SCHEMA.select(["sex"]), epsilon=50.0, rows=50)
    text = release_page(synth.fit(parts(100)[0].select(["sex"])).release)
    assert "that is little protection" in text


def hostile() -> tuple[Schema, pa.Table]:
    name = HOSTILE + " x"
    schema = Schema(
        [
            Categorical(HOSTILE, values=[HOSTILE, "</style><b>", "]]>"], description=HOSTILE),
            Integer(name, lower=0, upper=100),
        ]
    )
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            HOSTILE: rng.choice([HOSTILE, "</style><b>", "]]>"], 60),
            name: rng.integers(0, 100, 60),
        }
    )
    return schema, table


def test_names_and_values_cannot_break_a_page(tmp_path: Path) -> None:
    schema, table = hostile()
    found = evaluate(table, table, schema=schema, holdout=table, targets=[HOSTILE])
    synth = gsd.Synthesizer(schema, epsilon=1.0, rows=50, dataset=HOSTILE).fit(table)
    plan = gsd.Synthesizer(schema, epsilon=1.0).plan(table)
    for text in (found.html(), release_page(synth.release)):
        check_page(text)
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert text.count("</style>") == 1
    for small in (
        found._repr_html_(),
        schema._repr_html_(),
        synth.release._repr_html_(),
        plan._repr_html_(),
    ):
        assert "<script" not in small
        assert small.startswith("<table><caption>")


def test_notebooks_show_what_things_are(folder: Path) -> None:
    release = gsd.Release.load(folder / "release")
    shown = release._repr_html_()
    assert "<td>yes</td>" in shown
    assert "200" in shown
    assert "marital" in SCHEMA._repr_html_()
    draft = Schema.draft(parts(50)[0])
    assert "DRAFTED" in draft._repr_html_()
    plan = gsd.Synthesizer(SCHEMA, epsilon=1.0).plan(parts(400)[0])
    assert "groups with the most noise" in plan._repr_html_()


def test_a_release_that_is_not_complete_shows_that(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "release", tmp_path / "half")
    reopen(tmp_path / "half")
    assert "not yet" in gsd.Release.load(tmp_path / "half")._repr_html_()


def test_every_page_warns_and_allows_nothing_to_be_loaded(folder: Path) -> None:
    release = gsd.Release.load(folder / "release")
    found = gsd.evaluate(release, folder / "secret.csv", targets=["citizen"])
    text = found.html()
    outline = check_page(text)
    assert text.count("NOT FOR PUBLICATION") >= 2
    assert "default-src 'none'" in text
    assert "table-header-group" in text  # on every printed page
    assert len(outline.figures) == len(SCHEMA) + 3 + 1 + 5 + 1 + 1
    assert found.privacy is not None
    assert "What was promised" in text


def test_thirty_columns_stay_small() -> None:
    rng = np.random.default_rng(0)
    values = [f"a rather long category {number}" for number in range(40)]
    schema = Schema(
        [Categorical(f"category {number}", values=values) for number in range(15)]
        + [Integer(f"number {number}", lower=0, upper=10_000) for number in range(15)]
    )
    columns = {
        **{f"category {n}": rng.choice(values, 300) for n in range(15)},
        **{f"number {n}": rng.integers(0, 10_000, 300) for n in range(15)},
    }
    table = pa.table(columns)
    found = evaluate(table, table, schema=schema, holdout=table, targets=[])
    assert len(found.html().encode()) < 3_000_000


def test_markup() -> None:
    assert escape(Markup("<b>")) == "<b>"
    assert escape(3) == "3"
    table = html_table("a < b", ("x", "y"), [("<", Markup("<i>1</i>"))])
    assert "<caption>a &lt; b</caption>" in table
    assert '<th scope="row">&lt;</th><td class="n"><i>1</i></td>' in table


def test_figures_of_nothing_are_figures() -> None:
    zero = Series("real", "real", np.zeros(1))
    for drawing in (
        bars(["a"], [zero], "bars"),
        histogram(["null"], [zero], "nulls"),
        histogram(["any"], [zero, zero], "one bin"),
        heat_map(["a"], np.eye(1), 1.0, "one column"),
    ):
        assert drawing.startswith("<svg ")
        assert "nan" not in drawing
