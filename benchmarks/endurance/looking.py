"""Looking at damaged files: what may come of it, and what is looked at.

A damage is *refused* (in words, with an exit code), or *harmless* (all results are as they were,
and a ledger shows no less spent and no more remaining than is true). Text without a checksum may
have *changed*: nobody can notice that a 3 was a 2. Anything else is a failure: *silent*, where
another result came out, a *traceback*, a *crash* or a *hang*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.endurance.children import Ended

# From the best to the worst; what several commands say of one damage is the worst of it.
OUTCOMES = ("harmless", "refused", "changed", "silent", "traceback", "crash", "hang")
FAILURES = OUTCOMES[3:]
# Settings of quick runs.
QUICK = ("--rows", "40", "--projector", "gsd:denoise=false", "--workload", "categorical:2")


@dataclass
class Looked:
    """What came of commands on a damaged file.

    Attributes:
        outcomes: One for each command.
        words: What was said or shown where it was a failure.
    """

    outcomes: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def take(self, ended: Ended, same: Callable[[], bool], what: str, lost: str = "silent") -> bool:
        """Note how a command ended; true if it did its work.

        Args:
            ended: How it ended.
            same: Whether its result is as if nothing had happened.
            what: The command, in words.
            lost: What another result is called.
        """
        outcome = ended.trouble
        if outcome is None and ended.code:
            outcome = "refused" if ended.refused else "silent"
        if outcome is None:
            outcome = "harmless" if same() else lost
        self.note(outcome, f"{what}: {ended.last_words if ended.code else 'another result'}")
        return ended.code == 0

    def note(self, outcome: str, words: str) -> None:
        """Note an outcome."""
        self.outcomes.append(outcome)
        if outcome in FAILURES:
            self.words.append(f"{outcome}: {words}")

    @property
    def worst(self) -> str:
        """The worst outcome."""
        return max(self.outcomes, key=OUTCOMES.index)


@dataclass(frozen=True)
class Subject:
    """A folder whose files are damaged one at a time.

    Attributes:
        name: What it is, in words.
        template: How the folder is; it is copied to ``place`` for each damage.
        place: Where the folder must be: runs know where their ledgers are.
        files: The files to damage, relative to it.
        look: Goes through the commands that read the damaged file.
        other: Another folder of the same kind, from which files are swapped.
    """

    name: str
    template: Path
    place: Path
    files: tuple[str, ...]
    look: Callable[[Path, str, int], Looked]
    other: Path | None = None


def plain(name: str) -> str:
    """A file's name without digests and numbers."""
    return re.sub(r"table-\d+", "table-N", re.sub(r"[0-9a-f]{16}", "*", name))
