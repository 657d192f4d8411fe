"""What commands show, and what they write as text."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from private_gsd.cli import console
from private_gsd.errors import GsdError


def test_warnings_are_notes(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet, said in ((False, "note: mind the [gap]\n"), (True, "")):
        with console.notes_for_warnings(quiet):
            warnings.warn("mind the [gap]", stacklevel=1)
        assert capsys.readouterr() == ("", said)


def test_batches_pass_by(capsys: pytest.CaptureFixture[str]) -> None:
    batches = [[1, 2], [3]]
    assert list(console.with_progress(iter(batches), "reading", 3)) == batches
    assert capsys.readouterr() == ("", "")  # no bar off a terminal


def test_not_private_is_said_with_its_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    console.warn_if_not_private({"not_private_because": ["one", "two"]})
    assert capsys.readouterr().err == "NOT PRIVATE: one\nNOT PRIVATE: two\n"


def test_what_an_encoding_lacks_is_spelled() -> None:
    """As in code page 1252 of Windows."""
    handler = "private_gsd.spell"
    assert "ε ≤ 1 … █░ é €".encode("cp1252", handler).decode("cp1252") == "epsilon <= 1 … #. é €"
    assert "▁▇ 表".encode("ascii", handler) == b"17 ?"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", handler)


def test_a_text_replaces_no_other_unasked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "text"
    console.write_text(path, "one", force=False)
    with pytest.raises(GsdError, match="exists already"):
        console.write_text(path, "two", force=False)
    assert path.read_text() == "one"
    console.write_text(path, "two", force=True)
    assert path.read_text() == "two"


@pytest.mark.parametrize(
    ("variables", "terminal", "opened"),
    [
        ({"DISPLAY": ":0"}, True, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True, True),
        ({}, True, False),
        ({"DISPLAY": ":0"}, False, False),
        ({"DISPLAY": ":0", "CI": "true"}, True, False),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "::1 1 ::1 22"}, True, False),
    ],
)
def test_a_page_is_opened_only_where_somebody_sees_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    terminal: bool,
    opened: bool,
) -> None:
    asked: list[str] = []
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: terminal)

    def show(page: str) -> bool:
        asked.append(page)
        return True

    monkeypatch.setattr("webbrowser.open_new_tab", show)
    assert console.show_page(tmp_path / "a page.html") is opened
    assert asked == ([(tmp_path / "a page.html").as_uri()] if opened else [])
