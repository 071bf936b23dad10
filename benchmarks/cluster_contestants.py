"""Two clusters that are compared: three brokers of a kind and a ZooKeeper of their own."""

import shutil
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.contestants import SETTINGS, Contestant
from tests.support.kafka_process import KAFKAS_JVM, KafkaProcess
from tests.support.kavka_process import KavkaProcess
from tests.support.server import RunningServer
from tests.support.zookeeper_process import ZooKeeperProcess

BROKER_IDS: Final = (1, 2, 3)
FACTOR: Final = len(BROKER_IDS)
SESSION_TIMEOUT_MS: Final = 6000
KAFKA_HEAP: Final = "512m"
CLUSTER_SETTINGS: Final = {
    **SETTINGS,
    "default.replication.factor": str(FACTOR),
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": str(FACTOR),
    "transaction.state.log.replication.factor": str(FACTOR),
    "transaction.state.log.min.isr": "2",
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    # A benchmark stops its last brokers without anybody to hand over to.
    "controlled.shutdown.max.retries": "1",
    "controlled.shutdown.retry.backoff.ms": "100",
}


class ClusterKafka(KafkaProcess):
    """Apache Kafka 3.9 on a ZooKeeper that runs."""

    name = "kafka-3.9"
    bundle = "kafka-3.9"

    def prepare(self) -> None:
        """ZooKeeper is there already."""


class Cluster(RunningServer):
    """Three brokers, `bootstrap` with all of them; `servers` by id. What one broker is asked is the sum of theirs."""

    def __init__(self, name: str, directory: Path, servers: Mapping[int, RunningServer], zookeeper: ZooKeeperProcess):
        self.name = name
        self.directory = directory
        self.servers = dict(servers)
        self._zookeeper = zookeeper

    @property
    def bootstrap(self) -> str:
        return ",".join(server.bootstrap for server in self.servers.values())

    def start(self) -> float:
        return sum(server.start() for server in self.servers.values())

    def stop(self) -> None:
        try:
            for server in self.servers.values():
                # The data go: nobody waits for three hand-overs.
                server.kill()
        finally:
            self._zookeeper.kill()

    def cpu_seconds(self) -> float:
        """Of all brokers; ZooKeeper's is left out, as it is the same program for both."""
        return sum(server.process.cpu_seconds() for server in self.servers.values())

    def rss_bytes(self) -> int:
        return sum(server.process.rss_bytes() for server in self.servers.values())

    def peak_rss_bytes(self) -> int:
        return sum(server.process.peak_rss_bytes() for server in self.servers.values())

    def has_died(self) -> bool:
        """Whether a broker ended by itself."""
        return any(server.process.exit_code is not None for server in self.servers.values())


class ClusterContestant(Contestant):
    """One kind of broker, three of it. `shared` lives until `release`."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory)
        self.settings = {**CLUSTER_SETTINGS, **(settings or {})}
        self._cluster: Cluster | None = None
        self._clusters = count(1)

    def broker(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        raise NotImplementedError

    @property
    def cluster(self) -> Cluster:
        """That which rows share."""
        if self._cluster is not None and self._cluster.has_died():
            self.release()
        if self._cluster is None:
            cluster = self.fresh_cluster()
            cluster.start()
            self._cluster = cluster
        return self._cluster

    def fresh_cluster(self) -> Cluster:
        """One that was never started but for its ZooKeeper, in an empty directory."""
        directory = self.directory / f"{self.name}-cluster-{next(self._clusters)}"
        shutil.rmtree(directory, ignore_errors=True)
        zookeeper = ZooKeeperProcess(directory / "zookeeper")
        zookeeper.start()
        servers = {
            broker_id: self.broker(
                directory / str(broker_id),
                {**self.settings, "broker.id": str(broker_id), "zookeeper.connect": zookeeper.bootstrap},
            )
            for broker_id in BROKER_IDS
        }
        return Cluster(self.name, directory, servers, zookeeper)

    def release(self) -> None:
        if self._cluster is not None:
            self.remove(self._cluster)
            self._cluster = None


class KavkaCluster(ClusterContestant):
    name = "kavka"

    def broker(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return KavkaProcess(directory, settings, expected_errors=("",))


class KafkaCluster(ClusterContestant):
    name = "kafka"

    def broker(self, directory: Path, settings: Mapping[str, str]) -> RunningServer:
        return ClusterKafka(directory, settings, heap=KAFKA_HEAP, jvm=KAFKAS_JVM)
