"""Copying exactly once while coordinators and leaders are killed: transactions stay whole, offsets never go back."""

import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.coordinator.partitioning import partition_for
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.kavka_process import KavkaProcess
from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import Process, wait_until
from tests.support.producing import REPOSITORY, Producing
from tests.support.wire import Wire
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

IDS = (1, 2, 3)
SOURCE, TARGET, GROUP, TRANSACTION = "visits", "copies", "copiers", "copier"
INTERNAL_PARTITIONS = 3
TIMEOUT_S = 90.0
SETTINGS = {
    "zookeeper.session.timeout.ms": "4000",
    "controlled.shutdown.enable": "false",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
    "group.initial.rebalance.delay.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


class Cluster:
    """Three brokers, each a process."""

    def __init__(self, brokers: dict[int, KavkaProcess]) -> None:
        self.brokers = brokers
        self.bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
        self._dead: set[int] = set()

    def kill(self, broker_id: int) -> None:
        self._dead.add(broker_id)
        self.brokers[broker_id].kill()

    def start(self, broker_id: int) -> None:
        self.brokers[broker_id].start()
        self._dead.remove(broker_id)

    def leader(self, topic: str, partition: int) -> int:
        """As a broker that runs knows it; -1 while there is none."""
        return self._partitions(topic).get(partition, (-1, 0))[0]

    def wait_for_replicas(self, *topics: str) -> None:
        """Until all replicas of these topics are in sync."""

        def in_sync() -> bool:
            states = [state for topic in topics for state in (self._partitions(topic) or {0: (-1, 0)}).values()]
            return all(leader > 0 and isr == len(IDS) for leader, isr in states)

        wait_until(in_sync, TIMEOUT_S, lambda: f"not in sync: {[self._partitions(topic) for topic in topics]}")

    def wait_for_other_leader(self, topic: str, partition: int, killed: int) -> None:
        wait_until(
            lambda: self.leader(topic, partition) not in (-1, killed),
            TIMEOUT_S,
            lambda: f"nobody leads {topic}-{partition} in place of {killed}",
        )

    def _partitions(self, topic: str) -> dict[int, tuple[int, int]]:
        """Leader and size of the ISR."""
        running = next(broker for broker_id, broker in self.brokers.items() if broker_id not in self._dead)
        with Wire(running.host, running.port) as wire:
            (told,) = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 8).topics
        return {each.partition_index: (each.leader_id, len(each.isr_nodes)) for each in told.partitions}


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        brokers = {
            broker_id: KavkaProcess(
                tmp_path / str(broker_id),
                {
                    "broker.id": str(broker_id),
                    "zookeeper.connect": f"{zookeeper.bootstrap}/coordinators",
                    **SETTINGS,
                },
            )
            for broker_id in IDS
        }
        for broker in brokers.values():
            stack.enter_context(broker)
        made = Cluster(brokers)
        admin = KafkaAdminClient(bootstrap_servers=made.bootstrap.split(","))
        admin.create_topics([NewTopic(name, PARTITIONS, len(IDS)) for name in (SOURCE, TARGET)])
        admin.close()
        made.wait_for_replicas(SOURCE, TARGET)
        yield made


class Offsets:
    """Reads a group's committed offsets again and again; `went_back` has what must not be."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: dict[int, int] = defaultdict(int)
        self.went_back: list[str] = []
        self._asker = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 2})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="offsets", daemon=True)

    def __enter__(self) -> "Offsets":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._asker.close()

    def look(self) -> None:
        asked = [TopicPartition(SOURCE, index) for index in range(PARTITIONS)]
        for found in self._asker.committed(asked, 5):
            if max(found.offset, 0) < self.seen[found.partition]:
                self.went_back.append(f"{found} after {self.seen[found.partition]}")
            self.seen[found.partition] = max(found.offset, 0)

    def _run(self) -> None:
        while not self._is_over.wait(0.2):
            try:
                self.look()
            except KafkaException:
                # The coordinator is on its way.
                continue


def end_of(consumer: Consumer, index: int) -> int | None:
    try:
        return consumer.get_watermark_offsets(TopicPartition(TARGET, index), 5)[1]
    except KafkaException:
        # Its leader has just changed.
        return None


def read_committed(bootstrap: str) -> dict[int, list[str]]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed", "log_level": 2}
    )
    found: dict[int, list[str]] = {}
    for index in range(PARTITIONS):
        values = found[index] = []
        end = wait_until(partial(end_of, consumer, index), TIMEOUT_S, f"partition {index} has no end")
        consumer.assign([TopicPartition(TARGET, index, 0)])
        position = 0
        while position < end:
            for message in consumer.consume(500, 0.2):
                assert message.error() is None, message.error()
                values.append((message.value() or b"").decode())
            (reached,) = consumer.position([TopicPartition(TARGET, index)])
            position = max(position, reached.offset)
    consumer.close()
    return found


def wait_for_copies(copier: Process) -> None:
    """Until transactions have been committed that began after this call."""
    before = copier.log_text().count("COPIED")
    wait_until(
        lambda: copier.log_text().count("COPIED") > before + 1,
        TIMEOUT_S,
        lambda: f"nothing is copied:\n{copier.log_text()[-3000:]}",
    )


@pytest.mark.timeout(300)
def test_copies_are_exact_though_coordinators_and_leaders_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    arguments = [cluster.bootstrap, SOURCE, TARGET, GROUP, TRANSACTION]
    command = [sys.executable, "-m", "tests.support.exactly_once_copier", *arguments]
    victims = (
        (TRANSACTION_STATE_TOPIC, partition_for(TRANSACTION, INTERNAL_PARTITIONS)),
        (GROUP_METADATA_TOPIC, partition_for(GROUP, INTERNAL_PARTITIONS)),
        (TARGET, 0),
    )
    with (
        Producing(tmp_path, cluster.bootstrap, SOURCE, "n", "confluent", rate=200) as producer,
        Process(command, tmp_path / "copier.log", env={"PYTHONPATH": str(REPOSITORY)}) as copier,
        Offsets(cluster.bootstrap) as offsets,
    ):
        copier.wait_for_log("COPIED", TIMEOUT_S)
        for topic, partition in victims:
            cluster.wait_for_replicas(SOURCE, TARGET, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
            killed = cluster.leader(topic, partition)
            cluster.kill(killed)
            cluster.wait_for_other_leader(topic, partition, killed)
            wait_for_copies(copier)
            cluster.start(killed)
        sent = producer.finish()
        assert producer.errors() == []
        wait_until(lambda: sum(offsets.seen.values()) >= sent, TIMEOUT_S, lambda: copier.log_text()[-3000:])
    assert offsets.went_back == []

    copied_values = read_committed(cluster.bootstrap)
    assert sum(map(len, copied_values.values())) == sent
    for partition, values in copied_values.items():
        assert values == [f"n:{partition}:{number}!" for number in range(len(values))]
