"""What a consumer's metrics say of the bytes that it has read."""

import pytest

from kavka.client.consumer.positions import Position
from tests.component.client.consumer.test_simulated_fetching import BIRDS, simulated


def test_bytes_are_counted_with_their_records_and_what_is_skipped_is_not() -> None:
    cluster, _network, consumer = simulated(max_bytes=1_000_000)
    cluster.append(BIRDS, 40)
    consumer.subscription.assign([BIRDS])
    while not consumer.buffer.size_bytes:
        consumer.run(500)
    fetched_bytes, whole = consumer.buffer.size_bytes, len(cluster.logs[BIRDS].records)
    metrics = consumer.metrics
    counted = []
    for _ in range(2):
        assert len(consumer.poll(whole // 4)) == whole // 4
        counted.append(metrics.bytes)
    assert counted == [pytest.approx(fetched_bytes / 4, abs=1), pytest.approx(fetched_bytes / 2, abs=1)]
    consumer.subscription.seek(BIRDS, Position(whole))
    assert len(consumer.poll(whole)) == 0
    assert metrics.bytes == counted[-1], "nobody has read what was sought over"

    consumer.subscription.seek(BIRDS, Position(0))
    while len(consumer.poll(whole)) < whole:
        consumer.run(500)
    assert metrics.bytes == counted[-1] + fetched_bytes
