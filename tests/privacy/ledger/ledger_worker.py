"""Other processes for the tests of the ledger: they race, die, run out of disk or of rights.

Run as a script, with what to do and its arguments. Commands come on standard input, a line each,
and every one is answered by lines on standard output.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger

UNITS = 1000
STEPS = ("BEGIN IMMEDIATE", "INSERT INTO charges", "COMMIT", "charged", "released", "never")


def say(**words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def wait_until(moment: float) -> None:
    while time.monotonic() < moment:  # sleeping would wake up too late for a close race
        pass


def race(path: str) -> None:
    """Charge on command, in one ledger that stays open."""

    def dawdle(_: str) -> None:  # called before every statement
        time.sleep(random.uniform(0, 0.003))

    with Ledger(path, create=True) as ledger:
        with ledger.transaction() as connection:
            pass
        say(ready=True)
        for line in sys.stdin:
            command = json.loads(line)
            connection.set_trace_callback(dawdle if command["dawdle"] else None)
            wait_until(command["start"])
            try:
                charge = ledger.charge(
                    command["dataset"], command["units"], mechanism="test", groups=["g"], run="race"
                )
                say(won=charge.id)
            except BudgetError as error:
                say(refused=str(error))
            except LedgerError as error:
                say(failed=str(error))


def race_to_create() -> None:
    """Open, use and close a ledger of a given name."""
    say(ready=True)
    for line in sys.stdin:
        command = json.loads(line)
        wait_until(command["start"])
        try:
            with Ledger(command["path"], create=True) as ledger:
                ledger.add_dataset("d", RhoBudget(UNITS, 1e-9, "paper"))
                say(won=ledger.charge("d", 1, mechanism="test", groups=[], run="create").id)
        except LedgerError as error:
            say(failed=str(error))


def die(path: str, released: str) -> None:
    """Fork a process for every line, which charges and releases until it dies.

    The line names the step before which it kills itself. Forking saves the time of importing.
    """
    say(ready=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            charge_and_release(path, Path(released), line.strip())
            os._exit(0)
        say(pid=child)
        say(status=os.waitpid(child, 0)[1])


def charge_and_release(path: str, released: Path, last: str) -> None:
    def step(name: str) -> None:
        if name.startswith(last):
            os.kill(os.getpid(), signal.SIGKILL)

    ledger = Ledger(path, create=True)
    with ledger.transaction() as connection:
        pass
    connection.set_trace_callback(step)  # called before the statement runs
    file = os.open(released, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        charge = ledger.charge("d", UNITS, mechanism="test", groups=["g"], run="die")
        step("charged")
        os.write(file, f"{charge.id}\n".encode())
        os.fsync(file)
        step("released")


def run_out_of_disk(path: str, size: str) -> None:
    """Charge until files can grow no more, then look."""
    import resource  # not on Windows

    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
    paid = []
    with Ledger(path, create=True) as ledger:
        try:
            while True:
                charge = ledger.charge("d", UNITS, mechanism="test", groups=["g" * 999], run="full")
                paid.append(charge.id)
        except LedgerError as error:
            say(paid=paid, failed=str(error), seen=[c.id for c in ledger.charges("d")])


def without_rights(*command: str) -> None:
    """Become the command, without the right of root to write what is read-only."""
    if os.geteuid() == 0:
        library = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if library.prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
                sys.exit(77)
    os.execv(command[0], command)


if __name__ == "__main__":
    modes = (race, race_to_create, die, run_out_of_disk, without_rights)
    {mode.__name__: mode for mode in modes}[sys.argv[1]](*sys.argv[2:])
