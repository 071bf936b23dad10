"""DeleteRecords answers when the live replicas' logs begin where was asked for, or says that time is up."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.support.broker_handlers import update_metadata
from tests.support.replicas import Replicas

KEY, VERSION, CORRELATION_ID = 21, 2, 4711


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    for number in range(5):
        replicas.produce(1, b"%d" % number)
    replicas.catch_up()
    live(replicas, 1, 2)
    yield replicas
    replicas.close()


def live(replicas: Replicas, *broker_ids: int) -> None:
    brokers = {broker_id: ("broker.example", broker_id) for broker_id in broker_ids}
    request = update_metadata({replicas.TOPIC: [1]}, brokers=brokers, replicas=replicas.ids)
    replicas.cores[1].services.metadata.apply(request)


def delete_before(replicas: Replicas, offset: int, timeout_ms: int = 600_000) -> list[DeleteRecordsPartitionResult]:
    """Ask on a connection of its own; nothing while the answer waits."""
    replicas.cores[1].connect()
    part = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=replicas.TOPIC, partitions=[part])], timeout_ms=timeout_ms
    )
    head = encode_request_header(KEY, VERSION, CORRELATION_ID, "admin")
    return answers(replicas.cores[1].ask(head + encode(request, VERSION)))


def answers(taken: bytes) -> list[DeleteRecordsPartitionResult]:
    if not taken:
        return []
    assert struct.unpack_from(">i", taken, 4)[0] == CORRELATION_ID
    answer: DeleteRecordsResponse = decode(DeleteRecordsResponse, VERSION, memoryview(taken)[9:])
    return answer.topics[0].partitions


def test_the_answer_waits_for_the_followers_log_to_begin_there(replicas: Replicas) -> None:
    assert delete_before(replicas, 3) == []
    asker = replicas.cores[1].socket
    replicas.cores[1].connect()

    replicas.catch_up([2], rounds=3)
    replicas.cores[1].stage.settle()

    [answer] = answers(bytes(asker.taken))
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    assert replicas.log(2).log_start_offset == 3


def test_a_follower_that_is_not_alive_is_not_waited_for(replicas: Replicas) -> None:
    live(replicas, 1)

    [answer] = delete_before(replicas, 3)

    assert (answer.error_code, answer.low_watermark) == (0, 3)


def test_a_follower_that_is_late_is_no_reason_to_wait_for_ever(replicas: Replicas) -> None:
    assert delete_before(replicas, 3) == []
    asker = replicas.cores[1].socket

    replicas.cores[1].purgatory.expire_all()
    replicas.cores[1].stage.settle()

    [answer] = answers(bytes(asker.taken))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_leader_that_is_none_any_more_says_so(replicas: Replicas) -> None:
    assert delete_before(replicas, 3) == []
    asker = replicas.cores[1].socket

    replicas.elect(2)
    replicas.cores[1].stage.settle()

    [answer] = answers(bytes(asker.taken))
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_who_asks_for_less_than_is_gone_does_not_wait_for_the_rest(replicas: Replicas) -> None:
    assert delete_before(replicas, 1) == []
    replicas.cores[1].connect()
    replicas.catch_up([2], rounds=3)
    replicas.log(1).delete_records_before(3)

    [answer] = delete_before(replicas, 1)

    assert (answer.error_code, answer.low_watermark) == (0, 1)
    assert delete_before(replicas, 2) == []
