"""Programs that keep locks in callbacks, end threads in them, fork, pause for long, and fill their memory slowly."""

import asyncio
import os
import signal
import threading
import time
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from types import MappingProxyType
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.api_errors import KafkaError, KafkaTimeoutError, UsedAfterForkError
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.interceptors import Interceptors, ProducerInterceptor, ProducerRecord
from kavka.client.producer import delivery as delivery_module
from kavka.client.producer.accumulator import AccumulatorSettings, RecordAccumulator
from kavka.client.producer.delivery import Delivery
from kavka.client.producer.errors import BufferExhaustedError, QueueFullError
from kavka.client.producer.send_future import new_future
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.records.appending import BatchWriter

PLACE = TopicPartition("birds", 0)


def cluster_of(partitions: int) -> Cluster:
    infos = {number: PartitionInfo(0, 0) for number in range(partitions)}
    topic = TopicInfo("birds", bytes(16), 0, False, MappingProxyType(infos))
    return Cluster(topics={"birds": topic}, version=1)


def delivery_of(count: int) -> Delivery:
    made = Delivery(PLACE)
    for index in range(count):
        made.note(1000 + index, index, -1)
    return made


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, ValueError])
def test_whatever_a_callback_raises_the_others_are_told(error: type[BaseException]) -> None:
    delivery = delivery_of(2)
    told: list[str] = []

    def raising(*_: Any) -> None:
        raise error("of the callback's own")

    delivery.call_back(0, raising)
    delivery.call_back(1, lambda metadata, error: told.append("second"))
    future = new_future(delivery, 0)
    future.add_done_callback(raising)
    future.add_done_callback(lambda _: told.append("done"))
    delivery.complete(7)
    delivery.finish()
    assert told == ["second", "done"]
    assert future.result(0).offset == 7


@pytest.mark.parametrize("error", [asyncio.CancelledError, ValueError])
def test_an_interceptor_that_raises_keeps_nobody_from_being_told(error: type[BaseException]) -> None:
    class Raising(ProducerInterceptor):
        def on_acknowledgement(self, metadata: Any, _error: Exception | None) -> None:
            raise error("of the interceptor's own")

    told: list[str] = []
    with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=0, interceptor_classes=[Raising()]) as producer:
        producer.send("birds", b"x", on_delivery=lambda metadata, error: told.append(type(error).__name__))
    assert told == [KafkaTimeoutError.__name__]


