"""Settings that all tests share."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.engines import postgres, spark  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.scheduler import LoadScopeScheduling

# Machines are noisy: no test fails for its time. Failing examples are printed to be replayed.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=40,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell that starts tests in the background has them ignore Ctrl-C, and so would what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each worker has a core of its own: threads of BLAS or OpenMP wait for one another there, and a sum
# of 60,000 numbers took 19 ms instead of 0.03. NumPy reads this when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

# What JAX compiles is kept for the next test and the next run. JAX reads this when it is imported.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parent.parent / ".pytest_cache/jax")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# What goes to one worker, by its name, in the order in which it begins; the first that fits counts.
# Kernels have a small form, and a large one with predicates, sums and rules, which takes a minute
# or two to compile: whoever needs it goes to one worker, and it is compiled once, while the other
# worker compiles the small one. Servers start once too, and what brings threads of its own comes
# when they have started.
GROUPS = {
    "large": (
        r"/test_(rules|constraints|knowledge|sampling|sums|predicates|knowledge_cli|edits|damage|rehearsal)\.py"
        r"|/genetic/.*(\[all of them|any_schema|absurd|one_column)"
    ),
    "engines": r"/sources/test_(contract|postgres)\.py|/test_neighbours\.py",
    "evaluation": r"/evaluation/test_(browser|evaluate)\.py",
    "baselines": r"/baselines/|/test_(experiments|interruptions)\.py",
    "": "",
}


def group_of(nodeid: str) -> str:
    """The group of a test, and nothing where it may go anywhere."""
    return next(name for name, pattern in GROUPS.items() if re.search(pattern, nodeid))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say in which order tests come."""
    order = list(GROUPS)
    items.sort(key=lambda item: order.index(group_of(item.nodeid)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Send groups to workers, whole and in their order.

    The marks that xdist has for it get lost since pytest 9.2, where it cannot rename tests.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid) or nodeid

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture(autouse=True, scope="session")
def _unsynced() -> Iterator[None]:
    """Wait for no disk: a process that dies loses nothing of what it wrote, only a machine does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _undenoised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases that are ten times as fast: only tests marked ``denoised`` ask how good they are.

    Programs that run by themselves are as users have them.
    """
    from private_gsd import GeneticSearch

    def quick(**settings: Any) -> GeneticSearch:
        return GeneticSearch(**{**settings, "denoise": False})

    if request.node.get_closest_marker("denoised") is None:
        monkeypatch.setattr("private_gsd.projection.projectors.GeneticSearch", quick)
