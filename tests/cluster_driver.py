"""A program for ``spark-submit`` that calls its functions by name, as the tests ask it to.

It imports nothing of the tests: it runs in an environment where only private-gsd is installed.
"""

from __future__ import annotations

import sys
import time
from multiprocessing.connection import Client
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    Batches = Iterator[pa.RecordBatch]

PARTITIONS = 6
# How long a task, and a run, wait for a test that may have failed.
PATIENCE = 120.0
FRAMES: dict[str, Any] = {}


def session() -> Any:
    """The session of Spark."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def frame_of(path: str) -> Any:
    """The rows of a file, in partitions that a shuffle makes each time that they are read."""
    if path not in FRAMES:  # to look at a file is a task, too
        FRAMES[path] = session().read.parquet(path).repartition(PARTITIONS)
    return FRAMES[path]


def in_step(folder: str) -> Any:
    """A step in which each executor finishes one task, and waits in the middle of the second.

    A task makes a file when it begins, and when it ends, named after its partition and its attempt.
    The file says where its executor is.
    """

    def step(batches: Batches) -> Batches:
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        here = str(Path.cwd())
        name = f"{task.partitionId()}-{task.taskAttemptId()}"
        second = any(each.read_text() == here for each in Path(folder).glob("began-*"))
        (Path(folder) / f"began-{name}").write_text(here)
        for batch in batches:
            yield batch
            if second:
                wait(Path(folder) / "go")
        (Path(folder) / f"ended-{name}").write_text(here)

    return step


def wait(file: Path) -> None:
    """Wait for a file."""
    until = time.monotonic() + PATIENCE
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.02)


def where() -> list[str]:
    """Where executors have private-gsd from."""

    def found(batches: Batches) -> Batches:
        import pyarrow as pa

        import private_gsd

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"place": [private_gsd.__file__]})

    frame = session().range(0, 100, 1, PARTITIONS).mapInArrow(found, "place string")
    return sorted({row["place"] for row in frame.collect()})


def set_timeout(seconds: float) -> None:
    """Set how long tasks may wait."""
    session().conf.set("spark.privateGsd.taskTimeout", str(seconds))


def add_file(path: str) -> None:
    """Ship a file of Python to the executors, as ``--py-files`` does."""
    session().sparkContext.addPyFile(path)


def count(path: str, workload: Any, steps: str | None = None) -> tuple[int, Any]:
    """The number of rows, and exact counts.

    Args:
        path: The file.
        workload: The queries.
        steps: The folder of ``in_step``.
    """
    import private_gsd as gsd

    frame = frame_of(path)
    if steps is not None:
        frame = frame.mapInArrow(in_step(steps), frame.schema)
    found = gsd.exact_counts(workload, frame)
    return found.n_records, found.counts


def count_functions(path: str, schema: Any) -> list[int]:
    """Exact counts of functions that no module has."""
    from private_gsd import workloads

    tests = {"young": lambda rows: rows["age"] < 30, "old": lambda rows: rows["age"] > 60}
    found: list[int] = count(path, workloads.functions(schema, tests))[1].tolist()
    return found


def fit(path: str, pause: str | None = None, **given: Any) -> list[str]:
    """Fit with the defaults, and seeded noise; what was measured.

    Args:
        path: The file.
        pause: A folder: after the first pass over the table, the run makes the file ``paused``
            there, and waits for the file ``go``. From then on, tasks do not wait for long.
        given: The release, and parameters of the synthesizer.
    """
    import private_gsd as gsd

    def progress(what: str, done: float, total: float | None) -> None:
        if pause is not None and what == "counting" and not (Path(pause) / "paused").exists():
            (Path(pause) / "paused").touch()
            wait(Path(pause) / "go")
            set_timeout(3)

    release = given.pop("release")
    synth = gsd.Synthesizer(**given)
    synth.fit(frame_of(path), release=release, insecure_noise_seed=3, progress=progress)
    return described(synth)


def resume(path: str, release: str) -> list[str]:
    """Resume a run; what was measured."""
    import private_gsd as gsd

    return described(gsd.Synthesizer.resume(release, frame_of(path)))


def described(synth: Any) -> list[str]:
    """What was measured."""
    workload = synth.release_.measurements().workload
    return [workload.describe(group) for group in range(workload.num_groups)]


def main() -> None:
    """Answer until nobody asks any more."""
    port, key = sys.argv[1:]
    with Client(("127.0.0.1", int(port)), authkey=bytes.fromhex(key)) as connection:
        while True:
            try:
                name, arguments = connection.recv()
            except EOFError:
                return
            try:
                answer = "", globals()[name](**arguments)
            except Exception as error:
                answer = type(error).__name__, str(error)
            connection.send(answer)


if __name__ == "__main__":
    main()
