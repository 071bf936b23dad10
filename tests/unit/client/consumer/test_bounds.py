"""What is too much or too far: offsets that no request can name, batches of empty records, answers beyond the usual."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from kavka.client.consumer.chunks import Chunk
from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.core import max_answer_bytes
from kavka.client.consumer.decoding import Rules, decoded, survey
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.consumer.positions import Position
from kavka.client.topic_partition import TopicPartition
from kavka.config.clients.consumer import consumer_settings
from kavka.protocol.records.batch import Record, build_batch, patch_offsets
from kavka.protocol.records.compression import Codec, compress
from kavka.protocol.records.header import BATCH_HEADER, HEADER_SIZE_BYTES, LOG_OVERHEAD_BYTES, write_crc

BIRDS = TopicPartition("birds", 0)
EMPTY_RECORD = bytes([12, 0, 0, 0, 1, 1, 0])
"""Length, attributes, no deltas, no key, no value, no headers."""
MIB = 1 << 20


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    # Nobody listens at port 1.
    made = Consumer(bootstrap_servers="127.0.0.1:1", group_id="g", enable_auto_commit=False)
    yield made
    made.close(0)


def empty_records(count: int, codec: Codec) -> bytes:
    packed = compress(codec, EMPTY_RECORD * count)
    length = HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES + len(packed)
    batch = bytearray(BATCH_HEADER.pack(0, length, 0, 2, 0, codec, count - 1, 0, 0, -1, -1, -1, count) + packed)
    write_crc(batch, 0)
    return bytes(batch)


@pytest.mark.parametrize("only_columns", [False, True])
def test_a_batch_of_very_many_records_is_made_in_pieces(only_columns: bool) -> None:
    count = 400_000
    data = empty_records(count, Codec.LZ4)
    assert len(data) < MIB // 8
    rules, found = Rules(only_columns=only_columns), survey(memoryview(data))
    # The first time modules are loaded.
    next(decoded(BIRDS, data, 0, (), rules, found.records))
    stretches = decoded(BIRDS, data, 0, (), rules, found.records)
    tracemalloc.start()
    first = next(stretches)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 36 * MIB
    assert len(first) < count // 4
    assert len(first) + sum(map(len, stretches)) == count


def test_records_behind_the_last_offset_there_can_be_are_no_records(consumer: Consumer) -> None:
    batch = bytearray(build_batch([Record(value=b"x")] * 3))
    patch_offsets(batch, 0, 2**63 - 3, 0)
    assert survey(memoryview(batch)).size_bytes == 0
    patch_offsets(batch, 0, 2**63 - 4, 0)
    assert survey(memoryview(batch)).next_offset == 2**63 - 1


@pytest.mark.parametrize("place", [-1, 2**63, OffsetAndMetadata(1, 2**31), OffsetAndMetadata(1, -1)])
def test_nobody_can_seek_to_what_no_request_can_name(consumer: Consumer, place: int | OffsetAndMetadata) -> None:
    consumer.assign([BIRDS])
    with pytest.raises(ValueError, match="there is no"):
        consumer.seek(BIRDS, place)
    consumer.seek(BIRDS, 2**63 - 1)
    with pytest.raises(ValueError, match="no such time"):
        consumer.offsets_for_times({BIRDS: 2**63})


def test_answers_may_be_as_large_as_what_is_asked_for() -> None:
    assert max_answer_bytes(consumer_settings()) == 104_857_600
    assert max_answer_bytes(consumer_settings(fetch_max_bytes=300 * MIB)) > 300 * MIB
    assert max_answer_bytes(consumer_settings(max_partition_fetch_bytes=2**31 - 1)) == 2**31 - 1
    with Consumer(bootstrap_servers="127.0.0.1:1", fetch_max_bytes=300 * MIB) as consumer:
        assert consumer._core.opened.network._settings.max_answer_bytes > 300 * MIB


def test_what_was_fetched_of_a_topic_that_is_subscribed_to_no_more_is_not_given_out(consumer: Consumer) -> None:
    core = consumer._core
    consumer.subscribe(["birds"])
    core.subscription.replace([BIRDS])
    core.subscription.release([BIRDS])
    core.subscription.seek(BIRDS, Position(0))
    data = memoryview(build_batch([Record(value=b"x")] * 3))
    state = core.subscription.state(BIRDS)
    with core.subscription.lock:
        core.buffer.add(state, Chunk(state, 0, data, survey(data), ()))
    consumer.subscribe(["trees"])
    assert core.buffer.take(10) == []
    consumer.subscribe(["trees", "birds"])
    assert [len(piece) for piece in core.buffer.take(10)] == [3]
    consumer.subscribe(["trees"])
    consumer.unsubscribe()
    consumer.assign([BIRDS])
    assert not core.subscription.state(BIRDS).is_kept
