"""``plan``, ``synthesize``, ``resume``, ``sample``: the whole job, and what goes wrong with it."""

from __future__ import annotations

import errno
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import Schema, datasets
from private_gsd.cli.output_files import OutputFile
from private_gsd.errors import GsdError, LedgerError
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from private_gsd.runs.release import Release
from tests.cli.test_cli import run

NAMES = ["sex", "age", "marital", "citizen", "tenure"]
COMMON = ["table.csv", "--schema", "schema.toml", "--epsilon", "1"]
QUICK = [*COMMON, "--rows", "100"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table and its schema."""
    datasets.census_schema().select(NAMES).write(tmp_path / "schema.toml")
    pyarrow.csv.write_csv(datasets.census(500).select(NAMES), tmp_path / "table.csv")
    (tmp_path / "there.csv").write_text("somebody's")
    return tmp_path


def charges(folder: Path) -> int:
    with Ledger(folder / "ledger.db", read_only=True) as ledger:
        return sum(len(ledger.charges(account.dataset)) for account in ledger.accounts())


def test_plan_spends_nothing(folder: Path) -> None:
    out, _ = run("plan", *COMMON, cwd=folder)
    assert "500 rows" in out
    assert "Nothing was spent." in out
    out, _ = run("plan", *COMMON, "--json", cwd=folder)
    document = json.loads(out)
    assert document["rows"] == 500
    assert document["epsilon"] == pytest.approx(1)
    adaptive = ("--mechanism", "adaptive", "--epochs", "4", "--groups", "2")
    out, _ = run("plan", *COMMON, *adaptive, cwd=folder)
    assert "4 epochs of 2 groups, selected" in out
    assert sorted(path.name for path in folder.iterdir()) == [
        "schema.toml",
        "table.csv",
        "there.csv",
    ]


def test_plan_shows_every_group_on_request(folder: Path) -> None:
    wide = ["--workload", "categorical:2", "--workload", "categorical:3", "--workload", "tree:2"]
    out, _ = run("plan", *COMMON, *wide, cwd=folder)
    assert "mean error" in out
    assert "... and 2 more (--all shows them)" in out
    out, _ = run("plan", *COMMON, *wide, "--all", cwd=folder)
    assert "more (--all" not in out
    assert out.count(" x ") == 18  # ten pairs, four triples
    unknown = ("--neighbours", "add-remove", "--expected-rows", "450")
    out, _ = run("plan", *COMMON, *unknown, "--delta", "1e-6", cwd=folder)
    assert "the number of rows gets noise of" in out
    _, err = run("plan", *COMMON, *unknown, cwd=folder, code=8)
    assert "give a delta" in err


def test_a_plan_under_add_remove_does_not_look_at_the_data(folder: Path) -> None:
    """The number of rows is private there: a public guess takes its place."""
    unknown = ("--neighbours", "add-remove", "--delta", "1e-6")
    _, err = run("plan", *COMMON, *unknown, cwd=folder, code=8)
    assert "give a public guess instead: --expected-rows N" in err
    assert "500" not in err
    guess = (*unknown, "--expected-rows", "450", "--all")
    with_data, _ = run("plan", *COMMON, *guess, cwd=folder)
    assert with_data.startswith("about 450 rows")
    (folder / "table.csv").unlink()
    assert run("plan", *COMMON, *guess, cwd=folder)[0] == with_data
    assert run("plan", *COMMON[1:], *guess, cwd=folder)[0] == with_data
    public, _ = run("plan", *COMMON[1:], "--expected-rows", "450", "--json", cwd=folder)
    assert json.loads(public)["rows_are_a_guess"] is True
    _, err = run("plan", *COMMON[1:], cwd=folder, code=4)
    assert "a plan needs the table, for its number of rows, or --expected-rows N" in err


def test_only_who_says_so_makes_a_ledger(folder: Path) -> None:
    """A mistyped name is refused before anything is read, and says how a ledger is made."""
    words = ("-o", "o.csv", "--release", "r", "--ledger", "legder.db")
    _, err = run("synthesize", "nowhere.csv", *QUICK[1:], *words, cwd=folder, code=9)
    assert "error: legder.db: no such ledger" in err
    assert "private-gsd ledger create legder.db --dataset nowhere --epsilon TOTAL" in err
    assert not [*folder.glob("*.db*"), *folder.glob("r*")]
    terms = ("--dataset", "table", "--epsilon", "2", "--delta", "1e-6")
    run("ledger", "create", "ledger.db", *terms, cwd=folder)
    for name in ("one", "two"):  # the total is more than the first release's
        more = ("--release", name, "--ledger", "ledger.db")
        out, _ = run("synthesize", *QUICK, *more, cwd=folder)
        assert "private: epsilon = 2 at delta = 1e-06" in out
    _, err = run("synthesize", *QUICK, "--create-ledger", "-o", "o.csv", cwd=folder, code=9)
    assert "create_ledger goes with ledger" in err


def test_a_run_without_a_ledger_says_that_nobody_adds_up(folder: Path) -> None:
    out, said = run("synthesize", *QUICK, "--release", "r", cwd=folder)
    assert "is guaranteed for this release alone" in out
    assert "no ledger was given: nobody adds up" in " ".join(said.split())
    record = Release.load(folder / "r").privacy
    assert record["this_release_alone"] is True
    assert "nobody adds up what other releases of the same data spend" in record["guarantee"]
    run("report", "r", "-o", "r.html", cwd=folder)
    page = (folder / "r.html").read_text()
    assert "It is counted alone: nobody adds up" in page
    assert "now and later" not in page.split("As the privacy record states it")[0]


def test_external_measurements_that_are_not_private_show_everywhere(folder: Path) -> None:
    schema = Schema.read(folder / "schema.toml")
    outside = Measurements.from_marginals(
        schema, 500, [(["sex"], [240, 260], 0.001)], private=False
    )
    outside.save(folder / "outside")
    words = (*QUICK, "--evidence", "outside", "--release", "r")
    out, _ = run("synthesize", *words, cwd=folder)
    reason = "external measurements that are not private were used"
    assert f"NOT PRIVATE: {reason}" in out
    assert "guaranteed" not in out
    out, said = run("synthesize", *words[:-1], "quiet", "--quiet", cwd=folder)
    assert not out
    assert f"NOT PRIVATE: {reason}" in said
    release = Release.load(folder / "r")
    record = json.loads((folder / "r" / "privacy.json").read_text())
    assert record == release.privacy
    assert record["private"] is False
    assert record["guarantee"].startswith(f"NONE: {reason}")
    assert len(record["not_private_because"]) == 1
    assert record["groups_of_rows"] == record["tests"] == []
    assert f"NO: {reason}" in release._repr_html_()
    _, said = run("report", "r", "-o", "r.html", cwd=folder)
    assert f"NOT PRIVATE: {reason}" in said
    page = (folder / "r.html").read_text()
    assert f"NOT PRIVATE: {reason}" in page
    assert "made under differential privacy" not in page
    assert "guarantee in numbers" not in page
    _, said = run("sample", "r", "-o", "some.csv", cwd=folder)
    assert f"NOT PRIVATE: {reason}" in said


def test_queries_from_a_file(folder: Path) -> None:
    (folder / "queries.sql").write_text("age < 18\nage >= 18\nsex = 'male' AND age > 64\n")
    asked = [*QUICK, "--queries", "queries.sql"]
    out, _ = run("plan", *asked, "--json", cwd=folder)
    assert json.loads(out)["queries"] == 3
    run("synthesize", *asked, "--workload", "categorical:1", "--release", "r", cwd=folder)
    assert Release.load(folder / "r").workload.query(14) == "age < 18"
    (folder / "queries.sql").write_text("age < 18\nagee > 3\n")
    _, err = run("synthesize", *asked, "-o", "o.csv", cwd=folder, code=7)
    assert "queries.sql, line 2" in err
    assert "^" in err


def test_progress_on_a_terminal(folder: Path) -> None:
    """Each thing that a run does is seen, and nothing of it is left."""
    for words in ([], ["--mechanism", "adaptive", "--epochs", "2"]):
        main, terminal = pty.openpty()
        # Rich draws ten times a second; what is quick is drawn when the next thing begins.
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
        command = [sys.executable, "-m", "private_gsd", "synthesize", *QUICK, *words]
        process = subprocess.Popen(
            [*command, "-o", "out.csv", "--force", "--rows", "20000"],
            cwd=folder,
            stderr=terminal,
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        os.close(terminal)
        seen = b""
        with suppress(OSError):  # the end of a terminal is an error
            while part := os.read(main, 65536):
                seen += part
        os.close(main)
        assert process.wait() == 0
        text = seen.decode()
        assert "Traceback" not in text
        assert "Evolving" in text
        assert "million edits a second" in text
        assert "Adding noise" in text


def test_the_whole_job(folder: Path) -> None:
    words = ("-o", "out.csv", "--release", "release", "--ledger", "ledger.db", "--create-ledger")
    out, said = run("synthesize", *QUICK, *words, cwd=folder)
    assert "100 synthetic rows: out.csv" in out
    assert "private: epsilon = 1 at delta = 4e-06" in out
    assert "is guaranteed for all noisy answers that this ledger pays for, now and later" in out
    assert "of dataset 'table'" in out
    assert "accounting: rho = " in out
    assert "nobody adds up" not in said
    schema = Schema.read(folder / "schema.toml")
    made = Release.load(folder / "release")
    assert made.complete
    assert made.schema == schema
    table = pyarrow.csv.read_csv(folder / "out.csv")
    assert table.column_names == list(schema.names)
    assert table.num_rows == 100
    run("sample", "release", "-n", "250", "-o", "more.parquet", cwd=folder)
    assert pyarrow.parquet.read_table(folder / "more.parquet").num_rows == 250
    out, _ = run("resume", "release", "-o", "again.csv", "--json", cwd=folder)
    assert json.loads(out)["privacy"]["private"] is True
    assert (folder / "again.csv").read_bytes() == (folder / "out.csv").read_bytes()
    assert charges(folder) == 1
    # The same once more is one release too many for this ledger.
    _, error = run(
        "synthesize", *QUICK, "-o", "two.csv", "--ledger", "ledger.db", cwd=folder, code=8
    )
    assert "Nothing was charged or released" in error
    assert not (folder / "two.csv").exists()
    out, _ = run("synthesize", *QUICK, "-o", "three.csv", "--quiet", cwd=folder)
    assert out == ""


def test_adaptive(folder: Path) -> None:
    adaptive = ("--mechanism", "adaptive", "--epochs", "2", "--groups", "2")
    some = ("--workload", "categorical:2", "--workload", "halfspace:20")
    out, _ = run("synthesize", *QUICK, *adaptive, *some, "--release", "r", cwd=folder)
    assert f"100 synthetic rows: {folder / 'r'}" in out
    assert len(Release.load(folder / "r").epochs()) == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.csv", *QUICK[1:], "-o", "o.csv"], 4, "nowhere.csv: no such file"),
        ([*QUICK, "-o", "o.csv", "--epsilon", "0"], 8, "epsilon must be more than 0"),
        ([*QUICK, "-o", "o.csv", "--delta", "1"], 8, "delta"),
        ([*QUICK, "-o", "o.csv", "--workload", "tre:2"], 7, "did you mean 'tree'"),
        ([*QUICK, "-o", "o.csv", "--rows", "0"], 11, "rows must be a whole number"),
        ([*QUICK, "-o", "o.xlsx"], 1, "o.xlsx: the output must end in .csv or .parquet"),
        ([*QUICK, "-o", "table.csv", "--force"], 1, "table.csv: is one of the files of the table"),
        (["*able.csv", *QUICK[1:], "-o", "table.csv", "--force"], 1, "is one of the files of"),
        (["*able.csv", *QUICK[1:], "-o", "fable.csv"], 1, "is one of the files of the table"),
        ([".", *QUICK[1:], "-o", "out.csv"], 1, "out.csv: is one of the files of the table"),
        ([*QUICK[:2], "schema.csv", *QUICK[3:], "-o", "schema.csv"], 1, "is the schema, or in it"),
        ([*QUICK, "-o", "there.csv"], 1, "there.csv: exists already"),
        ([*QUICK, "-o", "ledger.csv"], 1, "ledger.csv: is the ledger, or in it"),
        ([*QUICK, "-o", "r.csv", "--release", "./r.csv"], 1, "r.csv: is the release, or in it"),
        ([*QUICK, "-o", "r/r.csv", "--release", "r"], 1, "r/r.csv: is the release, or in it"),
        ([*QUICK, "-o", "o.csv", "--dataset", ""], 9, "dataset must be a line of text"),
        ([*QUICK, "-o", "o.csv", "--epsilon", "1e300"], 8, "over the bound of rho = 1000"),
        ([*QUICK, "-o", "o.csv", "--epsilon", "1e-300"], 8, "epsilon must be at least 1e-09"),
        ([*QUICK, "-o", "no/where.csv"], 1, "no/where.csv: there is no folder no"),
        ([*QUICK], 2, "name an --output, or a --release folder"),
        ([*QUICK[:1], "--schema", "no.toml", "--epsilon", "1", "-o", "o.csv"], 3, "no.toml"),
    ],
)
def test_mistakes_cost_nothing(folder: Path, words: list[str], code: int, message: str) -> None:
    made = ("--ledger", "ledger.csv", "--create-ledger")
    _, error = run("synthesize", *words, *made, cwd=folder, code=code)
    assert message in error
    assert not list(folder.glob("ledger.csv*"))
    assert not (folder / "o.csv").exists()


def test_an_output_that_is_a_folder(folder: Path) -> None:
    (folder / "dir.csv").mkdir()
    _, error = run("synthesize", *QUICK, "-o", "dir.csv", "--force", cwd=folder, code=1)
    assert "dir.csv: is a folder" in error


def test_what_was_paid_for_is_not_thrown_away(folder: Path) -> None:
    """Told to end, or to write what cannot be written: the release is kept, and where is said."""
    command = [sys.executable, "-m", "private_gsd", "synthesize", *COMMON, "--rows", "2000000"]
    process = subprocess.Popen(
        [*command, "--ledger", "l.db", "--create-ledger", "-o", "o.csv"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (folder / "l.db").exists() or not charged(folder / "l.db"):
        time.sleep(0.02)
        assert process.poll() is None
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "Traceback" not in err
    release = Path(err.split("go on with: private-gsd resume ")[1].strip())
    assert release.is_dir()
    shutil.rmtree(release.parent)


def test_what_was_half_made_is_silent_about_it() -> None:
    """As a zip file is, whose making was interrupted."""
    program = """
import os, signal
from private_gsd.cli.synthesize import _trouble

class Half:
    def __init__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        self.made = True

    def __del__(self):
        assert self.made

with _trouble():
    Half()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, b"")


