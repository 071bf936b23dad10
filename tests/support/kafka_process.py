"""A real Apache Kafka: 4.3 in KRaft mode, or 3.9 beside a ZooKeeper of its own."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType

from tests.support import maven
from tests.support.processes import Process, ProcessDiedError, free_port, wait_until
from tests.support.registries import end_session_behind
from tests.support.server import KEPT, RunningServer
from tests.support.zookeeper_process import QUICK_JVM, ZooKeeperProcess, ephemeral_nodes

START_TIMEOUT_S = 150.0
ZOOKEEPER_SESSION_MS = 60_000
"""No session is to end by itself on a starved machine; that of a broker that was killed is ended (`prepare`)."""
KRAFT_SESSION_MS = 15_000
"""A start after a kill waits for the end of the old session, so that it is no longer than a busy machine needs."""
CLUSTER_ID = "a2F2a2EtdGVzdC1jbHVzdA"
# What bin/kafka-run-class.sh passes.
KAFKAS_JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


class KafkaProcess(RunningServer):
    """One Apache Kafka broker; the subclasses say how it keeps its metadata.

    `heap` is the JVM's fixed heap, `jvm` its other options ("1g" and KAFKAS_JVM for comparisons). Data lies in
    `directory/data`. The end of a `with` kills it: nobody waits for a clean stop that nobody looks at.
    """

    bundle: str

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        heap: str = "512m",
        jvm: Sequence[str] = QUICK_JVM,
    ) -> None:
        self.directory = directory
        self.overrides = dict(overrides or {})
        self.heap = heap
        self.jvm = tuple(jvm)
        self.port = free_port()
        self._classpath = maven.resolve(self.bundle)

    @property
    def log_dir(self) -> Path:
        return self.directory / "data"

    def start(self) -> float:
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self.prepare()
            settings = "".join(f"{name}={value}\n" for name, value in self.settings().items())
            (self.directory / "server.properties").write_text(settings)
            started_at = time.monotonic()
            self._process = self.spawn("kafka.Kafka", "server.properties", log="kafka.log", heap=self.heap)
            return self.wait_until_ready(started_at, START_TIMEOUT_S)
        except BaseException:
            self.kill()
            self.stop()
            raise

    def prepare(self) -> None:
        """What must be there before the broker starts."""
        raise NotImplementedError

    def settings(self) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "advertised.listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "log.dirs": str(self.log_dir),
            **KEPT,
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.overrides,
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.stop()

    def spawn(self, main_class: str, *arguments: str, log: str, heap: str) -> Process:
        return Process(self.java(main_class, *arguments, heap=heap), self.directory / log)

    def java(self, main_class: str, *arguments: str, heap: str) -> list[str]:
        """The command that runs a class of this Kafka with arguments, paths relative to the directory made absolute."""
        paths = [str(self.directory / text) if text.endswith(".properties") else text for text in arguments]
        return ["java", f"-Xms{heap}", f"-Xmx{heap}", *self.jvm, "-cp", self._classpath, main_class, *paths]


class KRaftKafka(KafkaProcess):
    """Apache Kafka 4.3.1, broker and controller in one process."""

    name = "kafka-4.3"
    bundle = "kafka-4.3"

    @cached_property
    def _controller_port(self) -> int:
        return free_port()

    def prepare(self) -> None:
        if (self.log_dir / "meta.properties").exists():
            return
        settings = "".join(f"{name}={value}\n" for name, value in self.settings().items())
        (self.directory / "format.properties").write_text(settings)
        format_command = ("format", "-t", CLUSTER_ID, "--standalone", "-c", "format.properties")
        command = self.java("kafka.tools.StorageTool", *format_command, heap="256m")
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise ProcessDiedError(f"kafka-storage format failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")

    def settings(self) -> dict[str, str]:
        controller = f"{self.host}:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": controller,
            "controller.listener.names": "CONTROLLER",
            "broker.session.timeout.ms": str(KRAFT_SESSION_MS),
            **super().settings(),
            "listeners": f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{controller}",
        }


class ZooKeeperKafka(KafkaProcess):
    """Apache Kafka 3.9 in ZooKeeper mode, with a ZooKeeper of its own at `zookeeper_connect`.

    `kill` takes only the broker away; ZooKeeper goes on until `stop`.
    """

    name = "kafka-3.9"
    bundle = "kafka-3.9"

    @cached_property
    def _zookeeper(self) -> ZooKeeperProcess:
        return ZooKeeperProcess(self.directory / "zookeeper")

    @property
    def zookeeper_connect(self) -> str:
        return self._zookeeper.bootstrap

    def prepare(self) -> None:
        self._zookeeper.start()
        # After a kill -9 the old registration lives until its session expires, and a second one is refused.
        end_session_behind("/brokers/ids/1", self.zookeeper_connect)
        wait_until(self._is_unregistered, START_TIMEOUT_S, "the killed broker's session does not expire")

    def settings(self) -> dict[str, str]:
        return {
            "broker.id": "1",
            "zookeeper.connect": self.zookeeper_connect,
            "zookeeper.session.timeout.ms": str(ZOOKEEPER_SESSION_MS),
            **super().settings(),
        }

    def stop(self) -> None:
        super().stop()
        self._zookeeper.stop()

    def _is_unregistered(self) -> bool:
        nodes = ephemeral_nodes(self._zookeeper)
        return nodes is not None and b"/brokers/ids/1" not in nodes


class JoiningKafka(KafkaProcess):
    """Apache Kafka 3.9 in a cluster that others are in, too: on a ZooKeeper that runs, below `root` there."""

    name = "kafka-3.9"
    bundle = "kafka-3.9"

    def __init__(
        self,
        directory: Path,
        broker_id: int,
        zookeeper: ZooKeeperProcess,
        root: str,
        overrides: Mapping[str, str] | None = None,
        *,
        heap: str = "256m",
    ) -> None:
        super().__init__(directory, overrides, heap=heap)
        self.broker_id = broker_id
        self._zookeeper = zookeeper
        self._root = root

    def prepare(self) -> None:
        wait_until(self._is_unregistered, START_TIMEOUT_S, "the killed broker's session does not expire")

    def settings(self) -> dict[str, str]:
        return {
            "broker.id": str(self.broker_id),
            "zookeeper.connect": self._zookeeper.bootstrap + self._root,
            "zookeeper.session.timeout.ms": "30000",
            **super().settings(),
        }

    def _is_unregistered(self) -> bool:
        nodes = ephemeral_nodes(self._zookeeper)
        return nodes is not None and f"{self._root}/brokers/ids/{self.broker_id}".encode() not in nodes
