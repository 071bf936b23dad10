"""Closest replicas, leaders that errors name, and batches with other bytes than were written."""

import logging
import random
from contextlib import suppress

import pytest

from kavka.client.api_errors import KafkaError, UnsupportedVersionError
from kavka.client.cluster import Cluster
from kavka.client.consumer.errors import CorruptBatchReadError, FetchOutOfRangeError, FetchTooSmallError
from kavka.client.consumer.fetcher import LEADER_ONLY_MS, FetchSettings
from kavka.client.consumer.positions import EARLIEST, Phase, Position, ResetPolicy
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchRequest
from kavka.protocol.records.batch import patch_offsets
from kavka.protocol.schema import ZERO_UUID
from tests.component.client.consumer.simulated_cluster import SimulatedCluster
from tests.component.client.consumer.simulated_consumer import SimulatedConsumer
from tests.component.client.consumer.simulated_network import SimulatedNetwork

BIRDS = TopicPartition("birds", 0)


def simulated(*, skip_corrupt: bool = False) -> tuple[SimulatedCluster, SimulatedNetwork, SimulatedConsumer]:
    """The leader of BIRDS is node 0, batches have seven records."""
    cluster = SimulatedCluster(random.Random(1), {"birds": 1})
    cluster.logs[BIRDS].leader = 0
    cluster.max_batch, cluster.fetch_version = 7, 18
    cluster.refresh()
    network = SimulatedNetwork(cluster, 0.0)
    consumer = SimulatedConsumer(cluster, network, FetchSettings(client_rack="r"), skip_corrupt=skip_corrupt)
    consumer.subscription.assign([BIRDS])
    consumer.subscription.seek(BIRDS, Position(0))
    return cluster, network, consumer


def asked(network: SimulatedNetwork) -> list[int]:
    return [node for node, request, _ in network.requests if isinstance(request, FetchRequest)]


def test_the_closest_replica_is_read_from_until_it_lacks_something_or_goes() -> None:
    cluster, network, consumer = simulated()
    cluster.closest = 2
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    assert asked(network)[:2] == [0, 2]
    assert set(asked(network)[1:]) == {2}
    first = next(request for _, request, _ in network.requests if isinstance(request, FetchRequest))
    assert first.rack_id == "r"
    assert consumer.metrics.metrics["preferred-read-replica", {"topic": "birds", "partition": 0}] == 2
    # It goes: the leader says where to read from now on.
    del cluster.nodes[2]
    cluster.closest = 1
    cluster.refresh()
    before = len(asked(network))
    cluster.append(BIRDS, 1)
    consumer.settle()
    assert [node for node in asked(network)[before:] if node != 2][:2] == [0, 1]
    assert len(consumer.poll()) == 1


def test_what_is_given_up_while_it_is_asked_for_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The polling thread lets go of a partition between the fetcher's looking at it and its asking for it."""
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 10)
    given_up = consumer.subscription.state(BIRDS)
    ready = network.ready

    def late(node: Node) -> bool:
        consumer.subscription.assign([])
        return ready(node)

    monkeypatch.setattr(network, "ready", late)
    consumer.settle()
    assert consumer.poll() == []
    assert given_up.fetched.offset == 0
    assert asked(network) == []


def test_a_closest_replica_that_cannot_be_reached_is_left_alone_for_a_while() -> None:
    """The leader names it as long as it reaches it itself."""
    cluster, network, consumer = simulated()
    cluster.closest = 2
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    network.unreachable = {2}
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    network.unreachable = set()
    consumer.settle(LEADER_ONLY_MS)
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    assert asked(network)[-1] == 2


def test_a_replica_that_lacks_the_offset_does_not_reset_the_position() -> None:
    cluster, network, consumer = simulated()
    cluster.closest = 2
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    state = consumer.subscription.state(BIRDS)

    class Behind:
        partition_index = 0
        error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        current_leader = type("L", (), {"leader_id": -1, "leader_epoch": -1})

    consumer.answers.take(state, 10, Behind, cluster.nodes[2], network.now_ms)
    assert state.preferred_node is None
    assert state.position.offset == 10


