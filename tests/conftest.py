"""Settings that all tests share."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.engines import postgres, spark  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

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

# Commands write lines as wide as this, whoever runs the tests.
os.environ["COLUMNS"] = "100"

# Files of tests are in memory where there is room for them: a charge to a ledger waits for the
# disk, 22 ms of it on a virtual machine, and some tests charge a thousand times. Some start
# programs that they wrote, which not every machine allows in memory.
MEMORY = Path("/dev/shm")
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > 4 * 2**30
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# What JAX compiles is kept for the next test and the next run. JAX reads this when it is imported.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parent.parent / ".pytest_cache/jax")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# What goes to one worker, in the order in which it begins: tests say it by ``mark.worker``.
# Kernels have a small form, and a large one with predicates, sums and rules, which takes a minute
# or two to compile: whoever needs it goes to one worker, and it is compiled once, while the other
# worker compiles the small one. Servers start once too, and what brings threads of its own comes
# when they have started.
WORKERS = ("large", "engines", "evaluation", "baselines")
# Where a worker of xdist writes which test goes where: the scheduler knows tests by name alone.
ASSIGNMENT = pytest.StashKey[Path]()
# Programs that are for Linux and macOS alone.
UNIX = (
    "benchmarks_/test_endurance.py",
    "benchmarks_/test_starting.py",
    "kernels/cache_worker.py",
)
collect_ignore = list(UNIX) if sys.platform == "win32" else []
# What a test needs that Windows does not have; workers are killed, and limit files.
NOT_ON_WINDOWS = re.compile(
    r"SIG(KILL|HUP|INT)|os\.kill|chmod|mkfifo|symlink_to|/proc/|/dev/|resource|fcntl|fork|openpty"
    r"|_worker|unshare|cannot_grow|not_utf8"
)


def worker_of(item: pytest.Item) -> str:
    """What the closest mark of a test says, and nothing where it may go anywhere."""
    mark = item.get_closest_marker("worker")
    if mark is None:
        return ""
    (name,) = mark.args
    if name not in WORKERS:
        raise pytest.UsageError(f"{item.nodeid}: mark.worker takes one of {', '.join(WORKERS)}")
    return str(name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say in which order tests come, and tell the scheduler what belongs together."""
    if sys.platform == "win32":
        for item in items:
            if isinstance(item, pytest.Function) and NOT_ON_WINDOWS.search(
                inspect.getsource(item.function)
            ):
                item.add_marker(pytest.mark.skip("it needs what Windows does not have"))
    order = [*WORKERS, ""]
    items.sort(key=lambda item: order.index(worker_of(item)))
    given = getattr(config, "workerinput", {"workerid": ""})
    if given["workerid"] == "gw0":
        found = {item.nodeid: worker_of(item) for item in items}
        Path(given["assignment"]).write_text(json.dumps(found))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker of xdist where to write which test goes where."""
    if ASSIGNMENT not in node.config.stash:
        folder = tempfile.mkdtemp(prefix="assignment-")
        node.config.add_cleanup(lambda: shutil.rmtree(folder))
        node.config.stash[ASSIGNMENT] = Path(folder) / "workers.json"
    node.workerinput["assignment"] = str(node.config.stash[ASSIGNMENT])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Send what belongs together to one worker, whole and in its order.

    The marks that xdist has for it get lost since pytest 9.2, where it cannot rename tests.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        @cached_property
        def workers(self) -> dict[str, str]:
            found: dict[str, str] = json.loads(config.stash[ASSIGNMENT].read_text())
            return found

        def _split_scope(self, nodeid: str) -> str:
            return self.workers[nodeid] or nodeid

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture(autouse=True, scope="session")
def _unsynced() -> Iterator[None]:
    """Wait for no disk: a process that dies loses nothing of what it wrote, only a machine does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
