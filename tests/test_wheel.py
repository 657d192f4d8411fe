"""The wheel: built from the checkout, installed in an empty environment, and used.

The environment is in a folder with spaces and letters that are not ASCII. There is no home, no
PYTHONPATH and no locale. The dependencies are those of these tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import private_gsd

ROOT = Path(__file__).parent.parent
WINDOWS = sys.platform == "win32"
# Without these, a program does not start.
NEEDED = ("PATH", "SYSTEMROOT", "TEMP")

pytestmark = pytest.mark.worker("large")


def run(*words: str | Path, cwd: Path) -> str:
    """What a program prints, in an environment of nearly nothing."""
    environment = {name: os.environ[name] for name in NEEDED if name in os.environ}
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(errors="replace")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment in ``venv`` where the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel") / "Zoë’s tables, größer"
    folder.mkdir()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    [wheel] = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    python = scripts(folder) / "python"
    run(*pip, f"--python={python}", "install", "--quiet", "--no-deps", wheel, cwd=folder)
    # The dependencies, but not the checkout, which is installed beside them by a file that is not
    # read here.
    path = sysconfig.get_path("purelib")
    installed = next((folder / "venv").rglob("site-packages"))
    # Python reads it in the encoding of the locale.
    written = f"import sys; sys.path.append({path!a})\n"
    (installed / "dependencies.pth").write_text(written, encoding="ascii")
    return folder


def scripts(folder: Path) -> Path:
    return folder / "venv" / ("Scripts" if WINDOWS else "bin")


def test_the_wheel_is_what_is_imported(folder: Path) -> None:
    program = "import private_gsd; print(ascii(private_gsd.__file__))"
    found = run(scripts(folder) / "python", "-c", program, cwd=folder)
    assert "site-packages" in found
    assert "wheel" in found
    assert run(scripts(folder) / "private-gsd", "--version", cwd=folder).split() == [
        "private-gsd",
        private_gsd.__version__,
    ]


def test_the_demo_runs_from_the_wheel(folder: Path) -> None:
    out = run(scripts(folder) / "private-gsd", "demo", "--records", "100", cwd=folder)
    assert "5,000 synthetic rows" in out
    assert (folder / "demo" / "release.html").exists()
    typed = next((folder / "venv").rglob("py.typed"))
    assert typed.parent.name == "private_gsd"
