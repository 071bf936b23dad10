"""A consumer with partitions assigned by hand, against each broker: what it gives out, and where it begins."""

import inspect
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kavka.client.api_errors import InvalidGroupIdError, InvalidTopicError, KafkaTimeoutError
from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.errors import (
    ConcurrentUseError,
    FetchOutOfRangeError,
    RecordDeserializationError,
    WakeupError,
)
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.consumer.records import ConsumerRecord
from kavka.client.topic_partition import TopicPartition
from tests.support.consumer_state import Moment, explained
from tests.support.processes import wait_until

LONG_MS = 60_000


@contextmanager
def consumer(bootstrap: str, **settings: Any) -> Iterator[Consumer]:
    with Consumer(bootstrap_servers=bootstrap, **{"auto_offset_reset": "earliest"} | settings) as made:
        yield made


@pytest.fixture(autouse=True)
def _told_all(caplog: pytest.LogCaptureFixture) -> None:
    """What the client meets and gets over by itself is seen with a failure, too."""
    caplog.set_level(logging.DEBUG, "kavka.client")


@pytest.fixture
def partition(topic: str, bootstrap: str) -> TopicPartition:
    """A topic of two partitions; this is the first one."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(topic, 2, 1)])
    created[topic].result(60)
    return TopicPartition(topic, 0)


def produce(bootstrap: str, partition: TopicPartition, count: int, **settings: Any) -> None:
    """Values 0, 1, ... with keys, a header, and the number as timestamp."""
    refused: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        # Else it would look as if nobody could read them.
        if error is not None:
            refused.append(error)

    # In their order also where the leader of a topic that is new refuses the first ones for a moment.
    in_order = {"enable.idempotence": True, "linger.ms": 5}
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap} | in_order | settings)
    transactional = "transactional.id" in settings
    if transactional:
        producer.init_transactions(60)
        producer.begin_transaction()
    for number in range(count):
        producer.produce(
            partition.topic,
            b"%d" % number,
            None if number % 3 else b"key",
            partition.partition,
            timestamp=1_700_000_000_000 + number,
            headers=[("number", b"%d" % number)] if number % 2 else None,
            on_delivery=delivered,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert refused == []
    if transactional:
        producer.commit_transaction(60)


def read(reader: Consumer, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    while len(found) < count:
        began = Moment.now()
        records = reader.poll(LONG_MS)
        assert records, f"{len(found)} of {count}: {explained(reader, began)}"
        found += records
    assert len(found) == count
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_as_they_were_written(bootstrap: str, partition: TopicPartition, codec: str) -> None:
    produce(bootstrap, partition, 3_000, **{"compression.type": codec})
    with consumer(bootstrap) as reader:
        reader.assign([partition])
        records = read(reader, 3_000)
        assert [record.offset for record in records] == list(range(3_000))
        assert [record.value for record in records] == [b"%d" % number for number in range(3_000)]
        assert [record.key for record in records[:4]] == [b"key", None, None, b"key"]
        assert [record.timestamp_ms for record in records[:2]] == [1_700_000_000_000, 1_700_000_000_001]
        assert [record.headers for record in records[:2]] == [(), (("number", b"1"),)]
        assert reader.position(partition) == 3_000
        assert reader.current_lag(partition) == 0
        assert reader.current_lead(partition) == 3_000
        assert reader.metrics["records-consumed-total"] == 3_000
        assert reader.metrics["records-lag", {"topic": partition.topic, "partition": 0}] == 0


def test_columns_have_the_same_records(bootstrap: str, partition: TopicPartition) -> None:
    produce(bootstrap, partition, 5_000)
    with consumer(bootstrap) as reader:
        reader.assign([partition])
        values: list[bytes | None] = []
        offsets: list[int] = []
        while len(values) < 5_000:
            for columns in reader.poll_columns(LONG_MS):
                values += columns.values()
                offsets += columns.offsets.tolist()
                assert columns.timestamps_ms[0] == 1_700_000_000_000 + columns.offsets[0]
        assert offsets == list(range(5_000))
        assert values == [b"%d" % number for number in range(5_000)]


def test_seek_in_all_its_ways(bootstrap: str, partition: TopicPartition) -> None:
    produce(bootstrap, partition, 50)
    with consumer(bootstrap) as reader:
        reader.assign([partition])
        reader.seek(partition, 40)
        assert [record.offset for record in read(reader, 10)] == list(range(40, 50))
        reader.seek_to_beginning()
        assert reader.position(partition) == 0
        reader.seek_to_end([partition])
        assert reader.position(partition) == 50
        found = reader.seek_to_time({partition: 1_700_000_000_007})
        place = found[partition]
        assert place is not None
        assert (place.offset, reader.position(partition)) == (7, 7)
        reader.seek(partition, OffsetAndMetadata(48))
        assert len(read(reader, 2)) == 2
        with pytest.raises(ValueError, match="not assigned"):
            reader.seek(TopicPartition(partition.topic, 1), 0)
        with pytest.raises(ValueError, match="no offset -1"):
            reader.seek(partition, -1)


def test_offsets_for_times_and_ends(bootstrap: str, partition: TopicPartition) -> None:
    produce(bootstrap, partition, 20)
    other = TopicPartition(partition.topic, 1)
    with consumer(bootstrap) as reader:
        found = reader.offsets_for_times({partition: 1_700_000_000_011, other: 0})
        assert found[other] is None
        place = found[partition]
        assert place is not None
        assert (place.offset, place.timestamp_ms) == (11, 1_700_000_000_011)
        assert reader.offsets_for_times({partition: 1_800_000_000_000}) == {partition: None}
        assert reader.beginning_offsets([partition, other]) == {partition: 0, other: 0}
        assert reader.end_offsets([partition, other]) == {partition: 20, other: 0}
        assert list(reader.partitions_for(partition.topic)) == [0, 1]
        assert partition.topic in reader.list_topics()


def test_pause_keeps_what_was_fetched_and_other_partitions_go_on(bootstrap: str, partition: TopicPartition) -> None:
    other = TopicPartition(partition.topic, 1)
    for each in (partition, other):
        produce(bootstrap, each, 30)
    with consumer(bootstrap, max_poll_records=10) as reader:
        reader.assign([partition, other])
        first = reader.poll(LONG_MS)
        paused = first[0].topic_partition
        reader.pause([paused])
        assert reader.paused() == {paused}
        assert {record.topic_partition for record in read(reader, 30)} == {partition, other} - {paused}
        reader.resume([paused])
        assert [record.offset for record in read(reader, 30 - len(first))] == list(range(len(first), 30))


def test_only_committed_transactions_are_read_if_asked(bootstrap: str, partition: TopicPartition, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for value, commits in ((b"kept", True), (b"aborted", False), (b"kept too", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(60)
        (producer.commit_transaction if commits else producer.abort_transaction)(60)
    with consumer(bootstrap, isolation_level="read_committed") as reader:
        reader.assign([partition])
        assert [record.value for record in read(reader, 2)] == [b"kept", b"kept too"]
        assert reader.end_offsets([partition]) == {partition: 6}
    with consumer(bootstrap) as reader:
        reader.assign([partition])
        assert [record.value for record in read(reader, 3)] == [b"kept", b"aborted", b"kept too"]


def test_deserializers_make_keys_and_values_and_a_failure_stays_before_its_record(
    bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition, 6)

    def parsed(data: bytes) -> int:
        if data == b"4":
            raise ValueError("four")
        return int(data)

    with consumer(bootstrap, value_deserializer=parsed, key_deserializer=bytes.decode) as reader:
        reader.assign([partition])
        records = read(reader, 4)
        assert [record.value for record in records] == [0, 1, 2, 3]
        assert records[0].key == "key"
        for _ in range(2):
            with pytest.raises(RecordDeserializationError) as caught:
                reader.poll(LONG_MS)
            assert (caught.value.offset, caught.value.of_key) == (4, False)
        reader.seek(partition, 5)
        assert [record.value for record in read(reader, 1)] == [5]


def test_interceptors_see_records_before_the_user(bootstrap: str, partition: TopicPartition) -> None:
    produce(bootstrap, partition, 4)
    seen: list[int] = []

    class Noting:
        def on_consume(self, records: Any) -> Any:
            seen.append(len(records))
            return records

        def on_commit(self, offsets: Any) -> None:
            seen.append(-len(offsets))

    with consumer(bootstrap, interceptor_classes=[Noting], group_id=partition.topic) as reader:
        reader.assign([partition])
        read(reader, 4)
        reader.commit_sync()
    assert sum(each for each in seen if each > 0) == 4
    assert -1 in seen


def test_offsets_are_committed_for_a_group_without_members(bootstrap: str, partition: TopicPartition) -> None:
    produce(bootstrap, partition, 10)
    other = TopicPartition(partition.topic, 1)
    told: list[tuple[Any, Exception | None]] = []
    with consumer(bootstrap, group_id=partition.topic, enable_auto_commit=False, max_poll_records=4) as reader:
        reader.assign([partition])
        assert reader.committed([partition, other]) == {partition: None, other: None}
        read(reader, 4)
        reader.commit_sync()
        committed = reader.committed([partition])[partition]
        assert committed is not None
        assert committed.offset == 4
        reader.commit_async({partition: OffsetAndMetadata(6, None, "six")}, lambda *args: told.append(args))
        reader.commit_sync({other: OffsetAndMetadata(0)})
        assert [(offsets[partition].offset, error) for offsets, error in told] == [(6, None)]
    with consumer(bootstrap, group_id=partition.topic) as reader:
        reader.assign([partition])
        assert [record.offset for record in read(reader, 4)] == [6, 7, 8, 9]
    # Committed by close.
    with consumer(bootstrap, group_id=partition.topic) as reader:
        reader.assign([partition])
        assert reader.position(partition) == 10
    with consumer(bootstrap) as reader:
        with pytest.raises(InvalidGroupIdError):
            reader.commit_sync()
        with pytest.raises(InvalidGroupIdError):
            reader.subscribe([partition.topic])


def test_an_offset_that_is_not_there_is_raised_without_a_policy(bootstrap: str, partition: TopicPartition) -> None:
    produce(bootstrap, partition, 3)
    with consumer(bootstrap, auto_offset_reset="none") as reader:
        reader.assign([partition])
        reader.seek(partition, 1_000)
        with pytest.raises(FetchOutOfRangeError) as caught:
            reader.poll(LONG_MS)
        assert dict(caught.value.partitions) == {partition: 1_000}
        reader.seek(partition, 2)
        assert [record.offset for record in read(reader, 1)] == [2]


@pytest.mark.parametrize(("reset", "offset"), [("by_duration:P30000D", 0), ("by_duration:PT1S", 5), ("latest", 5)])
def test_it_begins_where_the_policy_says(bootstrap: str, partition: TopicPartition, reset: str, offset: int) -> None:
    produce(bootstrap, partition, 5)
    with consumer(bootstrap, auto_offset_reset=reset) as reader:
        reader.assign([partition])
        assert reader.position(partition) == offset


def test_wakeup_ends_a_wait_and_a_second_thread_is_refused(bootstrap: str, partition: TopicPartition) -> None:
    raised: list[Exception] = []
    polling = threading.Event()
    with consumer(bootstrap) as reader:
        reader.assign([partition])

        def poll() -> None:
            polling.set()
            try:
                reader.poll(LONG_MS)
            except WakeupError as error:
                raised.append(error)

        thread = threading.Thread(target=poll)
        thread.start()
        polling.wait(60)
        refused = False
        while thread.is_alive() and not refused:
            try:
                reader.paused()
                reader.pause([])
            except ConcurrentUseError:
                refused = True
        assert refused
        reader.wakeup()
        thread.join(60)
        assert len(raised) == 1
        produce(bootstrap, partition, 1)
        assert len(read(reader, 1)) == 1


def test_iteration_goes_on_until_the_consumer_is_closed(bootstrap: str, partition: TopicPartition) -> None:
    produce(bootstrap, partition, 1_200)
    seen = 0
    with consumer(bootstrap) as reader:
        reader.assign([partition])
        for record in reader:
            assert record.offset == seen
            seen += 1
            if seen == 1_200:
                break
    assert list(reader) == []


def test_no_thread_and_no_connection_before_the_first_need_and_none_after_close(bootstrap: str, topic: str) -> None:
    before = {thread.name for thread in threading.enumerate()}
    reader = Consumer(bootstrap_servers=bootstrap, client_id=f"reader-of-{topic}")
    reader.assign([(topic, 0)])
    assert {thread.name for thread in threading.enumerate()} == before
    with pytest.raises(KafkaTimeoutError):
        reader.position(TopicPartition(topic, 0), timeout_ms=0)
    reader.close()
    reader.close()
    assert f"kavka-consumer-reader-of-{topic}" not in {thread.name for thread in threading.enumerate()}


def test_small_limits_change_nothing_but_the_number_of_fetches(bootstrap: str, partition: TopicPartition) -> None:
    other = TopicPartition(partition.topic, 1)
    for each in (partition, other):
        produce(bootstrap, each, 700)
    with consumer(bootstrap, max_partition_fetch_bytes=5_000, fetch_max_bytes=20_000, max_poll_records=97) as reader:
        reader.assign([partition, other])
        found = read(reader, 1_400)
        for number in range(2):
            mine = [record.offset for record in found if record.partition == number]
            assert mine == list(range(700))


def test_a_topic_that_is_made_anew_under_its_name_is_read_from_its_start(
    bootstrap: str, partition: TopicPartition
) -> None:
    produce(bootstrap, partition, 30)
    with consumer(bootstrap, metadata_max_age_ms=1_000, allow_auto_create_topics=False) as reader:
        reader.assign([partition])
        assert len(read(reader, 30)) == 30
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.delete_topics([partition.topic])[partition.topic].result(60)
        assert list(reader.poll(1_500)) == []

        def made() -> bool:
            try:
                new = NewTopic(partition.topic, 2, 1)
                admin.create_topics([new])[partition.topic].result(60)
            except confluent_kafka.KafkaException:
                # The former one is not quite gone.
                return False
            return True

        wait_until(made, 60, "not made anew")
        produce(bootstrap, partition, 3)
        assert [(record.offset, record.value) for record in read(reader, 3)] == [(0, b"0"), (1, b"1"), (2, b"2")]


def test_a_topic_that_nobody_may_name_is_an_error_of_poll(bootstrap: str) -> None:
    with consumer(bootstrap) as reader:
        reader.assign([("no topic has spaces", 0)])
        with pytest.raises(InvalidTopicError):
            reader.poll(LONG_MS)


def test_the_example_of_the_class_runs(
    bootstrap: str, partition: TopicPartition, capsys: pytest.CaptureFixture[str]
) -> None:
    produce(bootstrap, partition, 2)
    lines = inspect.getdoc(Consumer) or ""
    code = "\n".join(line[4:] for line in lines.splitlines() if line.startswith("    "))
    code = code.replace("localhost:9092", bootstrap).replace("visits", partition.topic)
    exec(code.replace("counting", partition.topic), {})
    assert capsys.readouterr().out.splitlines() == ["0 0 b'key' b'0'", "0 1 None b'1'"]