def charged(ledger: Path) -> bool:
    try:
        with Ledger(ledger, read_only=True) as opened:
            return bool(opened.charges("table"))
    except LedgerError:
        return False


def test_an_output_that_appears_meanwhile(folder: Path) -> None:
    """It is not replaced, and the release is kept."""
    target = OutputFile(folder / "o.csv", force=False)
    target.check({})
    target.path.write_text("somebody's")
    with pytest.raises(GsdError, match="exists already"):
        target.write("rows")
    assert target.path.read_text() == "somebody's"
    OutputFile(target.path, force=True).write("rows")
    assert target.path.read_text() != "somebody's"
    assert sorted(path.name for path in folder.iterdir() if "o.csv" in path.name) == ["o.csv"]


def test_a_disk_without_hard_links(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    OutputFile(folder / "o.csv", force=False).write("rows")
    assert (folder / "o.csv").exists()
    with pytest.raises(GsdError, match="exists already"):
        OutputFile(folder / "o.csv", force=False).write("rows")


def test_nohup_is_heeded(folder: Path) -> None:
    """By the handlers too, which are there when the run has measured."""
    words = [*QUICK, "--rows", "400000", "--release", "r", "-o", "o.csv"]
    code = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "from private_gsd.cli import main; "
        f"sys.argv = ['private-gsd', 'synthesize', *{words!r}]; "
        "main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=folder)
    while not (folder / "r" / "measurements" / "measurements.json").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGHUP)
    assert process.wait() == 0
    assert (folder / "o.csv").exists()


