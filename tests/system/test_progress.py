"""Progress: who hears what is announced, and that compiling is announced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from private_gsd.kernels.caching import COMPILING
from private_gsd.system.progress import announce, listening, shown


def test_the_newest_listener_hears_what_is_announced() -> None:
    heard: list[Any] = []

    def first(*now: Any) -> None:
        heard.append(("first", *now))

    def second(*now: Any) -> None:
        heard.append(("second", *now))

    announce("nobody", 0, None)
    with shown(first):
        announce("one", 0, None)
        with listening(second):
            announce("two", 1, 2)
        announce("three", 2, 2)
    with shown(False):
        announce("nobody", 0, None)
    assert heard == [("first", "one", 0, None), ("second", "two", 1, 2), ("first", "three", 2, 2)]


# What the sources' own folder holds is of another version than this.
FIT = """
import json
from private_gsd.kernels import caching

caching.DIGEST = "0" * 64

import private_gsd as gsd
from private_gsd import datasets

schema = datasets.census_schema().select(["sex", "age"])
table = datasets.census(200).select(schema.names)
told = []
synth = gsd.Synthesizer(schema, epsilon=1.0, rows=50)
synth.fit(table, insecure_noise_seed=1, progress=lambda *now: told.append(now))
print(json.dumps(told))
"""


def test_compiling_is_reported_once_on_a_machine(tmp_path: Path) -> None:
    """In the first process, before noise is added; never in the second."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def parts() -> list[str]:
        words = [sys.executable, "-c", FIT]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
        return [what for what, *_ in json.loads(done.stdout)]

    first, second = parts(), parts()
    last = len(first) - 1 - first[::-1].index(COMPILING)
    assert last < first.index("adding noise")
    assert COMPILING not in second
    assert "adding noise" in second
