"""Who asks a broker that does not lead is told who does, and where, so that it need not ask for metadata (KIP-951)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.codec import decode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header
from kavka.protocol.messages.produce import ProduceResponse
from tests.component.broker.test_waiting_requests import fetch_frame, fetched
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.broker_handlers import BROKER_ID, topic_id_of, update_metadata
from tests.support.partition_logs import batch_of

LEADER, ADDRESS, EPOCH = 2, ("leader.example", 9099), 3


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path, inline=True)
    core.create("visits", 2)
    yield core
    core.close()


def produce(core: BrokerCore, version: int, index: int = 0, *, topic_id: bytes | None = None) -> ProduceResponse:
    frame = produce_frame(version, 1, {("visits", index): bytes(batch_of(b"x"))})
    answer = core.ask(frame if topic_id is None else frame.replace(topic_id_of("visits"), topic_id))
    _, position = decode_response_header(0, version, answer[4:])
    return decode(ProduceResponse, version, memoryview(answer)[4 + position :])


def hosts(response: Any) -> list[tuple[int, str, int]]:
    return [(node.node_id, node.host, node.port) for node in response.node_endpoints]


@pytest.mark.parametrize("version", [8, 9, 10, 12, 13])
def test_a_produce_error_names_the_leader_from_version_10_on(core: BrokerCore, version: int) -> None:
    for _ in range(2):
        produce(core, version)
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)

    response = produce(core, version)

    (partition,) = response.responses[0].partition_responses
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    hinted = version >= 10
    leader = partition.current_leader
    assert (leader.leader_id, leader.leader_epoch) == ((LEADER, EPOCH) if hinted else (-1, -1))
    assert hosts(response) == ([(LEADER, *ADDRESS)] if hinted else [])


@pytest.mark.parametrize("version", [9, 10, 12, 13])
@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("prepares", [False, True])
def test_a_produce_that_has_waited_for_replicas_is_told_of_the_new_leader(
    tmp_path: Path, version: int, partitions: int, prepares: bool
) -> None:
    core = BrokerCore(tmp_path, inline=prepares, prepares=prepares)
    core.create("visits", 2, isr=(BROKER_ID, LEADER), replicas=(BROKER_ID, LEADER))
    brokers = {BROKER_ID: ("broker.example", 9092), LEADER: ADDRESS}
    core.services.metadata.apply(update_metadata({"visits": [BROKER_ID] * 2}, brokers=brokers))
    records = {("visits", index): bytes(batch_of(b"x")) for index in range(partitions)}
    frame = produce_frame(version, 1, records, acks=-1)
    assert core.ask(frame) == b""
    for index in range(2):
        core.replicate("visits", LEADER, core.log("visits", index).log_end_offset, index)
    before = len(core.socket.taken)
    assert before > 0
    assert core.ask(frame) == b""
    if partitions == 2:
        core.replicate("visits", LEADER, 2, 1)

    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)
    core.stage.settle()

    answer = bytes(core.socket.taken[before:])
    _, position = decode_response_header(0, version, answer[4:])
    response = decode(ProduceResponse, version, memoryview(answer)[4 + position :])
    lost, *others = response.responses[0].partition_responses
    assert lost.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    hinted = version >= 10
    leader = lost.current_leader
    assert (leader.leader_id, leader.leader_epoch) == ((LEADER, EPOCH) if hinted else (-1, -1))
    assert [(each.error_code, each.current_leader.leader_id) for each in others] == [(0, -1)] * (partitions - 1)
    assert hosts(response) == ([(LEADER, *ADDRESS)] if hinted else [])
    core.close()


@pytest.mark.parametrize("version", [11, 12, 15, 16, 17])
def test_a_fetch_error_names_the_leader_and_its_address_from_version_16_on(core: BrokerCore, version: int) -> None:
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)

    frame = fetch_frame(1, (0, 0), (1, 0), version=version, topic_id=topic_id_of("visits"), leader_epoch=0)
    response = fetched(core.ask(frame), version)

    lost, led = response.responses[0].partitions
    assert (lost.error_code, led.error_code) == (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE)
    leader = lost.current_leader
    assert (leader.leader_id, leader.leader_epoch) == ((LEADER, EPOCH) if version >= 16 else (-1, -1))
    assert led.current_leader.leader_id == -1
    assert hosts(response) == ([(LEADER, *ADDRESS)] if version >= 16 else [])


def test_a_fetch_that_waits_is_told_of_the_new_leader(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, (0, 0), version=16, topic_id=topic_id_of("visits"), leader_epoch=0)) == b""

    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)
    core.replicas.partitions["visits", 0].wake_all()

    response = fetched(bytes(core.socket.taken), 16)
    assert response.responses[0].partitions[0].current_leader.leader_id == LEADER


@pytest.mark.parametrize(
    ("version", "known_epoch", "error"),
    [(10, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (12, 0, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_a_lost_leadership_ends_the_wait(core: BrokerCore, version: int, known_epoch: int, error: ErrorCode) -> None:
    core.ask(fetch_frame(1, (0, 0), version=version, leader_epoch=known_epoch))
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)
    core.replicas.partitions["visits", 0].wake_all()

    answer = fetched(bytes(core.socket.taken), version)
    assert answer.responses[0].partitions[0].error_code == error


def test_who_may_read_a_follower_waits_on_when_the_leadership_is_lost(core: BrokerCore) -> None:
    core.ask(fetch_frame(1, (0, 0)))
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)
    core.replicas.partitions["visits", 0].wake_all()

    assert core.purgatory.size == 1


@pytest.mark.parametrize("version", [10, 13])
def test_a_partition_that_is_elsewhere_names_its_leader_to_producers(core: BrokerCore, version: int) -> None:
    led_elsewhere(core)

    response = produce(core, version, 2)

    (partition,) = response.responses[0].partition_responses
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (LEADER, EPOCH)
    assert hosts(response) == [(LEADER, *ADDRESS)]
    (partition,) = produce(core, version, 3).responses[0].partition_responses
    assert (partition.error_code, partition.current_leader.leader_id) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_partition_that_is_elsewhere_names_its_leader_to_consumers(core: BrokerCore) -> None:
    led_elsewhere(core)

    frame = fetch_frame(1, (2, 0), (3, 0), version=16, topic_id=topic_id_of("visits"))
    response = fetched(core.ask(frame), 16)

    elsewhere, nowhere = response.responses[0].partitions
    assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (elsewhere.current_leader.leader_id, elsewhere.current_leader.leader_epoch) == (LEADER, EPOCH)
    assert hosts(response) == [(LEADER, *ADDRESS)]
    assert (nowhere.error_code, nowhere.current_leader.leader_id) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def led_elsewhere(core: BrokerCore) -> None:
    """A third partition of the topic, which this broker has not."""
    brokers = {BROKER_ID: ("broker.example", 9092), LEADER: ADDRESS}
    core.services.metadata.apply(update_metadata({"visits": [BROKER_ID, BROKER_ID, LEADER]}, brokers=brokers))


def test_a_partition_that_has_a_new_leader_names_it_before_the_metadata_do(core: BrokerCore) -> None:
    before = core.services.metadata.current
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH + 1)
    core.services.metadata.current = before

    response = produce(core, 10)

    leader = response.responses[0].partition_responses[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (LEADER, EPOCH + 1)


def test_a_fenced_epoch_names_the_leader_to_consumers(core: BrokerCore) -> None:
    core.create("visits", 2, leader_epoch=EPOCH)
    topic_id = topic_id_of("visits")

    response = fetched(core.ask(fetch_frame(1, (0, 0), version=16, topic_id=topic_id, leader_epoch=EPOCH - 1)), 16)

    (partition,) = response.responses[0].partitions
    assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (BROKER_ID, EPOCH)


def test_a_topic_id_that_the_partition_here_has_not_is_unknown_to_producers(core: BrokerCore) -> None:
    """The topic was deleted and made anew, and the new partition is not here yet."""
    anew = update_metadata({"visits": [BROKER_ID, BROKER_ID]})
    new_id = bytes(range(16))
    anew.topic_states[0].topic_id = new_id
    core.services.metadata.apply(anew)

    response = produce(core, 13, topic_id=new_id)

    (partition,) = response.responses[0].partition_responses
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert core.log("visits").log_end_offset == 0


def test_a_leader_whose_address_is_unknown_is_named_without_it(core: BrokerCore) -> None:
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)
    core.create("other")

    response = produce(core, 10)

    assert response.responses[0].partition_responses[0].current_leader.leader_id == LEADER
    assert hosts(response) == []
