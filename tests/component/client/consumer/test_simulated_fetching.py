"""A consumer reads all there is, in order and nothing twice, whatever becomes of requests, leaders and logs."""

import random
from typing import Any

import pytest

from kavka.client.api_errors import KafkaError
from kavka.client.consumer.chunks import Chunk
from kavka.client.consumer.decoding import Rules
from kavka.client.consumer.errors import FetchOutOfRangeError, LogTruncationError, NoOffsetForPartitionError
from kavka.client.consumer.fetcher import FetchSettings
from kavka.client.consumer.positions import LATEST, Phase, Position, ResetPolicy
from kavka.client.consumer.stretches import Stretch
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.messages.fetch import FetchRequest, PartitionData
from kavka.protocol.messages.list_offsets import ListOffsetsRequest
from tests.component.client.consumer.simulated_cluster import SimulatedCluster
from tests.component.client.consumer.simulated_consumer import SimulatedConsumer
from tests.component.client.consumer.simulated_network import SimulatedNetwork

NOBODY = ResetPolicy(None)
BIRDS = TopicPartition("birds", 0)


def simulated(
    seed: int = 1, partitions: int = 1, loss: float = 0.0, policy: ResetPolicy | None = None, max_bytes: int = 10_000
) -> tuple[SimulatedCluster, SimulatedNetwork, SimulatedConsumer]:
    cluster = SimulatedCluster(random.Random(seed), {"birds": partitions, "trees": 1})
    network = SimulatedNetwork(cluster, loss)
    chosen = FetchSettings(max_partition_bytes=3_000, max_bytes=max_bytes)
    consumer = SimulatedConsumer(cluster, network, chosen, *(() if policy is None else (policy,)))
    return cluster, network, consumer


def fetches(network: SimulatedNetwork) -> list[FetchRequest]:
    return [request for _, request, _ in network.requests if isinstance(request, FetchRequest)]


@pytest.mark.parametrize("seed", range(60))
def test_all_is_read_once_and_what_was_cut_is_read_anew(seed: int) -> None:
    cluster, network, consumer = simulated(seed, partitions=3, loss=0.15)
    dice = cluster.dice
    partitions = [partition for partition in cluster.logs if partition.topic == "birds"]
    consumer.subscription.assign(partitions)
    seen: dict[TopicPartition, dict[int, bytes]] = {partition: {} for partition in partitions}
    following = dict.fromkeys(partitions, 0)
    paused: list[TopicPartition] = []

    def poll(most: int) -> None:
        for record in consumer.poll(most):
            partition = record.topic_partition
            assert partition not in paused
            assert record.offset <= following[partition], "a record was left out"
            if record.offset < following[partition]:
                # Only what was cut off is read again.
                assert seen[partition].get(record.offset) != record.value
            following[partition] = record.offset + 1
            seen[partition][record.offset] = record.value

    for _ in range(150):
        partition = dice.choice(partitions)
        what = dice.random()
        if what < 0.4:
            cluster.append(partition, dice.randrange(1, 60))
        elif what < 0.5:
            cluster.move(partition)
        elif what < 0.55:
            cluster.move(partition, cut=dice.randrange(1, 20))
        elif what < 0.6:
            paused = [dice.choice(partitions)]
            consumer.subscription.pause(partitions, is_paused=False)
            consumer.subscription.pause(paused, is_paused=True)
        for _ in range(dice.randrange(6)):
            consumer.run(500)
        poll(dice.choice([1, 10, 200]))
    consumer.subscription.pause(partitions, is_paused=False)
    paused = []
    network.loss = 0
    for _ in range(400):
        consumer.run(500)
        poll(1_000)
    for partition in partitions:
        log = cluster.logs[partition]
        assert [seen[partition][offset] for offset in range(log.end)] == [record.value for record in log.records]
        assert consumer.subscription.state(partition).position.offset == log.end
    assert consumer.buffer.size_bytes == 0


