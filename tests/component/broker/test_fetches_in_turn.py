"""Several fetches of one connection: they wait one after the other, and what follows is answered in order."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.network.hang_ups import client_ended
from kavka.broker.waiting.delayed_fetch import FEW_PARTITIONS
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.partition_logs import batch_of
from tests.support.processes import wait_until

VERSION = 12


def test_one_fetch_of_a_connection_waits_at_a_time_and_what_follows_is_answered_in_order(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    for number in range(1, 4):
        core.ask(fetch_frame(number))
    core.ask(produce_frame(9, 4, {("visits", 1): bytes(batch_of(b"x"))}))
    assert core.purgatory.size == 1
    assert core.socket.taken == b""

    partition = core.replicas.partitions["visits", 0]
    partition.append(memoryview(batch_of(b"x" * 100)), 1, 9, 0)
    partition.appended()
    core.stage.settle()

    assert [int.from_bytes(each[4:8], "big") for each in whole_frames(bytes(core.socket.taken))] == [1, 2, 3, 4]
    assert core.log("visits", 1).log_end_offset == 1
    assert (core.purgatory.size, core.connection.running.locked()) == (0, False)
    core.close()


def test_fetches_of_a_client_that_ends_its_sending_are_answered_with_what_there_is(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    core.ask(fetch_frame(1))
    core.ask(fetch_frame(2))
    client_ended(core.connection)
    core.purgatory.timer.start()

    def is_answered() -> bool:
        core.stage.settle()
        return core.socket.closed

    core.socket.ended = True
    wait_until(is_answered, 60, "the fetches wait on")

    core.purgatory.timer.stop()
    assert [int.from_bytes(each[4:8], "big") for each in whole_frames(bytes(core.socket.taken))] == [1, 2]
    core.close()


@pytest.mark.parametrize("partitions", [1, FEW_PARTITIONS + 1])
def test_what_waits_behind_a_fetch_takes_no_more_memory_than_is_counted(tmp_path: Path, partitions: int) -> None:
    core = BrokerCore(tmp_path)
    core.create("visits", partitions)
    core.ask(fetch_frame(1, partitions))
    core.ask(*[fetch_frame(number) for number in range(2, 6)])

    kept_bytes = [memoryview(frame.obj).nbytes for frame, _, _ in core.connection.pending]
    assert len(kept_bytes) == 4
    assert sum(kept_bytes) == core.connection.received_bytes - core.connection.taken_bytes
    core.close()


def test_behind_a_fetch_that_waits_one_request_is_read_and_the_others_when_it_is_answered(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    core.ask(fetch_frame(1))
    for number in range(2, 6):
        core.ask(produce_frame(9, number, {("visits", 1): bytes(batch_of(b"x"))}))
    assert (len(core.connection.pending), core.connection.reading) == (1, False)

    partition = core.replicas.partitions["visits", 0]
    partition.append(memoryview(batch_of(b"x" * 100)), 1, 9, 0)
    partition.appended()
    core.stage.settle()

    assert [int.from_bytes(each[4:8], "big") for each in whole_frames(bytes(core.socket.taken))] == [1, 2, 3, 4, 5]
    assert core.connection.reading
    core.close()


def fetch_frame(number: int, partitions: int = 1) -> bytes:
    """A fetch without a session from the beginning of the first partitions."""
    asked = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(partitions)
    ]
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic="visits", partitions=asked)],
        forgotten_topics_data=[],
    )
    return encode_request_header(1, VERSION, number, "c") + encode(request, VERSION)


def whole_frames(data: bytes) -> Iterator[bytes]:
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        yield data[:end]
        data = data[end:]
