"""Long polls and acks=all: what ends the wait, with what answer, and KIP-74's limits on what a fetch reads."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.network import sending
from kavka.broker.partitions.log_reading import SENDFILE_FROM_BYTES
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kavka.protocol.messages.produce import ProduceResponse
from kavka.protocol.records.batch import iter_batch_headers
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.partition_logs import batch_of

VERSION = 12
BATCH = len(batch_of(b"x" * 100))


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path)
    core.create("visits", 3)
    yield core
    core.close()


def fetch_frame(number: int, *partitions: tuple[int, int], version: int = VERSION, **fields: Any) -> bytes:
    """A fetch of (partition, offset) pairs."""
    limit = fields.pop("partition_max_bytes", 1 << 20)
    topic_id = fields.pop("topic_id", bytes(16))
    leader_epoch = fields.pop("leader_epoch", -1)
    values = {
        "max_wait_ms": 1000,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": [],
        **fields,
    }
    topic = FetchTopic(
        topic="visits",
        topic_id=topic_id,
        partitions=[
            FetchPartition(
                partition=index, current_leader_epoch=leader_epoch, fetch_offset=offset, partition_max_bytes=limit
            )
            for index, offset in partitions
        ],
    )
    request = FetchRequest(topics=[topic] if partitions else [], **values)
    return encode_request_header(1, version, number, "c") + encode(request, version)


def fetched(answer: bytes, version: int = VERSION) -> FetchResponse:
    _, position = decode_response_header(1, version, answer[4:])
    return decode(FetchResponse, version, memoryview(answer)[4 + position :])


def found(answer: bytes) -> dict[int, PartitionData]:
    return {each.partition_index: each for topic in fetched(answer).responses for each in topic.partitions}


def sizes(answer: bytes) -> list[int]:
    return [len(each.records or b"") for topic in fetched(answer).responses for each in topic.partitions]


def append(core: BrokerCore, index: int = 0, count: int = 1) -> None:
    """Append batches by another client."""
    partition = core.replicas.partitions["visits", index]
    for _ in range(count):
        partition.append(memoryview(batch_of(b"x" * 100)), 1, 9, 0)
    partition.appended()


def test_the_first_batch_comes_whole_and_limits_hold_for_the_rest(core: BrokerCore) -> None:
    for index in range(3):
        append(core, index, 3)
    everything = [(0, 0), (1, 0), (2, 0)]

    assert sizes(core.ask(fetch_frame(1, *everything, max_bytes=1))) == [BATCH, 0, 0]
    first, *others = sizes(core.ask(fetch_frame(2, *everything, partition_max_bytes=1)))
    assert (first, max(others) <= 1) == (BATCH, True)
    assert sizes(core.ask(fetch_frame(3, *everything, max_bytes=4 * BATCH))) == [3 * BATCH, BATCH, 0]
    assert sizes(core.ask(fetch_frame(4, (0, 3), *everything[1:], max_bytes=1))) == [0, BATCH, 0]


def test_before_version_3_limits_are_hard(core: BrokerCore) -> None:
    append(core)
    answer = core.ask(fetch_frame(1, (0, 0), version=2, partition_max_bytes=10))
    partition = fetched(answer, 2).responses[0].partitions[0]
    assert len(partition.records or b"") <= 10


@pytest.mark.parametrize("version", [0, 2, 3, 12])
def test_no_version_reads_more_than_the_broker_allows(tmp_path: Path, version: int) -> None:
    core = BrokerCore(tmp_path, "fetch.max.bytes=1024")
    core.create("visits", 2)
    for index in range(2):
        append(core, index, 20)

    answer = core.ask(fetch_frame(1, (0, 0), (1, 0), version=version))

    size_bytes = sum(
        len(each.records or b"") for topic in fetched(answer, version).responses for each in topic.partitions
    )
    assert 512 < size_bytes <= 1024
    core.close()


def test_a_fetch_at_the_end_waits_for_an_append(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, (0, 0), (1, 0))) == b""
    append(core, 1)

    assert [len(each.records or b"") for each in found(bytes(core.socket.taken)).values()] == [0, BATCH]
    assert (core.purgatory.size, core.connection.parked) == (0, {})


def test_a_fetch_waits_for_the_bytes_it_wants_however_they_come(core: BrokerCore) -> None:
    core.ask(fetch_frame(1, (0, 0), (1, 0), min_bytes=2 * BATCH + 1))
    append(core, 0)
    append(core, 1)
    assert core.socket.taken == b""

    append(core, 0)

    assert sizes(bytes(core.socket.taken)) == [2 * BATCH, BATCH]


SMALL = {"segment.bytes": str(3 * BATCH)}


@pytest.fixture
def rolling(tmp_path: Path) -> Iterator[BrokerCore]:
    """With three batches a segment."""
    core = BrokerCore(tmp_path, topics={"visits": SMALL})
    core.create("visits", 2)
    yield core
    core.close()


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize(("offset", "batches"), [(0, 3), (2, 1), (5, 1)])
def test_nothing_is_waited_for_at_a_segments_end(
    rolling: BrokerCore, offset: int, batches: int, isolation_level: int
) -> None:
    append(rolling, 0, 7)
    answer = rolling.ask(fetch_frame(1, (0, offset), (1, 0), min_bytes=1000, isolation_level=isolation_level))

    assert sizes(answer) == [batches * BATCH, 0]


def test_a_fetch_that_waits_ends_when_its_segment_does(rolling: BrokerCore) -> None:
    append(rolling, 0, 2)
    assert rolling.ask(fetch_frame(1, (0, 1), min_bytes=1000)) == b""
    append(rolling)
    assert rolling.socket.taken == b""

    append(rolling)

    assert sizes(bytes(rolling.socket.taken)) == [2 * BATCH]


def test_the_last_segment_is_waited_in(rolling: BrokerCore) -> None:
    append(rolling, 0, 4)

    assert rolling.ask(fetch_frame(1, (0, 3), min_bytes=1000)) == b""


def test_a_transaction_that_is_open_in_the_next_segment_leaves_nothing_to_wait_for(rolling: BrokerCore) -> None:
    append(rolling, 0, 3)
    open_one = batch_of(b"x" * 100, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    rolling.log("visits").append_as_leader(open_one, leader_epoch=0, now_ms=0)

    assert sizes(rolling.ask(fetch_frame(1, (0, 1), min_bytes=1000, isolation_level=1))) == [2 * BATCH]


def test_a_transaction_that_is_open_in_the_same_segment_is_waited_for(rolling: BrokerCore) -> None:
    append(rolling, 0, 1)
    open_one = batch_of(b"x" * 100, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    rolling.log("visits").append_as_leader(open_one, leader_epoch=0, now_ms=0)
    append(rolling, 0, 3)

    assert rolling.ask(fetch_frame(1, (0, 0), min_bytes=1000, isolation_level=1)) == b""


def test_no_more_is_waited_for_than_may_be_sent(core: BrokerCore) -> None:
    append(core, 0, 5)

    assert sizes(core.ask(fetch_frame(1, (0, 0), min_bytes=1 << 30, max_bytes=2 * BATCH))) == [2 * BATCH]
    core.socket.taken.clear()
    assert sizes(core.ask(fetch_frame(2, (0, 0), min_bytes=5 * BATCH + 1, max_bytes=5 * BATCH))) == [5 * BATCH]


def test_what_is_there_but_does_not_fit_beside_the_rest_is_not_waited_for(core: BrokerCore) -> None:
    append(core, 0)
    core.replicas.partitions["visits", 1].append(memoryview(batch_of(b"x" * 5000)), 1, 9, 0)

    answer = core.ask(fetch_frame(1, (0, 0), (1, 0), min_bytes=1000, max_bytes=1000))

    assert sizes(answer) == [BATCH, 0]


def test_time_ends_a_fetch_with_what_there_is(core: BrokerCore) -> None:
    core.ask(fetch_frame(1, (0, 0), min_bytes=1000))
    append(core)
    core.purgatory.expire_all()
    core.stage.settle()

    assert sizes(bytes(core.socket.taken)) == [BATCH]


def test_an_error_is_answered_at_once(core: BrokerCore) -> None:
    answer = core.ask(fetch_frame(1, (0, 0), (7, 0), (1, 99)))

    assert {index: each.error_code for index, each in found(answer).items()} == {
        0: 0,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        1: ErrorCode.OFFSET_OUT_OF_RANGE,
    }


def test_consumers_see_what_is_replicated_and_wait_for_the_rest(core: BrokerCore) -> None:
    core.create("visits", 1, leader_epoch=1, isr=(1, 2))
    append(core, 0, 2)
    assert core.ask(fetch_frame(1, (0, 1))) == b""
    core.replicate("visits", 2, 2)

    answer = found(bytes(core.socket.taken))[0]

    assert (answer.high_watermark, len(answer.records or b"")) == (2, BATCH)


def test_a_closed_connection_parks_nothing(core: BrokerCore) -> None:
    core.ask(fetch_frame(1, (0, 0)))
    core.stage.thread.close_connection(core.connection)
    append(core)

    assert (core.purgatory.size, bytes(core.socket.taken)) == (0, b"")
    assert not core.replicas.partitions["visits", 0].data_arrived.operations


def test_large_slices_leave_from_the_file_and_are_unpinned(core: BrokerCore, monkeypatch: pytest.MonkeyPatch) -> None:
    count = SENDFILE_FROM_BYTES // BATCH + 2
    append(core, 0, count)
    pins: list[int] = []

    class FakeOs:
        @staticmethod
        def sendfile(out: int, source: int, position: int, size: int) -> int:
            pins.append(source)
            return core.socket.take(os.pread(source, size, position))

    monkeypatch.setattr(sending, "os", FakeOs)
    core.socket.piece = 10_000

    answer = core.ask(fetch_frame(1, (0, 0)))

    headers = list(iter_batch_headers(bytes(found(answer)[0].records or b"")))
    assert [header.base_offset for _, header in headers] == list(range(count))
    assert len(pins) > 1
    # The log itself pins its active segment.
    assert core.log("visits").published[2][-1].file._pins == 1


def test_an_incremental_fetch_names_only_what_changes(core: BrokerCore) -> None:
    append(core, 0)
    first = fetched(core.ask(fetch_frame(1, (0, 0), (1, 0), session_epoch=0)))
    session = {"session_id": first.session_id, "max_wait_ms": 0}
    assert first.session_id

    quiet = fetched(core.ask(fetch_frame(2, (0, 1), session_epoch=1, **session)))
    append(core, 1)
    news = core.ask(fetch_frame(3, session_epoch=2, **session))

    assert (quiet.session_id, quiet.responses) == (first.session_id, [])
    assert list(found(news)) == [1]
    refused = fetched(core.ask(fetch_frame(4, session_epoch=2, **session)))
    assert refused.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_fetch_whose_session_went_on_by_another_connection_is_refused(core: BrokerCore) -> None:
    session_id = fetched(core.ask(fetch_frame(1, (0, 0), (1, 0), session_epoch=0, max_wait_ms=0))).session_id
    core.ask(fetch_frame(2, session_epoch=1, session_id=session_id))
    waiting, before = core.socket, len(core.socket.taken)
    core.connect()
    forgotten = [ForgottenTopic(topic="visits", partitions=[0])]
    more = {"session_epoch": 2, "session_id": session_id, "max_wait_ms": 0}
    assert fetched(core.ask(fetch_frame(3, forgotten_topics_data=forgotten, **more))).error_code == ErrorCode.NONE

    core.replicas.partitions["visits", 0].append(memoryview(batch_of(b"x" * SENDFILE_FROM_BYTES)), 1, 9, 0)
    core.replicas.partitions["visits", 0].appended()

    refused = fetched(bytes(waiting.taken[before:]))
    assert (refused.error_code, refused.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])
    # Nothing of the file that was to be sent is kept: the log itself pins its active segment.
    assert core.log("visits").published[2][-1].file._pins == 1


def test_a_fetch_in_a_session_holds_the_next_one(core: BrokerCore) -> None:
    first = fetched(core.ask(fetch_frame(1, (0, 0), session_epoch=0, max_wait_ms=0)))
    core.socket.taken.clear()
    core.ask(fetch_frame(2, session_epoch=1, session_id=first.session_id))
    core.ask(fetch_frame(3, session_epoch=2, session_id=first.session_id, max_wait_ms=0))
    assert core.socket.taken == b""

    append(core)
    core.stage.settle()

    first_size = int.from_bytes(core.socket.taken[:4], "big") + 4
    assert list(found(bytes(core.socket.taken[:first_size]))) == [0]
    assert fetched(bytes(core.socket.taken[first_size:])).error_code == 0


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("replicated", ErrorCode.NONE),
        ("late", ErrorCode.REQUEST_TIMED_OUT),
        ("new leader", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("new epoch", ErrorCode.REQUEST_TIMED_OUT),
        ("isr shrinks", ErrorCode.REQUEST_TIMED_OUT),
        ("isr shrinks as it is replicated", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ],
)
def test_acks_all_waits_for_the_followers(tmp_path: Path, end: str, error: ErrorCode) -> None:
    core = BrokerCore(tmp_path / "own", "min.insync.replicas=2")
    core.create("visits", 1, isr=(1, 2))
    assert core.ask(produce_frame(9, 5, {("visits", 0): bytes(batch_of(b"x"))}, acks=-1)) == b""
    partition = core.replicas.partitions["visits", 0]

    match end:
        case "replicated":
            core.replicate("visits", 2, 1)
        case "new leader":
            partition.resign()
            partition.wake_all()
        case "new epoch":
            core.create("visits", 1, leader_epoch=1, isr=(1, 2))  # its leader has stayed: it waits on
        case "isr shrinks":
            core.shrink_isr("visits", (1,))  # nothing is committed then (KAFKA-15583)
        case "isr shrinks as it is replicated":
            core.log("visits").set_high_watermark(1)
            core.shrink_isr("visits", (1,))
    core.purgatory.expire_all()

    _, position = decode_response_header(0, 9, bytes(core.socket.taken[4:]))
    response = decode(ProduceResponse, 9, memoryview(bytes(core.socket.taken))[4 + position :])
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == error
    assert (core.purgatory.size, core.connection.parked) == (0, {})
    core.close()


def test_requests_after_acks_all_run_while_it_waits(core: BrokerCore) -> None:
    core.create("visits", 1, leader_epoch=1, isr=(1, 2))
    for number in range(3):
        core.ask(produce_frame(9, number, {("visits", 0): bytes(batch_of(b"x"))}, acks=-1))
    assert (core.log("visits").log_end_offset, bytes(core.socket.taken)) == (3, b"")

    core.replicate("visits", 2, 3)

    assert len(core.stage.answered) == 3


def test_without_down_conversion_old_versions_are_refused(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path, "log.message.downconversion.enable=false")
    core.create("visits")
    core.ask(produce_frame(9, 0, {("visits", 0): bytes(batch_of(b"x"))}))

    codes = {
        version: fetched(core.ask(fetch_frame(version, (0, 0), version=version)), version).responses[0].partitions[0]
        for version in (3, 4)
    }

    assert codes[3].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert codes[4].error_code == ErrorCode.NONE
    core.close()
