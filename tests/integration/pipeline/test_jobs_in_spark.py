"""What the jobs send by Spark: batches to topics exactly once, aggregates, joins, dead letters."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from kavka.client.producer.murmur2 import murmur2
from kavka.pipeline import WriteOptions, Written, write
from kavka.testing import Broker
from kavka.testing.rows import Row

FIRST_MS = 1_700_000_000_123


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}) as broker:
        yield broker


def test_a_batch_keeps_keys_places_times_headers_and_order_and_goes_once(spark: SparkSession, broker: Broker) -> None:
    topic = broker.create_topic("written", 3)
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    rows: list[tuple[object, ...]] = []
    for number in range(60):
        time = f"2026-11-23 10:00:{number:02d}.123456"
        key = None if number % 10 == 9 else b"key-%d" % (number % 7)
        value = None if number % 10 == 8 else b"%d" % number
        rows.append(("source", number % 2, 59 - number, time, key, value, [("n", b"%d" % number), ("none", None)]))
    df = rows_of(spark, rows)
    options = WriteOptions(topic=topic)
    assert write(df, 0, settings, query="copy", options=options) == Written(60, 60)
    assert write(df, 0, settings, query="copy", options=options) == Written(60, 0)
    found = broker.records(topic, committed=True)
    assert len(found) == 60
    for each in found:
        number = int(each.headers[0][1] or b"")
        expected = rows[number]
        assert (each.key, each.value) == (expected[4], expected[5])
        assert each.headers == (("n", b"%d" % number), ("none", None))
        assert each.timestamp_ms % 60_000 == number * 1000 + 123
        place = number % 2 if each.key is None else (murmur2(each.key) & 0x7FFF_FFFF) % 3
        assert each.partition == place
    for partition in range(3):
        numbers = [int(each.headers[0][1] or b"") for each in found.of(partition)]
        assert numbers == sorted(numbers, key=lambda number: (number % 2, 59 - number))


def rows_of(spark: SparkSession, rows: list[tuple[object, ...]]) -> DataFrame:
    schema = (
        "topic string, partition int, offset long, timestamp string, key binary, value binary, "
        "headers array<struct<key: string, value: binary>>"
    )
    df = spark.createDataFrame(rows, schema)
    return df.withColumn("timestamp", df["timestamp"].cast("timestamp"))


def test_a_query_copies_a_topic_partition_by_partition(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    source, target = broker.create_topic("original", 2), broker.create_topic("copied", 2)
    given = [Row(b"%d" % n, key=b"k", partition=n % 2, timestamp_ms=FIRST_MS + n) for n in range(40)]
    broker.produce(source, given)
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    options = WriteOptions(topic=target, partitions="source")
    written: list[Written] = []
    stream = spark.readStream.format("org.apache.spark.sql.kafka010.KafkaSourceProvider")
    visits = stream.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("subscribe", source)
    query = (
        visits.option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 20)
        .load()
        .writeStream.foreachBatch(lambda df, batch_id: written.append(write(df, batch_id, settings, options=options)))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert written == [Written(20, 20), Written(20, 20)]
    whole = [(each.partition, each.value, each.timestamp_ms) for each in broker.records(source)]
    assert [(each.partition, each.value, each.timestamp_ms) for each in broker.records(target, committed=True)] == whole
