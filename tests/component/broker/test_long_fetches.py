"""Fetches whose answers take long are read by I/O threads, whoever ends their wait; and what an append looks at."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.partitions.log_reading import READ_COMMITTED, SENDFILE_FROM_BYTES, Reading, ReadLimits
from kavka.broker.requests.prepared import TAILING
from kavka.broker.waiting.delayed_fetch import FEW_PARTITIONS
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.storage.log_answers import AbortedTransaction
from kavka.storage.log_slice import LogSlice
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.partition_logs import batch_of

BATCH = bytes(batch_of(b"x" * 100))


@pytest.mark.parametrize("version", [2, 12])
def test_what_has_come_when_the_time_of_a_fetch_is_up_is_read_by_an_io_thread(core: BrokerCore, version: int) -> None:
    core.ask(produce_frame(9, 1, {("visits", 0): BATCH}))
    assert core.ask(fetch_frame(2, version, min_bytes=100_000)) == b""

    core.purgatory.expire_all()

    taken = bytes(core.socket.taken)
    core.stage.settle()
    assert ids_of(taken) == [1]
    assert ids_of(bytes(core.socket.taken)) == [1, 2]
    assert not core.connection.running.locked()


def test_records_for_an_old_client_are_not_converted_by_the_thread_that_appends(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, 2)) == b""

    append(core, 0)

    assert core.socket.taken == b""
    core.stage.settle()
    assert ids_of(bytes(core.socket.taken)) == [1]


def test_many_partitions_are_not_read_by_the_thread_that_appends(core: BrokerCore) -> None:
    core.create("many", FEW_PARTITIONS + 1)
    assert core.ask(fetch_frame(1, 12, topic="many", partitions=FEW_PARTITIONS + 1)) == b""

    append(core, 5, "many")

    assert core.socket.taken == b""
    core.stage.settle()
    assert ids_of(bytes(core.socket.taken)) == [1]


def test_a_fetch_that_waited_is_answered_by_the_thread_that_appends(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, 12)) == b""

    append(core, 0)

    assert ids_of(bytes(core.socket.taken)) == [1]


def test_a_fetch_of_nothing_is_answered_when_its_time_is_up(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, 12)) == b""

    core.purgatory.expire_all()

    assert ids_of(bytes(core.socket.taken)) == [1]


def test_when_no_io_thread_is_left_the_rest_is_read_by_who_ends_the_wait(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, 2)) == b""
    core.stage.queue.is_abandoned = True

    core.purgatory.expire_all()

    assert ids_of(bytes(core.socket.taken)) == [1]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_when_the_broker_stops_nothing_is_converted_for_fetches_that_wait(
    core: BrokerCore, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.ask(produce_frame(9, 1, {("visits", 0): BATCH}))
    assert core.ask(fetch_frame(2, version, min_bytes=100_000)) == b""
    core.stage.queue.is_abandoned = True
    read: list[LogSlice] = []
    read_bytes = LogSlice.read_bytes

    def watched(piece: LogSlice) -> bytes:
        read.append(piece)
        return read_bytes(piece)

    monkeypatch.setattr(LogSlice, "read_bytes", watched)

    core.purgatory.expire_all()

    assert ids_of(bytes(core.socket.taken)) == [1, 2]
    assert not read


def test_a_closed_connections_fetch_is_not_read(core: BrokerCore) -> None:
    assert core.ask(fetch_frame(1, 2)) == b""
    append(core, 0)

    core.connection.close("test")
    core.stage.settle()

    assert core.socket.taken == b""
    assert core.stage.queue.qsize() == 0


@pytest.mark.parametrize("version", [2, 12])
def test_a_connection_that_leaves_the_tail_is_answered_by_an_io_thread(tmp_path: Path, version: int) -> None:
    core = BrokerCore(tmp_path, inline=True)
    core.create("visits", 1)
    core.create("empty", 1)
    core.ask(produce_frame(9, 1, {("visits", 0): bytes(batch_of(b"x" * SENDFILE_FROM_BYTES))}))
    core.connect()
    assert core.ask(fetch_frame(2, 12, topic="empty")) == b""
    core.purgatory.expire_all()
    assert core.connection.session.prepared[1] is TAILING

    frame = fetch_frame(3, version)
    core.socket.input += len(frame).to_bytes(4, "big") + frame
    core.stage.loop.settle()

    assert (ids_of(bytes(core.socket.taken)), core.stage.queue.qsize()) == ([2], 1)
    core.close()


@pytest.mark.parametrize("by_session", [True, False])
def test_a_fetch_of_many_partitions_is_read_by_an_io_thread_whatever_came_before(
    tmp_path: Path, by_session: bool
) -> None:
    core = BrokerCore(tmp_path, inline=True)
    core.create("many", FEW_PARTITIONS + 1)
    core.ask(fetch_frame(1, 12, topic="many", partitions=FEW_PARTITIONS + 1, max_wait_ms=0, session_epoch=0))
    core.connect()
    assert core.ask(fetch_frame(2, 12, topic="many")) == b""
    core.purgatory.expire_all()
    assert core.connection.session.prepared[1] is TAILING

    (session_id,) = core.services.fetch_sessions._sessions
    if by_session:
        frame = fetch_frame(3, 12, partitions=0, max_wait_ms=0, session_id=session_id, session_epoch=1)
    else:
        frame = fetch_frame(3, 12, topic="many", partitions=FEW_PARTITIONS + 1, max_wait_ms=0)
    core.socket.input += len(frame).to_bytes(4, "big") + frame
    core.stage.loop.settle()

    assert ids_of(bytes(core.socket.taken)) == [2]
    assert 1 not in core.connection.session.prepared
    core.stage.settle()
    assert ids_of(bytes(core.socket.taken)) == [2, 3]
    assert not core.connection.running.locked()
    core.close()


def test_a_fetch_of_many_partitions_that_an_io_thread_begins_may_wait(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path, inline=True)
    core.create("many", FEW_PARTITIONS + 1)
    assert core.ask(fetch_frame(1, 12, topic="many")) == b""
    core.purgatory.expire_all()
    many = fetch_frame(2, 12, topic="many", partitions=FEW_PARTITIONS + 1)

    assert core.ask(many, fetch_frame(3, 12, topic="many", max_wait_ms=0)) == b""
    append(core, 5, "many")
    core.stage.settle()

    assert ids_of(bytes(core.socket.taken)) == [1, 2, 3]
    assert not core.connection.running.locked()
    core.close()


@pytest.mark.parametrize("waits", [True, False])
def test_what_is_read_together_is_taken_apart_behind_a_fetch_that_waits_only(tmp_path: Path, waits: bool) -> None:
    core = BrokerCore(tmp_path, inline=True)
    core.create("visits", 1)
    core.create("empty", 1)
    core.ask(produce_frame(9, 1, {("visits", 0): BATCH}))
    core.connect()
    core.ask(fetch_frame(2, 12, topic="empty"))
    core.purgatory.expire_all()
    assert core.connection.session.prepared[1] is TAILING

    for number in (3, 4):
        frame = fetch_frame(number, 12, topic="empty" if waits else "visits")
        core.socket.input += len(frame).to_bytes(4, "big") + frame
    core.stage.loop.settle()

    ((behind, _, _),) = core.connection.pending
    assert behind == frame
    assert (len(core.connection.parked), memoryview(behind.obj).nbytes == behind.nbytes) == (waits, waits)
    core.close()


@pytest.mark.parametrize("min_bytes", [1, 100_000])
def test_an_append_looks_at_its_own_partition_of_a_fetch_that_waits(
    core: BrokerCore, min_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.create("many", 20)
    assert core.ask(fetch_frame(1, 12, topic="many", partitions=20, min_bytes=min_bytes)) == b""
    looked_at: list[int] = []
    available = Reading.available

    def watched(reading: Reading, limits: ReadLimits) -> bool:
        looked_at.append(reading.asked.partition)
        return available(reading, limits)

    monkeypatch.setattr(Reading, "available", watched)

    append(core, 7, "many")

    assert set(looked_at) == {7}


def test_what_comes_to_several_partitions_adds_up_to_what_a_fetch_waits_for(core: BrokerCore) -> None:
    min_bytes = 2 * len(BATCH) + 1
    assert core.ask(fetch_frame(1, 12, partitions=2, min_bytes=min_bytes)) == b""

    append(core, 0)
    append(core, 1)
    assert core.socket.taken == b""
    append(core, 0)

    assert ids_of(bytes(core.socket.taken)) == [1]


def test_an_append_lists_no_aborted_transactions_for_fetches_that_wait(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert core.ask(fetch_frame(1, 12, min_bytes=2 * len(BATCH), isolation_level=READ_COMMITTED)) == b""
    listed: list[int] = []
    aborted_transactions = PartitionLog.aborted_transactions

    def watched(log: PartitionLog, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        listed.append(end_offset)
        return aborted_transactions(log, start_offset, end_offset)

    monkeypatch.setattr(PartitionLog, "aborted_transactions", watched)

    append(core, 0)
    assert core.socket.taken == b""
    assert not listed
    append(core, 0)

    assert ids_of(bytes(core.socket.taken)) == [1]
    assert len(listed) == 1


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    yield core
    core.close()


def append(core: BrokerCore, index: int, topic: str = "visits") -> None:
    """As another client's request, but with nothing else run."""
    partition = core.replicas.partitions[topic, index]
    partition.append(memoryview(bytearray(BATCH)), 1, 9, 0)
    partition.appended()


def fetch_frame(
    number: int,
    version: int,
    *,
    topic: str = "visits",
    partitions: int = 1,
    min_bytes: int = 1,
    isolation_level: int = 0,
    max_wait_ms: int = 60_000,
    session_id: int = 0,
    session_epoch: int = -1,
) -> bytes:
    """A fetch from the beginning, that may wait, and has no session of its own."""
    asked = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(partitions)
    ]
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, partitions=asked)] if asked else [],
        forgotten_topics_data=[],
    )
    return encode_request_header(1, version, number, "c") + encode(request, version)


def ids_of(data: bytes) -> list[int]:
    """The correlation ids of the answers, all of them whole."""
    found = []
    while data:
        size = 4 + int.from_bytes(data[:4], "big")
        found.append(int.from_bytes(data[4:8], "big"))
        data = data[size:]
    return found
