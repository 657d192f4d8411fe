"""Children: work in forked processes, which may be killed, crash or hang, and what they said."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from private_gsd.cli import main as command_line
from private_gsd.errors import GsdError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A child that takes longer hangs.
PATIENCE = 120.0
# How much address space a child may have beside its parent's: damaged files may ask for any amount.
MEMORY = 8 * 2**30
TRACEBACK = "Traceback (most recent call last)"
UNEXPECTED = 99


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    Attributes:
        code: Its exit code, or minus the number of the signal that ended it.
        out: Its standard output.
        err: Its standard error.
        hung: Whether it had to be killed because it took too long.
    """

    code: int
    out: str
    err: str
    hung: bool = False

    @property
    def killed(self) -> bool:
        """Whether we killed it, on purpose."""
        return self.code == -signal.SIGKILL and not self.hung

    @property
    def trouble(self) -> str | None:
        """What must never happen: a traceback, a crash or a hang."""
        if self.hung:
            return "hang"
        if self.code < 0 and not self.killed:
            return "crash"
        if self.code == UNEXPECTED or TRACEBACK in self.err or TRACEBACK in self.out:
            return "traceback"
        return None

    @property
    def refused(self) -> bool:
        """Whether it said in words why it did not do its work."""
        return self.trouble is None and self.code > 0 and bool(self.err.strip())

    @property
    def last_words(self) -> str:
        """The last line that it said about its trouble."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.code}, without a word"


class Child:
    """A forked process.

    Args:
        work: What it does.
        folder: Where its output goes, to files of its own.
        cwd: Where it runs.
    """

    def __init__(self, work: Callable[[], object], folder: Path, cwd: Path | None = None) -> None:
        name = f"{os.getpid()}-{time.monotonic_ns()}"
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work, cwd)
        self._status: int | None = None

    def _run(self, work: Callable[[], object], cwd: Path | None) -> None:
        """The child's side, which never returns."""
        code = UNEXPECTED
        try:
            for stream, path in ((1, self._out), (2, self._err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            # The parent's may write elsewhere, as a test's do.
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            if cwd is not None:
                os.chdir(cwd)
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            work()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
        except GsdError as error:
            sys.stderr.write(f"error: {error}\n")
            code = error.exit_code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is None

    def kill(self) -> None:
        """End it at once, wherever it is."""
        if self.running:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, patience: float = PATIENCE) -> Ended:
        """How it ended."""
        end = time.monotonic() + patience
        pause = 0.001
        while self.running and time.monotonic() < end:
            time.sleep(pause)
            pause = min(1.5 * pause, 0.02)
        hung = self.running
        if hung:
            self.kill()
        while self.running:
            time.sleep(0.001)
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        texts = []
        for path in (self._out, self._err):
            # A child that was killed at once has not opened them.
            texts.append(path.read_text(errors="replace") if path.exists() else "")
            path.unlink(missing_ok=True)
        return Ended(code, texts[0], texts[1], hung)


def call(work: Callable[[], object], folder: Path) -> Ended:
    """Work in a child, to its end."""
    return Child(work, folder).wait()


def command(words: Sequence[str | Path], folder: Path) -> Ended:
    """A command of the command line, in a folder, as a user has it."""

    def work() -> None:
        sys.argv = ["private-gsd", *map(str, words)]
        command_line()

    return Child(work, folder, cwd=folder).wait()
