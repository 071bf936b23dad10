"""Consumers may read from followers, and hear of one in their rack where RackAwareReplicaSelector is set."""

from pathlib import Path
from typing import Any

import pytest

from kavka.config.errors import ConfigError
from kavka.config.promises import RACK_AWARE_SELECTOR, check_promises
from kavka.config.sources import load_config
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import update_metadata
from tests.support.replicas import Replicas

TOPIC = Replicas.TOPIC
SELECTOR = f"replica.selector.class={RACK_AWARE_SELECTOR}"


def consume(core: BrokerCore, *, rack: str = "", offset: int = 0, version: int = 12, wait_ms: int = 0) -> PartitionData:
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        rack_id=rack,
        topics=[
            FetchTopic(
                topic=TOPIC,
                partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)],
            )
        ],
        forgotten_topics_data=[],
    )
    taken = core.ask(encode_request_header(1, version, 1, "consumer") + encode(request, version))
    answer: FetchResponse = decode(FetchResponse, version, memoryview(taken)[9 if version >= 12 else 8 :])
    return answer.responses[0].partitions[0]


@pytest.fixture
def replicas(tmp_path: Path) -> Any:
    replicas = Replicas(tmp_path, SELECTOR, count=3)
    replicas.elect(1)
    replicas.produce(1, b"a", b"b")
    replicas.catch_up()
    place(replicas, "north", "south", "south")
    yield replicas
    replicas.close()


def place(replicas: Replicas, *racks: str) -> None:
    """Put the brokers into these racks."""
    addresses = {broker_id: ("broker.example", 9000 + broker_id) for broker_id in replicas.ids}
    request = update_metadata({TOPIC: [1]}, brokers=addresses, replicas=replicas.ids)
    for broker, rack in zip(request.live_brokers, racks, strict=True):
        broker.rack = rack
    for core in replicas.cores.values():
        core.services.metadata.apply(request)


def test_a_consumer_is_told_of_the_in_sync_replica_in_its_rack_that_has_most(replicas: Replicas) -> None:
    replicas.produce(1, b"c")
    replicas.catch_up([3], rounds=3)

    answer = consume(replicas.cores[1], rack="south")

    assert (answer.error_code, answer.preferred_read_replica, answer.records) == (0, 3, b"")
    assert answer.high_watermark >= 2


@pytest.mark.parametrize("rack", ["north", "elsewhere", ""])
def test_a_consumer_without_a_replica_in_its_rack_reads_from_the_leader(replicas: Replicas, rack: str) -> None:
    answer = consume(replicas.cores[1], rack=rack)

    assert (answer.error_code, answer.preferred_read_replica) == (0, -1)
    assert answer.records


def test_a_replica_without_the_offset_is_not_preferred(replicas: Replicas) -> None:
    replicas.produce(1, b"c")

    answer = consume(replicas.cores[1], rack="south", offset=3)

    assert answer.preferred_read_replica == -1


def test_a_follower_answers_with_what_it_knows_to_be_committed(replicas: Replicas) -> None:
    replicas.produce(1, b"c")
    replicas.catch_up([2], rounds=2)

    answer = consume(replicas.cores[2], rack="south")

    assert (answer.error_code, answer.preferred_read_replica, answer.high_watermark) == (0, -1, 2)
    assert answer.records == replicas.bytes_from(1, 0)[: len(answer.records or b"")] != b""
    assert answer.records == replicas.bytes_from(2, 0)[: len(answer.records)]
    assert len(answer.records) < len(replicas.bytes_from(2, 0))


def test_older_consumers_read_from_leaders_alone(replicas: Replicas) -> None:
    assert consume(replicas.cores[2], version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_without_the_selector_a_follower_answers_and_nobody_is_sent_to_it(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"a")
    replicas.catch_up()
    asked_leader, asked_follower = (consume(replicas.cores[each], rack="south", version=11) for each in (1, 2))
    assert (asked_leader.error_code, asked_leader.preferred_read_replica) == (0, -1)
    assert (asked_follower.error_code, asked_follower.preferred_read_replica) == (0, -1)
    assert asked_follower.records == asked_leader.records != b""
    replicas.close()


def test_another_selector_stops_the_start() -> None:
    config = load_config(None, ["replica.selector.class=com.example.Nearest"], {}).config
    with pytest.raises(ConfigError, match="RackAwareReplicaSelector"):
        check_promises(config)
