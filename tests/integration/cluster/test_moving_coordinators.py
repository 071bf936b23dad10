"""Copying exactly once while coordinators and leaders are killed: transactions stay whole, offsets never go back."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.coordinator.partitioning import partition_for
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.exact_copies import GROUP, SOURCE, TARGET, TRANSACTION, ExactCopies
from tests.support.kavka_process import KavkaProcess
from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import wait_until
from tests.support.wire import Wire
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

IDS = (1, 2, 3)
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


@pytest.mark.timeout(300)
def test_copies_are_exact_though_coordinators_and_leaders_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    victims = (
        (TRANSACTION_STATE_TOPIC, partition_for(TRANSACTION, INTERNAL_PARTITIONS)),
        (GROUP_METADATA_TOPIC, partition_for(GROUP, INTERNAL_PARTITIONS)),
        (TARGET, 0),
    )
    with ExactCopies(tmp_path, cluster.bootstrap) as copies:
        for topic, partition in victims:
            cluster.wait_for_replicas(SOURCE, TARGET, GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
            killed = cluster.leader(topic, partition)
            cluster.kill(killed)
            cluster.wait_for_other_leader(topic, partition, killed)
            copies.wait_for_more()
            cluster.start(killed)
        copies.finish()
