"""The data source in Spark: its rows and checkpoints are those of Spark's own, which reads the same topics."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kavka.client import Producer
from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.lake.archive import ArchiveSink, archive_settings
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.spark_paths import to_read
from kavka.pipeline.running.tables import Table
from kavka.testing import Broker
from tests.support.archiving import run_context
from tests.support.processes import wait_until
from tests.support.spark_session import in_spite_of_slowness

OWN, SPARKS = "kavka", "kafka"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # Records are older than the days that topics are kept for.
    with Broker({"message.max.bytes": "20000000", "log.retention.ms": "-1"}) as broker:
        yield broker


def options(broker: Broker, topic: str, **given: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, **given}


def read(spark: SparkSession, name: str, given: dict[str, str]) -> DataFrame:
    return spark.read.format(name).options(**given).load()


def run(spark: SparkSession, name: str, given: dict[str, str], folder: Path) -> None:
    """All there is by now, on to `folder/rows`."""
    rows = spark.readStream.format(name).options(**given).load()
    paths = {"path": str(folder / "rows"), "checkpointLocation": str(folder / "checkpoint")}
    finish(rows.writeStream.format("parquet").options(**paths))


def finish(query: DataStreamWriter) -> None:
    def once() -> None:
        query.trigger(availableNow=True).start().awaitTermination()

    in_spite_of_slowness(once)


def offsets_in(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(folder / "rows")).select("partition", "offset").collect()
    return sorted((row[0], row[1]) for row in rows)


def fingerprint(rows: DataFrame) -> tuple[Any, ...]:
    """Of all rows whatever their order, and of how their times are written in the session's time zone."""
    columns = ", ".join([*rows.columns, "CAST(timestamp AS STRING)"])
    return tuple(rows.selectExpr("COUNT(*)", f"SUM(CAST(XXHASH64({columns}) AS DECIMAL(38)))").first() or ())


def put(broker: Broker, topic: str, values: range, partitions: int) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for value in values:
            producer.send(topic, b"%d" % value, partition=value % partitions)


