"""``private-gsd demo``: what it shows, leaves, and does not touch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from private_gsd import Release, Schema
from tests.cli.running import COMMAND, run


def test_demo(tmp_path: Path) -> None:
    out, _ = run("demo", "--records", "2000", cwd=tmp_path)
    assert "2,000 rows x 24 columns read, checked and encoded" in out
    assert Schema.read(tmp_path / "demo" / "drafted.toml").drafted
    assert not Schema.read(tmp_path / "demo" / "schema.toml").drafted
    assert (tmp_path / "demo" / "census.parquet").exists()
    assert "5,000 synthetic rows" in out
    assert "rho-zero-concentrated differentially private" in out
    assert "Over all 25,548 queries the synthetic table is off by" in out
    release = Release.load(tmp_path / "demo" / "release")
    assert release.complete
    assert release.privacy["private"]
    picture = ElementTree.parse(tmp_path / "demo" / "comparison.svg")
    texts = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert set(release.schema.names) <= texts
    # It ends with something to look at, and no browser is opened: this is no terminal.
    assert out.rstrip().endswith(f"the release report, {Path('demo', 'release.html')}.")
    assert "<html" in (tmp_path / "demo" / "release.html").read_text(encoding="utf-8")
    shown, _ = run("ledger", "show", "demo/ledger.db", cwd=tmp_path)
    assert "discrete gaussian" in shown
    total, spent = (release.privacy[part]["rho"] for part in ("total", "spent"))
    assert total > 3 * spent  # another release is possible
    run("schema", "check", "demo/schema.toml", "demo/census.parquet", cwd=tmp_path)


@pytest.mark.slow
def test_demo_twice_but_never_over_other_files(tmp_path: Path) -> None:
    run("demo", "--records", "10", cwd=tmp_path)
    run("demo", "--records", "10", cwd=tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "schema.toml").write_text("precious")
    _, error = run("demo", "--records", "10", "-o", "mine", cwd=tmp_path, code=1)
    assert "mine/schema.toml: exists already" in error
    assert (tmp_path / "mine" / "schema.toml").read_text() == "precious"
    run("demo", "--records", "10", "-o", "[x]d", cwd=tmp_path)
    assert (tmp_path / "[x]d" / "schema.toml").exists()  # not markup


@pytest.mark.slow
def test_a_terminal_without_our_characters(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "demo", "--records", "10"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
