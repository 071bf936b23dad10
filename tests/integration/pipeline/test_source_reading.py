"""What an executor reads of a range, without Spark: it ends by position, and what is gone is said."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kavka.client import Producer
from kavka.client.api_errors import KafkaTimeoutError
from kavka.client.consumer.consumer import Consumer
from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source import range_reading
from kavka.pipeline.source.broker_logs import BrokerLogs
from kavka.pipeline.source.consumer_pool import ConsumerPool
from kavka.pipeline.source.errors import DataLossError, NoProgressError, OptionError, PathUnseenError
from kavka.pipeline.source.file_reading import rows as file_rows
from kavka.pipeline.source.logs import log_bounds
from kavka.pipeline.source.offsets import OffsetRange
from kavka.pipeline.source.range_reading import parts_by_bytes, rows
from kavka.pipeline.source.read_options import ReadOptions, read_options
from kavka.pipeline.source.subscription import Subscription
from kavka.testing import Broker
from tests.support.processes import wait_until

COMMITTED = {"kafka.isolation.level": "read_committed"}
UNCOMMITTED = {"kafka.isolation.level": "read_uncommitted"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"message.max.bytes": "20000000", "log.cleaner.backoff.ms": "50", "log.retention.ms": "-1"}
    with Broker(settings) as broker:
        yield broker


def options(broker: Broker, topic: str, **given: str) -> ReadOptions:
    named = {name.replace("_", ".").lower(): value for name, value in given.items()}
    return read_options({"bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, **named}, streaming=False)


def table(broker: Broker, offsets: OffsetRange, **given: str) -> list[dict[str, Any]]:
    batches = list(rows(offsets, options(broker, offsets.topic, **given)))
    return [row for batch in batches for row in batch.to_pylist()]


def put(broker: Broker, topic: str, values: list[bytes | None], **settings: str) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, **settings}) as producer:
        for value in values:
            producer.send(topic, value, partition=0)


def ends(broker: Broker, topic: str) -> tuple[int, int]:
    """The last stable offset, and the log's end. Of transactions that have ended the markers are there."""
    broker.records(topic, committed=True)
    logs = BrokerLogs({"bootstrap.servers": broker.bootstrap_servers}, is_committed=True)
    try:
        one = [TopicPartition(topic, 0)]
        return logs.end_offsets(one)[one[0]], logs.log_ends(one)[one[0]]
    finally:
        logs.close()


def test_a_range_has_its_offsets_and_no_others(broker: Broker) -> None:
    broker.create_topic("plain")
    put(broker, "plain", [b"%d" % number for number in range(1000)], **{"batch.size": "500"})

    for start, end in ((0, 1000), (1, 2), (17, 501), (999, 1000)):
        found = table(broker, OffsetRange("plain", 0, start, end))
        assert [row["offset"] for row in found] == list(range(start, end))
        assert [row["value"] for row in found] == [b"%d" % number for number in range(start, end)]


def test_aborted_records_and_markers_are_no_rows_and_no_reason_to_wait(broker: Broker) -> None:
    broker.create_topic("transactions")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"}
    with Producer(settings) as producer:
        producer.init_transactions()
        for number, commits in enumerate((True, False, True, False)):
            producer.begin_transaction()
            for _ in range(5):
                producer.send("transactions", b"%d" % number, partition=0)
            # What was not sent when it is aborted never is.
            producer.flush()
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        whole = OffsetRange("transactions", 0, 0, ends(broker, "transactions")[1])

        found = table(broker, whole)

        # Four transactions with a marker each; the last five rows and the last marker are behind the last row.
        assert whole.end == 24
        assert [row["value"] for row in found] == [b"0"] * 5 + [b"2"] * 5
        assert [row["offset"] for row in found] == [*range(5), *range(12, 17)]
        assert table(broker, whole._replace(start=6, end=12)) == []
        assert len(table(broker, whole, **UNCOMMITTED)) == 20

        producer.begin_transaction()
        producer.send("transactions", b"open", partition=0)
        producer.flush()
        assert ends(broker, "transactions") == (24, 25)
        assert table(broker, OffsetRange("transactions", 0, 24, 25), **UNCOMMITTED)[0]["value"] == b"open"
        producer.abort_transaction()


