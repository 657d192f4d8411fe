"""``private-gsd synthesize``: the whole job, and that mistakes cost nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import RAP, Adaptive, Ledger, Measurements, Release, Schema, datasets
from private_gsd.errors import CONFIDENTIAL
from tests.cli.running import COMMAND, COMMON, NAMES, QUICK, run, run_alone

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = pytest.mark.worker("large")


def charges(folder: Path) -> int:
    with Ledger(folder / "ledger.db", read_only=True) as ledger:
        return sum(len(ledger.charges(account.dataset)) for account in ledger.accounts())


def test_the_whole_job(folder: Path) -> None:
    words = ("-o", "out.csv", "--release", "release", "--ledger", "ledger.db", "--create-ledger")
    out, said = run("synthesize", *QUICK, *words, cwd=folder)
    assert "100 synthetic rows: out.csv" in out
    assert "private: epsilon = 1 at delta = 4e-06" in out
    assert "is guaranteed for all noisy answers that this ledger pays for, now and later" in out
    assert "of dataset 'table'" in out
    assert "accounting: rho = " in out
    assert "no ledger was given" not in said
    schema = Schema.read(folder / "schema.toml")
    made = Release.load(folder / "release")
    assert made.complete
    assert made.schema == schema
    table = pyarrow.csv.read_csv(folder / "out.csv")
    assert table.column_names == list(schema.names)
    assert table.num_rows == 100
    run("sample", "release", "-n", "250", "-o", "more.parquet", cwd=folder)
    assert pyarrow.parquet.read_table(folder / "more.parquet").num_rows == 250
    paid = charges(folder)
    out, _ = run("resume", "release", "-o", "again.csv", "--json", cwd=folder)
    assert json.loads(out)["privacy"]["private"] is True
    assert (folder / "again.csv").read_bytes() == (folder / "out.csv").read_bytes()
    assert charges(folder) == paid
    # The same once more is one release too many for this ledger.
    _, error = run(
        "synthesize", *QUICK, "-o", "two.csv", "--ledger", "ledger.db", cwd=folder, code=8
    )
    assert "Nothing was charged or released" in error
    assert not (folder / "two.csv").exists()
    out, _ = run("synthesize", *QUICK, "-o", "three.csv", "--quiet", cwd=folder)
    assert out == ""


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
    assert "no ledger was given: what this and other releases" in " ".join(said.split())
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
    words = (*QUICK, "--external", "outside", "--release", "r")
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


@LARGE
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


@pytest.mark.slow
def test_progress_on_a_terminal(folder: Path) -> None:
    """Each part of a run is seen, on standard error alone."""
    for words in ([], ["--mechanism", "adaptive", "--epochs", "2"]):
        main, terminal = os.openpty()
        # Rich draws ten times a second; what is quick is drawn when the next thing begins.
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
        command = [*COMMAND, "synthesize", *QUICK, *words]
        with (folder / "said.json").open("wb") as said:
            process = subprocess.Popen(
                [*command, "-o", "out.csv", "--force", "--rows", "20000", "--json"],
                cwd=folder,
                stderr=terminal,
                stdout=said,
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
        for part_of_the_work in ("Counting", "Adding noise", "Searching"):
            assert part_of_the_work in text
        assert json.loads((folder / "said.json").read_text())["rows"] == 20000


def test_adaptive(folder: Path) -> None:
    adaptive = ("--mechanism", "adaptive", "--epochs", "2", "--queries-per-epoch", "2")
    some = ("--workload", "categorical:2", "--workload", "halfspace:20")
    out, _ = run("synthesize", *QUICK, *adaptive, *some, "--release", "r", cwd=folder)
    assert f"100 synthetic rows: {folder / 'r'}" in out
    release = Release.load(folder / "r")
    assert release.settings.mechanism == Adaptive(epochs=2, queries_per_epoch=2)
    assert [len(groups) for groups in release.selections()] == [2, 2]


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
        ([*QUICK], 2, "name an --output file, or a --release folder"),
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


def test_quiet_is_quiet(folder: Path) -> None:
    table = datasets.census(500).select([*NAMES, "children"])
    pyarrow.csv.write_csv(table, folder / "table.csv")
    out, err = run("synthesize", *QUICK, "-o", "o.csv", "-q", cwd=folder)
    assert out == err == ""
    _, err = run("synthesize", *QUICK, "-o", "p.csv", cwd=folder)
    assert "left out" in err


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


@pytest.mark.slow
def test_another_projector(folder: Path) -> None:
    pairs = (*QUICK, "--workload", "categorical:2")
    quick = "rap:mixtures=20,batch=20,iterations=10"
    run("synthesize", *pairs, "--projector", quick, "--release", "release", cwd=folder)
    release = Release.load(folder / "release")
    assert release.settings.projector == RAP(mixtures=20, batch=20, iterations=10)
    assert release.synthetic.num_rows == 100
    _, err = run("synthesize", *pairs, "--projector", "ra", "-o", "x.csv", cwd=folder, code=11)
    assert "no projector is called 'ra' (did you mean 'rap'?)" in " ".join(err.split())
    asked = (*QUICK, "--workload", "halfspace:5", "--projector", "pgm", "-o", "x.csv")
    _, err = run("synthesize", *asked, cwd=folder, code=7)
    assert "the projector 'pgm' cannot serve halfspaces" in " ".join(err.split())
    assert not (folder / "x.csv").exists()


def test_mst_and_aim_on_the_command_line(folder: Path) -> None:
    pairs = ("--workload", "categorical:2")
    for name in ("mst", "aim"):
        made = ("-o", f"{name}.csv", "--release", name, "--ledger", f"{name}.db")
        words = ("--mechanism", name, *made, "--create-ledger")
        run("synthesize", *QUICK, *pairs, *words, cwd=folder)
        release = Release.load(folder / name)
        assert release.settings.mechanism.name == name
        assert release.privacy["spent"]["epsilon"] == pytest.approx(1)
        assert release.selections()
    refused = ("--workload", "halfspace:5", "--mechanism", "aim", "-o", "no.csv")
    _, err = run("synthesize", *QUICK, *refused, cwd=folder, code=7)
    assert "the mechanism 'aim' cannot measure halfspaces" in err
    assert not (folder / "no.csv").exists()


@LARGE
def test_all_that_is_known_is_used_and_recorded(folder: Path) -> None:
    """A rule, a public count, a derived statistic and external measurements."""
    rule = "NOT (age < 20 AND marital = 'married')"
    schema = Schema(Schema.read(folder / "schema.toml").columns, [rule])
    schema.write(folder / "schema.toml")
    (folder / "counts.csv").write_text("condition,count\nsex = 'male',200\n")
    marginals = [(["sex"], [300, 200], 3.0)]
    Measurements.from_marginals(schema, 500, marginals, private=True).save(folder / "external")
    out, _ = run(
        *("synthesize", *QUICK, "--workload", "categorical:2", "--workload", "tree:2"),
        *("--public-counts", "counts.csv", "--derived-statistic", "median(age)"),
        *("--external", "external", "--release", "release", "-o", "made.csv"),
        cwd=folder,
    )
    assert "not covered: counts that are claimed to be public" in out
    assert "not covered: external measurements" in out
    made = pyarrow.csv.read_csv(folder / "made.csv").to_pandas()
    assert not ((made.age < 20) & (made.marital == "married")).any()
    assert abs((made.sex == "male").mean() - 200 / 500) < 0.05
    release = Release.load(folder / "release")
    assert release.privacy["claims"] == release.settings.knowledge.of(schema).claims()
    assert release.settings.knowledge.public_counts == {"sex = 'male'": 200}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--public-counts", "two.csv"], 7, "line 2"),
        (["--public-counts", "none.csv"], 7, "none.csv"),
        (["--public-counts", "odd.csv"], 7, "'1e' is not a number"),
        (["--public-counts", "contrary.csv"], 7, "contradict each other"),
        (["--queries", "queries.sql"], 7, "line 2: in the predicate"),
        (["--derived-statistic", "mode(age)"], 7, "write"),
        (["--derived-statistic", "mean(age) WHERE age < 1e"], 7, "'1e' is not a number"),
        (["--external", "none"], 10, "no such"),
        (["--mechanism", "adaptiv"], 8, "did you mean 'adaptive'"),
        (["--mechanism", "aim", "--epochs", "3"], 8, "'aim' has no setting 'epochs'"),
        (["--insecure-noise-seed", "-1"], 7, "insecure_noise_seed"),
        (["--threads", "0"], 7, "threads"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    folder: Path, words: list[str], code: int, said: str
) -> None:
    (folder / "two.csv").write_text("condition,count\nsex = 'male',two\n")
    (folder / "odd.csv").write_text("condition,count\nage < 1e,3\n")
    contrary = "condition,count\nsex = 'male',10\nsex = 'male' AND age < 9,11\n"
    (folder / "contrary.csv").write_text(contrary)
    (folder / "queries.sql").write_text("age < 30\nage < 1e\n")
    _, told = run("synthesize", *COMMON, *words, "--release", "r", cwd=folder, code=code)
    assert said in " ".join(told.split())
    assert not (folder / "r").exists()


def test_a_projector_without_rules(folder: Path) -> None:
    Schema(Schema.read(folder / "schema.toml").columns, ["age < 90"]).write(folder / "schema.toml")
    words = (*COMMON, "--projector", "rap", "-o", "x.csv")
    _, told = run("synthesize", *words, cwd=folder, code=7)
    assert "does not keep a schema's rules" in " ".join(told.split())
    assert not (folder / "x.csv").exists()


def test_seeded_noise_is_said_not_to_be_private(folder: Path) -> None:
    words = (*QUICK, "--insecure-noise-seed", "3", "--workload", "categorical:1")
    out, _ = run("synthesize", *words, "--release", "r", cwd=folder)
    assert "NOT PRIVATE: " in out
    run("synthesize", *words, "--release", "s", cwd=folder)
    first, second = (Release.load(folder / name) for name in "rs")
    assert first.synthetic.equals(second.synthetic)
    run("synthesize", *words, "--random-state", "1", "--threads", "1", "-o", "t.csv", cwd=folder)


@pytest.mark.parametrize(
    ("change", "code", "confidential"),
    [
        (lambda rows: rows + "male,777,married,TRUE,owned\n", 5, True),
        (lambda rows: rows + "male\n", 4, True),
        (lambda rows: rows.splitlines()[0] + "\n", 4, True),
        (lambda rows: rows.replace("age", "aeg", 1), 4, False),
        (None, 4, False),
    ],
)
def test_messages_about_rows_are_marked(
    folder: Path, change: Callable[[str], str] | None, code: int, confidential: bool
) -> None:
    table = folder / "table.csv"
    if change is None:
        table.unlink()
    else:
        table.write_text(change(table.read_text()))
    _, err = run("synthesize", *QUICK, "-o", "out.csv", cwd=folder, code=code)
    assert err.count(CONFIDENTIAL) == confidential


def test_what_a_csv_cannot_hold_is_found_before_anything_is_spent(folder: Path) -> None:
    text = (folder / "schema.toml").read_text()
    column = '[columns.code]\nkind = "integer"\nlower = -2\nupper = 9\nnull_values = ["-1"]\n'
    (folder / "schema.toml").write_text(f"{text}\n{column}nullable = true\n")
    words = ("-o", "out.csv", "--release", "release")
    _, err = run("synthesize", *QUICK, *words, cwd=folder, code=3)
    assert "column 'code' cannot be written as text: -1 would be written as '-1'" in err
    assert not [*folder.glob("out*"), *folder.glob("release*")]


@pytest.mark.slow
def test_paths_that_are_not_utf8(folder: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    shutil.copy(folder / "table.csv", folder / f"{odd}.csv")
    words = (*QUICK[1:], "--workload", "categorical:1")
    _, err = run_alone("synthesize", f"{odd}.csv", *words, "-o", "out.csv", cwd=folder, code=4)
    assert "the path is not UTF-8 text; rename it" in err
    out, _ = run_alone(
        *("synthesize", "table.csv", *words, "-o", f"{odd}.parquet", "--release", odd, "--json"),
        cwd=folder,
    )
    assert (folder / f"{odd}.parquet").exists()
    assert json.loads(out)["rows"] == 100