def test_fetching_goes_ahead_of_polling_and_no_further_than_its_limits() -> None:
    cluster, network, consumer = simulated(partitions=1)
    cluster.append(BIRDS, 2_000)
    consumer.subscription.assign([BIRDS])
    consumer.settle()
    state = consumer.subscription.state(BIRDS)
    assert 3_000 <= state.buffered_bytes < 2 * 3_000 + 2_000
    asked = len(fetches(network))
    consumer.settle()
    assert len(fetches(network)) == asked
    wakes = consumer.wakes
    while consumer.wakes == wakes:
        assert consumer.poll(10)
    consumer.settle()
    assert len(fetches(network)) > asked


def test_all_partitions_together_are_bounded() -> None:
    cluster, _, consumer = simulated(partitions=8, max_bytes=6_000)
    partitions = [partition for partition in cluster.logs if partition.topic == "birds"]
    for partition in partitions:
        cluster.append(partition, 1_000)
    consumer.subscription.assign(partitions)
    consumer.settle()
    # What was on its way when the limit was reached comes on top.
    assert 6_000 <= consumer.buffer.size_bytes <= 6_000 + 8 * 5_000


def test_a_session_tells_what_has_changed_alone() -> None:
    cluster, network, consumer = simulated(partitions=4)
    partitions = [partition for partition in cluster.logs if partition.topic == "birds"]
    for log in cluster.logs.values():
        log.leader = 0
    cluster.refresh()
    consumer.subscription.assign(partitions)
    consumer.settle()
    first = fetches(network)[0]
    assert (first.session_id, first.session_epoch) == (0, 0)
    cluster.append(BIRDS, 3)
    consumer.settle()
    assert len(consumer.poll()) == 3
    consumer.settle(2_000)
    later = fetches(network)[1:]
    assert {request.session_id for request in later} == {1}
    assert [request.session_epoch for request in later] == list(range(1, len(later) + 1))
    told = [row for request in [first, *later] for topic in request.topics for row in topic.partitions]
    assert sorted((row.partition, row.fetch_offset) for row in told) == [(0, 0), (0, 3), (1, 0), (2, 0), (3, 0)]
    consumer.subscription.assign(partitions[1:])
    consumer.settle(2_000)
    forgotten = [topic.partitions for request in fetches(network) for topic in request.forgotten_topics_data]
    assert forgotten == [[0]]


def test_a_session_that_the_broker_forgot_begins_anew() -> None:
    cluster, network, consumer = simulated()
    consumer.subscription.assign([BIRDS])
    consumer.settle()
    cluster.sessions.clear()
    cluster.append(BIRDS, 5)
    consumer.settle()
    assert len(consumer.poll()) == 5
    assert [request.session_epoch for request in fetches(network)].count(0) == 2


def test_seek_drops_what_was_fetched_and_what_is_on_its_way() -> None:
    cluster, _, consumer = simulated()
    cluster.append(BIRDS, 100)
    consumer.subscription.assign([BIRDS])
    consumer.settle()
    assert [record.offset for record in consumer.poll(2)] == [0, 1]
    consumer.subscription.seek(BIRDS, Position(70))
    assert consumer.poll() == []
    consumer.run(500)
    consumer.subscription.seek(BIRDS, Position(90))
    consumer.settle()
    assert [record.offset for record in consumer.poll()] == list(range(90, 100))


def test_what_is_paused_is_kept_and_goes_on_where_it_was() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 50)
    consumer.subscription.assign([BIRDS])
    consumer.settle()
    consumer.subscription.pause([BIRDS], is_paused=True)
    assert consumer.poll() == []
    asked = len(fetches(network))
    consumer.subscription.pause([BIRDS], is_paused=False)
    assert len(consumer.poll()) == 50
    assert len(fetches(network)) == asked


def test_who_was_assigned_before_goes_on_and_who_went_is_forgotten() -> None:
    cluster, _, consumer = simulated(partitions=2)
    other = TopicPartition("birds", 1)
    for partition in (BIRDS, other):
        cluster.append(partition, 10)
    consumer.subscription.assign([BIRDS, other])
    consumer.settle()
    assert len(consumer.poll(3)) == 3
    consumer.subscription.assign([BIRDS])
    consumer.settle()
    rest = consumer.poll()
    assert {record.partition for record in rest} == {0}
    consumer.subscription.assign([BIRDS, other])
    consumer.settle()
    assert [record.offset for record in consumer.poll()] == list(range(10))