def test_compacted_records_are_passed_over(broker: Broker) -> None:
    broker.create_topic(
        "compacted",
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": "2000",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": "100",
        },
    )
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.size": "0"}) as producer:
        for number in range(400):
            producer.send("compacted", b"%d" % number, b"%d" % (number % 5), partition=0)
        producer.flush()
    whole = OffsetRange("compacted", 0, 0, 400)

    def found() -> list[int]:
        return [row["offset"] for row in table(broker, whole)]

    wait_until(lambda: len(found()) < 200, 120, "the cleaner has not been there")
    kept = found()
    assert kept[-1] == 399
    assert kept[0] > 0
    assert table(broker, whole._replace(end=kept[0])) == []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(broker: Broker, codec: str) -> None:
    broker.create_topic(codec)
    values: list[bytes | None] = [b"x" * number for number in range(300)]
    values[7] = None
    put(broker, codec, values, **{"compression.type": codec})

    assert [row["value"] for row in table(broker, OffsetRange(codec, 0, 0, 300))] == values


def test_large_rows_come_in_batches_that_are_not_much_larger(broker: Broker) -> None:
    broker.create_topic("large")
    values: list[bytes | None] = [bytes([number]) * 10_000_000 for number in range(4)]
    put(broker, "large", [*values, None, b""], **{"max.request.size": "20000000", "buffer.memory": "100000000"})

    batches = list(rows(OffsetRange("large", 0, 0, 6), options(broker, "large", columns="value")))

    assert [row["value"] for batch in batches for row in batch.to_pylist()] == [*values, None, b""]
    assert max(batch.nbytes for batch in batches) < 21_000_000


def test_the_columns_are_those_wanted(broker: Broker) -> None:
    broker.create_topic("columns")
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.send("columns", b"v", b"k", 0, 1_700_000_000_123, [("h", b"1"), ("h", None)])
        producer.flush()
    one = OffsetRange("columns", 0, 0, 1)

    (row,) = table(broker, one, columns="headers,timestamp,partition")

    assert list(row) == ["headers", "timestamp", "partition"]
    assert row["headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    assert row["timestamp"].isoformat() == "2023-11-14T22:13:20.123000+00:00"


def test_records_that_are_gone_end_the_read_or_are_left_out(broker: Broker) -> None:
    broker.create_topic("gone")
    put(broker, "gone", [b"x"] * 100)
    broker.admin.delete_records({TopicPartition("gone", 0): 40})

    with pytest.raises(DataLossError, match="gone-0 begins at 40 by now"):
        table(broker, OffsetRange("gone", 0, 30, 100))
    lenient = {"failOnDataLoss": "false"}
    assert [row["offset"] for row in table(broker, OffsetRange("gone", 0, 30, 50), **lenient)] == list(range(40, 50))
    assert table(broker, OffsetRange("gone", 0, 0, 40), **lenient) == []
    with pytest.raises(DataLossError, match="gone-0 has no offset 500"):
        table(broker, OffsetRange("gone", 0, 500, 501))
    assert table(broker, OffsetRange("gone", 0, 500, 501), **lenient) == []


def test_a_topic_that_is_deleted_under_a_read_ends_it(broker: Broker) -> None:
    for fails in (True, False):
        topic = f"deleted-{fails}"
        broker.create_topic(topic)
        put(broker, topic, [b"x"] * 10)
        # One offset more than there is: it waits behind the last record.
        read = rows(OffsetRange(topic, 0, 0, 11), options(broker, topic, failOnDataLoss=str(fails)))
        assert next(read).num_rows == 10
        broker.admin.delete_topics([topic])
        if fails:
            with pytest.raises(DataLossError, match="the topic is gone"):
                next(read)
        else:
            assert list(read) == []


def test_a_broker_that_does_not_know_the_topic_yet_takes_no_records(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("unknown-yet")
    put(broker, "unknown-yet", [b"x"] * 10)
    there = TopicPartition("unknown-yet", 0)
    written, unknown = 10, 0

    def list_topics(consumer: Consumer, timeout_ms: float | None = None) -> dict[str, object]:
        """As a broker answers that has just started, and is told of its topics then; and so once more.

        It does not answer while records are on their way, however long that takes.
        """
        nonlocal written, unknown
        if consumer.position(there) < written:
            raise KafkaTimeoutError("records are on their way")
        unknown += 1
        if unknown % 2 == 0:
            written += 1
            put(broker, "unknown-yet", [b"x"])
        return {}

    monkeypatch.setattr(Consumer, "list_topics", list_topics)
    monkeypatch.setattr(range_reading, "LOOK_AROUND_MS", 0)
    read = rows(OffsetRange("unknown-yet", 0, 0, 12), options(broker, "unknown-yet", failOnDataLoss="false"))
    assert sum(batch.num_rows for batch in read) == 12
    assert unknown == 4


def test_a_range_that_nothing_comes_of_is_an_error(broker: Broker) -> None:
    broker.create_topic("silent")
    given = {"kafkaConsumer.pollTimeoutMs": "300"}

    with pytest.raises(NoProgressError, match=r"silent-0 \[0, 5\): nothing came from offset 0 on for 300 ms"):
        table(broker, OffsetRange("silent", 0, 0, 5), **given)


def test_an_empty_topic_and_a_pattern_have_their_partitions(broker: Broker) -> None:
    broker.create_topics("empty-a", "empty-b", partitions=2)
    logs = BrokerLogs({"bootstrap.servers": broker.bootstrap_servers}, is_committed=True)
    try:
        found = logs.partitions(Subscription(pattern="empty-.*"))
        assert found == [TopicPartition(name, number) for name in ("empty-a", "empty-b") for number in (0, 1)]
        assert set(logs.end_offsets(found).values()) == {0}
        assert logs.offsets_at(dict.fromkeys(found, 5)) == dict.fromkeys(found, None)
        assert logs.partitions(Subscription(names=("empty-a", "nowhere"))) == found[:2]
        assert logs.partitions(Subscription(assigned=(TopicPartition("empty-a", 7), found[1]))) == [found[1]]
    finally:
        logs.close()


def test_segment_files_have_the_same_rows(broker: Broker) -> None:
    broker.create_topic("files")
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "f"}) as producer:
        producer.init_transactions()
        for commits in (True, False, True):
            producer.begin_transaction()
            for number in range(100):
                headers = [("h", b"1")] if number % 2 else []
                producer.send("files", b"%d" % number, None, 0, 1_700_000_000_000 + number, headers)
            producer.flush()
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    path = str(broker.hosted.directory)
    whole = OffsetRange("files", 0, 0, ends(broker, "files")[0])

    for given in ({}, UNCOMMITTED, {"columns": "headers,offset"}):
        over_tcp = list(rows(whole, options(broker, "files", includeHeaders="true", **given)))
        given = {**given, "path": path, "includeHeaders": "true"}
        from_files = list(file_rows(whole, options(broker, "files", **given)))
        assert pa.Table.from_batches(from_files).equals(pa.Table.from_batches(over_tcp))
    logs = log_bounds(read_options({"path": path, "subscribepattern": "fil.s"}, streaming=False))
    one = TopicPartition("files", 0)
    assert logs.partitions(Subscription(pattern="fil.s")) == [one]
    assert logs.first_offsets([one]) == {one: 0}
    # As the files say it: the broker writes its high watermark down every five seconds.
    wait_until(lambda: logs.log_ends([one]) == {one: 303}, 120, lambda: f"{logs.log_ends([one])}")
    assert logs.sizes_bytes([one])[one] > 1000
    with pytest.raises(OptionError, match="times are looked up by brokers"):
        logs.offsets_at({one: 5})


