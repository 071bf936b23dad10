"""A real ZooKeeper server, from the class path of Apache Kafka 3.9."""

import socket
import time
from pathlib import Path
from typing import Final

from tests.support import maven
from tests.support.java import SHORT_LIVED
from tests.support.processes import Process, free_port, wait_until
from tests.support.server import RunningServer

BUNDLE: Final = "kafka-3.9"
MAIN_CLASS: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
START_TIMEOUT_S: Final = 90.0
TICK_MS: Final = 500
"""Sessions last from 2 to 20 of them: a client may ask for one second."""
# Up and done with little work before all: the compiler's first tier, no threads for collection.
QUICK_JVM: Final = (*SHORT_LIVED, "-XX:-UsePerfData", "-Djava.awt.headless=true")


class ZooKeeperProcess(RunningServer):
    """A ZooKeeper of one server; `bootstrap` is its connect string. After `kill`, `start` serves the same tree again.

    The end of a `with` kills it: nobody waits for a clean stop that nobody looks at.
    """

    name = "zookeeper"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._classpath = maven.resolve(BUNDLE)

    def start(self) -> float:
        if self._process is not None:
            return 0.0
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "dataDir": str(self.directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            "maxClientCnxns": "0",
            "tickTime": str(TICK_MS),
            "4lw.commands.whitelist": "ruok,dump",
        }
        file = self.directory / "zoo.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        started_at = time.monotonic()
        command = ["java", "-Xms128m", "-Xmx128m", *QUICK_JVM, "-cp", self._classpath, MAIN_CLASS, str(file)]
        self._process = Process(command, self.directory / "zookeeper.log")
        try:
            wait_until(self._is_ok, START_TIMEOUT_S, lambda: f"no answer:\n{self.process.log_text()[-2000:]}")
        except BaseException:
            self.kill()
            raise
        return time.monotonic() - started_at

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _is_ok(self) -> bool:
        self.process.check_alive()
        return ask_zookeeper(self.host, self.port, b"ruok") == b"imok"


def ask_zookeeper(host: str, port: int, word: bytes) -> bytes:
    """The answer to one of ZooKeeper's four-letter words; empty if nobody listens."""
    try:
        with socket.create_connection((host, port), timeout=1.0) as connection:
            connection.sendall(word)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return b""
