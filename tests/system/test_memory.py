"""Memory: what does not fit is refused before anything is paid for, with a number that fits."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from private_gsd import Adaptive, Release, Synthesizer, datasets
from private_gsd.errors import ProjectionError, ReleaseError
from private_gsd.privacy.ledger import Ledger
from private_gsd.runs.run_folder import RunFolder
from private_gsd.synthesis.sampling import sampled
from private_gsd.system import memory

SCHEMA = datasets.census_schema().select(["sex", "marital", "tenure", "age"])
TABLE = datasets.census(1000, seed=3).select(SCHEMA.names)
# More than any machine has, with the columns of the whole census.
TOO_MANY = 2**31 - 1


def test_rows_beyond_memory_are_refused_before_anything_is_read_or_paid(tmp_path: Path) -> None:
    schema = datasets.census_schema()
    ledger, release = tmp_path / "ledger.db", tmp_path / "release"
    synth, table = Synthesizer(schema, 1.0, rows=TOO_MANY), datasets.census(100)
    for refused in (
        lambda: synth.fit(table, ledger=ledger, create_ledger=True, release=release),
        lambda: synth.plan(table),
    ):
        with pytest.raises(
            ProjectionError, match=r"a synthetic table of 2,147,483,647 rows takes"
        ) as caught:
            refused()
        assert "GB of memory, and there are" in str(caught.value)
        assert "take at most " in str(caught.value)
    assert not ledger.exists()
    assert not release.exists()


def test_the_number_of_rows_that_is_named_fits() -> None:
    schema, table = datasets.census_schema(), datasets.census(100)
    with pytest.raises(ProjectionError, match="take at most") as caught:
        Synthesizer(schema, 1.0, rows=TOO_MANY).plan(table)
    named = int(str(caught.value).partition("at most ")[2].partition(" rows")[0].replace(",", ""))
    forecast = Synthesizer(schema, 1.0, rows=named).plan(table)
    assert 0.8 * memory.available() < forecast.bytes <= 0.9 * memory.available()


@pytest.mark.slow
def test_what_a_run_takes_is_within_the_forecast() -> None:
    """The peak of a process of its own; the forecast is neither below it nor absurd."""
    script = """
