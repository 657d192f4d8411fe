"""Counting on a cluster of Spark: a master, workers and executors that are processes of their own.

Executors have the package as the docs say, and from nowhere else. Workers are killed.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet
import pytest

from private_gsd import Synthesizer, datasets, errors, exact_counts, workloads
from private_gsd.kernels import caching
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from private_gsd.workloads import Workload
from private_gsd.workloads.families import FAMILIES
from private_gsd.workloads.histograms import first_histograms
from private_gsd.workloads.patterns import Patterns, patterns_of
from tests.cluster import PATIENCE, PROCESSES, Cluster, Driver, DriverError, processes_of, wait_for
from tests.cluster_driver import described
from tests.engines import java_version
from tests.installing import build_wheel, make_environment
from tests.mechanisms import test_numbers_first_runs as numbers
from tests.runs.kills import outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.worker("engines"),
    pytest.mark.skipif(
        java_version() < 17,
        reason="SPARK IS NOT TESTED HERE: it needs Java 17 or newer, and there is none",
    ),
    pytest.mark.skipif(not PROCESSES.exists(), reason="no /proc, which says what is left to end"),
]

SCHEMA = datasets.census_schema()
TABLE = datasets.census(3000, seed=4)
# Of every family but that of functions, which no other process knows.
WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, k=2)
    + workloads.tree_marginals(SCHEMA, k=2, depth=4)
    + Workload(SCHEMA, (first_histograms(SCHEMA), Patterns(SCHEMA, patterns_of(SCHEMA))))
    + workloads.random_prefixes(SCHEMA, 50)
    + workloads.random_halfspaces(SCHEMA, 50)
    + workloads.predicates(SCHEMA, ["age < 30 AND income > 50000", "sex = 'female'"])
    + workloads.sums(SCHEMA, ["age", "income"], where="sex = 'female'")
)
CONFIDENTIAL = f"\n{errors.CONFIDENTIAL}"
NO_WORKERS = (
    "the Spark DataFrame cannot be read: its tasks waited for 3 seconds, and none ran; see that "
    "Spark has workers with enough cores and memory for an executor, and try again "
    f"(spark.privateGsd.taskTimeout sets another number of seconds){CONFIDENTIAL}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables and with the wheel, which executors read as one disk of the cluster."""
    folder = tmp_path_factory.mktemp("cluster")
    pyarrow.parquet.write_table(TABLE, folder / "census.parquet")
    pyarrow.parquet.write_table(numbers.TABLE, folder / "numbers.parquet")
    build_wheel(folder)
    return folder


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster of two workers, of which nothing is left in the end."""
    cluster = Cluster(folder)
    try:
        cluster.add_workers("one", "two")
        yield cluster
    finally:
        cluster.close()
    assert not any(map(processes_of, cluster.sessions))


@pytest.fixture(scope="module")
def python(folder: Path) -> Path:
    """The Python of an environment with the package."""
    python = make_environment(folder / "env", *folder.glob("*.whl"))
    # Kernels that were compiled before the environment is packed are not compiled again.
    [kernels] = (folder / "env").rglob("private_gsd/kernels")
    for compiled in (Path(caching.__file__).parent / "__pycache__").glob("*.kernel"):
        shutil.copy(compiled, kernels / "__pycache__" / compiled.name)
    return python


@pytest.fixture(scope="module")
def driver(cluster: Cluster, folder: Path, python: Path) -> Driver:
    """A program that was submitted with a packed environment."""
    with tarfile.open(folder / "env.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(folder / "env", ".")
    return cluster.submit(
        "driver",
        *("--archives", f"{folder}/env.tar.gz#env"),
        PYSPARK_DRIVER_PYTHON=str(python),
        PYSPARK_PYTHON="./env/bin/python",
    )


@pytest.fixture(scope="module")
def expected() -> Any:
    return exact_counts(WORKLOAD, TABLE).counts


def test_executors_have_the_package_from_the_archive(
    cluster: Cluster, driver: Driver, folder: Path
) -> None:
    places: set[str] = set()

    def from_both() -> bool:
        """Whether both executors, of which one may have begun later, had something to do."""
        places.update(driver.call("where"))
        return len(places) == 2

    wait_for(from_both, "tasks on both workers")
    for place, worker in zip(sorted(places), ("one", "two"), strict=True):
        assert place.startswith(f"{folder}/{worker}/work/")
        assert "/env/lib/" in place


def test_counts_of_all_families(driver: Driver, folder: Path, expected: Any) -> None:
    assert {family.name for family in WORKLOAD.families} == set(FAMILIES) - {"functions"}
    rows, counts = driver.call("count", path=f"{folder}/census.parquet", workload=WORKLOAD)
    assert rows == len(TABLE)
    np.testing.assert_array_equal(counts, expected)


def test_counts_of_functions(driver: Driver, folder: Path) -> None:
    ages = TABLE["age"].to_numpy()
    found = driver.call("count_functions", path=f"{folder}/census.parquet", schema=SCHEMA)
    assert found == [(ages < 30).sum(), (ages > 60).sum()]


def test_a_worker_is_killed(
    cluster: Cluster, driver: Driver, folder: Path, expected: Any, tmp_path: Path
) -> None:
    """It has finished one task, whose counts are lost with it, and is in the middle of another."""
    path = f"{folder}/census.parquet"
    driver.ask("count", path=path, workload=WORKLOAD, steps=str(tmp_path))
    wait_for(lambda: len(list(tmp_path.glob("began-*"))) == 4, "two tasks on each executor")
    [ended] = [
        file for file in tmp_path.glob("ended-*") if file.read_text().startswith(f"{folder}/one/")
    ]
    cluster.kill("one")
    (tmp_path / "go").touch()
    rows, counts = driver.answer()
    partition = ended.name.rpartition("-")[0]
    assert len(list(tmp_path.glob(f"{partition}-*"))) > 1  # it was counted again, and counts once
    assert rows == len(TABLE)
    np.testing.assert_array_equal(counts, expected)
    cluster.add_workers("three")


def test_a_fit_of_numbers_first_loses_all_workers(
    cluster: Cluster, driver: Driver, folder: Path, tmp_path: Path
) -> None:
    """Between two passes; it has paid for what it drew, and resumes when there are workers."""
    settings: dict[str, Any] = {
        "schema": numbers.SCHEMA,
        "epsilon": numbers.EPSILON,
        "mechanism": "numbers-first",
    }
    path, release = f"{folder}/numbers.parquet", tmp_path / "begun"
    ledger = tmp_path / "begun.ledger.db"
    driver.ask("fit", path=path, release=str(release), pause=str(tmp_path), **settings)
    wait_for((tmp_path / "paused").exists, "the first pass")
    cluster.kill(*cluster.workers)
    (tmp_path / "go").touch()
    with pytest.raises(DriverError) as lost:
        driver.answer()
    assert (lost.value.name, lost.value.message) == ("UnreadableError", NO_WORKERS)
    with Ledger(ledger, create=False) as opened:
        [charge] = opened.charges("table")
        run, _, step = charge.run.partition(" ")
        assert Reservation(opened, "table", run, "").committed(step)
    with pytest.raises(DriverError, match="its tasks waited for"):
        driver.call("fit", path=path, release=f"{tmp_path}/none", **settings)
    assert not list(tmp_path.glob("none*"))  # neither a release nor a ledger

    cluster.add_workers("four", "five")
    driver.call("set_timeout", seconds=PATIENCE)
    measured = driver.call("resume", path=path, release=str(release))
    local = Synthesizer(**settings)
    local.fit(numbers.TABLE, release=tmp_path / "local", insecure_noise_seed=3)
    assert measured == described(local)
    assert max(numbers.levels_of(measured).values()) > 1
    assert outcome(release, ledger) == outcome(tmp_path / "local", tmp_path / "local.ledger.db")


def test_the_package_comes_as_a_file(cluster: Cluster, folder: Path, python: Path) -> None:
    """The wheel, called a zip; executors that have nothing say what they need."""
    [wheel] = folder.glob("*.whl")
    shutil.copy(wheel, folder / "private_gsd.zip")
    driver = cluster.submit(
        "other",
        PYSPARK_DRIVER_PYTHON=str(python),
        PYSPARK_PYTHON=str(make_environment(folder / "dependencies")),
    )
    cluster.add_workers("six")
    # Each process compiles its kernels, and these need few.
    workload = workloads.categorical_marginals(SCHEMA, k=1)
    given = {"path": f"{folder}/census.parquet", "workload": workload}
    with pytest.raises(DriverError) as missing:
        driver.call("count", **given)
    assert missing.value.message == (
        "the Spark DataFrame cannot be read: ModuleNotFoundError in a task: executors have no "
        f"private_gsd, and need private-gsd and its dependencies{CONFIDENTIAL}"
    )
    driver.call("add_file", path=f"{folder}/private_gsd.zip")
    assert all("/private_gsd.zip/" in place for place in driver.call("where"))
    _, counts = driver.call("count", **given)
    np.testing.assert_array_equal(counts, exact_counts(workload, TABLE).counts)
