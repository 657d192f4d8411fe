"""The wheel: built from the checkout, installed in an empty environment, and used.

The environment is in a folder with spaces and letters that are not ASCII. There is no home, no
PYTHONPATH and no locale. The dependencies are those of these tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import private_gsd
from tests.installing import build_wheel, make_environment, run

pytestmark = pytest.mark.worker("large")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment in ``venv`` where the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel") / "Zoë’s tables, größer"
    folder.mkdir()
    make_environment(folder / "venv", build_wheel(folder))
    return folder


def scripts(folder: Path) -> Path:
    return folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def test_the_wheel_is_what_is_imported(folder: Path) -> None:
    program = "import private_gsd; print(ascii(private_gsd.__file__))"
    found = run(scripts(folder) / "python", "-c", program, cwd=folder)
    assert "site-packages" in found
    assert "wheel" in found
    assert run(scripts(folder) / "private-gsd", "--version", cwd=folder).split() == [
        "private-gsd",
        private_gsd.__version__,
    ]


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(folder: Path) -> None:
    out = run(scripts(folder) / "private-gsd", "demo", "--records", "100", cwd=folder)
    assert "5,000 synthetic rows" in out
    assert (folder / "demo" / "release.html").exists()
    typed = next((folder / "venv").rglob("py.typed"))
    assert typed.parent.name == "private_gsd"
