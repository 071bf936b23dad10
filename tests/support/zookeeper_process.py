"""Real ZooKeeper servers, from the class path of Apache Kafka 3.9: one, or several that elect a leader."""

import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from tests.support import maven
from tests.support.java import SHORT_LIVED
from tests.support.processes import Process, free_port, wait_until
from tests.support.server import RunningServer

BUNDLE: Final = "kafka-3.9"
ALONE: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
IN_ENSEMBLE: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
START_TIMEOUT_S: Final = 180.0
TICK_MS: Final = 500
"""Sessions last for 2 of them at least: a client may ask for one second."""
LONGEST_SESSION_MS: Final = 60_000
ANSWER_TIMEOUT_S: Final = 20.0
# Up and done with little work before all: the compiler's first tier, no threads for collection.
QUICK_JVM: Final = (*SHORT_LIVED, "-XX:-UsePerfData", "-Djava.awt.headless=true")
# A kill leaves the page cache, and where others write much each fsync may take seconds, for which all clients wait.
UNFORCED: Final = "-Dzookeeper.forceSync=no"


class ZooKeeperProcess(RunningServer):
    """A ZooKeeper of one server; `bootstrap` is its connect string. After `kill`, `start` serves the same tree again.

    The end of a `with` kills it: nobody waits for a clean stop that nobody looks at.
    """

    name = "zookeeper"
    main_class = ALONE

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._classpath = maven.resolve(BUNDLE)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> float:
        started_at = time.monotonic()
        self.spawn()
        try:
            self.wait_until_serving()
        except BaseException:
            self.kill()
            raise
        return time.monotonic() - started_at

    def spawn(self) -> None:
        """Start it, unless it runs, and wait for nothing."""
        if self._process is not None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / "zoo.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.settings().items()))
        options = ["-Xms128m", "-Xmx128m", *QUICK_JVM, UNFORCED]
        command = ["java", *options, "-cp", self._classpath, self.main_class, str(file)]
        self._process = Process(command, self.directory / "zookeeper.log")

    def settings(self) -> dict[str, str]:
        return {
            "dataDir": str(self.directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            "maxClientCnxns": "0",
            "tickTime": str(TICK_MS),
            "maxSessionTimeout": str(LONGEST_SESSION_MS),
            "4lw.commands.whitelist": "ruok,dump,srvr",
        }

    def wait_until_serving(self) -> None:
        """Until it answers clients: one of several does once they have elected a leader."""
        wait_until(self._is_serving, START_TIMEOUT_S, lambda: f"no answer:\n{self.process.log_text()[-2000:]}")

    def mode(self) -> str:
        """`standalone`, `leader` or `follower`; empty while it serves nobody."""
        found = re.search(r"^Mode: (\w+)$", ask_zookeeper(self.host, self.port, b"srvr").decode(), re.MULTILINE)
        return found[1] if found else ""

    def _is_serving(self) -> bool:
        self.process.check_alive()
        return bool(self.mode())

    def __exit__(self, *_: object) -> None:
        self.kill()


class EnsembleMember(ZooKeeperProcess):
    """One of several ZooKeepers; `servers` are the lines that name all of them to each."""

    main_class = IN_ENSEMBLE

    def __init__(self, directory: Path, number: int, servers: Mapping[str, str]) -> None:
        super().__init__(directory)
        self.number = number
        self._servers = servers

    def spawn(self) -> None:
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{self.number}\n")
        super().spawn()

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "initLimit": "20", "syncLimit": "10", **self._servers}


class ZooKeeperEnsemble:
    """`with ZooKeeperEnsemble(tmp_path) as ensemble:` has three that elected a leader; `bootstrap` names all.

    Each is killed and started by itself: `ensemble.members[0].kill()`. Owned by one thread.
    """

    def __init__(self, directory: Path, size: int = 3) -> None:
        numbers = range(1, size + 1)
        servers = {f"server.{each}": f"127.0.0.1:{free_port()}:{free_port()}" for each in numbers}
        self.members = [EnsembleMember(directory / f"zookeeper-{each}", each, servers) for each in numbers]

    @property
    def bootstrap(self) -> str:
        return ",".join(member.bootstrap for member in self.members)

    def leader(self) -> EnsembleMember | None:
        """Whom the others follow now, if they agree on one."""
        return next((each for each in self.members if each.is_running and each.mode() == "leader"), None)

    def start(self) -> None:
        """Start those that do not run, and wait until all serve."""
        for member in self.members:
            member.spawn()
        for member in self.members:
            member.wait_until_serving()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()


def ask_zookeeper(host: str, port: int, word: bytes) -> bytes:
    """The answer to one of ZooKeeper's four-letter words; empty if nobody listens."""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_TIMEOUT_S) as connection:
            connection.sendall(word)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return b""


def ephemeral_nodes(zookeeper: ZooKeeperProcess) -> set[bytes] | None:
    """The paths of all; None if it has not told in time."""
    told = ask_zookeeper(zookeeper.host, zookeeper.port, b"dump")
    return set(told.split()) if b"Sessions with Ephemerals" in told else None