def test_what_was_looked_up_for_a_former_assignment_is_nothing_to_the_next_one() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 10)
    consumer.subscription.assign([BIRDS])
    while not network.requests:
        consumer.run(0.001)
    # The first offset is being looked up.
    consumer.subscription.assign([])
    consumer.subscription.assign([BIRDS])
    consumer.subscription.reset([BIRDS], ResetPolicy(LATEST))
    consumer.settle()
    assert consumer.subscription.state(BIRDS).position.offset == 10


def test_withheld_partitions_give_out_nothing_and_new_ones_wait_for_their_release() -> None:
    cluster, network, consumer = simulated()
    cluster.append(BIRDS, 10)
    consumer.subscription.replace([BIRDS])
    consumer.settle()
    assert fetches(network) == []
    consumer.subscription.seek(BIRDS, Position(4))
    consumer.subscription.release([BIRDS])
    consumer.settle()
    consumer.subscription.withhold([BIRDS])
    assert consumer.poll() == []
    assert consumer.subscription.consumed()[BIRDS].offset == 4
    consumer.subscription.replace([BIRDS])
    assert [record.offset for record in consumer.poll()] == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("policy", "offset"), [(ResetPolicy(LATEST), 20), (ResetPolicy(None, 10**9), 0), (ResetPolicy(None, 0), 20)]
)
def test_without_a_position_the_policy_says_where_to_begin(policy: ResetPolicy, offset: int) -> None:
    cluster, _, consumer = simulated(policy=policy)
    cluster.append(BIRDS, 20)
    consumer.subscription.assign([BIRDS])
    consumer.settle()
    assert consumer.subscription.state(BIRDS).position.offset == offset


def test_by_duration_begins_at_the_first_record_that_is_young_enough() -> None:
    cluster, network, consumer = simulated(policy=ResetPolicy(None, 990))
    cluster.append(BIRDS, 20)
    consumer.subscription.assign([BIRDS])
    consumer.settle()
    asked = [request for _, request, _ in network.requests if isinstance(request, ListOffsetsRequest)]
    assert asked[0].topics[0].partitions[0].timestamp == 10
    assert consumer.subscription.state(BIRDS).position.offset == 10


def test_without_a_policy_a_missing_position_is_raised_each_time() -> None:
    _, _, consumer = simulated(policy=NOBODY)
    consumer.subscription.assign([BIRDS])
    for _ in range(2):
        consumer.settle()
        with pytest.raises(NoOffsetForPartitionError) as caught:
            consumer.poll()
        assert dict(caught.value.partitions) == {BIRDS: -1}


def test_an_offset_that_the_log_lacks_is_reset_or_raised() -> None:
    for policy, expected in ((None, [5, 6]), (NOBODY, FetchOutOfRangeError)):
        cluster, _, consumer = simulated(policy=policy)
        cluster.append(BIRDS, 7)
        cluster.logs[BIRDS].start = 5
        consumer.subscription.assign([BIRDS])
        consumer.subscription.seek(BIRDS, Position(2))
        consumer.settle()
        if isinstance(expected, list):
            assert [record.offset for record in consumer.poll()] == expected
        else:
            with pytest.raises(expected):
                consumer.poll()


def test_a_log_that_was_cut_is_read_from_where_it_parts_or_raised() -> None:
    for policy in (None, NOBODY):
        cluster, _, consumer = simulated(policy=policy)
        cluster.fetch_version = 18
        cluster.append(BIRDS, 10)
        consumer.subscription.assign([BIRDS])
        consumer.subscription.seek(BIRDS, Position(0))
        consumer.settle()
        assert len(consumer.poll()) == 10
        cluster.move(BIRDS, cut=4)
        cluster.append(BIRDS, 8)
        consumer.settle()
        if policy is None:
            assert [record.value for record in consumer.poll()] == [b"1:%d" % offset for offset in range(6, 14)]
        else:
            with pytest.raises(LogTruncationError) as caught:
                consumer.poll()
            assert dict(caught.value.divergent_offsets) == {BIRDS: 6}


