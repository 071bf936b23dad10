"""A follower's Fetch at its leader: what it may read, and when it counts as having what lies below its offset."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import topic_id_of
from tests.support.partition_logs import append

FOLLOWER, STRANGER = 2, 7


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    """A leader of epoch 5, with records of epoch 3 up to offset 4, and of its own up to 6."""
    core = BrokerCore(tmp_path)
    core.create("visits", leader_epoch=3)
    for _ in range(4):
        append(core.log("visits"), b"x", leader_epoch=3)
    core.log("visits").advance_alone()
    core.create("visits", leader_epoch=5, isr=(1, FOLLOWER))
    for _ in range(2):
        append(core.log("visits"), b"x", leader_epoch=5)
    yield core
    core.close()


def ask(
    core: BrokerCore,
    offset: int,
    version: int = 12,
    *,
    replica_id: int = FOLLOWER,
    broker_epoch: int = -1,
    **fields: Any,
) -> PartitionData:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **fields)
    who: dict[str, Any] = {"replica_id": replica_id}
    if version >= 15:
        who = {"replica_state": ReplicaState(replica_id=replica_id, replica_epoch=broker_epoch)}
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic="visits", topic_id=topic_id_of("visits"), partitions=[part])],
        forgotten_topics_data=[],
        **who,
    )
    answer = core.ask(encode_request_header(1, version, 1, "follower") + encode(request, version))
    _, position = decode_response_header(1, version, answer[4:])
    response = decode(FetchResponse, version, memoryview(answer)[4 + position :])
    return response.responses[0].partitions[0]


def progress(core: BrokerCore) -> int:
    return core.replicas.partitions["visits", 0].followers[FOLLOWER].end_offset


def test_what_followers_copy_is_counted_apart_from_what_consumers_read(core: BrokerCore) -> None:
    size = len(ask(core, 0, current_leader_epoch=5).records or b"")

    every, by_topic = core.stage.metrics.topics()
    assert (every.bytes_out, by_topic["visits"].bytes_out) == (0, 0)
    assert core.stage.metrics.events()["kafka_server_brokertopicmetrics_replicationbytesout"] == size > 0


def test_a_follower_reads_to_the_end_of_the_log_and_counts_from_where_it_reads(core: BrokerCore) -> None:
    assert core.log("visits").high_watermark == 4

    answer = ask(core, 5, current_leader_epoch=5, last_fetched_epoch=5, log_start_offset=2)

    assert (answer.error_code, answer.high_watermark, len(answer.records or b"") > 0) == (ErrorCode.NONE, 4, True)
    assert core.log("visits").high_watermark == 5
    assert core.replicas.partitions["visits", 0].followers[FOLLOWER].log_start_offset == 2


@pytest.mark.parametrize(
    ("offset", "fields", "error"),
    [
        (6, {"current_leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        (6, {"current_leader_epoch": 6}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (7, {"current_leader_epoch": 5}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (6, {"current_leader_epoch": 5, "last_fetched_epoch": 6}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (6, {"current_leader_epoch": 5, "last_fetched_epoch": 4}, ErrorCode.NONE),
        (5, {"current_leader_epoch": 5, "last_fetched_epoch": 3}, ErrorCode.NONE),
    ],
    ids=["old epoch", "new epoch", "out of range", "later records", "unknown records", "diverging"],
)
def test_a_fetch_that_is_not_right_does_not_count(
    core: BrokerCore, offset: int, fields: dict[str, int], error: ErrorCode
) -> None:
    answer = ask(core, offset, **fields)

    assert answer.error_code == error
    assert (answer.diverging_epoch.end_offset >= 0) is (error is ErrorCode.NONE)
    assert (progress(core), core.log("visits").high_watermark) == (-1, 4)


def test_below_the_logs_start_nothing_diverges(core: BrokerCore) -> None:
    core.log("visits").delete_records_before(4)

    answer = ask(core, 3, current_leader_epoch=5, last_fetched_epoch=4)

    assert (answer.error_code, answer.diverging_epoch.end_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"current_leader_epoch": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH), ({}, ErrorCode.NOT_LEADER_OR_FOLLOWER)],
)
def test_who_is_no_replica_reads_nothing(core: BrokerCore, fields: dict[str, int], error: ErrorCode) -> None:
    answer = ask(core, 6, replica_id=STRANGER, **fields)

    assert (answer.error_code, answer.records) == (error, b"")
    assert core.log("visits").high_watermark == 4


@pytest.mark.parametrize("version", [11, 15, 17])
def test_the_brokers_epoch_comes_with_the_fetch(core: BrokerCore, version: int) -> None:
    ask(core, 6, version, broker_epoch=33, current_leader_epoch=5)

    known = core.replicas.partitions["visits", 0].followers[FOLLOWER].broker_epoch
    assert known == (33 if version >= 15 else -1)


def test_a_fetch_from_before_a_restart_is_refused(core: BrokerCore) -> None:
    ask(core, 5, 15, broker_epoch=33, current_leader_epoch=5)

    answer = ask(core, 6, 15, broker_epoch=32, current_leader_epoch=5)

    assert (answer.error_code, answer.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
    assert core.log("visits").high_watermark == 5


@pytest.mark.parametrize(
    ("method", "fields"),
    [("read", {}), ("end_offset_for_epoch", {"last_fetched_epoch": 4})],
    ids=["records", "divergence"],
)
def test_what_is_read_while_the_leadership_goes_is_not_answered(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch, method: str, fields: dict[str, int]
) -> None:
    """Its high watermark, or its epochs, may be another leader's by then."""
    real = getattr(PartitionLog, method)

    def lose_first(log: PartitionLog, *arguments: Any, **more: Any) -> Any:
        if core.replicas.partitions["visits", 0].role.is_leader:
            core.lose("visits", FOLLOWER, ("other.example", 9092), leader_epoch=6)
        return real(log, *arguments, **more)

    monkeypatch.setattr(PartitionLog, method, lose_first)

    answer = ask(core, 5, current_leader_epoch=5, **fields)

    assert (answer.error_code, answer.records, answer.diverging_epoch.end_offset) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        b"",
        -1,
    )
    assert core.log("visits").high_watermark == 4
