"""Faults of the larger kind, asked of a test's own broker and cluster: leaders, coordinators, restarts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kavka.client import Admin, Consumer, Producer
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.testing import Broker, Cluster
from tests.support.processes import wait_until
from tests.support.wire import Wire, batch_of, produce

TIMEOUT_S = 60.0
LONG_MS = 600_000.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster


def wire_to(bootstrap: str) -> Wire:
    host, _, port = bootstrap.partition(":")
    return Wire(host, int(port))


def test_a_partition_of_a_single_broker_has_no_leader_for_a_time(broker: Broker) -> None:
    broker.create_topic("moved")
    with wire_to(broker.bootstrap_servers) as wire:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="moved")])
        with broker.faults.move_leader("moved", unavailable_ms=LONG_MS) as fault:
            (topic,) = wire.ask(asked, 9).topics
            (partition,) = topic.partitions
            assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            refused = produce(wire, "moved", batch_of([b"x"], timestamp_ms=1))
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert fault.hits == 2
        assert produce(wire, "moved", batch_of([b"x"], timestamp_ms=1)).error_code == 0


def test_a_leader_that_is_gone_for_a_time_costs_no_record(broker: Broker) -> None:
    broker.create_topic("patient")
    fault = broker.faults.move_leader("patient", unavailable_ms=LONG_MS)
    with ThreadPoolExecutor(1) as another:
        produced = another.submit(broker.produce, "patient", [b"1", b"2"])
        wait_until(lambda: fault.hits, TIMEOUT_S, "nobody asked for the leader")
        broker.travel(hours=1)
        produced.result()

    broker.assert_records("patient", [b"1", b"2"])
    assert broker.faults.faults == ()


def test_the_coordinator_of_a_single_broker_is_lost_and_loads_its_log_again(broker: Broker) -> None:
    broker.create_topic("consumed")
    broker.produce("consumed", [b"1"])
    with Consumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="lost", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["consumed"])
        wait_until(lambda: consumer.poll(timeout_ms=100), TIMEOUT_S, "nothing consumed")
        consumer.commit_sync()
        assert broker.hosted.server is not None
        loads = broker.hosted.server.services.groups.runtime.load_times
        before = loads.count
        with wire_to(broker.bootstrap_servers) as wire:
            fault = broker.faults.lose_coordinator("lost", unavailable_ms=LONG_MS, loading_ms=LONG_MS)
            search = wire.ask(FindCoordinatorRequest(key="lost", key_type=0), 3)
            assert search.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            beat = HeartbeatRequest(group_id="lost", generation_id=1, member_id="m")
            assert wire.ask(beat, 3).error_code == ErrorCode.NOT_COORDINATOR
            fault.clear()
            fault = broker.faults.lose_coordinator("lost", unavailable_ms=0, loading_ms=LONG_MS)
            wait_until(
                lambda: wire.ask(beat, 3).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, TIMEOUT_S, "not loading"
            )
            assert wire.ask(FindCoordinatorRequest(key="lost", key_type=0), 3).error_code == 0
            fault.clear()
        broker.produce("consumed", [b"2"])
        (record,) = wait_until(lambda: consumer.poll(timeout_ms=100), TIMEOUT_S, "the member did not recover")
        assert record.value == b"2", "what it had committed, and its place, were read from the log"
        assert loads.count > before


def test_a_transactions_coordinator_is_lost(broker: Broker) -> None:
    with wire_to(broker.bootstrap_servers) as wire:
        search = FindCoordinatorRequest(key="tx", key_type=1)
        wait_until(lambda: wire.ask(search, 3).error_code == 0, TIMEOUT_S, "no coordinator")
        begin = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        wait_until(lambda: wire.ask(begin, 3).error_code == 0, TIMEOUT_S, "no producer id")

        with broker.faults.lose_coordinator(transactional_id="tx", unavailable_ms=LONG_MS):
            assert wire.ask(begin, 3).error_code == ErrorCode.NOT_COORDINATOR

        wait_until(lambda: wire.ask(begin, 3).error_code == 0, TIMEOUT_S, "it did not come back")


def test_a_bounced_broker_is_at_its_address_with_its_data(broker: Broker) -> None:
    broker.create_topic("bounced")
    broker.produce("bounced", [b"before"])
    address = broker.bootstrap_servers
    standing = broker.faults.fail("Produce", error="NOT_ENOUGH_REPLICAS", topic="bounced")

    fault = broker.faults.bounce()

    assert (fault.hits, broker.bootstrap_servers) == (1, address)
    with Producer(bootstrap_servers=address) as producer:
        producer.send("bounced", b"after").result(TIMEOUT_S)
    broker.assert_records("bounced", [b"before", b"after"])
    assert standing.hits == 1, "a fault that stands hits the broker after its restart, too"
    broker.faults.clear()


def test_a_leader_of_a_cluster_moves_and_clients_follow(cluster: Cluster) -> None:
    cluster.create_topic("led", replication_factor=3)
    cluster.produce("led", [b"1"])
    first = cluster.leader_of("led")

    fault = cluster.faults.move_leader("led")

    assert fault.hits == 1
    second = cluster.leader_of("led")
    assert second not in (first, -1)
    cluster.faults.move_leader("led", to=first)
    assert cluster.leader_of("led") == first
    cluster.produce("led", [b"2"])
    cluster.assert_records("led", [b"1", b"2"])
    with pytest.raises(ValueError, match="cannot lead"):
        cluster.faults.move_leader("led", to=first)


def test_a_leader_moves_whatever_else_goes_wrong(cluster: Cluster) -> None:
    cluster.create_topic("led-in-trouble", replication_factor=3)
    first = cluster.leader_of("led-in-trouble")
    with cluster.faults.cut(times=None) as trouble:
        assert cluster.faults.move_leader("led-in-trouble").hits == 1

        assert cluster.leader_of("led-in-trouble") not in (first, -1)
    assert trouble.is_cleared


def test_a_move_that_does_not_come_about_ends_when_it_is_taken_back(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("stuck", replication_factor=3)
    for name in ("alter_partition_reassignments", "elect_leaders"):
        monkeypatch.setattr(Admin, name, lambda *_: None)
    with ThreadPoolExecutor(1) as asking:
        moving = asking.submit(cluster.faults.move_leader, "stuck")
        wait_until(lambda: cluster.faults.faults, TIMEOUT_S, "not asked for")
        cluster.faults.clear()

        with pytest.raises(RuntimeError, match="taken back"):
            moving.result()


def test_a_groups_coordinator_moves_to_another_broker(cluster: Cluster) -> None:
    cluster.create_topic("grouped", replication_factor=3)
    cluster.produce("grouped", [b"1"])
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers, group_id="moves", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["grouped"])
        wait_until(lambda: consumer.poll(timeout_ms=100), TIMEOUT_S, "nothing consumed")
        consumer.commit_sync()
        before = cluster.leader_of("__consumer_offsets")

        cluster.faults.lose_coordinator("moves")

        assert cluster.leader_of("__consumer_offsets") != before
        cluster.produce("grouped", [b"2"])
        (record,) = wait_until(lambda: consumer.poll(timeout_ms=100), TIMEOUT_S, "the member did not recover")
        assert record.value == b"2"


def test_one_broker_of_a_cluster_is_bounced(cluster: Cluster) -> None:
    cluster.create_topic("stays", replication_factor=3)
    leader = cluster.leader_of("stays")

    cluster.faults.bounce(broker=leader)
    cluster.wait_until_known()

    cluster.produce("stays", [b"x"])
    cluster.assert_records("stays", [b"x"])


def test_a_frozen_leader_holds_its_producers_until_it_thaws(cluster: Cluster) -> None:
    cluster.create_topic("held", replication_factor=1)
    leader = cluster.leader_of("held")
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        producer.send("held", b"0").result(TIMEOUT_S)
        with cluster.faults.freeze(broker=leader) as fault:
            later = producer.send("held", b"1")
            wait_until(lambda: fault.hits > 0, TIMEOUT_S, "nothing came")
            assert not later.done()
        later.result(TIMEOUT_S)
    cluster.assert_records("held", [b"0", b"1"])
