"""Writing: one call that writes the release report or the evaluation report (confidential)."""

from __future__ import annotations

from pathlib import Path

from private_gsd.errors import GsdError
from private_gsd.evaluation.report.evaluation_report import evaluation_page
from private_gsd.evaluation.report.release_report import release_page
from private_gsd.evaluation.result import Evaluation
from private_gsd.runs.release import Release
from private_gsd.system import durable_files


def write_report(what: Release | Evaluation, path: str | Path) -> None:
    """Write a report: one HTML file that loads nothing from anywhere.

    The report of a release is made from the release alone and may be published with it. The report
    of an evaluation is confidential: it holds figures of the sensitive data, and a path in a
    release folder is refused. An existing file is replaced. The file is written completely or not
    at all.

    Args:
        what: A release, or the result of ``evaluate``.
        path: The file, which ends in ".html"; for an evaluation also ".json", which gets every
            figure as JSON.
    """
    path = Path(path)
    text = _text(what, path)
    try:
        durable_files.write(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise GsdError(f"{path}: cannot be written: {error.strerror or error}") from None


def _text(what: Release | Evaluation, path: Path) -> str:
    if isinstance(what, Release):
        _check_suffix(path, ".html")
        return release_page(what)
    if not isinstance(what, Evaluation):
        raise GsdError(
            f"write_report takes a Release or an Evaluation, not {type(what).__name__}; a fitted "
            "synthesizer has its release in release_"
        )
    _check_suffix(path, ".html", ".json")
    refuse_release_folder(path)
    return what.json() if path.suffix == ".json" else evaluation_page(what)


def _check_suffix(path: Path, *suffixes: str) -> None:
    if path.suffix not in suffixes:
        raise GsdError(f"{path}: the report must end in {' or '.join(suffixes)}")


def refuse_release_folder(path: Path) -> None:
    """Refuse to write confidential figures into a folder that may be published."""
    for folder in path.resolve().parents:
        if Release(folder).is_one:
            raise GsdError(
                f"{path}: is in the release {folder}, which may be published; an evaluation reads "
                "the sensitive data and is confidential. Choose another place"
            )
