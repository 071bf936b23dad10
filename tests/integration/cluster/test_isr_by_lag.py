"""A follower that lives and lags leaves the ISR and comes back; with too few in sync nothing more is committed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import NotEnoughReplicasError

from kavka.broker.partitions.partition import Partition
from kavka.protocol.errors import ErrorCode
from tests.support.processes import wait_until
from tests.support.running_cluster import RunningCluster
from tests.support.wire import RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

TOPIC, TIMEOUT_S = "visits", 120.0
LEADER, STEADY, SLOW = 1, 2, 3
PLACED = TopicPartition(TOPIC, 0)


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[RunningCluster]:
    settings = {
        "replica.fetch.backoff.ms": "100",
        "replica.fetch.wait.max.ms": "200",
        # Long enough for who does not lag, and is kept waiting by a busy machine.
        "replica.lag.time.max.ms": "6000",
        "min.insync.replicas": "2",
        "auto.leader.rebalance.enable": "false",
    }
    with RunningCluster(zookeeper.bootstrap, tmp_path, (LEADER, STEADY, SLOW), settings) as made:
        admin = KafkaAdminClient(bootstrap_servers=addresses(made))
        placed = {0: [LEADER, STEADY, SLOW]}
        admin.create_topics([NewTopic(TOPIC, -1, -1, replica_assignments=placed)])
        admin.close()
        made.wait_for_topic(TOPIC, 3)
        yield made


def addresses(cluster: RunningCluster, *broker_ids: int) -> list[str]:
    return [cluster.settings[each]["listeners"].partition("//")[2] for each in broker_ids or cluster.settings]


def copies(cluster: RunningCluster, broker_id: int = SLOW, *, goes_on: bool) -> None:
    """Whether a broker's fetcher copies the partition: else it lives, and falls behind."""
    replicas = cluster.brokers[broker_id].services.replicas
    followers = replicas._followers
    assert followers is not None
    if goes_on:
        followers.roles_changed([replicas.partitions[TOPIC, 0]])
    else:
        followers.unfollow([(TOPIC, 0)])


def led(cluster: RunningCluster) -> Partition:
    return cluster.brokers[LEADER].services.replicas.partitions[TOPIC, 0]


def wait_for_isr(cluster: RunningCluster, *isr: int) -> None:
    wait_until(lambda: set(led(cluster).role.isr) == set(isr), TIMEOUT_S, lambda: f"ISR {led(cluster).role}")


def produce(cluster: RunningCluster, count: int, acks: int | str, *broker_ids: int, is_patient: bool = True) -> None:
    retries = {} if is_patient else {"retries": 0}
    producer = KafkaProducer(bootstrap_servers=addresses(cluster, *broker_ids), acks=acks, **retries)
    try:
        for sent in [producer.send(TOPIC, bytes(10_000), partition=0) for _ in range(count)]:
            sent.get(TIMEOUT_S)
    finally:
        producer.close()


def test_a_follower_that_lags_leaves_and_comes_back(cluster: RunningCluster) -> None:
    copies(cluster, goes_on=False)
    produce(cluster, 20, 1)

    wait_for_isr(cluster, LEADER, STEADY)

    produce(cluster, 1, "all")
    assert led(cluster).high_watermark == led(cluster).leader_log().log_end_offset == 21
    copies(cluster, goes_on=True)
    wait_for_isr(cluster, LEADER, STEADY, SLOW)


def test_with_too_few_in_sync_nothing_more_is_committed(cluster: RunningCluster) -> None:
    produce(cluster, 2, "all")
    for broker_id in (SLOW, STEADY):
        cluster.stop(broker_id)
    wait_for_isr(cluster, LEADER)

    with pytest.raises(NotEnoughReplicasError):
        produce(cluster, 1, "all", LEADER, is_patient=False)
    produce(cluster, 3, 1, LEADER)

    assert (led(cluster).high_watermark, led(cluster).leader_log().log_end_offset) == (2, 5)
    assert end_of(cluster, LEADER) == 2
    cluster.start(STEADY)
    wait_for_isr(cluster, LEADER, STEADY)
    wait_until(lambda: led(cluster).high_watermark == 5, TIMEOUT_S, "nothing is committed")
    assert end_of(cluster, LEADER) == 5


def test_what_is_appended_before_too_few_are_in_sync_is_not_acknowledged(cluster: RunningCluster) -> None:
    for broker_id in (STEADY, SLOW):
        copies(cluster, broker_id, goes_on=False)
    host, _, port = addresses(cluster, LEADER)[0].partition(":")
    with RawClient(host, int(port)) as client:
        appended = client.produce(TOPIC, b"appended", acks=-1, timeout_ms=1000)
        wait_for_isr(cluster, LEADER)
        refused = client.produce(TOPIC, b"refused", acks=-1, timeout_ms=1000)

    # With too few in sync the high watermark stands (KAFKA-15583) and the time runs out: only what was replicated
    # before the ISR shrank is NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    codes = [appended.error_code, refused.error_code]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS]
    assert (end_of(cluster), led(cluster).leader_log().log_end_offset) == (0, 1)
    for broker_id in (STEADY, SLOW):
        copies(cluster, broker_id, goes_on=True)
    wait_for_isr(cluster, LEADER, STEADY, SLOW)
    wait_until(lambda: end_of(cluster) == 1, TIMEOUT_S, "what was appended is never committed")


def end_of(cluster: RunningCluster, *broker_ids: int) -> int:
    """Up to where consumers may read."""
    consumer = KafkaConsumer(bootstrap_servers=addresses(cluster, *broker_ids))
    end: int = consumer.end_offsets([PLACED])[PLACED]
    consumer.close()
    return end