def test_it_is_said_what_position_the_log_has_lost(caplog: pytest.LogCaptureFixture) -> None:
    """As when retention was faster: nothing else would tell where the records between are."""
    cluster, _, consumer = simulated()
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll(5)) == 5
    cluster.logs[BIRDS].start = 8
    with caplog.at_level(logging.INFO, "kavka.client.consumer"):
        consumer.subscription.seek(BIRDS, Position(5))
        consumer.settle()
    assert [record.offset for record in consumer.poll()] == [8, 9]
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "position out of range, to be reset partition=birds-0 position=5",
        "position reset partition=birds-0 offset=8",
    ]


def test_a_leader_that_an_error_names_is_asked_at_once() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 3)
    consumer.settle()
    assert len(consumer.poll()) == 3
    cluster.logs[BIRDS].leader, cluster.logs[BIRDS].epoch = 1, 1
    cluster.append(BIRDS, 3)
    version = cluster.version
    consumer.settle()
    assert len(consumer.poll()) == 3
    assert cluster.version == version + 1
    assert not cluster.wants_update
    assert asked(network)[-1] == 1


def test_a_corrupt_batch_is_raised_after_what_is_before_it_until_somebody_seeks() -> None:
    cluster, _, consumer = simulated()
    cluster.append(BIRDS, 30)
    cluster.corrupt = {7}
    consumer.settle()
    assert [record.offset for record in consumer.poll()] == list(range(7))
    for _ in range(2):
        with pytest.raises(CorruptBatchReadError) as caught:
            consumer.poll()
        assert (caught.value.topic_partition, caught.value.offset, caught.value.next_offset) == (BIRDS, 7, 14)
        consumer.settle()
    consumer.subscription.seek(BIRDS, Position(caught.value.next_offset))
    consumer.settle()
    assert [record.offset for record in consumer.poll()] == list(range(14, 30))
    assert consumer.metrics.corrupt_batches >= 2


def test_a_corrupt_batch_is_skipped_if_asked() -> None:
    cluster, _, consumer = simulated(skip_corrupt=True)
    cluster.append(BIRDS, 30)
    cluster.corrupt = {7, 28}
    consumer.settle()
    assert [record.offset for record in consumer.poll()] == [*range(7), *range(14, 28)]
    assert consumer.subscription.state(BIRDS).position.offset == 30


def test_a_batch_that_an_old_broker_cuts_off_says_what_to_raise() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 7)
    state = consumer.subscription.state(BIRDS)
    whole = cluster.logs[BIRDS].read(0, 1_000, 7)

    class Cut:
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset = 0, 0, 7, 7, 0
        preferred_read_replica, aborted_transactions = -1, None
        diverging_epoch = type("D", (), {"end_offset": -1})
        records = memoryview(whole[:-5])

    consumer.answers.take(state, 0, Cut, cluster.nodes[0], network.now_ms)
    with pytest.raises(FetchTooSmallError, match="more than"):
        consumer.poll()


def test_other_topics_than_those_subscribed_to_give_out_nothing_and_go_on_where_they_were() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll(3)) == 3
    consumer.subscription.restrict({"trees"})
    before = len(asked(network))
    consumer.settle()
    assert consumer.poll() == []
    assert len(asked(network)) <= before + 1
    assert consumer.subscription.consumed()[BIRDS].offset == 3
    consumer.subscription.replace([BIRDS])
    assert consumer.poll() == []
    consumer.subscription.restrict({"trees", "birds"})
    assert [record.offset for record in consumer.poll()] == list(range(3, 10))


def test_a_broker_that_is_too_old_to_fetch_from_is_heard_of_in_poll() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 3)
    cluster.fetch_version = 3
    for _ in range(2):
        consumer.settle()
        with pytest.raises(UnsupportedVersionError, match="birds-0 cannot be fetched"):
            consumer.poll()
    assert asked(network) == []
    cluster.fetch_version = 12
    consumer.settle()
    assert len(consumer.poll()) == 3


