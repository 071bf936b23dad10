"""ZooKeeper is gone for longer than sessions last: records, groups and commits go on without it."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Message

from tests.support import maven
from tests.support.numbered_producer import PARTITIONS
from tests.support.process_cluster import INTERNAL, ProcessCluster
from tests.support.processes import let_pass, wait_until
from tests.support.producing import Producing, assert_nothing_lost_or_doubled
from tests.support.zookeeper_process import BUNDLE, ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, GROUP, TIMEOUT_S = "visits", "readers", 120.0
GONE_S = float(os.environ.get("ZOOKEEPER_GONE_S", "12"))
"""Three sessions, and as long as a follower may lag."""
SETTINGS = {"zookeeper.session.timeout.ms": "4000", "replica.lag.time.max.ms": "4000"}


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperProcess]:
    """One that may be killed."""
    maven.classpath(BUNDLE)
    with ZooKeeperProcess(tmp_path / "zookeeper") as process:
        yield process


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    with ProcessCluster(zookeeper, tmp_path, kavkas=(1, 2, 3), settings=SETTINGS) as made:
        made.create(TOPIC, PARTITIONS, first=1)
        yield made


class Member:
    """Joins the group, reads, and commits what it has read, on a thread of its own."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        self.partitions = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
                "log_level": 2,
            }
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._consumer.subscribe([TOPIC])
        self._thread.start()

    def leave(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close()

    def wait_for_more(self) -> None:
        before = self.count
        wait_until(lambda: self.count > before, TIMEOUT_S, "nothing is read and committed")

    def _run(self) -> None:
        while not self._is_over.is_set():
            found: list[Message] = [each for each in self._consumer.consume(100, 0.2) if each.error() is None]
            if found and self._commits():
                self.count += len(found)
            self.partitions = len(self._consumer.assignment())

    def _commits(self) -> bool:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException:
            # The group is being rebalanced: what was read is read again, by whoever has the partition then.
            return False
        return True


@pytest.mark.timeout(600 + 2 * GONE_S)
def test_records_groups_and_commits_go_on_without_zookeeper(
    cluster: ProcessCluster, zookeeper: ZooKeeperProcess, tmp_path: Path
) -> None:
    first = Member(cluster.bootstrap)
    with Producing(tmp_path, cluster.bootstrap, TOPIC, "n", "confluent", rate=100) as producer:
        first.wait_for_more()
        cluster.wait_in_sync(TOPIC, INTERNAL[0])
        told = cluster.told(TOPIC)
        zookeeper.kill()
        let_pass(GONE_S / 2)
        producer.wait_for_more()
        first.wait_for_more()
        second = Member(cluster.bootstrap)
        wait_until(lambda: first.partitions == second.partitions == PARTITIONS // 2, TIMEOUT_S, "no rebalance")
        let_pass(GONE_S / 2)
        producer.wait_for_more()
        for member in (first, second):
            member.wait_for_more()
            member.leave()
        assert cluster.told(TOPIC) == told

        zookeeper.start()
        cluster.create("made.afterwards", 1, first=2)
        producer.wait_for_more()
        producer.finish()
    assert producer.errors() == []
    # Sessions that were over before ZooKeeper was back have moved leaderships.
    cluster.wait_for_brokers()
    cluster.lead([TOPIC], 1)
    leader = cluster.brokers[1]
    assert_nothing_lost_or_doubled(leader.host, leader.port, TOPIC, [producer])
