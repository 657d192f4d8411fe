"""The kernels' cache: whatever is wrong with it, kernels run, and nothing damaged is loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import private_gsd
from private_gsd.kernels import batches, caching, coordinate_search, exchanges, streams
from private_gsd.kernels.caching import DIGEST

PACKAGE = Path(private_gsd.__file__).parent
RUN = """
import numpy as np
from private_gsd.kernels.streams import permute
order = np.empty(6, dtype=np.int64)
permute(1, 2, 3, order)
print(sorted(order.tolist()), len(permute._cache_hits))
"""


def python(*words: str, before: tuple[str, ...] = (), **environment: str) -> str:
    """What a Python says that has neither a home nor a cache folder, but for what is given."""
    known = {key: value for key, value in os.environ.items() if "CACHE" not in key}
    # Where not even root can make a folder.
    known |= {"HOME": "/proc/nowhere", **environment}
    done = subprocess.run(
        [*before, sys.executable, *words], capture_output=True, text=True, env=known, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def read_only(folder: Path) -> tuple[str, ...]:
    """What runs a command that sees a folder as on a disk that cannot be written."""
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    words = ("unshare", "-Urm", "sh", "-c", script, str(folder))
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("READ-ONLY PLACES ARE NOT TESTED HERE: no mounts of one's own are allowed")
    return words


def copied(folder: Path) -> Path:
    shutil.copytree(PACKAGE, folder / "private_gsd", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
def test_a_damaged_cache_is_compiled_again(tmp_path: Path) -> None:
    """Torn, altered, swapped, unreadable, no file at all, on a full disk: 90 kinds of damage."""
    root = str(Path(__file__).parent.parent.parent)
    path = os.pathsep.join([str(PACKAGE.parent), root])
    told = json.loads(
        python("-m", "tests.kernels.cache_worker", str(tmp_path), PYTHONPATH=path).splitlines()[-1]
    )
    assert told["damages"] > 85
    assert told["mended"] > 70


@pytest.mark.slow
def test_a_package_in_a_read_only_place(tmp_path: Path) -> None:
    """Without a home, too: it says its version, and compiles for itself what it needs."""
    tree = copied(tmp_path)
    before = read_only(tree)
    shown = python("-m", "private_gsd.cli", "--version", before=before, PYTHONPATH=str(tree))
    assert shown == f"private-gsd {private_gsd.__version__}"
    assert python("-c", RUN, before=before, PYTHONPATH=str(tree)) == "[0, 1, 2, 3, 4, 5] 0"
    assert not list(tree.rglob("*.kernel"))


@pytest.mark.slow
def test_kernels_that_were_compiled_before_are_found_in_a_read_only_place(tmp_path: Path) -> None:
    """As in the image of a container."""
    tree = copied(tmp_path / "tree")
    before = read_only(tmp_path)
    cache = str(tmp_path / "cache")
    python("-c", RUN, PYTHONPATH=str(tree), NUMBA_CACHE_DIR=cache)
    assert not list(tree.rglob("*.kernel"))
    known = {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": cache}
    assert python("-c", RUN, before=before, **known) == "[0, 1, 2, 3, 4, 5] 1"


@pytest.mark.slow
def test_a_package_in_an_archive(tmp_path: Path) -> None:
    """There is no source to stamp an entry with: nothing is kept."""
    archive = shutil.make_archive(str(tmp_path / "all"), "zip", copied(tmp_path / "tree"))
    run = "import sys; sys.path.insert(0, sys.argv[1])\n" + RUN
    command = ["-I", "-c", run, archive]
    assert python(*command) == "[0, 1, 2, 3, 4, 5] 0"


def test_entries_are_stamped_with_a_digest_of_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for kernel in (
        coordinate_search.sweep,
        coordinate_search.sweep_parallel,
        exchanges.swap,
        batches.commit,
    ):
        assert DIGEST in kernel._cache._stamp.decode()
    stamps = {streams.permute._cache._stamp}
    for name in ("numba.__version__", "sys.version"):
        with monkeypatch.context() as patch:
            patch.setattr(f"private_gsd.kernels.caching.{name}", "0")
            stamps.add(caching.KernelCache(streams.permute.py_func)._stamp)
    assert len(stamps) == 3