def test_a_batch_behind_the_last_offset_there_can_be_is_raised_rather_than_asked_on_behind_it() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 7)
    state = consumer.subscription.state(BIRDS)
    far = bytearray(cluster.logs[BIRDS].read(0, 1_000, 7))
    patch_offsets(far, 0, 2**63 - 4, 0)

    class Far:
        partition_index, error_code, high_watermark, last_stable_offset, log_start_offset = 0, 0, 7, 7, 0
        preferred_read_replica, aborted_transactions = -1, None
        diverging_epoch = type("D", (), {"end_offset": -1})
        records = memoryview(far)

    consumer.answers.take(state, 0, Far, cluster.nodes[0], network.now_ms)
    with pytest.raises(CorruptBatchReadError, match="last offset"):
        consumer.poll()
    consumer.settle()
    assert len(consumer.poll()) == 7


@pytest.mark.parametrize("policy", [ResetPolicy(EARLIEST), ResetPolicy(None)])
def test_a_topic_that_was_made_anew_is_not_read_on_where_the_former_one_was(policy: ResetPolicy) -> None:
    cluster, network, _ = simulated()
    consumer = SimulatedConsumer(cluster, network, policy=policy)
    consumer.subscription.assign([BIRDS])
    consumer.subscription.seek(BIRDS, Position(0))
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    cluster.make_anew("birds")
    cluster.append(BIRDS, 30)
    consumer.settle()
    if policy.is_none:
        for _ in range(2):
            with pytest.raises(FetchOutOfRangeError, match="made anew"):
                consumer.poll()
            assert not consumer.subscription.consumed()
            consumer.settle()
        consumer.subscription.seek(BIRDS, Position(0))
        assert not consumer.poll()
        consumer.settle()
    assert [record.offset for record in consumer.poll()] == list(range(30))


def test_a_topic_is_the_same_where_brokers_tell_no_ids_for_a_while() -> None:
    cluster, _, consumer = simulated()
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    known = cluster.cluster
    topics = {name: topic._replace(id=ZERO_UUID) for name, topic in known.topics.items()}
    cluster.cluster = Cluster(known.cluster_id, known.controller_id, known.nodes, topics, known.version)
    consumer.run(1)
    assert consumer.subscription.consumed()[BIRDS].offset == 10
    cluster.make_anew("birds")
    cluster.append(BIRDS, 30)
    cluster.refresh()
    consumer.settle()
    assert [record.offset for record in consumer.poll()] == list(range(30))


@pytest.mark.parametrize("seed", range(40))
def test_a_broker_that_lies_breaks_nothing_and_once_it_is_honest_all_is_read(seed: int) -> None:
    dice = random.Random(seed)
    cluster = SimulatedCluster(dice, {"birds": 2})
    network = SimulatedNetwork(cluster, 0.05)
    network.lies = 0.5
    consumer = SimulatedConsumer(cluster, network)
    partitions = [TopicPartition("birds", number) for number in range(2)]
    consumer.subscription.assign(partitions)
    for _ in range(150):
        cluster.append(dice.choice(partitions), dice.randrange(1, 30))
        for _ in range(dice.randrange(5)):
            consumer.run(500)
        with suppress(KafkaError):
            consumer.poll(dice.choice([1, 50]))
    network.lies = network.loss = 0
    cluster.refresh()
    for partition in partitions:
        consumer.subscription.seek(partition, Position(0))
    found: dict[TopicPartition, list[bytes]] = {partition: [] for partition in partitions}
    for _ in range(300):
        consumer.run(500)
        with suppress(KafkaError):
            for record in consumer.poll(1_000):
                found[record.topic_partition].append(record.value)
    for partition in partitions:
        assert found[partition] == [record.value for record in cluster.logs[partition].records]


def test_a_new_leader_that_says_nothing_is_given_up_for_the_next_one() -> None:
    """Whether it has what was read is asked of the next one: its own answer may not come for as long as it likes."""
    cluster, network, consumer = simulated()
    log = cluster.logs[BIRDS]
    cluster.append(BIRDS, 10)
    consumer.settle()
    assert len(consumer.poll()) == 10
    network.silent = {1}
    log.leader, log.epoch = 1, 1
    cluster.refresh()
    consumer.settle()
    assert consumer.subscription.state(BIRDS).phase is Phase.CHECKING
    log.leader, log.epoch = 2, 2
    cluster.refresh()
    cluster.append(BIRDS, 5)
    consumer.settle()
    assert len(consumer.poll()) == 5