from pathlib import Path
from private_gsd import Synthesizer, datasets
schema = datasets.census_schema()
synth = Synthesizer(
    schema, 1.0, rows=300_000, workload=["categorical:1"], mechanism="one-shot",
    projector="gsd:denoise=false",
)
table = datasets.census(500)
forecast = synth.plan(table).bytes
synth.fit(table)
# Not getrusage, which begins with what the process that started this one had taken.
[peak] = [line for line in Path("/proc/self/status").open() if line.startswith("VmHWM:")]
print(int(peak.split()[1]) * 1024, forecast)
"""
    words = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    peak, forecast = map(float, done.stdout.split())
    # Compiling, where nothing is kept yet, takes some more for a while.
    assert peak < forecast + 250e6
    assert forecast < 3 * peak


def test_samples_beyond_memory_are_refused() -> None:
    synth = Synthesizer(SCHEMA, 1.0, rows=50, workload=["categorical:1"]).fit(TABLE)
    assert synth.sample(100_000).num_rows == 100_000
    with pytest.raises(
        ProjectionError, match=r"a sample of .* rows takes .* draw at most [0-9,]+ rows"
    ):
        sampled(synth.release_, 10**15, 0, "sex = 'male'")


@pytest.mark.slow
def test_a_sample_of_any_number_on_the_command_line(tmp_path: Path) -> None:
    release = tmp_path / "release"
    synth = Synthesizer(SCHEMA, 1.0, rows=50, workload=["categorical:1"])
    synth.fit(TABLE, release=release)
    words = [sys.executable, "-m", "private_gsd.cli", "sample", str(release), "-o", "s.csv"]
    for number, code, said in ((10**15, 7, "number must be"), (10**30, 7, "number must be")):
        done = subprocess.run(
            [*words, "-n", str(number)], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "s.csv").exists()


def begun(folder: Path, *, epoch: int = 0, **settings: Any) -> Synthesizer:
    """A run that was interrupted in one of its searches."""

    def stop(what: str, done: float, total: float | None, /) -> None:
        if what == "searching":
            seen.append(done)
            searches = sum(later <= earlier for earlier, later in itertools.pairwise(seen))
            if searches >= epoch:
                raise KeyboardInterrupt

    seen: list[float] = []
    synth = Synthesizer(SCHEMA, 1.0, rows=60, workload=["categorical:2"], **settings)
    with pytest.raises(KeyboardInterrupt):
        synth.fit(
            TABLE,
            insecure_noise_seed=1,
            ledger=folder / "ledger.db",
            create_ledger=True,
            release=folder / "release",
            progress=stop,
        )
    return synth


def paid(folder: Path) -> list[str]:
    with Ledger(folder / "ledger.db", create=False, read_only=True) as ledger:
        return [charge.run.partition(" ")[2] for charge in ledger.charges("table")]


@pytest.mark.parametrize("rows", [7, 60, 200])
def test_a_resumed_run_may_have_other_rows(tmp_path: Path, rows: int) -> None:
    """With the table that a run would have made that had them from the beginning."""
    begun(tmp_path, mechanism="one-shot")
    before = paid(tmp_path)
    Synthesizer.resume(tmp_path / "release", rows=rows)
    release = Release.load(tmp_path / "release")
    assert paid(tmp_path) == before
    assert release.settings.rows == release.synthetic.num_rows == rows
    whole = Synthesizer(
        SCHEMA, 1.0, rows=rows, workload=["categorical:2"], mechanism="one-shot"
    ).fit(TABLE, insecure_noise_seed=1)
    assert release.synthetic.equals(whole.release_.synthetic)
    with pytest.raises(ReleaseError, match="has its synthetic table already"):
        Synthesizer.resume(tmp_path / "release", rows=10)


@pytest.mark.parametrize("mechanism", [Adaptive(epochs=4), "aim"], ids=["adaptive", "aim"])
@pytest.mark.parametrize("rows", [7, 200])
def test_an_adaptive_run_is_resumed_with_other_rows(
    tmp_path: Path, mechanism: Any, rows: int
) -> None:
    """From a table of the old number, in the middle."""
    begun(tmp_path, mechanism=mechanism, epoch=2)
    before = paid(tmp_path)
    assert before
    Synthesizer.resume(tmp_path / "release", TABLE, rows=rows)
    assert paid(tmp_path)[: len(before)] == before
    assert Release.load(tmp_path / "release").synthetic.num_rows == rows


@pytest.mark.slow
def test_a_search_that_had_ended_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table was saved, and the run was killed before the release was complete."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    synth = Synthesizer(SCHEMA, 1.0, rows=60, workload=["categorical:2"])
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            synth.fit(TABLE, release=tmp_path / "r")
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available", lambda: 16e9)
        with pytest.raises(ProjectionError, match="take at most"):
            Synthesizer.resume(tmp_path / "r", rows=TOO_MANY)
    words = [sys.executable, "-m", "private_gsd.cli", "resume", str(tmp_path / "r"), "--rows", "90"]
    subprocess.run(words, capture_output=True, check=True)
    assert Release.load(tmp_path / "r").synthetic.num_rows == 90


def test_what_containers_may_use(tmp_path: Path) -> None:
    """Groups of both versions; a group within a smaller one; files that say nothing."""
    machine = memory.available(tmp_path)

    def put(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    put("proc/self/cgroup", "0::/a/b\n")
    put("sys/fs/cgroup/a/b/memory.max", "max\n")
    assert memory.available(tmp_path) == machine
    put("sys/fs/cgroup/a/memory.max", "500000\n")
    assert memory.available(tmp_path) == 500_000
    put("proc/self/cgroup", "4:cpu,memory:/c\nodd line\n")
    assert memory.available(tmp_path) == machine
    put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "300000\n")
    assert memory.available(tmp_path) == 300_000
    put("sys/fs/cgroup/memory.max", "200000\n")  # the container's own view
    assert memory.available(tmp_path) == 200_000


def test_what_a_process_may_use() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**35 + 1, -1));"
        "from private_gsd.system import memory; print(memory.available())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) <= 2**35 + 1
