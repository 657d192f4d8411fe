"""Reports are written by one call, whole, and never into a release if confidential."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import private_gsd as gsd
from private_gsd import Evaluation
from private_gsd.errors import GsdError
from private_gsd.evaluation import evaluation_page, release_page

pytestmark = pytest.mark.worker("evaluation")


def test_reports_of_evaluations(copy: Evaluation, tmp_path: Path) -> None:
    gsd.write_report(copy, tmp_path / "report.html")
    gsd.write_report(copy, str(tmp_path / "report.json"))
    assert (tmp_path / "report.html").read_text() == evaluation_page(copy)
    assert json.loads((tmp_path / "report.json").read_text()) == copy.document()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_reports_of_releases(folder: Path, tmp_path: Path) -> None:
    release = gsd.Release.load(folder / "release")
    path = tmp_path / "release.html"
    path.write_text("old")
    gsd.write_report(release, path)
    assert path.read_text() == release_page(release)
    with pytest.raises(GsdError, match=r"must end in \.html$"):
        gsd.write_report(release, tmp_path / "release.json")


def test_evaluations_are_not_written_into_a_release(copy: Evaluation, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "deep").mkdir(parents=True)
    (here / "release.json").write_text("{}")
    gsd.write_report(copy, here / "report.html")  # not every file of that name makes a release
    (here / "release.json").write_text('{"format": "private-gsd release"}')
    (tmp_path / "link").symlink_to(here / "deep")
    for path in (tmp_path / "link" / "report.html", here / "deep" / "report.html"):
        with pytest.raises(GsdError, match="may be published"):
            gsd.write_report(copy, path)
        assert not path.exists()


def test_mistakes_are_named(copy: Evaluation, tmp_path: Path) -> None:
    with pytest.raises(GsdError, match=r"must end in \.html or \.json"):
        gsd.write_report(copy, tmp_path / "report.txt")
    with pytest.raises(GsdError, match="cannot be written"):
        gsd.write_report(copy, tmp_path / "nowhere" / "report.html")
    with pytest.raises(GsdError, match="takes a Release or an Evaluation, not str"):
        gsd.write_report("release", tmp_path / "report.html")  # type: ignore[arg-type]
