"""The sinks of jobs over batches of Spark: what they send is exact, also when they die and a batch comes again."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from kavka.pipeline.jobs import dead_letters
from kavka.pipeline.jobs.aggregate import LATE_SENT, SAVED, SPLIT, AggregateSink
from kavka.pipeline.jobs.join import sink as join_sink
from kavka.pipeline.jobs.lake_join import CHOSEN, LakeJoinSink
from kavka.pipeline.jobs.topic_join import SAVED as NOTED
from kavka.pipeline.jobs.topic_join import WAITING_SAVED, TopicJoinSink
from kavka.pipeline.jobs.windows import micros
from kavka.pipeline.lake.archive import ArchiveSink, archive_settings
from kavka.pipeline.lake.compact import Compaction
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.spark_reading import read_lake
from kavka.pipeline.running.sink import Sink, SinkError
from kavka.pipeline.running.tables import Table
from kavka.pipeline.sending import topic_sink
from kavka.pipeline.sending.steps import COMMITTED, MARKED, PLANNED, WRITTEN
from kavka.storage.files import AnyPath, Files
from kavka.testing import Broker
from kavka.testing.rows import Records
from tests.support.job_runs import Reports, run_of
from tests.support.sample_lake import sample_lake

FIRST_S = 1_700_000_000 - 1_700_000_000 % 3600
SCHEMA = (
    "topic string, partition int, offset long, timestamp timestamp, key binary, value binary, seconds long, site string"
)
Visit = tuple[int, str]
"""Seconds after the first, site."""


class DiedError(Exception):
    """The sink was to die here."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "2", "log.retention.ms": "-1"}) as broker:
        yield broker


def visits(spark: SparkSession, first_offset: int, found: list[Visit | None], topic: str = "visits") -> DataFrame:
    """A batch with the event time in column `time`; None: a visit without a time."""
    rows = [
        (topic, 0, first_offset + number, None, b"k", b"v%d" % (first_offset + number), *(each or (None, "nowhere")))
        for number, each in enumerate(found)
    ]
    df = spark.createDataFrame(rows, SCHEMA)
    time = f"timestamp_seconds({FIRST_S} + seconds)"
    return df.selectExpr("*", f"{time} AS time").selectExpr("* EXCEPT (seconds, timestamp)", "time AS timestamp")


def dying_at_each(*steps: str) -> Callable[[str], None]:
    """Dies at the first of the steps, and then at the next one, and so on."""
    left = list(steps)

    def on_step(done: str) -> None:
        if left and left[0] == done:
            del left[0]
            raise DiedError(done)

    return on_step


class NotingFiles(Files):
    """Knows which files and folders were made durable."""

    def __init__(self) -> None:
        super().__init__()
        self.durable: set[Path] = set()

    def fsync_file(self, path: AnyPath) -> None:
        super().fsync_file(path)
        self.durable.add(Path(os.fsdecode(path)))

    def fsync_directory(self, path: AnyPath) -> None:
        super().fsync_directory(path)
        self.durable.add(Path(os.fsdecode(path)))


def written(made: Callable[[], Sink], run: Any, batches: list[DataFrame]) -> None:
    """All batches in their order; one that fails comes again to a sink of its own, as after a crash."""
    for batch_id, batch in enumerate(batches):
        for _ in range(9):
            sink = made()
            sink.open(run)
            try:
                sink.write(batch, batch_id)
                break
            except DiedError:
                continue
            finally:
                sink.close()


def last_values(records: Records) -> dict[str, Any]:
    return {(each.key or b"").decode(): each.json for each in records}


def hour(number: int, minute: int = 0) -> str:
    return datetime.fromtimestamp(FIRST_S + 3600 * number + 60 * minute, UTC).isoformat().replace("+00:00", "Z")