def test_a_release_that_was_handed_on(folder: Path) -> None:
    run("synthesize", *QUICK, "--release", "r", cwd=folder)
    Release.load(folder / "r").save(folder / "saved")
    run("resume", "saved", "-o", "again.csv", cwd=folder)
    assert (folder / "again.csv").exists()
    before = (folder / "table.csv").read_text()
    words = ("--data", "table.csv", "-o", "table.csv", "--force")
    _, err = run("resume", "saved", *words, cwd=folder, code=1)
    assert "is one of the files of the table" in err
    assert (folder / "table.csv").read_text() == before
    _, err = run("resume", "saved", "--query", "SELECT 1", cwd=folder, code=2)
    assert "--query goes with --data" in err


def test_quiet_is_quiet(folder: Path) -> None:
    table = datasets.census(500).select([*NAMES, "children"])
    pyarrow.csv.write_csv(table, folder / "table.csv")
    out, err = run("synthesize", *QUICK, "-o", "o.csv", "-q", cwd=folder)
    assert out == err == ""
    _, err = run("synthesize", *QUICK, "-o", "p.csv", cwd=folder)
    assert "left out" in err


def test_a_reservation_is_cancelled(folder: Path) -> None:
    with Ledger(folder / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(1.0, 1e-6))
        Reservation(ledger, "table", "abc", "me").reserve(10**6)
    out, _ = run("ledger", "show", "l.db", cwd=folder)
    assert "reserved" in out
    assert "abc" in out
    out, _ = run("ledger", "cancel", "l.db", "abc", "--dataset", "table", cwd=folder)
    assert "reserved for run 'abc' is cancelled" in out
    out, _ = run("ledger", "show", "l.db", cwd=folder)
    assert "reserved" not in out
    run("ledger", "cancel", "l.db", "abcd", "--dataset", "table", cwd=folder, code=9)


