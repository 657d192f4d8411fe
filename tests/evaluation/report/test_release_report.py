"""The release report: made of the release alone, and safe to publish with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import private_gsd as gsd
from private_gsd import Adaptive, Schema
from private_gsd.evaluation import release_page
from tests.evaluation.tables import HOSTILE, SCHEMA, check_page, hostile, parts, quick
from tests.releases import reopen

pytestmark = pytest.mark.worker("evaluation")
WATCHED = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event in (
    "open", "sqlite3.connect") else None)
from private_gsd import Release, write_report
write_report(Release.load("release"), "watched.html")
print("\\n".join(opened))
"""


@pytest.mark.slow
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
    # A saved copy, without its run, data and ledger, gives the same page.
    saved = gsd.Release.load(folder / "release").save(tmp_path / "release")
    assert not (tmp_path / "release" / "run.json").exists()
    assert release_page(saved) == with_run
    check_page(with_run)
    assert str(folder) not in with_run
    assert "secret.csv" not in with_run
    assert "NOT FOR PUBLICATION" not in with_run
    for words in (
        "Release report of release",
        "made under differential privacy",
        "standard deviations of the noise",
        "Synthetic rows that break a rule",
        "region x sex",
    ):
        assert words in with_run
    for column in SCHEMA:
        assert f"<strong>{column.name}</strong>" in with_run


def test_the_settings_of_the_run_are_shown() -> None:
    synth = quick(
        SCHEMA.select(["sex", "marital"]),
        rows=50,
        workload="categorical:2",
        mechanism=Adaptive(epochs=2),
        random_state=7,
    ).fit(parts(100)[0].select(["sex", "marital"]), insecure_noise_seed=0)
    method = release_page(synth.release_).split('id="method"')[1]
    assert "adaptive (epochs 2, queries per epoch 1, selection fraction 0.5)" in method
    assert "gsd (" in method
    assert "denoise False" in method
    assert ">replace-one<" in method
    assert ">7<" in method


def test_names_and_values_cannot_break_the_report() -> None:
    schema, table = hostile()
    synth = quick(schema, rows=50).fit(table, dataset=HOSTILE)
    text = release_page(synth.release_)
    check_page(text)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert text.count("</style>") == 1
    plan = quick(schema).plan(table)
    for small in (schema._repr_html_(), synth.release_._repr_html_(), plan._repr_html_()):
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
    plan = quick().plan(parts(400)[0])
    assert "groups with the most noise" in plan._repr_html_()


def test_a_release_that_is_not_complete_shows_that(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "release", tmp_path / "half")
    reopen(tmp_path / "half")
    assert "not yet" in gsd.Release.load(tmp_path / "half")._repr_html_()
