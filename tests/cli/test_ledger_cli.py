"""``private-gsd ledger`` as a person meets it: real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from private_gsd.privacy.budget import INSECURE, RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from private_gsd.privacy.record import at_most
from tests.cli.running import run
from tests.privacy.ledger.processes import WORKER

CREATE = ("ledger", "create", "ledger.db", "--dataset", "census")
TERMS = ("--epsilon", "1", "--delta", "1e-6", "--conversion", "paper")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a ledger: one dataset half spent, one untouched."""
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        budget = RhoBudget.from_rho(0.5, delta=1e-6, conversion="paper")
        ledger.add_dataset("census [2020]", budget)
        ledger.add_dataset("other", RhoBudget.from_rho(2.0, delta=1e-9), "add-remove")
        groups = ["age × sex", "[red]income", "a", "b", "c"]
        for part in budget.split([1, 1, 2])[:2]:
            ledger.charge(
                "census [2020]", part, mechanism="discrete gaussian", groups=groups, run="first"
            )
    return tmp_path


def test_create(tmp_path: Path) -> None:
    out, _ = run(*CREATE, *TERMS, "--neighbours", "add-remove", cwd=tmp_path)
    assert "ledger.db: dataset 'census' may spend epsilon 1 at delta 1e-06, add-remove" in out
    with Ledger(tmp_path / "ledger.db") as ledger:
        account = ledger.account("census")
        assert account.budget == RhoBudget.from_epsilon(1, 1e-6, "paper")
        assert account.neighbours == "add-remove"
        ledger.charge("census", account.budget.units, mechanism="m", groups=[], run="r")
    out, _ = run(*CREATE, *TERMS, "--neighbours", "add-remove", cwd=tmp_path)
    assert "of which 0 remains" in out  # the same terms again change nothing
    _, error = run(*CREATE, *TERMS, cwd=tmp_path, code=9)
    assert "error: ledger.db: dataset 'census' is there already, with" in error
    assert "add-remove neighbours; its terms cannot become" in error
    run("ledger", "create", "ledger.db", "--dataset", "more", *TERMS, cwd=tmp_path)
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert [account.dataset for account in ledger.accounts()] == ["census", "more"]


def test_the_conversion_that_nobody_gave(tmp_path: Path) -> None:
    """The best one; the dataset's own where it is known."""
    terms = ("--epsilon", "1", "--delta", "1e-6")
    for _ in range(2):
        out, _ = run(*CREATE, *terms, cwd=tmp_path)
        assert f"rho {RhoBudget.from_epsilon(1, 1e-6, 'gdp').rho:.6g}" in out
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.add_dataset("other", RhoBudget.from_epsilon(1, 1e-6))
    out, _ = run("ledger", "create", "ledger.db", "--dataset", "other", *terms, cwd=tmp_path)
    assert f"rho {RhoBudget.from_epsilon(1, 1e-6).rho:.6g}" in out


def test_terms_that_make_no_sense_make_no_file(tmp_path: Path) -> None:
    run(*CREATE, "--epsilon", "-1", "--delta", "1e-6", cwd=tmp_path, code=8)
    assert list(tmp_path.iterdir()) == []


def test_show(folder: Path) -> None:
    out, _ = run("ledger", "show", "ledger.db", cwd=folder)
    accounts, charges = out.split("\n\n")
    with Ledger(folder / "ledger.db", create=True) as ledger:
        account = ledger.account("census [2020]")
        made = ledger.charges("census [2020]")
    lines = [" ".join(line.split()) for line in accounts.splitlines()]
    assert lines[0] == "dataset terms rho epsilon spent"
    assert lines[1].startswith("census [2020] delta 1e-06 spent 0.25")
    assert f"{account.epsilon_of(account.spent):.6g}" in lines[1]
    assert lines[1].endswith("█████░░░░░ 50%")
    assert lines[2].startswith("replace-one remaining 0.25 ")
    assert lines[3] == f"paper epsilon total 0.5 {at_most(account.budget.epsilon)}"
    assert lines[4].startswith("other delta 1e-09 spent 0 0 ░░░░░░░░░░ 0%")
    assert charges.count("discrete") == 2
    assert "0.125" in charges
    assert "2 more" in charges
    assert "[red]income" in charges
    assert made[0].at[:10] in charges


def test_show_calls_the_guarantee_and_the_accounting_by_their_names(folder: Path) -> None:
    out, _ = run("ledger", "show", "ledger.db", cwd=folder)
    words = " ".join(out.split())
    assert (
        "Guaranteed is the total, for all noisy answers that this ledger pays for, now and later."
        in words
    )
    assert "The rest is accounting" in words
    assert "NOT PRIVATE" not in out
    with Ledger(folder / "ledger.db") as ledger:
        seeded = f"discrete gaussian ({INSECURE})"
        ledger.charge("other", 1, mechanism=seeded, groups=["g"], run="test")
    out, _ = run("ledger", "show", "ledger.db", cwd=folder)
    assert "now and later but as said below." in " ".join(out.split())
    assert "dataset 'other' is NOT PRIVATE: the noise of charges 3 came from a seed" in out


