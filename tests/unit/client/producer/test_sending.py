"""What `send` does with a record before it waits in a batch: interceptors, serializers, partitioners, and refusals."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.api_errors import ClientClosedError, KafkaError, KafkaTimeoutError, RecordTooLargeError
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.interceptors import ProducerInterceptor, ProducerRecord
from kavka.client.producer.delivery import RecordMetadata
from kavka.client.producer.send_future import SendFuture
from kavka.client.serialization import SerializationError
from kavka.config.errors import ConfigError
from kavka.protocol.records.batch import iter_records

SERVER = "127.0.0.1:1"
"""Nobody listens there."""
PARTITIONS = 4
made: list[Producer] = []


def producer(**settings: Any) -> Producer:
    """One that knows the topic birds."""
    new = Producer(bootstrap_servers=SERVER, max_block_ms=100, **settings)
    made.append(new)
    partitions = {number: PartitionInfo(0, 0) for number in range(PARTITIONS)}
    topic = TopicInfo("birds", bytes(16), 0, False, MappingProxyType(partitions))
    new._metadata.cluster = Cluster(topics={"birds": topic})
    assert new._accumulator.topic("birds", new._metadata.cluster) is not None
    return new


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while made:
        made.pop().close(0)


def record_of(future: SendFuture) -> Any:
    """The record as it lies in its batch."""
    writer = future.delivery.writer  # type: ignore[attr-defined]  # of its batch
    writer.seal()
    writer.stamp()
    return list(iter_records(writer.data))[future.index]


def test_bytes_go_as_they_are() -> None:
    future = producer().send("birds", b"v", b"k", partition=3, timestamp_ms=7, headers={"a": b"1"})
    record = record_of(future)
    assert (record.value, record.key, record.timestamp_ms, tuple(record.headers)) == (b"v", b"k", 7, (("a", b"1"),))
    assert future.delivery.topic_partition == ("birds", 3)
    assert record_of(producer().send("birds", bytearray(b"v"), memoryview(b"k")))[2:4] == (b"k", b"v")


def test_serializers_see_topic_and_headers() -> None:
    class Loud:
        def serialize(self, topic: str, headers: Any, value: Any) -> bytes:
            return f"{topic} {dict(headers)} {value}".encode()

    future = producer(value_serializer=Loud, key_serializer=str.encode).send("birds", 7, "k", headers=[("a", b"1")])
    assert record_of(future)[2:4] == (b"k", b"birds {'a': b'1'} 7")


def test_what_cannot_be_made_bytes_is_raised() -> None:
    with pytest.raises(SerializationError, match="str"):
        producer().send("birds", "text")
    with pytest.raises(SerializationError) as caught:
        producer(value_serializer=lambda value: 1 / value).send("birds", 0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


class Chained(ProducerInterceptor):
    """Adds its name; fails if it is told to."""

    seen: list[Any] = []

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self._name, self._fails = name, fails

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        if self._fails:
            raise ValueError(self._name)
        return record._replace(value=record.value + self._name.encode())

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        if self._fails:
            raise ValueError(self._name)
        self.seen.append((self._name, metadata.partition, type(error)))


def test_a_failing_interceptor_leaves_the_chain_going() -> None:
    Chained.seen.clear()
    chain = [Chained("a"), Chained("b", fails=True), Chained("c")]
    sender = producer(interceptor_classes=chain)

    def note(metadata: RecordMetadata, error: KafkaError | None) -> None:
        Chained.seen.append("callback")

    future = sender.send("birds", b"-", partition=1, on_delivery=note)
    assert record_of(future).value == b"-ac"
    sender.close(0)
    expected = [("a", 1, ClientClosedError), ("c", 1, ClientClosedError), "callback"]
    assert Chained.seen == expected


def test_interceptors_hear_of_what_could_not_even_be_sent() -> None:
    Chained.seen.clear()
    sender = producer(interceptor_classes=[Chained("a")], max_request_size=1000)
    assert isinstance(sender.send("birds", b"x" * 2000, partition=2).exception(0), RecordTooLargeError)
    with pytest.raises(SerializationError):
        sender.send("birds", b"", key="text")
    assert Chained.seen == [("a", 2, RecordTooLargeError), ("a", -1, SerializationError)]


def test_a_partitioner_sees_all_there_is() -> None:
    seen: list[Any] = []

    class Nosy:
        def partition(self, *arguments: Any) -> int:
            seen.append(arguments)
            return 2

    sender = producer(partitioner_class=Nosy, value_serializer=lambda value: b"%d" % value)
    future = sender.send("birds", 7, b"k", partition_key="pk")
    assert future.delivery.topic_partition.partition == 2
    assert seen == [("birds", b"k", b"k", 7, b"7", sender._metadata.cluster, "pk")]
    assert sender.send("birds", 7, partition=0).delivery.topic_partition.partition == 0


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="chose 9"):
        producer(partitioner_class=type("Far", (), {"partition": lambda *_: 9})).send("birds", b"")
    with pytest.raises(ValueError, match="negative"):
        producer().send("birds", b"", partition=-1)
    assert isinstance(producer().send("birds", b"", partition=PARTITIONS).exception(0), KafkaTimeoutError)


@pytest.mark.parametrize(("time_ms", "error"), [(-1, ValueError), (2**63, ValueError), (1.5, TypeError)])
def test_a_time_that_is_none_is_refused(time_ms: Any, error: type[Exception]) -> None:
    sender = producer()
    for headers in ((), [("a", b"")]):
        with pytest.raises(error):
            sender.send("birds", b"", timestamp_ms=time_ms, headers=headers)
    assert not sender._accumulator.incomplete


def test_headers_that_are_none_are_refused() -> None:
    with pytest.raises(TypeError):
        producer().send("birds", b"", headers=[(b"a", b"1")])  # type: ignore[list-item]  # what is tried
    with pytest.raises(TypeError):
        producer().send("birds", b"", headers={"a": "text"})  # type: ignore[dict-item]  # what is tried


def test_ignored_keys_do_not_choose() -> None:
    sender = producer(partitioner_ignore_keys=True)
    partitions = {sender.send("birds", b"", b"%d" % number).delivery.topic_partition.partition for number in range(50)}
    assert len(partitions) == 1


def test_a_full_batch_makes_room_on_another_partition() -> None:
    sender = producer(batch_size=1000)
    partitions = [sender.send("birds", b"x" * 90).delivery.topic_partition.partition for _ in range(40)]
    changes = [index for index in range(1, 40) if partitions[index] != partitions[index - 1]]
    assert changes == [10, 20, 30] or changes == list(range(changes[0], 40, changes[0]))


def test_nothing_is_sent_after_close() -> None:
    sender = producer()
    future = sender.send("birds", b"")
    sender.close(0)
    sender.close()
    assert isinstance(future.exception(0), ClientClosedError)
    for call in (lambda: sender.send("birds", b""), sender.flush, lambda: sender.partitions_for("birds")):
        with pytest.raises(ClientClosedError):
            call()


def test_many_are_sent_in_their_order() -> None:
    heard: list[Any] = []
    sender = producer(value_serializer=str.encode)
    words = [f"bird {number}" for number in range(50)]
    futures = sender.send_many("birds", iter(words), on_delivery=lambda metadata, error: heard.append(metadata))
    assert [record_of(future).value.decode() for future in futures] == words
    assert [future.index for future in futures] == list(range(50)), "of one batch, as they have no keys"
    assert sender.send_many("birds", []) == []
    sender.close(0)
    assert len(heard) == len(words)


def test_a_flush_whose_time_is_over_raises_and_leaves_the_records_on_their_way() -> None:
    sender = producer(linger_ms=60_000)
    future = sender.send("birds", b"kavka")
    for timeout_ms in (0, 30):
        with pytest.raises(KafkaTimeoutError):
            sender.flush(timeout_ms)
        assert not sender._accumulator.is_hurried, "what comes later lingers"
    assert not future.done()
    assert sender.metrics["flush-time-ns-total"] > 0
    sender.close(0)
    assert isinstance(future.exception(0), ClientClosedError)


def test_a_flush_without_records_does_not_wait() -> None:
    producer().flush(0)


def test_settings_that_cannot_be_are_named() -> None:
    with pytest.raises(ConfigError, match=r"linger\.ms"):
        Producer(bootstrap_servers=SERVER, linger_ms=-1)
    with pytest.raises(ConfigError, match=r"interceptor\.classes"):
        Producer(bootstrap_servers=SERVER, interceptor_classes="no.such.Class")
    with pytest.raises(ConfigError, match=r"partitioner\.class"):
        Producer(bootstrap_servers=SERVER, partitioner_class="no.such.Class")


def test_transactions_need_their_id() -> None:
    with pytest.raises(KafkaError, match=r"transactional\.id"):
        producer().begin_transaction()