def fill(broker: Broker, topic: str) -> int:
    """Rows of each kind: null keys and values, headers, codecs, transactions; one partition stays empty. How many."""
    broker.create_topic(topic, 4)
    count = 0
    for partition, codec in enumerate(("gzip", "lz4", "zstd")):
        settings = {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
        with Producer({**settings, "transactional.id": codec, "max.request.size": "20000000"}) as producer:
            producer.init_transactions()
            for commits in (True, False, True):
                producer.begin_transaction()
                for number in range(300):
                    key = None if number % 3 else b"k%d" % number
                    value = None if number % 7 == 0 else b"v" * number
                    headers = [("h", b"%d" % number), ("h", None), ("ü", b"")] if number % 5 == 0 else []
                    producer.send(topic, value, key, partition, 1_700_000_000_000 + number * 1001, headers)
                producer.send(topic, os.urandom(1000) * 9000, None, partition)
                producer.flush()
                if commits:
                    producer.commit_transaction()
                    count += 301
                else:
                    producer.abort_transaction()
    return count


@pytest.fixture(scope="module")
def committed(broker: Broker) -> int:
    """How many rows of "all-kinds" are."""
    return fill(broker, "all-kinds")


def test_rows_are_those_of_sparks_own_source(spark: SparkSession, broker: Broker, committed: int) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        for level, count in (("read_committed", committed), ("read_uncommitted", committed * 3 // 2)):
            given = {"kafka.isolation.level": level, "includeHeaders": "true"}
            theirs = read(spark, SPARKS, options(broker, "all-kinds", **given))
            ours = read(spark, OWN, options(broker, "all-kinds", minPartitions="7", **given))
            assert ours.schema == theirs.schema
            assert fingerprint(ours) == fingerprint(theirs)
            assert fingerprint(ours)[0] == count
            path = str(broker.hosted.directory)
            assert fingerprint(read(spark, OWN, options(broker, "all-kinds", path=path, **given))) == fingerprint(ours)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_lake_has_what_is_committed_for_every_reader(
    spark: SparkSession, broker: Broker, committed: int, tmp_path: Path
) -> None:
    rows = read(spark, OWN, options(broker, "all-kinds", includeHeaders="true"))
    sink = ArchiveSink(archive_settings(Table({"path": str(tmp_path / "lake")})))
    sink.open(run_context(spark, tmp_path / "checkpoint", "query"))
    with closing(sink):
        sink.write(rows, 0)

    lake = Lake(tmp_path / "lake")
    whole = lake.to_arrow()
    assert whole.num_rows == committed
    places = {(row["partition"], row["offset"]) for row in whole.select(["partition", "offset"]).to_pylist()}
    assert len(places) == committed
    found = spark.read.parquet(*[to_read(lake.path / each.path) for each in lake.files()]).select(rows.columns)
    assert fingerprint(found) == fingerprint(rows)
    found.createOrReplaceTempView("archived")
    by_sql = spark.sql("SELECT COUNT(*), SUM(LENGTH(value)), COUNT(key) FROM archived").first()
    by_pandas = found.select("offset", "key").pandas_api()
    sizes = pyarrow.compute.sum(pyarrow.compute.binary_length(whole["value"])).as_py()
    keys = committed - whole["key"].null_count
    assert tuple(by_sql or ()) == (committed, sizes, keys)
    assert (len(by_pandas), int(by_pandas["key"].count())) == (committed, keys)


def test_a_query_changes_its_source_in_mid_life_and_back(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("switched", 3)
    given = options(broker, "switched", startingOffsets="earliest")

    for number, name in enumerate((SPARKS, OWN, SPARKS, OWN)):
        put(broker, "switched", range(number * 300, (number + 1) * 300), 3)
        limit = {"maxOffsetsPerTrigger": "200"} if number == 1 else {}
        run(spark, name, {**given, **limit}, tmp_path)

    assert offsets_in(spark, tmp_path) == [(partition, offset) for partition in range(3) for offset in range(400)]


def test_a_stream_goes_on_where_it_was_with_new_partitions_and_says_what_is_gone(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("growing")
    given = options(broker, "growing")
    # From the latest offset on: nothing yet.
    put(broker, "growing", range(10), 1)
    run(spark, OWN, given, tmp_path)
    put(broker, "growing", range(20), 1)
    broker.admin.create_partitions({"growing": 2})
    put(broker, "growing", range(20), 2)
    run(spark, OWN, given, tmp_path)
    seen = [(0, offset) for offset in range(10, 40)] + [(1, offset) for offset in range(10)]
    assert offsets_in(spark, tmp_path) == seen

    put(broker, "growing", range(20), 2)
    broker.admin.delete_records({TopicPartition("growing", 0): 45})
    with pytest.raises(PySparkException, match="growing-0 begins at 45 by now"):
        run(spark, OWN, given, tmp_path)
    run(spark, OWN, {**given, "failOnDataLoss": "false"}, tmp_path)
    seen += [(0, offset) for offset in range(45, 50)] + [(1, offset) for offset in range(10, 20)]
    assert offsets_in(spark, tmp_path) == sorted(seen)

    broker.admin.delete_topics(["growing"])
    broker.create_topic("growing", 2)
    with pytest.raises(PySparkException, match="ended at 50 and now ends at 0"):
        run(spark, OWN, given, tmp_path)


def test_filters_narrow_what_is_read_by_option_alone(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("filtered", 4)
    put(broker, "filtered", range(400), 4)
    given = options(broker, "filtered", pushdown="true")
    where = "partition = 2 AND offset >= 10 AND offset < 90 AND timestamp > TIMESTAMP '2020-01-01'"
    with pytest.raises(PySparkException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        read(spark, OWN, given).where(where).count()

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        ours = read(spark, OWN, given).where(where)
        assert ours.rdd.getNumPartitions() == 1
        assert ours.count() == 80
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_rows_are_written_with_their_times_and_headers(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    fill_in = options(broker, "copied", columns="key,value,timestamp,headers")
    broker.create_topic("copied")
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(50):
            value = None if number == 3 else b"%d" % number
            producer.send("copied", value, b"k", 0, 1_700_000_000_000 + number, [("h", b"x")])
    target = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "copies"}
    broker.create_topic("copies")

    rows = read(spark, OWN, fill_in)
    rows.write.format(OWN).options(**target).mode("append").save()
    stream = spark.readStream.format(OWN).options(**fill_in, startingOffsets="earliest").load()
    place = str(tmp_path / "checkpoint")
    finish(stream.writeStream.format(OWN).options(**target, checkpointLocation=place))

    columns = {"columns": "key,value,timestamp,headers"}
    written = read(spark, OWN, options(broker, "copies", **columns))
    assert fingerprint(written) == fingerprint(rows.union(rows))
    for wrong, said in (
        (rows.drop("value"), "rows are to have a column value"),
        (rows.withColumn("partition", rows["timestamp"]), "the column partition is to be int"),
    ):
        with pytest.raises(PySparkException, match=said):
            wrong.write.format(OWN).options(**target).mode("append").save()
    with pytest.raises(PySparkException, match="a topic cannot be overwritten"):
        rows.write.format(OWN).options(**target).mode("overwrite").save()


def test_what_is_wrong_is_said(spark: SparkSession, broker: Broker) -> None:
    for given, said in (
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"columns": "body"}, "there is no column body"),
        ({"subscribe": "nowhere"}, "there is no topic nowhere"),
    ):
        with pytest.raises(PySparkException, match=said):
            read(spark, OWN, {**options(broker, "all-kinds"), **given}).count()
    with pytest.raises(PySparkException, match="endingOffsets is for batch reads only"):
        run(spark, OWN, options(broker, "all-kinds", endingOffsets="latest"), Path("/nowhere"))


def python_workers() -> list[int]:
    """What Spark's Python daemon has forked for tasks."""
    children: dict[int, list[int]] = {}
    names: dict[int, bytes] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                names[int(folder.name)] = (folder / "cmdline").read_bytes()
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(folder.name))
    own: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        waiting += below
        own += below
    daemons = [each for each in own if b"pyspark.daemon" in names[each]]
    return [each for daemon in daemons for each in children.get(daemon, []) if each in daemons]


def test_a_read_is_whole_although_a_worker_is_killed(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("killed", 2)
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.size": "0"}) as producer:
        for number in range(4000):
            producer.send("killed", b"%d" % number, partition=number % 2)
    # A record a fetch: who is killed has read some of them.
    slow = {"kafka.max.partition.fetch.bytes": "1", "kafka.fetch.max.bytes": "1"}
    rows = read(spark, OWN, options(broker, "killed", columns="offset,partition", **slow))
    found: list[int] = []
    job = threading.Thread(target=lambda: found.append(rows.distinct().count()))
    faults = broker.faults
    # A hundred fetches pass; the next one waits until all is done here.
    passing = faults.delay("Fetch", delay_ms=0, times=100, topic="killed", partition=0)
    with passing, faults.delay("Fetch", delay_ms=600_000, topic="killed", partition=0) as held:
        job.start()
        wait_until(lambda: held.hits, 300, "no worker reads")
        for worker in python_workers():
            os.kill(worker, signal.SIGKILL)
        is_hit = job.is_alive()
    job.join(300)

    assert is_hit
    assert found == [4000]