def test_show_one(folder: Path) -> None:
    out, _ = run("ledger", "show", "ledger.db", "--dataset", "other", cwd=folder)
    assert "census" not in out
    assert "no charges yet" in out


def test_show_as_json(folder: Path) -> None:
    out, notes = run("ledger", "show", "ledger.db", "--json", cwd=folder)
    with Ledger(folder / "ledger.db", create=True) as ledger:
        records = [ledger.privacy_record(name) for name in ("census [2020]", "other")]
    assert json.loads(out) == records
    assert notes == ""
    words = ("ledger", "show", "ledger.db", "--json", "--dataset", "other")
    assert json.loads(run(*words, cwd=folder)[0]) == records[1:]


def test_the_bar_is_full_only_when_nothing_remains(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        for name, left in (("almost", 1), ("all", 0)):
            budget = RhoBudget.from_rho(0.5, delta=1e-6, conversion="paper")
            ledger.add_dataset(name, budget)
            ledger.charge(name, budget.units - left, mechanism="m", groups=["g"], run="r")
    out, _ = run("ledger", "show", "ledger.db", cwd=tmp_path)
    assert "█████████░ 99%" in out
    assert "██████████ 100%" in out


def test_cancel(folder: Path) -> None:
    """What is reserved can be spent by others again; what was spent stays spent."""
    with Ledger(folder / "ledger.db") as ledger:
        reservation = Reservation(ledger, "other", "abc", "me")
        reservation.reserve(10**6)
        reservation.charge("first", 10**5, "discrete gaussian", ["age"])
    out, _ = run("ledger", "show", "ledger.db", "--dataset", "other", cwd=folder)
    assert f"reserved {9 * 10**5 / 2**52:.6g}" in " ".join(out.split())
    assert "is reserved for run 'abc', which is not finished" in out
    out, _ = run("ledger", "cancel", "ledger.db", "abc", "--dataset", "other", cwd=folder)
    assert "reserved for run 'abc' is cancelled" in out
    out, _ = run("ledger", "show", "ledger.db", "--dataset", "other", cwd=folder)
    assert "reserved" not in out
    with Ledger(folder / "ledger.db") as ledger:
        assert ledger.account("other").spent == 10**5
    run("ledger", "cancel", "ledger.db", "abcd", "--dataset", "other", cwd=folder, code=9)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("show", "nowhere.db"), 9, "error: nowhere.db: no such ledger; make one with"),
        (("show", "text.db"), 9, "error: text.db: not a ledger"),
        (("show", "."), 9, "error: .: not a file, and so not a ledger"),
        (("show", "ledger.db", "--dataset", "othr"), 9, "(did you mean 'other'?)"),
        (("create", "text.db", "--dataset", "d", *TERMS), 9, "error: text.db: not a ledger"),
        (("create", "no/l.db", "--dataset", "d", *TERMS), 9, "no/l.db: there is no folder no"),
        (("create", "new.db", "--dataset", "d", "--epsilon", "0", "--delta", "1e-6"), 8, "epsilon"),
        (("create", "new.db", "--dataset", "d", "--epsilon", "1", "--delta", "2"), 8, "delta"),
        (("create", "new.db", "--dataset", "a\nb", *TERMS), 9, "must be a line of text"),
        (("create", "new.db", *TERMS), 2, "--dataset"),
    ],
)
def test_bad_input(folder: Path, words: tuple[str, ...], code: int, message: str) -> None:
    (folder / "text.db").write_text("precious")
    out, error = run("ledger", *words, cwd=folder, code=code)
    assert message in error
    assert out == ""
    assert (folder / "text.db").read_text() == "precious"


@pytest.mark.slow
def test_show_where_nothing_can_be_written(folder: Path) -> None:
    expected, _ = run("ledger", "show", "ledger.db", cwd=folder)
    (folder / "ledger.db").chmod(0o444)
    folder.chmod(0o555)
    python = [sys.executable, WORKER, "without_rights", sys.executable, "-m", "private_gsd.cli"]
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    shown, created = (
        subprocess.run(
            [*map(str, python), "ledger", *words],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        for words in (
            ("show", "ledger.db"),
            ("create", "ledger.db", "--dataset", "d", *TERMS),
        )
    )
    folder.chmod(0o755)
    if shown.returncode == 77:
        pytest.skip("root here cannot give up its rights")
    assert (shown.returncode, shown.stdout) == (0, expected)
    assert created.returncode == 9
    assert "error: ledger.db: it is read-only" in created.stderr
    assert [entry.name for entry in folder.iterdir()] == ["ledger.db"]
