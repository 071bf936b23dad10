"""A consumer's loop over its records, and its end, with no broker there: what counts as read, who is called back."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from kavka.client.api_errors import ClientClosedError
from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.consumer.positions import Position
from kavka.client.consumer.records import ConsumerRecord
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.header import TimestampType
from kavka.protocol.records.reading import NO_HEADERS

BIRDS = TopicPartition("birds", 0)
TREES = TopicPartition("trees", 0)


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Consumer]:
    """Each of its polls gives five records of two partitions."""
    # Nobody listens at port 1.
    made = Consumer(bootstrap_servers="127.0.0.1:1", group_id="g", enable_auto_commit=False)
    made.assign([BIRDS, TREES])
    positions = made._core.subscription
    for partition in (BIRDS, TREES):
        positions.seek(partition, Position(0))

    def poll(_timeout_ms: float) -> list[ConsumerRecord]:
        records = []
        for partition in (BIRDS, TREES):
            state = positions.state(partition)
            first = state.position.offset
            records += [_record(partition, offset) for offset in range(first, first + 5)]
            state.position = Position(first + 5, 3)
        return records

    monkeypatch.setattr(made, "poll", poll)
    yield made
    made.close(0)


def _record(partition: TopicPartition, offset: int) -> ConsumerRecord:
    return ConsumerRecord((*partition, offset, 0, None, b"", NO_HEADERS, TimestampType.CREATE, 3))


def read(consumer: Consumer, count: int) -> list[tuple[str, int]]:
    found = []
    for record in consumer:
        found.append((record.topic, record.offset))
        if len(found) == count:
            break
    return found


def test_a_loop_that_ends_early_is_gone_on_with(consumer: Consumer) -> None:
    first, second = read(consumer, 7), read(consumer, 6)
    assert first == [("birds", offset) for offset in range(5)] + [("trees", 0), ("trees", 1)]
    assert second == [("birds", offset) for offset in range(5, 10)] + [("trees", 2)]


def test_what_the_loop_was_not_given_is_not_committed(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    committed: list[Any] = []
    assert consumer._core.group is not None
    monkeypatch.setattr(consumer._core.group, "commit_async", lambda offsets, _callback: committed.append(offsets))
    for number, _ in enumerate(consumer):
        if number in (1, 4, 5):
            consumer.commit_async()
        if number == 10:
            break
    birds, trees = ([offsets[partition].offset for offsets in committed] for partition in (BIRDS, TREES))
    assert (birds, trees) == ([2, 5, 5], [0, 0, 1])


def test_an_exception_in_the_loop_leaves_the_rest_unread(consumer: Consumer) -> None:
    def process() -> None:
        for record in consumer:
            if record.offset == 3:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        process()
    assert consumer._core.subscription.consumed()[BIRDS].offset == 4


def test_close_within_a_loop_counts_what_was_given_alone(consumer: Consumer) -> None:
    records = iter(consumer)
    next(records)
    consumer.close(0)
    assert {each: at.offset for each, at in consumer._core.subscription.consumed().items()} == {BIRDS: 1, TREES: 0}


def test_who_seeks_in_the_loop_goes_on_there(consumer: Consumer) -> None:
    for record in consumer:
        if record.offset == 2:
            consumer.seek(BIRDS, 100)
            break
    consumed = consumer._core.subscription.consumed()
    assert {each: at.offset for each, at in consumed.items()} == {BIRDS: 100, TREES: 0}


def test_who_seeks_to_the_begin_or_end_in_the_loop_goes_on_there(consumer: Consumer) -> None:
    for record in consumer:
        if record.offset == 2:
            consumer.seek_to_beginning([BIRDS])
            consumer.seek_to_end([TREES])
            break
    # Both are looked up yet.
    assert not consumer._core.subscription.consumed()


def test_how_long_commits_and_committed_took_is_counted(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    done: Future[Any] = Future()
    done.set_result({})
    assert consumer._core.group is not None
    for name in ("commit", "offsets_of"):
        monkeypatch.setattr(consumer._core.group, name, lambda *_arguments: done)
    consumer.commit_sync({BIRDS: OffsetAndMetadata(1)})
    assert consumer.metrics["commit-sync-time-ns-total"] > 0
    assert consumer.metrics["committed-time-ns-total"] == 0
    assert consumer.committed([BIRDS]) == {BIRDS: None}
    assert consumer.metrics["committed-time-ns-total"] > 0


def test_commits_that_close_does_not_wait_for_are_called_back(consumer: Consumer) -> None:
    heard: list[tuple[int, type[object]]] = []

    def told(offsets: Any, error: Exception | None) -> None:
        heard.append((offsets[BIRDS].offset, type(error)))

    for offset in (1, 2):
        consumer.commit_async({BIRDS: OffsetAndMetadata(offset)}, told)
    consumer.close(50)
    assert heard == [(1, ClientClosedError), (2, ClientClosedError)]
