"""What a producer's settings do, where no broker is needed to see it."""

from types import MappingProxyType
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.producer.accumulator import RecordAccumulator
from kavka.client.producer.errors import QueueFullError
from kavka.protocol.records.compression import Codec

TEXT = " ".join(f"{number * number} birds of {number}" for number in range(2_000)).encode()
CLUSTER = Cluster(topics={"birds": TopicInfo("birds", bytes(16), 0, False, MappingProxyType({0: PartitionInfo(0, 0)}))})


def packed_size(**settings: Any) -> int:
    """What a batch with a text takes in a request."""
    with Producer(bootstrap_servers="127.0.0.1:1", batch_size=100_000, **settings) as producer:
        accumulator = producer._accumulator
        assert accumulator.topic("birds", CLUSTER) is not None
        producer.send("birds", TEXT, partition=0)
        batch = accumulator.take(accumulator.topics["birds"].queues[0])
        assert batch.writer.codec == Codec[settings.get("compression_type", "none").upper()]
        size = batch.size_bytes
        producer.close(0)
        return size


@pytest.mark.parametrize(("packed", "codecs"), [("birds, cats", {"birds": Codec.GZIP, "fish": Codec.NONE}), ("", None)])
def test_compressed_topics_alone_are_packed(packed: str, codecs: dict[str, Codec] | None) -> None:
    """Without any all are."""
    both = Cluster(topics={name: CLUSTER.topics["birds"]._replace(name=name) for name in ("birds", "fish")})
    settings = {"metadata.broker.list": "127.0.0.1:1", "producer.type": "async", "compression.codec": "gzip"}
    producer = Producer({**settings, "compressed.topics": packed})
    try:
        producer._metadata.cluster = both
        for name in both.topics:
            producer.send(name, TEXT, partition=0)
            batch = producer._accumulator.take(producer._accumulator.topics[name].queues[0])
            codec = (codecs or {}).get(name, Codec.GZIP)
            assert batch.writer.codec == codec
            assert (batch.size_bytes < len(TEXT)) == (codec is Codec.GZIP)
    finally:
        producer.close(0)


class Full:
    """A queue's room that never comes; it notes how it was waited for."""

    def __init__(self) -> None:
        self.waits: list[tuple[bool, float | None]] = []

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        self.waits.append((blocking, timeout))
        return False


@pytest.mark.parametrize(
    ("timeout_ms", "waits"), [(0, [(False, None)]), (300, [(False, None), (True, 0.3)])], ids=["0", "300"]
)
def test_a_full_queue_is_waited_for_as_long_as_is_said(timeout_ms: int, waits: list[Any]) -> None:
    settings = {"metadata.broker.list": "127.0.0.1:1", "producer.type": "async", "queue.buffering.max.ms": 600_000}
    producer = Producer({**settings, "queue.enqueue.timeout.ms": timeout_ms})
    try:
        assert producer._old is not None
        producer._metadata.cluster = CLUSTER
        room = Full()
        producer._old.__dict__["_room"] = room
        with pytest.raises(QueueFullError, match="birds"):
            producer.send("birds", b"kavka")
        assert room.waits == waits
        assert not producer._accumulator.incomplete
    finally:
        producer.close(0)


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", "1", "9"), ("lz4", "1", "12"), ("zstd", "-100", "19")])
def test_a_codecs_level_makes_batches_smaller(codec: str, low: str, high: str) -> None:
    sizes = [packed_size(compression_type=codec, **{f"compression_{codec}_level": level}) for level in (low, high)]
    assert sizes[1] < sizes[0] < packed_size()


def test_metadata_and_memory_are_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one wait has taken of max.block.ms, the other has not."""
    clock, deadlines = [1_000.0], list[float]()
    append = RecordAccumulator.append

    def noted(self: RecordAccumulator, *arguments: Any, **options: Any) -> Any:
        deadlines.append(arguments[7])
        return append(self, *arguments, **options)

    monkeypatch.setattr(RecordAccumulator, "append", noted)
    producer = Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=500)
    try:
        producer._pipeline.__dict__["_now_ms"] = lambda: clock[0]

        def wait_for(_version: int, deadline_ms: float) -> bool:
            deadlines.append(deadline_ms)
            clock[0] += 400
            producer._metadata.cluster = CLUSTER
            return True

        producer._metadata.__dict__["wait_for"] = wait_for
        producer.send("birds", b"kavka")
        assert deadlines == [1_500, 1_500]
    finally:
        producer.close(0)