def test_interrupted_and_gone_on_with(folder: Path) -> None:
    """Ctrl-C: one line, 130, and what was paid for is not lost."""
    pyarrow.csv.write_csv(datasets.census(20_000).select(NAMES), folder / "table.csv")
    words = [*COMMON, "--rows", "400000", "--release", "r", "-o", "o.csv"]
    process = subprocess.Popen(
        [sys.executable, "-m", "private_gsd", "synthesize", *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (folder / "r" / "measurements" / "measurements.json").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert "error: interrupted" in error
    assert "go on with: private-gsd resume" in error
    assert "Traceback" not in error
    run("resume", "r", "-o", "o.csv", cwd=folder)
    assert Release.load(folder / "r").complete


def test_a_ledger_without_the_dataset_is_found_before_anything_is_made(folder: Path) -> None:
    terms = ("--dataset", "other", "--epsilon", "1", "--delta", "1e-9")
    run("ledger", "create", "ledger.db", *terms, cwd=folder)
    words = (*QUICK, "--release", "r", "--ledger", "ledger.db")
    _, error = run("synthesize", *words, cwd=folder, code=9)
    assert "no dataset 'table'" in error
    assert not (folder / "r").exists()


def test_a_table_that_lacks_a_column(folder: Path) -> None:
    text = (folder / "schema.toml").read_text().replace("[columns.tenure]", "[columns.tenur]")
    (folder / "schema.toml").write_text(text)
    _, error = run("synthesize", *QUICK, "-o", "o.csv", cwd=folder, code=4)
    assert "missing column 'tenur' (did you mean 'tenure'?)" in error


def test_a_drafted_schema_is_refused(folder: Path) -> None:
    run("schema", "draft", "table.csv", "-o", "draft.toml", cwd=folder)
    words = ("table.csv", "--schema", "draft.toml", "--epsilon", "1", "-o", "o.csv")
    _, error = run("synthesize", *words, cwd=folder, code=3)
    assert "the schema is a draft" in error


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    _, error = run("synthesize", *QUICK, "--release", "table.csv/r", cwd=folder, code=12)
    assert "cannot be written" in error
    _, error = run("resume", "nowhere", cwd=folder, code=12)
    assert "nowhere: holds no release" in error
    _, error = run("sample", "nowhere", "-n", "5", "-o", "o.csv", cwd=folder, code=12)
    assert "nowhere: holds no release" in error


def test_another_projector(folder: Path) -> None:
    pairs = (*QUICK, "--workload", "categorical:2")
    quick = "rap:mixtures=20,batch=20,iterations=10"
    run("synthesize", *pairs, "--projector", quick, "--release", "release", cwd=folder)
    release = Release.load(folder / "release")
    assert release.settings["projector"] == quick
    assert release.synthetic.num_rows == 100
    _, err = run("synthesize", *pairs, "--projector", "ra", "-o", "x.csv", cwd=folder, code=11)
    assert "no projector is called 'ra' (did you mean 'rap'?)" in " ".join(err.split())
    asked = (*QUICK, "--workload", "halfspace:5", "--projector", "pgm", "-o", "x.csv")
    _, err = run("synthesize", *asked, cwd=folder, code=7)
    assert "the projector 'pgm' cannot serve halfspaces" in " ".join(err.split())
    assert not (folder / "x.csv").exists()


def test_mst_and_aim_on_the_command_line(folder: Path) -> None:
    """Both plan and run; a plan takes a projector, and finds what it cannot serve."""
    pairs = ("--workload", "categorical:2")
    out, _ = run("plan", *COMMON, *pairs, "--mechanism", "mst", cwd=folder)
    assert "mst" in out
    assert "a tree of pairs that is selected" in out
    plan = ("plan", *COMMON, *pairs, "--projector", "pgm:cells=20")
    _, err = run(*plan, cwd=folder, code=7)
    assert "more than the 20 allowed" in err
    out, _ = run("plan", *COMMON, *pairs, "--mechanism", "aim", "--json", cwd=folder)
    assert json.loads(out)["mechanism"] == "aim"
    for name in ("mst", "aim"):
        made = ("-o", f"{name}.csv", "--release", name, "--ledger", f"{name}.db")
        words = ("--mechanism", name, *made, "--create-ledger")
        run("synthesize", *QUICK, *pairs, *words, cwd=folder)
        release = Release.load(folder / name)
        assert release.settings["mechanism"] == name
        assert release.privacy["spent"]["epsilon"] == pytest.approx(1)
        assert release.epochs()
    refused = ("--workload", "halfspace:5", "--mechanism", "aim", "-o", "no.csv")
    _, err = run("synthesize", *QUICK, *refused, cwd=folder, code=7)
    assert "the mechanism 'aim' cannot measure halfspaces" in err
    assert not (folder / "no.csv").exists()
