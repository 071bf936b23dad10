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
from tests.support.broker_handlers import topic_id_of
from tests.support.partition_logs import batch_of

LEADER, ADDRESS, EPOCH = 2, ("leader.example", 9099), 3


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path, inline=True)
    core.create("visits", 2)
    yield core
    core.close()


def produce(core: BrokerCore, version: int, index: int = 0) -> ProduceResponse:
    answer = core.ask(produce_frame(version, 1, {("visits", index): bytes(batch_of(b"x"))}))
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


@pytest.mark.parametrize("version", [11, 12, 15, 16, 17])
def test_a_fetch_error_names_the_leader_and_its_address_from_version_16_on(core: BrokerCore, version: int) -> None:
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)

    frame = fetch_frame(1, (0, 0), (1, 0), version=version, topic_id=topic_id_of("visits"))
    response = fetched(core.ask(frame), version)

    lost, led = response.responses[0].partitions
    assert (lost.error_code, led.error_code) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)
    leader = lost.current_leader
    assert (leader.leader_id, leader.leader_epoch) == ((LEADER, EPOCH) if version >= 16 else (-1, -1))
    assert led.current_leader.leader_id == -1
    assert hosts(response) == ([(LEADER, *ADDRESS)] if version >= 16 else [])


def test_a_fetch_that_waits_is_told_of_the_new_leader(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, (0, 0), version=16, topic_id=topic_id_of("visits"))) == b""

    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)
    core.replicas.partitions["visits", 0].wake_all()

    response = fetched(bytes(core.socket.taken), 16)
    assert response.responses[0].partitions[0].current_leader.leader_id == LEADER


def test_a_leader_whose_address_is_unknown_is_named_without_it(core: BrokerCore) -> None:
    core.lose("visits", LEADER, ADDRESS, leader_epoch=EPOCH)
    core.create("other")

    response = produce(core, 10)

    assert response.responses[0].partition_responses[0].current_leader.leader_id == LEADER
    assert hosts(response) == []
