"""What a consumed record costs in function calls: noise cannot move them, so that growth shows at once."""

import random

import pytest

from kavka.client.consumer.buffer import FetchBuffer
from kavka.client.consumer.chunks import Chunk
from kavka.client.consumer.decoding import survey
from kavka.client.consumer.positions import Position
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.batch import Record, build_batch
from kavka.protocol.records.compression import Codec
from tests.component.client.consumer.simulated_cluster import SimulatedCluster
from tests.component.client.consumer.simulated_consumer import FROM_THE_START, SimulatedConsumer
from tests.component.client.consumer.simulated_network import SimulatedNetwork
from tests.support.function_calls import calls_of

BIRDS = TopicPartition("birds", 0)
RECORDS = 8_000
A_POLL = 500

A_POLL_OF_LARGE_ANSWERS = 115
"""Of 500 records, and all of them looked at."""
DECODING = 710
UNPACKING = {Codec.NONE: 3, Codec.LZ4: 18}
"""More for each batch: its checksum, and what it is packed with."""
"""An answer of 8,000 records in batches of 100."""
A_SMALL_ANSWER = 122
"""Decoded and given out: 20 records in a batch."""


@pytest.fixture
def consumer() -> SimulatedConsumer:
    cluster = SimulatedCluster(random.Random(1), {"birds": 1})
    made = SimulatedConsumer(cluster, SimulatedNetwork(cluster, 0.0), policy=FROM_THE_START)
    made.subscription.assign([BIRDS])
    made.subscription.seek(BIRDS, Position(0))
    return made


def fetched(buffer: FetchBuffer, consumer: SimulatedConsumer, batch: int, count: int, codec: Codec) -> None:
    state = consumer.subscription.state(BIRDS)
    data = memoryview(
        b"".join(
            build_batch(
                [Record(timestamp_ms=5, key=b"%d" % number, value=bytes(90)) for number in range(batch)],
                base_offset=first,
                codec=codec,
            )
            for first in range(0, count, batch)
        )
    )
    with consumer.subscription.lock:
        buffer.add(state, Chunk(state, 0, data, survey(data), ()))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_records_of_large_answers_cost_no_calls_each(consumer: SimulatedConsumer, codec: Codec) -> None:
    # The first ones also load numpy, and make metrics for the partition.
    fetched(consumer.buffer, consumer, 100, RECORDS, codec)
    assert len(consumer.poll(RECORDS)) == RECORDS
    consumer.subscription.seek(BIRDS, Position(0))
    fetched(consumer.buffer, consumer, 100, RECORDS, codec)
    decoding = calls_of(lambda: consumer.buffer.take(1)) - 1
    assert decoding < DECODING + RECORDS // 100 * UNPACKING[codec], decoding
    calls = calls_of(lambda: consumer.poll(A_POLL)) - 1
    assert calls < A_POLL_OF_LARGE_ANSWERS, calls


def test_records_of_small_answers_cost_a_call_each(consumer: SimulatedConsumer) -> None:
    for _ in range(2):
        consumer.subscription.seek(BIRDS, Position(0))
        fetched(consumer.buffer, consumer, 20, 20, Codec.NONE)
        calls = calls_of(lambda: consumer.poll(A_POLL)) - 1
    assert calls < A_SMALL_ANSWER, calls