def test_a_path_that_an_executor_does_not_see_is_said(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(PathUnseenError, match="does not see the path: files-0 is in none of"):
        list(file_rows(OffsetRange("files", 0, 0, 1), options(broker, "files", path=str(tmp_path))))


def test_sizes_are_those_of_the_logs(broker: Broker) -> None:
    broker.create_topic("sized")
    put(broker, "sized", [bytes(1000)] * 50)
    logs = BrokerLogs({"bootstrap.servers": broker.bootstrap_servers}, is_committed=True)
    try:
        (size,) = logs.sizes_bytes([TopicPartition("sized", 0)]).values()
        assert 50_000 <= size < 60_000
    finally:
        logs.close()


def test_consumers_are_kept_for_the_next_task_and_closed_when_there_are_too_many(broker: Broker) -> None:
    pool = ConsumerPool(most_idle=1)
    threads = threading.active_count()
    one = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "one"}
    with pool.borrowed(one) as first, pool.borrowed({**one, "client.id": "two"}) as other:
        first.list_topics()
        other.list_topics()
    with pool.borrowed(one) as again:
        assert again is first
        assert again.assignment() == frozenset()

    with pytest.raises(KeyError), pool.borrowed(one):
        raise KeyError
    with pool.borrowed(one) as third:
        assert third is not first
        third.list_topics()
    pool.close()
    wait_until(lambda: threading.active_count() <= threads, 60, "the consumers' threads have not ended")


def test_a_part_has_so_many_bytes_or_one_record(broker: Broker) -> None:
    broker.create_topic("parts")
    sizes = [10, 10, 10, 100, 5, 0, 5, 95, 1]
    put(broker, "parts", [bytes(size) for size in sizes])
    with ConsumerPool().borrowed(options(broker, "parts").consumer_settings) as consumer:
        partition = TopicPartition("parts", 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        (columns,) = consumer.poll_columns(60_000)
        found = [part.value_sizes.tolist() for part in parts_by_bytes(columns, 100)]

    assert [size for part in found for size in part] == sizes
    assert all(sum(part) <= 100 for part in found)
    assert found == [[10, 10, 10], [100], [5, 0, 5], [95, 1]]
