"""The wheel: built from the checkout, and installed in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Without these, a program does not start.
NEEDED = ("PATH", "SYSTEMROOT", "TEMP")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*words: str | Path, cwd: Path) -> str:
    """What a program prints, in an environment of nearly nothing."""
    environment = {name: os.environ[name] for name in NEEDED if name in os.environ}
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(errors="replace")


def build_wheel(folder: Path) -> Path:
    """The wheel of the checkout, in a folder."""
    run(*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    [wheel] = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, *wheels: Path) -> Path:
    """Make an environment with wheels and with the dependencies of these tests; its Python.

    The checkout, which is installed beside the dependencies by a file that is not read here, is not
    in it.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder.name, cwd=folder.parent)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    for wheel in wheels:
        run(*PIP, f"--python={python}", "install", "--quiet", "--no-deps", wheel, cwd=folder)
    # Python reads it in the encoding of the locale.
    written = f"import sys; sys.path.append({sysconfig.get_path('purelib')!a})\n"
    installed = next(folder.rglob("site-packages"))
    (installed / "dependencies.pth").write_text(written, encoding="ascii")
    return python
