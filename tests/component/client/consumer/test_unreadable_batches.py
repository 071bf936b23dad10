"""Batches that nobody can read, on their way to a consumer: bombs and broken checksums. Its thread lives."""

import tracemalloc
from typing import Any

import pytest

from kavka.client import Consumer
from kavka.client.consumer import decoding
from kavka.client.consumer.errors import CorruptBatchReadError
from kavka.protocol.records import columns
from kavka.protocol.records.batch import Record, build_batch
from kavka.protocol.records.compression import Codec
from tests.component.client.consumer.serving_consumers import BIRDS, QUICK, ConsumersBroker, batch_of
from tests.support.processes import wait_until

TIMEOUT_S = 120.0
MIB = 1 << 20
PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def bomb(codec: Codec) -> bytes:
    """Good in all but its size: 48 MiB."""
    return build_batch([Record(value=bytes(16 * MIB))] * 3, base_offset=3, codec=codec)


def broken(codec: Codec) -> bytes:
    batch = bytearray(build_batch([Record(value=b"value")] * 3, base_offset=3, codec=codec))
    batch[-1] ^= 1
    return bytes(batch)


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "BATCH_LIMIT_BYTES", MIB)
    monkeypatch.setattr(columns, "BATCH_LIMIT_BYTES", MIB)


def offsets(consumer: Consumer, *, by_columns: bool) -> list[int]:
    if by_columns:
        return [offset for part in consumer.poll_columns(100) for offset in part.offsets.tolist()]
    return [record.offset for record in consumer.poll(100)]


def cases() -> list[Any]:
    bombs = [pytest.param(bomb, codec, "more than", id=f"bomb-{codec.name}") for codec in PACKED]
    return [
        *bombs,
        *(
            pytest.param(broken, codec, "(?i)crc|checksum", id=f"broken-{codec.name}")
            for codec in (Codec.NONE, Codec.LZ4)
        ),
    ]


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize(("make", "codec", "reason"), cases())
def test_it_is_raised_until_somebody_seeks_past_it(make: Any, codec: Codec, reason: str, by_columns: bool) -> None:
    unreadable = make(codec)
    assert len(unreadable) < 4 * MIB
    serving = ConsumersBroker([batch_of(3), unreadable, batch_of(3, 6)])
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, **QUICK) as consumer:
        consumer.assign([BIRDS])
        assert wait_until(lambda: offsets(consumer, by_columns=by_columns), TIMEOUT_S, "no records") == [0, 1, 2]
        tracemalloc.start()
        try:
            for _ in range(2):
                with pytest.raises(CorruptBatchReadError, match=reason) as caught:
                    wait_until(lambda: offsets(consumer, by_columns=by_columns), TIMEOUT_S, "nothing is raised")
                error = caught.value
                assert (error.topic_partition, error.offset, error.next_offset) == (BIRDS, 3, 6)
                assert consumer.position(BIRDS) == 3
            # The batch is some megabytes where it is packed badly, and a few answers are on their way.
            assert tracemalloc.get_traced_memory()[1] < 32 * MIB
        finally:
            tracemalloc.stop()
        consumer.seek(BIRDS, error.next_offset)
        assert wait_until(lambda: offsets(consumer, by_columns=by_columns), TIMEOUT_S, "no records") == [6, 7, 8]


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize(("make", "codec", "reason"), cases())
def test_it_is_left_out_if_asked(make: Any, codec: Codec, reason: str, by_columns: bool) -> None:
    serving = ConsumersBroker([batch_of(3), make(codec), batch_of(3, 6)])
    settings = {"kavka.skip.corrupt.batches": "true"}
    with serving.serves() as broker, Consumer(settings, bootstrap_servers=broker.bootstrap, **QUICK) as consumer:
        consumer.assign([BIRDS])
        found: list[int] = []

        def is_read() -> bool:
            found.extend(offsets(consumer, by_columns=by_columns))
            return len(found) >= 6

        wait_until(is_read, TIMEOUT_S, lambda: f"read: {found}")
        assert found == [0, 1, 2, 6, 7, 8]
        assert consumer.position(BIRDS) == 9