def test_a_position_with_an_epoch_is_checked_before_it_is_read() -> None:
    cluster, _, consumer = simulated()
    cluster.append(BIRDS, 10)
    cluster.move(BIRDS, cut=4)
    cluster.append(BIRDS, 8)
    cluster.refresh()
    consumer.subscription.assign([BIRDS])
    consumer.subscription.seek(BIRDS, Position(9, 0))
    consumer.settle()
    assert [record.offset for record in consumer.poll()] == list(range(6, 14))


def test_an_error_of_one_partition_comes_after_the_records_before_it_and_keeps_no_other() -> None:
    cluster, _, consumer = simulated(partitions=2, policy=NOBODY)
    other = TopicPartition("birds", 1)
    cluster.append(other, 3)
    consumer.subscription.assign([BIRDS, other])
    consumer.subscription.seek(other, Position(0))
    consumer.subscription.seek(BIRDS, Position(99))
    consumer.settle()
    read, raised = 0, 0
    for _ in range(4):
        try:
            read += len(consumer.poll())
        except KafkaError:
            raised += 1
        consumer.settle(2_000)
    assert read == 3
    assert raised >= 1


def test_two_answers_for_one_place_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a closest replica is given up for the leader while it still owes an answer."""
    cluster, network, consumer = simulated()
    log = cluster.logs[BIRDS]
    read = cluster._read

    def read_anywhere(node_id: int, partition: TopicPartition, row: Any) -> PartitionData:
        leader, log.leader = log.leader, node_id
        data = read(node_id, partition, row)
        log.leader = leader
        return data

    monkeypatch.setattr(cluster, "_read", read_anywhere)
    cluster.append(BIRDS, 14)
    consumer.subscription.assign([BIRDS])
    state = consumer.subscription.state(BIRDS)
    while state.phase is not Phase.READING:
        consumer.run(500)
    consumer.run(0.001)
    assert len(fetches(network)) == 1
    state.preferred_node, state.preferred_until_ms = (log.leader + 1) % 3, float("inf")
    consumer.settle()
    assert len({node for node, request, _ in network.requests if isinstance(request, FetchRequest)}) == 2
    assert [record.offset for record in consumer.poll()] == list(range(14))


def test_paused_partitions_keep_no_other_from_being_read() -> None:
    cluster, _, consumer = simulated(partitions=6)
    birds = [partition for partition in cluster.logs if partition.topic == "birds"]
    for partition in birds:
        cluster.append(partition, 500)
    consumer.subscription.assign(birds)
    consumer.settle()
    assert consumer.buffer.size_bytes >= 10_000
    consumer.subscription.pause(birds[1:], is_paused=True)
    seen = 0
    for _ in range(60):
        seen += len(consumer.poll(1_000))
        consumer.settle(500)
    assert seen == 500
    consumer.subscription.pause(birds, is_paused=False)
    for _ in range(200):
        seen += len(consumer.poll(1_000))
        consumer.settle(500)
    assert seen == 3_000


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_what_ends_a_poll_half_way_leaves_no_record_out(
    monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    cluster, _, consumer = simulated(partitions=2)
    birds = [partition for partition in cluster.logs if partition.topic == "birds"]
    for partition in birds:
        cluster.append(partition, 100)
    consumer.subscription.assign(birds)
    consumer.settle()
    advance, calls = Chunk.advance, iter(range(1_000))

    def fails_at_the_third(chunk: Chunk, rules: Rules) -> Stretch | None:
        if next(calls) == 2:
            raise failure
        return advance(chunk, rules)

    monkeypatch.setattr(Chunk, "advance", fails_at_the_third)
    with pytest.raises(failure):
        consumer.poll(1_000)
    assert [offset.offset for offset in consumer.subscription.consumed().values()] == [0, 0]
    seen: dict[int, list[int]] = {0: [], 1: []}
    for _ in range(100):
        for record in consumer.poll(1_000):
            seen[record.partition].append(record.offset)
        consumer.settle(500)
    assert seen == {0: list(range(100)), 1: list(range(100))}
    states = [consumer.subscription.state(partition) for partition in birds]
    assert [consumer.buffer.size_bytes, *(state.buffered_bytes for state in states)] == [0, 0, 0]
