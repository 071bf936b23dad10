"""A record's future: its result, its callbacks, and what a split does to it."""

import asyncio
import threading
from io import BytesIO

import pytest

from kavka.client.api_errors import InvalidRecordError, KafkaError, KafkaTimeoutError, NotLeaderOrFollowerError
from kavka.client.producer.batch import ProducerBatch, split_batch
from kavka.client.producer.delivery import Delivery, RecordMetadata, failed_delivery
from kavka.client.producer.send_future import SendFuture, new_future
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.appending import BatchWriter
from kavka.protocol.records.compression import Codec
from tests.support.processes import wait_until

PLACE = TopicPartition("birds", 2)


def delivery_of(count: int) -> Delivery:
    delivery = Delivery(PLACE)
    for index in range(count):
        delivery.note(1000 + index, index, -1)
    return delivery


def test_each_record_has_its_own_place() -> None:
    delivery = delivery_of(3)
    futures = [new_future(delivery, index) for index in range(3)]
    assert not futures[2].done()
    delivery.complete(40)
    assert not futures[2].done()
    delivery.finish()
    assert futures[2].done()
    assert futures[2].result(0) == RecordMetadata("birds", 2, 42, 1002, 2, -1)
    assert futures[1].exception(0) is None


def test_the_brokers_time_counts_where_it_is_the_logs() -> None:
    delivery = delivery_of(2)
    delivery.complete(7, 5000)
    delivery.finish()
    assert new_future(delivery, 1).result(0)[2:4] == (8, 5000)


def test_nobody_knows_the_offset_without_acks() -> None:
    delivery = delivery_of(1)
    delivery.complete(-1)
    delivery.finish()
    assert new_future(delivery, 0).result(0).offset == -1


def test_an_error_is_raised_as_a_new_one_each_time() -> None:
    delivery = failed_delivery(PLACE, NotLeaderOrFollowerError("gone"))
    future = new_future(delivery, 0)
    raised = []
    for _ in range(2):
        with pytest.raises(NotLeaderOrFollowerError, match="gone") as caught:
            future.result(0)
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert future.exception(0) is delivery.error(0)


def test_the_record_at_fault_has_its_own_error() -> None:
    delivery = delivery_of(2)
    delivery.fail(InvalidRecordError("another"), {1: InvalidRecordError("too old")})
    delivery.finish()
    assert [str(delivery.error(index)) for index in range(2)] == ["another", "too old"]


def test_a_result_is_waited_for_and_no_longer_than_asked() -> None:
    delivery = delivery_of(1)
    future = new_future(delivery, 0)
    with pytest.raises(KafkaTimeoutError):
        future.result(0.01)
    results: list[int] = []
    waiting = threading.Thread(target=lambda: results.append(future.result(60).offset))
    waiting.start()
    delivery.complete(5)
    delivery.finish()
    waiting.join(60)
    assert results == [5]


def test_the_first_outcome_counts() -> None:
    delivery = delivery_of(1)
    delivery.fail(KafkaError("late"))
    delivery.complete(3)
    delivery.finish()
    assert delivery.error(0) is not None


def test_callbacks_come_in_order_and_none_stops_the_next() -> None:
    delivery = delivery_of(3)
    seen: list[object] = []

    def fails(metadata: RecordMetadata, error: KafkaError | None) -> None:
        seen.append("fails")
        raise ValueError

    delivery.call_back(0, fails)
    delivery.call_back(2, lambda metadata, error: seen.append((metadata.offset, error)))
    new_future(delivery, 1).add_done_callback(lambda future: seen.append(future.result(0).offset))
    delivery.complete(10)
    delivery.finish()
    assert seen == ["fails", (12, None), 11]
    new_future(delivery, 0).add_done_callback(lambda _: seen.append("now"))
    assert seen[-1] == "now"


def test_a_split_moves_results_callbacks_and_who_waits() -> None:
    whole = delivery_of(5)
    seen: list[int] = []
    for index in (1, 4):
        whole.call_back(index, lambda metadata, error: seen.append(metadata.offset))
    future: SendFuture = new_future(whole, 4)
    listened: list[int] = []
    future.add_done_callback(lambda one: listened.append(one.result(0).offset))
    results: list[RecordMetadata] = []
    waiting = threading.Thread(target=lambda: results.append(future.result(60)))
    waiting.start()
    parts = [Delivery(PLACE), Delivery(PLACE)]
    whole.split([0, 3], parts)
    for part, offset in zip(parts, (100, 200), strict=True):
        part.complete(offset)
        part.finish()
    waiting.join(60)
    assert results == [RecordMetadata("birds", 2, 201, 1004, 4, -1)]
    assert (seen, listened) == ([101, 201], [201])
    assert new_future(whole, 2).result(0).offset == 102
    whole.wait_whole(lambda: 0.0)


def test_it_can_be_awaited() -> None:
    async def body() -> int:
        delivery = delivery_of(1)
        loop = asyncio.get_running_loop()

        def complete() -> None:
            delivery.complete(9)
            delivery.finish()

        loop.run_in_executor(None, complete)
        first = await new_future(delivery, 0)
        again = await new_future(delivery, 0)
        return first.offset + again.offset

    assert asyncio.run(body()) == 18


def test_an_awaited_error_is_raised() -> None:
    async def body() -> None:
        await new_future(failed_delivery(PLACE, KafkaError("no")), 0)

    with pytest.raises(KafkaError, match="no"):
        asyncio.run(body())


def test_times_far_apart_are_kept_and_survive_a_split() -> None:
    """More than 31 bits of milliseconds between the records of a batch."""
    whole = ProducerBatch(PLACE, BatchWriter(BytesIO(), 10_000), 0, 0.0)
    times_ms = [10**12, 10**12 - 5, 10**12 + 2**40, 0]
    futures = [whole.put(time_ms, b"k", b"value", (), None) for time_ms in times_ms]
    whole.writer.seal()
    whole.writer.stamp()
    parts = split_batch(whole, Codec.NONE, None)
    assert len(parts) > 1
    for part in parts:
        part.complete(0)
        part.finish()
    assert [future.result(0).timestamp_ms for future in futures if future is not None] == times_ms
    assert {future.result(0)[4:] for future in futures if future is not None} == {(1, 5)}


def test_all_who_wait_go_on_and_who_gave_up_leaves_nothing_behind() -> None:
    delivery = delivery_of(2)
    assert not delivery.wait(0.001)
    rare = delivery._rare
    assert rare is not None
    assert rare.latches == []
    results: list[RecordMetadata] = []
    futures = [new_future(delivery, index % 2) for index in range(4)]
    threads = [threading.Thread(target=lambda each=future: results.append(each.result(60))) for future in futures]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(rare.latches) == 4, 60, "they do not wait")
    delivery.complete(5)
    delivery.finish()
    for thread in threads:
        thread.join(60)
    assert sorted(result.offset for result in results) == [5, 5, 6, 6]
    assert rare.latches == []
