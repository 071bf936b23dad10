"""What a record costs on its way into a batch: calls, which noise cannot move, and memory."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import FrameType, MappingProxyType
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo

MOST_PYTHON_CALLS = 3
"""send, ProducerBatch.put, BatchWriter.append."""
MOST_C_CALLS = 20
MOST_BYTES = 100


@pytest.fixture
def producer() -> Iterator[Producer]:
    """One that knows a topic, and whose thread has not begun."""
    made = Producer(bootstrap_servers="127.0.0.1:1", buffer_memory=64 * 1024 * 1024)
    partitions = {number: PartitionInfo(0, 0) for number in range(4)}
    topic = TopicInfo("birds", bytes(16), 0, False, MappingProxyType(partitions))
    assert made._accumulator.topic("birds", Cluster(topics={"birds": topic})) is not None
    yield made
    made.close(0)


def calls_of(function: Callable[[], Any]) -> tuple[int, int]:
    """How many functions of Python's, and of C's, are called."""
    counts = {"call": 0, "c_call": 0}

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        if event in counts:
            counts[event] += 1

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    # The function itself, and the end of the profile.
    return counts["call"] - 1, counts["c_call"] - 1


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"key": b"known"},
        {"partition": 2},
        {"on_delivery": lambda metadata, error: None},
        {"key": b"known", "timestamp_ms": 10**12},
    ],
    ids=lambda way: "-".join(way) or "plain",
)
def test_a_record_costs_few_calls(producer: Producer, way: dict[str, Any]) -> None:
    send, value = producer.send, b"x" * 100
    for _ in range(3):
        send("birds", value, **way)
    # The least of a few: the client's thread may take the batch just then, and another one has to be begun.
    python, c = min(calls_of(lambda: send("birds", value, **way)) for _ in range(5))
    # One more notes the callback.
    assert python <= MOST_PYTHON_CALLS + ("on_delivery" in way)
    assert c <= MOST_C_CALLS


@pytest.mark.parametrize(("size", "count"), [(10, 100_000), (100, 100_000), (1_000, 20_000)])
def test_a_record_in_flight_costs_little_beside_its_buffer(producer: Producer, size: int, count: int) -> None:
    value = b"x" * size
    producer.send("birds", value)
    futures: list[Any] = [None] * count
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for index in range(count):
            futures[index] = producer.send("birds", value)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    memory = producer._accumulator.memory
    buffers = memory.total_bytes - memory.available_bytes
    assert (after - before - buffers) / count <= MOST_BYTES
