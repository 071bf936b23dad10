"""Brokers of one process that are a cluster: without ZooKeeper, as on ZooKeeper."""

import logging
import threading
from collections.abc import Iterator

import pytest

from kavka.broker.metrics.log_lines import LineFormatter
from kavka.client import Consumer
from kavka.testing import Cluster
from tests.support.processes import wait_until

FACTOR = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster
        cluster.check()


def hosts(cluster: Cluster, topic: str) -> dict[int, set[int]]:
    """Who is in sync, by partition."""
    (described,) = cluster.admin.describe_topics([topic]).values()
    return {each.partition: set(each.isr) for each in described.partitions}


def wait_for_isr(cluster: Cluster, topic: str, *broker_ids: int) -> None:
    cluster.wait_until(
        lambda: all(isr == set(broker_ids) for isr in hosts(cluster, topic).values()),
        message=f"{topic} is not in sync on {broker_ids}",
    )


def test_internal_topics_have_a_replica_on_each_broker(cluster: Cluster) -> None:
    cluster.create_topic("orders", 2, replication_factor=FACTOR)
    cluster.produce("orders", ["x"])
    with Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest"}, group_id="g"
    ) as consumer:
        consumer.subscribe(["orders"])
        assert [record.value for record in consumer.poll(timeout_ms=60_000)] == [b"x"]
        consumer.commit_sync()
    cluster.wait_until_consumed("g", "orders")
    wait_for_isr(cluster, "__consumer_offsets", 1, 2, 3)
    assert len(hosts(cluster, "__consumer_offsets")) == 1


def test_what_was_acknowledged_outlives_a_killed_leader_which_comes_back_as_a_follower(cluster: Cluster) -> None:
    cluster.create_topic("ledger", replication_factor=FACTOR, configs={"min.insync.replicas": "2"})
    cluster.produce("ledger", map(str, range(100)))
    leader = cluster.leader_of("ledger")
    cluster.kill(leader)
    assert leader not in cluster.running
    cluster.wait_until(lambda: cluster.leader_of("ledger") not in (-1, leader), message="no other leader")
    cluster.produce("ledger", map(str, range(100, 200)))
    cluster.assert_records("ledger", [str(number) for number in range(200)])

    cluster.start(leader)
    wait_for_isr(cluster, "ledger", 1, 2, 3)
    survivors = [broker_id for broker_id in (1, 2, 3) if broker_id != leader]
    for broker_id in survivors:
        cluster.stop(broker_id)
        cluster.start(broker_id)
        wait_for_isr(cluster, "ledger", 1, 2, 3)
    cluster.assert_records("ledger", [str(number) for number in range(200)])


def test_a_broker_whose_session_expires_comes_back_under_another_epoch(cluster: Cluster) -> None:
    victim = cluster.controller_id
    registry = cluster.hosted[victim].registry
    assert registry is not None
    before = registry.get(f"/brokers/ids/{victim}")[1].czxid

    cluster.expire_session(victim)

    def is_back() -> bool:
        found = registry.exists(f"/brokers/ids/{victim}")
        return found is not None and found.czxid > before

    cluster.wait_until(is_back, message="it has not registered again")
    cluster.wait_until_known()
    cluster.create_topic("after", replication_factor=FACTOR)
    wait_for_isr(cluster, "after", 1, 2, 3)
    cluster.produce("after", ["x"])
    cluster.assert_records("after", ["x"])


def test_threads_and_log_lines_say_whose_they_are(caplog: pytest.LogCaptureFixture) -> None:
    before = set(threading.enumerate())
    with caplog.at_level(logging.INFO, "kavka"), Cluster(2) as cluster:
        cluster.create_topic("orders", 3, replication_factor=2)
        cluster.produce("orders", range(30))
        cluster.kill(2)
        cluster.start(2)
        wait_for_isr(cluster, "orders", 1, 2)
        own = [thread.name for thread in set(threading.enumerate()) - before]
        brokers = [name for name in own if not name.startswith(("kavka-admin", "kavka-producer"))]
        assert {name.partition(":")[0] for name in brokers} == {"broker-1", "broker-2"}
        ends = {name.partition(":")[2] for name in brokers}
        assert {"network-0", "io-0", "kavka-controller", "timer"} <= ends
        assert any(name.startswith("ReplicaFetcherThread") for name in ends)
    lines = [LineFormatter().format(record) for record in caplog.records if record.name.startswith("kavka.broker")]
    assert lines
    assert [line for line in lines if "thread=broker-" not in line] == []
    wait_until(lambda: set(threading.enumerate()) <= before, 60, "threads are left")


def test_the_clock_of_all_brokers_is_one(cluster: Cluster) -> None:
    cluster.create_topic("shed", 3, replication_factor=FACTOR, configs={"retention.ms": "3600000"})
    cluster.produce("shed", range(20))
    wait_for_isr(cluster, "shed", 1, 2, 3)
    cluster.travel(days=1)
    cluster.wait_until(lambda: not cluster.records("shed"), message="retention did nothing")
    wait_for_isr(cluster, "shed", 1, 2, 3)


def test_a_cluster_of_none_is_refused() -> None:
    with pytest.raises(ValueError, match="one broker at least"):
        Cluster(0)