def test_aggregates_equal_a_recomputation_and_late_rows_are_kept(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = "hourly"
    table: dict[str, object] = {"topic": topic, "time": "time", "window": "1h", "delay": "10m", "by": ["site"]}
    table["measures"] = {"visits": "count", "latest": "max(offset)"}
    batches: list[list[Visit | None]] = [
        [(10, "a"), (20, "b"), (3700, "a")],
        # The watermark is at 3100 s here: the first window is open still.
        [(30, "a"), (7400, "b"), None],
        # And now at 6800 s: it is closed.
        [(40, "a"), (3800, "b"), (7300, "a")],
    ]
    frames, first = [], 0
    for batch in batches:
        frames.append(visits(spark, first, batch))
        first += len(batch)
    reports = Reports()
    on_step = dying_at_each(SPLIT, SAVED, LATE_SENT, MARKED, COMMITTED)
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "aggregate", reports)
    written(lambda: AggregateSink(Table(table), on_step), run, frames)
    in_time = [(number, each) for number, each in enumerate(chain(*batches)) if each and (number, each[0]) != (6, 40)]
    counts = Counter((each[0] // 3600, each[1]) for _, each in in_time)
    found = last_values(broker.records(topic, committed=True))
    assert {(each["window_start"], each["site"]): each["visits"] for each in found.values()} == {
        (hour(start), site): count for (start, site), count in counts.items()
    }
    assert found[json.dumps({"window_start": hour(0), "site": "a"}, separators=(",", ":"))]["latest"] == 3
    late = broker.records(f"{topic}-late", committed=True)
    assert sorted((each.value, dict(each.headers)["kavka.reason"]) for each in late) == [
        (b"v5", b"without event time"),
        (b"v6", b"late"),
    ]
    assert reports.counted["late_rows"] == 2
    assert sum(counts.values()) + len(late) == first


def test_overlapping_windows_count_a_row_in_each(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    table = {"topic": "sliding", "time": "time", "window": "1h", "slide": "30m", "by": []}
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "sliding", Reports())
    written(lambda: AggregateSink(Table(table)), run, [visits(spark, 0, [(1900, "a"), (3600, "a")])])
    found = last_values(broker.records("sliding", committed=True))
    assert {each["window_start"]: each["count"] for each in found.values()} == {
        hour(0): 1,
        hour(0, 30): 2,
        hour(1): 1,
    }


def test_groups_may_be_intervals_as_far_as_arrow_has_them(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    batches = [visits(spark, 2 * number, [(10, "a"), (20, "b")]) for number in range(2)]
    stay = "make_dt_interval(0, IF(site = 'a', 1, 30)) AS stay"
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "stays", Reports())
    table = {"topic": "stays", "time": "time", "window": "1h", "by": ["stay"]}
    written(lambda: AggregateSink(Table(table)), run, [batch.selectExpr("*", stay) for batch in batches])
    found = last_values(broker.records("stays", committed=True))
    assert {each["stay"]: each["count"] for each in found.values()} == {"1:00:00": 2, "1 day, 6:00:00": 2}
    sink = AggregateSink(Table({**table, "topic": "ages", "by": ["age"]}))
    sink.open(run)
    with pytest.raises(SinkError, match="by: age is of type interval year to month: make a text of it"):
        sink.write(batches[0].selectExpr("*", "make_ym_interval(1, 2) AS age"), 2)


def test_no_value_of_a_record_stops_an_aggregate(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("hostile", configs={"message.timestamp.after.max.ms": "3600000", "cleanup.policy": "compact"})
    ahead = 4 * 10**9 - FIRST_S
    batch = visits(spark, 0, [(10, "a"), (20, "b"), (30, "c"), (ahead, "d")])
    texts = {"a": "repeat(char(1), 900000)", "b": "CAST(X'80' AS STRING)", "c": r"'\\x80'", "d": "'plain'"}
    cases = " ".join(f"WHEN '{site}' THEN {text}" for site, text in texts.items())
    number = "CASE site WHEN 'a' THEN 'none' WHEN 'b' THEN 'NaN' ELSE '2' END AS number"
    rows = batch.selectExpr("*", f"CASE site {cases} END AS text", number)
    table: dict[str, object] = {"topic": "hostile", "time": "time", "window": "1h", "by": ["text", "bytes"]}
    table["measures"] = {"most": "max(text)", "all": "sum(number)", "mean": "avg(number)"}
    run = run_of(spark, tmp_path / "by", broker.bootstrap_servers, "hostile", Reports())
    run.directory.mkdir()
    written(lambda: AggregateSink(Table(table)), run, [rows.selectExpr("*", "CAST(text AS BINARY) AS bytes")])
    records = broker.records("hostile", committed=True)
    assert len({each.key for each in records}) == 4
    assert all(len(each.value or b"") < 100_000 for each in records)
    ends = {each.json["text"][-4:]: (each.json["all"], each.json["mean"]) for each in records}
    assert ends["lain"] == ends["\\x80"] == (2.0, 2.0)
    assert sorted(map(str, ends.values())) == ["('NaN', 'NaN')", "(2.0, 2.0)", "(2.0, 2.0)", "(None, None)"]


def test_late_rows_are_letters_whatever_their_key_value_and_time_were_made(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    table: dict[str, object] = {"topic": "made", "time": "time", "window": "1h"}
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "made", Reports())
    columns = ["struct(site) AS key", "offset / 2D AS value", "'never' AS timestamp"]
    batch = visits(spark, 0, [(10, "a"), None]).selectExpr("* EXCEPT (key, value, timestamp)", *columns)
    written(lambda: AggregateSink(Table(table)), run, [batch])
    (late,) = broker.records("made-late", committed=True)
    assert (late.key, late.value) == (b'{"site":"nowhere"}', b"0.5")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("string", "'2026-11-23 10:00:00', 'never'"),
        ("double", "1.7e9D, double('NaN')"),
        ("date", "DATE'2026-11-23', date_from_unix_date(2147483647)"),
    ],
)
def test_what_is_no_time_is_late(spark: SparkSession, kind: str, values: str) -> None:
    rows = spark.sql(f"SELECT explode(array({values})) AS at")
    assert dict(rows.dtypes)["at"] == kind
    found = [row[0] is None for row in rows.select(micros(rows, "at")).collect()]
    assert found == [False, True]


def test_two_topics_are_joined_by_time_and_each_pair_comes_once(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = "pairs"
    table = {"topic": topic, "left": "orders", "right": "paid", "on": ["site"], "time": "time", "within": "10m"}
    first = visits(spark, 0, [(0, "a"), (100, "b")], "orders").union(visits(spark, 0, [(300, "a")], "paid"))
    second = visits(spark, 2, [(900, "a")], "orders").union(visits(spark, 1, [(650, "b"), (1000, "b")], "paid"))
    third = visits(spark, 3, [(1400, "b"), (10, "a")], "orders")
    reports = Reports()
    dying = dying_at_each(WAITING_SAVED, NOTED, PLANNED, WRITTEN)
    run = run_of(spark, tmp_path, broker.bootstrap_servers, topic, reports)
    directory, files = run.directory, NotingFiles()

    def on_step(done: str) -> None:
        if done == WAITING_SAVED:
            waiting = max(directory.glob("waiting-*"))
            assert {waiting.parent, waiting, *waiting.iterdir()} <= files.durable
        dying(done)

    written(lambda: TopicJoinSink(Table(table), on_step, files), run, [first, second, third])
    found = broker.records(topic, committed=True)
    assert sorted((each.key, each.json["left"]["site"], each.timestamp_ms // 1000 - FIRST_S) for each in found) == [
        (b"a", "a", 300),
        (b"a", "a", 900),
        (b"b", "b", 650),
        (b"b", "b", 1400),
    ]
    assert broker.records(f"{topic}-late", committed=True).values == [b"v4"]
    assert reports.counted["late_rows"] == 1


def test_rows_are_joined_with_the_newest_of_their_keys_in_a_lake(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    sample_lake(tmp_path / "lake", [range(4), range(4, 9)], partitions=1)
    batch = visits(spark, 0, [(0, "key-1"), (1, "key-2"), (2, "stranger")]).withColumnRenamed("site", "name")
    settings = {"topic": "known", "lake": str(tmp_path / "lake"), "on": ["name"], "lake_columns": ["visit"]}
    _name_columns(tmp_path / "lake")
    broker.create_topic("known", 1)
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "known", Reports())
    written(lambda: join_sink(settings), run, [batch])
    found = {each.json["name"]: each.json["visit"] for each in broker.records("known", committed=True)}
    assert found == {"key-1": "0-7", "key-2": "0-8", "stranger": None}


def test_a_lake_may_have_wider_columns_and_be_compacted_while_a_batch_is_joined_with_it(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    sink = ArchiveSink(archive_settings(Table({"path": str(lake)})))
    sink.open(run_of(spark, tmp_path / "archive", "", "archive", Reports()))
    for batch_id, number in enumerate(("CAST(1 AS INT)", "2199023255552", "CAST(3 AS BIGINT)")):
        rows = visits(spark, batch_id, [(batch_id, f"site-{batch_id}")], "sites")
        sink.write(rows.selectExpr("*", f"{number} AS rank"), batch_id)
    sink.close()
    files = [each.path for each in Lake(lake).files()]

    def compacted_and_dead(step: str) -> None:
        if step == CHOSEN and [each.path for each in Lake(lake).files()] == files:
            Compaction(lake, keep_hours=0).run()
            raise DiedError(step)

    broker.create_topic("ranked", 1)
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "ranked", Reports())
    table = {"topic": "ranked", "lake": str(lake), "on": ["site"], "lake_columns": ["rank"]}
    batch = visits(spark, 0, [(number, f"site-{number}") for number in range(3)])
    written(lambda: LakeJoinSink(Table(table), compacted_and_dead), run, [batch])
    assert not (lake / files[1]).exists()
    found = {each.json["site"]: each.json["rank"] for each in broker.records("ranked", committed=True)}
    assert found == {"site-0": 1, "site-1": 2199023255552, "site-2": 3}
    shown = read_lake(spark, Lake(lake))
    assert shown is not None
    assert [row["rank"] for row in shown.orderBy("offset").collect()] == [1, 2199023255552, 3]


def _name_columns(lake: Path) -> None:
    """Give the lake's rows decoded columns: key and value as text."""
    for path in lake.glob("data/*/*.parquet"):
        table = pyarrow.parquet.read_table(path, partitioning=None)
        decoded = table.append_column("name", table.column("key").cast("string"))
        pyarrow.parquet.write_table(decoded.append_column("visit", table.column("value").cast("string")), path)


def test_a_job_sends_rows_and_its_dead_letters(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("sent", "dead")
    reports = Reports()
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "topic", reports)
    batch = visits(spark, 0, [(0, "a"), (1, "b")])
    sent = {"topic": "sent", "key": "site", "json": ["site", "offset"], "client": {"compression.type": "lz4"}}
    written(lambda: topic_sink.sink(sent), run, [batch, batch])
    assert [(each.key, each.json) for each in broker.records("sent", committed=True)][:2] == [
        (b"a", {"site": "a", "offset": 0}),
        (b"b", {"site": "b", "offset": 1}),
    ]
    bad = batch.selectExpr("*", "concat('no ', site) AS reason")
    written(lambda: dead_letters.sink({"topic": "dead"}), run, [bad])
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    assert [
        (each.reason, each.source_offset, each.job, each.value) for each in dead_letters.show(settings, "dead")
    ] == [
        ("no a", 0, "visits", b"v0"),
        ("no b", 1, "visits", b"v1"),
    ]
    assert reports.counted == {"rows_out": 4, "dead_letters": 2}


def test_a_letter_that_is_too_long_says_where_it_lies(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("cut")
    most = 1_048_588 - 100
    lengths = f"CASE offset WHEN 0 THEN repeat('x', {most}) WHEN 1 THEN repeat('y', 900000) ELSE 'z' END AS BINARY"
    long_headers = f"array(struct('h' AS key, CAST(repeat('x', {most}) AS BINARY) AS value))"
    columns = [f"CAST({lengths}) AS value", f"IF(offset = 2, {long_headers}, NULL) AS headers", "'bad' AS reason"]
    batch = visits(spark, 0, [(0, "a"), (1, "b"), (2, "c")]).selectExpr("* EXCEPT (value)", *columns)
    run = run_of(spark, tmp_path, broker.bootstrap_servers, "cut", Reports())
    written(lambda: dead_letters.sink({"topic": "cut"}), run, [batch])
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    found = {each.source_offset: each for each in dead_letters.show(settings, "cut")}
    assert {each: found[each].is_cut for each in found} == {0: True, 1: False, 2: True}
    assert (found[0].value, found[1].value, found[2].headers) == (None, b"y" * 900_000, ())
    assert (found[0].reason, found[0].source_topic, found[0].source_partition) == ("bad", "visits", 0)
    broker.create_topic("visits-again")
    assert dead_letters.retry(settings, "cut", target="visits-again") == dead_letters.Retried(1, 2)
