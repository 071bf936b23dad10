"""Records reach all replicas of a cluster on ZooKeeper, survive their leaders' leaving, and replicas end identical."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic

from tests.support.processes import wait_until
from tests.support.running_cluster import RunningCluster
from tests.support.zookeeper_process import ZooKeeperProcess

TOPIC, PARTITIONS, TIMEOUT_S = "visits", 3, 120.0


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[RunningCluster]:
    settings = {"replica.fetch.backoff.ms": "100", "min.insync.replicas": "2"}
    with RunningCluster(zookeeper.bootstrap, tmp_path, (1, 2, 3), settings) as made:
        admin = KafkaAdminClient(bootstrap_servers=addresses(made))
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
        admin.close()
        made.wait_for_topic(TOPIC, 3)
        yield made


def addresses(cluster: RunningCluster) -> list[str]:
    return [cluster.settings[broker_id]["listeners"].partition("//")[2] for broker_id in cluster.settings]


def produce(cluster: RunningCluster, first: int, count: int) -> None:
    """Numbered records, each acknowledged by all that are in sync."""
    producer = KafkaProducer(bootstrap_servers=addresses(cluster), acks="all")
    sent = [
        producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS) for number in range(first, first + count)
    ]
    for each in sent:
        each.get(TIMEOUT_S)
    producer.close()


def consume(cluster: RunningCluster) -> list[int]:
    consumer = KafkaConsumer(bootstrap_servers=addresses(cluster), auto_offset_reset="earliest")
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    found: list[int] = []
    while any(consumer.position(each) < ends[each] for each in partitions):
        found += [int(record.value) for batch in consumer.poll(1000).values() for record in batch]
    consumer.close()
    return sorted(found)


def wait_for_equal_replicas(cluster: RunningCluster) -> None:
    def are_equal() -> bool:
        for index in range(PARTITIONS):
            logs = [broker.services.replicas.partitions[TOPIC, index].log for broker in cluster.brokers.values()]
            states = {(log.log_end_offset, log.high_watermark) for log in logs if log is not None}
            if len(states) != 1 or len(logs) < len(cluster.brokers) or len(set(states.pop())) != 1:
                return False
        return True

    wait_until(are_equal, TIMEOUT_S, "replicas are not equal")
    for index in range(PARTITIONS):
        contents = set()
        for broker in cluster.brokers.values():
            log = broker.services.replicas.partitions[TOPIC, index].log
            assert log is not None
            contents.add(b"".join(path.read_bytes() for path in sorted(log.directory.glob("*.log"))))
        assert len(contents) == 1


def wait_for_full_isr(cluster: RunningCluster) -> None:
    def is_full() -> bool:
        roles = [
            partition.role
            for broker in cluster.brokers.values()
            for (name, _), partition in broker.services.replicas.partitions.items()
            if name == TOPIC
        ]
        led = [role for role in roles if role.is_leader]
        return len(led) == PARTITIONS and all(len(role.isr) == len(cluster.settings) for role in led)

    wait_until(is_full, TIMEOUT_S, "replicas are not in sync")


def test_all_replicas_end_identical_though_each_broker_leaves_once(cluster: RunningCluster) -> None:
    produce(cluster, 0, 300)
    wait_for_equal_replicas(cluster)
    sent = 300
    for broker_id in list(cluster.settings):
        cluster.stop(broker_id)
        produce(cluster, sent, 90)
        cluster.start(broker_id)
        cluster.wait_for_brokers()
        wait_for_full_isr(cluster)
        produce(cluster, sent + 90, 30)
        sent += 120

    wait_for_equal_replicas(cluster)
    assert consume(cluster) == list(range(sent))


def test_the_number_of_fetchers_follows_its_setting(cluster: RunningCluster) -> None:
    produce(cluster, 0, 30)

    admin = KafkaAdminClient(bootstrap_servers=addresses(cluster))
    for broker_id in cluster.settings:
        for number in ("2", "4"):  # twice as many at most, each time
            wished = ConfigResource(ConfigResourceType.BROKER, str(broker_id), {"num.replica.fetchers": number})
            admin.alter_configs([wished])
            wait_until(partial(_has_fetchers, cluster, broker_id, int(number)), TIMEOUT_S, "it does not hear of it")
    admin.close()

    # Three partitions belong to three of four fetchers; whoever does not lead them follows them.
    wait_until(lambda: bool(_fetcher_numbers() - {"0"}), TIMEOUT_S, "there is no second fetcher")
    produce(cluster, 30, 30)
    wait_for_equal_replicas(cluster)


def _has_fetchers(cluster: RunningCluster, broker_id: int, number: int) -> bool:
    """Only then may it be doubled again."""
    return cluster.brokers[broker_id].services.config.current.num_replica_fetchers == number


def _fetcher_numbers() -> set[str]:
    prefix = "ReplicaFetcherThread-"
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith(prefix)]
    return {name.removeprefix(prefix).partition("-")[0] for name in names}