def test_a_child_forked_while_results_were_being_told_tells_its_own() -> None:
    with delivery_module._RARE:
        child = os.fork()
        if child == 0:
            # Beside it there is no other thread, to let go of what was held.
            own = delivery_of(1)
            own.complete(1)
            ended = threading.Thread(target=own.finish, daemon=True)
            ended.start()
            ended.join(60)
            os._exit(0 if own.is_done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_does_not_wait_for_records_of_its_parent() -> None:
    waiting, done = delivery_of(1), delivery_of(1)
    done.complete(5)
    done.finish()
    child = os.fork()
    if child == 0:
        outcomes = []
        for call in (new_future(waiting, 0).result, lambda: new_future(waiting, 0).add_done_callback(print)):
            try:
                call()
            except UsedAfterForkError:
                outcomes.append(True)
        os._exit(0 if outcomes == [True, True] and new_future(done, 0).result().offset == 5 else 1)
    for _ in range(400):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        threading.Event().wait(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError("it waits for ever")
    assert os.waitstatus_to_exitcode(status) == 0


class Closing(ProducerInterceptor):
    """Counts what it is told."""

    def __init__(self) -> None:
        self.errors: list[Exception | None] = []
        self.closed = 0

    def on_acknowledgement(self, _metadata: Any, error: Exception | None) -> None:
        self.errors.append(error)

    def close(self) -> None:
        self.closed += 1


class Forgetful(ProducerInterceptor):
    """Looks at records, and gives none back."""

    def on_send(self, record: Any) -> Any:
        pass

    def on_consume(self, records: Any) -> Any:
        pass


def test_an_interceptor_that_gives_nothing_back_changes_nothing() -> None:
    record = ProducerRecord("birds", b"x")
    chain = Interceptors([Forgetful(), Forgetful()])
    assert chain.on_send(record) is record
    assert chain.on_consume([1]) == [1]


def test_what_a_setting_named_is_closed_once() -> None:
    interceptor = Closing()
    with Producer(bootstrap_servers="127.0.0.1:1", interceptor_classes=[interceptor]) as producer:
        producer.close(0)
    assert interceptor.closed == 1


@pytest.mark.parametrize("wrong", [{"partition": -1}, {"timestamp_ms": -5}, {"headers": [(1, b"x")]}])
def test_interceptors_are_told_of_whatever_send_raises(wrong: dict[str, Any]) -> None:
    interceptor = Closing()
    with Producer(bootstrap_servers="127.0.0.1:1", interceptor_classes=[interceptor]) as producer:
        producer._metadata.cluster = cluster_of(1)
        with pytest.raises((ValueError, TypeError)) as caught:
            producer.send("birds", b"x", **wrong)
    assert interceptor.errors == [caught.value]


def test_a_callback_that_raises_at_once_is_no_failure_of_send() -> None:
    def raising(*_: Any) -> None:
        raise ValueError("of the callback's own")

    with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=0) as producer:
        future = producer.send("birds", b"x", on_delivery=raising)
        assert isinstance(future.exception(0), KafkaTimeoutError)


def test_who_waits_for_memory_has_what_lingers_sent() -> None:
    woken: list[float] = []
    settings = AccumulatorSettings(batch_size_bytes=1000, buffer_memory_bytes=2000, linger_ms=60_000)
    accumulator = RecordAccumulator(settings, lambda: time.monotonic() * 1000, lambda: woken.append(1))
    topic = accumulator.topic("birds", cluster_of(3))
    assert topic is not None

    def send(partition: int, wait_ms: float) -> None:
        deadline_ms = time.monotonic() * 1000 + wait_ms
        accumulator.append(topic, topic.queues[partition], 1, None, b"x", (), None, deadline_ms)

    send(0, 0)
    send(1, 0)
    # The client's thread has looked, and sleeps for as long as they linger.
    accumulator.sleeps_until_ms = 0
    woken.clear()
    with pytest.raises(BufferExhaustedError):
        send(2, 1)
    assert woken, "nobody sends what lingers, and who waits for its memory waits in vain"


def test_futures_keep_no_memory_that_counts_as_free() -> None:
    settings = AccumulatorSettings(batch_size_bytes=1000, buffer_memory_bytes=300_000, linger_ms=0)
    accumulator = RecordAccumulator(settings, lambda: 0.0, lambda: None)
    topic = accumulator.topic("birds", cluster_of(1))
    assert topic is not None
    tracemalloc.start()
    try:
        futures = []
        for _ in range(50):
            value = bytes(200_000)
            futures.append(accumulator.append(topic, topic.queues[0], 1, None, value, (), None, 0.0))
            batch = accumulator.take(topic.queues[0])
            batch.complete(0)
            accumulator.ended(batch)
        del value
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(future.done() for future in futures)
    assert kept < 1_000_000


def test_what_was_given_back_is_not_written() -> None:
    writer = BatchWriter(BytesIO(bytes(100)), 1000)
    assert writer.append(1, None, b"x")
    writer.seal()
    writer.release()
    assert writer.stream is None
    with pytest.raises(ValueError, match="given back"):
        writer.append(1, None, b"x")


class Cycling:
    """A partitioner that looks at the cluster."""

    def partition(self, topic: str, *rest: Any) -> int:
        cluster: Cluster = rest[4]
        return len(cluster.topics[topic].partitions) - 1


@pytest.fixture(params=["round_robin", "random", Cycling])
def choosing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Producer]:
    """A producer that knows a topic, whose thread has not begun."""
    made = Producer(bootstrap_servers="127.0.0.1:1", partitioner_class=request.param, max_block_ms=10_000)
    made._metadata.cluster = cluster_of(3)
    assert made._accumulator.topic("birds", made._metadata.cluster) is not None
    monkeypatch.setattr(made._thread, "start", lambda: None)
    yield made
    made.close(0)


@pytest.mark.parametrize("gone", [{}, {"birds": TopicInfo("birds", bytes(16), 5, False, {})}], ids=["idle", "trouble"])
def test_a_topic_that_metadata_lack_now_is_asked_for_before_a_partition_is_chosen(
    choosing: Producer, monkeypatch: pytest.MonkeyPatch, gone: dict[str, TopicInfo]
) -> None:
    metadata = choosing._metadata
    metadata.cluster = Cluster(topics=gone, version=2)

    def arrive(_version: int, _deadline_ms: float) -> bool:
        metadata.cluster = cluster_of(3)
        return True

    monkeypatch.setattr(metadata, "wait_for", arrive)
    assert 0 <= choosing.send("birds", b"x").delivery.topic_partition.partition < 3
    metadata.cluster = Cluster(topics=gone, version=4)
    assert len(choosing.partitions_for("birds")) == 3


@pytest.mark.parametrize("ways", [{"producer.type": "sync"}, {"queue.buffering.max.messages": 1}], ids=["sync", "full"])
def test_a_callback_that_sends_by_the_ways_of_0_8_does_not_wait_for_itself(
    ways: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer({"metadata.broker.list": "127.0.0.1:1", "producer.type": "async", **ways})
    try:
        producer._metadata.cluster = cluster_of(1)
        assert producer._accumulator.topic("birds", producer._metadata.cluster) is not None
        monkeypatch.setattr(producer._thread, "start", lambda: None)
        raised: list[BaseException] = []

        def in_callback() -> None:
            try:
                producer.send("birds", b"1")
                producer.send("birds", b"2")
            except KafkaError as error:
                raised.append(error)

        caller = threading.Thread(target=in_callback, daemon=True)
        producer._thread._thread = caller
        caller.start()
        caller.join(60)
        assert not caller.is_alive(), "it waits for itself"
        assert len(raised) == 1
        assert isinstance(raised[0], QueueFullError) or "callback" in str(raised[0])
    finally:
        producer._thread._thread = None
        producer.close(0)
