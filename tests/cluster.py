"""A standalone Spark cluster on the loopback address: a master, workers and drivers, as processes.

Each program begins a session, in which its executors and their Pythons stay, whatever becomes of
it. At the end, what is in these sessions is ended, process by process.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import cluster_driver

if TYPE_CHECKING:
    from collections.abc import Callable

PROCESSES = Path("/proc")
# Jobs are few and short, and cores are few.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PATIENCE = 120.0


def wait_for(found: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What a function finds, as soon as it finds something."""
    until = time.monotonic() + seconds
    while not (result := found()):
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not after {seconds:g} seconds")
        time.sleep(0.05)
    return result


def processes_of(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for folder in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(words[3]) == session and words[0] not in "ZX":
                found.append(int(folder.name))
    return found


class DriverError(Exception):
    """What a driver raised: the name of the error, and its message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class Driver:
    """A program that was submitted, and does what it is asked (``cluster_driver``)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, name: str, **arguments: Any) -> None:
        """Let the driver call one of its functions."""
        self._connection.send((name, arguments))

    def answer(self, seconds: float = PATIENCE) -> Any:
        """What the function returned."""
        if not self._connection.poll(seconds):
            raise TimeoutError(f"the driver did not answer within {seconds:g} seconds")
        name, result = self._connection.recv()
        if name:
            raise DriverError(name, result)
        return result

    def call(self, name: str, **arguments: Any) -> Any:
        """What a function of the driver returns."""
        self.ask(name, **arguments)
        return self.answer()


class Cluster:
    """A master, which is started here, and workers and drivers, which are added.

    Args:
        folder: Where programs write.

    Attributes:
        address: The address of the master.
        workers: The process of each worker, by its name.
    """

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.folder = folder
        self.workers: dict[str, int] = {}
        self._programs: list[subprocess.Popen[bytes]] = []
        self._spark = Path(pyspark.__file__).parent
        try:
            self._start("master", "org.apache.spark.deploy.master.Master", "--webui-port", "0")
            [self.address] = self._told("master", r"Starting Spark master at (spark://\S+)")
            [port] = self._told("master", r"MasterWebUI.* started at http://\S+:(\d+)")
        except BaseException:
            self.close()
            raise
        self._page = f"http://127.0.0.1:{port}/json/"

    def _environment(self, folder: Path, **more: str) -> dict[str, str]:
        """Nothing of the tests' own: neither their PYTHONPATH, nor their home."""
        wanted = ("PATH", "JAVA_HOME", "LANG")
        given = {name: os.environ[name] for name in wanted if name in os.environ}
        return {
            **given,
            "HOME": str(folder),
            "SPARK_HOME": str(self._spark),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA,
            **more,
        }

    def _start(self, name: str, *words: str) -> int:
        """Start a daemon of Spark; a shell becomes it, and so its process is known."""
        command = [str(self._spark / "bin" / "spark-class"), *words]
        command += ["--host", "127.0.0.1", "--port", "0"]
        return self._run(name, command)

    def _run(self, name: str, command: list[str], **environment: str) -> int:
        folder = self.folder / name
        folder.mkdir()
        with (folder / "log").open("wb") as log:
            started = subprocess.Popen(
                command,
                cwd=folder,
                env=self._environment(folder, **environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._programs.append(started)
        return started.pid

    def log(self, name: str) -> str:
        """What a program wrote."""
        return (self.folder / name / "log").read_text(errors="replace")

    def _told(self, name: str, pattern: str) -> Any:
        return wait_for(lambda: re.findall(pattern, self.log(name)), f"{name}: {pattern}")

    @property
    def alive(self) -> int:
        """How many workers the master believes to be alive."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self._page, timeout=PATIENCE) as page:
            return int(json.load(page)["aliveworkers"])

    def add_workers(self, *names: str) -> None:
        """Start workers of one core, and wait until the master knows of them."""
        before = self.alive
        for name in names:
            self.workers[name] = self._start(
                name,
                "org.apache.spark.deploy.worker.Worker",
                *("--webui-port", "0", "--cores", "1", "--memory", "512m"),
                *("--work-dir", str(self.folder / name / "work"), self.address),
            )
        wait_for(lambda: self.alive == before + len(names), f"workers {names}")

    def kill(self, *names: str) -> None:
        """Kill workers, and wait until their executors have ended, which nobody kills."""
        for name in names:
            process = self.workers.pop(name)
            os.kill(process, signal.SIGKILL)
            wait_for(partial(_is_empty, process), f"the end of {name}")
        wait_for(lambda: self.alive == len(self.workers), "the end of workers")

    def submit(self, name: str, *options: str, **environment: str) -> Driver:
        """Submit ``cluster_driver``, as users do; only its options and its Python differ."""
        key = secrets.token_bytes(16)
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(PATIENCE)
            settings = {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.extraJavaOptions": JAVA,
                "spark.executor.extraJavaOptions": JAVA,
                "spark.cores.max": "2",
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
            }
            self._run(
                name,
                [
                    *(str(self._spark / "bin" / "spark-submit"), "--master", self.address),
                    *("--deploy-mode", "client", *options),
                    *("--driver-memory", "512m", "--executor-memory", "512m"),
                    *(word for each in settings.items() for word in ("--conf", "=".join(each))),
                    *(cluster_driver.__file__, str(server.getsockname()[1]), key.hex()),
                ],
                **environment,
            )
            try:
                accepted, _ = server.accept()
            except TimeoutError:
                raise TimeoutError(f"{name} did not begin: {self.log(name)[-3000:]}") from None
        connection = Connection(accepted.detach())
        deliver_challenge(connection, key)
        answer_challenge(connection, key)
        return Driver(connection)

    @property
    def sessions(self) -> list[int]:
        """The sessions that were begun, each by its first process."""
        return [program.pid for program in self._programs]

    def close(self) -> None:
        """End all programs, and whatever they started."""
        for program in reversed(self._programs):
            wait_for(partial(_end, program.pid), f"the end of session {program.pid}")
            program.wait()


def _is_empty(session: int) -> bool:
    return not processes_of(session)


def _end(session: int) -> bool:
    """Kill what there is of a session; True if there was nothing."""
    alive = processes_of(session)
    for process in alive:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return not alive
