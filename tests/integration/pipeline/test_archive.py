"""The archive: a stream's rows are in the lake once, whoever was killed, and whatever was lost but the lake."""

import shutil
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from kavka.pipeline.lake.archive import ArchiveSink, archive_settings
from kavka.pipeline.lake.compact import Compaction
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.spark_paths import to_read
from kavka.pipeline.running.sink import SinkError
from kavka.pipeline.running.tables import Table
from tests.support.archiving import (
    DDL,
    archive,
    lake_hash,
    listed_hash,
    run_context,
    source_hash,
    write_source,
)
from tests.support.lakes import TOPIC, rows
from tests.support.processes import Process

TIMEOUT_S = 560


def _sink(lake: Path, **settings: object) -> ArchiveSink:
    return ArchiveSink(archive_settings(Table({"path": str(lake), **settings})))


def test_a_stream_is_archived_by_date_in_sorted_files(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "source", 3)
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        report = archive(spark, tmp_path / "source", tmp_path / "lake", tmp_path / "checkpoint")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    lake = Lake(tmp_path / "lake")
    assert lake_hash(tmp_path / "lake") == source_hash(tmp_path / "source") == listed_hash(tmp_path / "lake")
    assert lake.next_offsets() == {TOPIC: dict.fromkeys(range(3), 120)}
    assert {each.partition["date"] for each in lake.files()} == {"2024-10-04", "2024-10-05", "2024-10-06"}
    assert report.counters["rows_out"] == 360
    for each in lake.files():
        read = pyarrow.parquet.read_table(lake.path / each.path, columns=["topic", "partition", "offset"]).to_pylist()
        assert [list(row.values()) for row in read] == sorted(list(row.values()) for row in read)


def test_a_path_may_have_any_name_and_a_folder_any_value(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "Über all, 100% [x]{y} #1"
    sites = ["a", "b/c:d=e", "ü" * 300, "ü" * 299, "%" * 60, "x" * 150, "x" * 151, "", None]
    columns = "topic string, partition int, offset long, timestamp timestamp, site string"
    moment = datetime(2024, 10, 4, tzinfo=UTC)
    batch = spark.createDataFrame([(TOPIC, 0, offset, moment, site) for offset, site in enumerate(sites)], columns)
    sink = _sink(lake, partition_by=["site"])
    sink.open(run_context(spark, tmp_path / "checkpoint", "query"))
    try:
        sink.write(batch, 0)
    finally:
        sink.close()

    found = Lake(lake)
    assert found.to_arrow().sort_by("offset")["site"].to_pylist() == sites
    folders = {str(each.partition["by_site"]) for each in found.files()}
    assert folders >= {"a", "b/c:d=e", "x" * 150, "None"}
    assert sum("~" in folder for folder in folders) == 4
    assert sorted(tmp_path.iterdir()) == [lake]
    read = spark.read.parquet(*[to_read(lake / each.path) for each in found.files()])
    assert read.count() == len(sites)
    Compaction(lake, keep_hours=0).run()
    assert Lake(lake).to_arrow().sort_by("offset")["site"].to_pylist() == sites


def test_values_that_nobody_meant_for_folders_do_not_stop_the_archive(spark: SparkSession, tmp_path: Path) -> None:
    reserved = "__HIVE_DEFAULT_PARTITION__"
    hostile = "CASE id WHEN 0 THEN X'80' WHEN 1 THEN X'81' WHEN 3 THEN '' WHEN 4 THEN 'a' WHEN 5 THEN X'6180' "
    more = f"WHEN 6 THEN '{reserved}' WHEN 7 THEN concat('é', X'80') WHEN 8 THEN X'6100' WHEN 9 THEN X'61EFBFBD'"
    values = f"CAST(CAST({hostile} {more} END AS BINARY) AS STRING)"
    columns = ["'visits' AS topic", "0 AS partition", "id AS offset", "timestamp_seconds(id) AS timestamp"]
    least = "timestamp_micros(CASE id WHEN 8 THEN -9223372036854775808 ELSE id - 1 END) AS seen"
    batch = spark.range(10).coalesce(1).selectExpr(*columns, f"{values} AS site", least)
    sink = _sink(tmp_path / "lake", partition_by=["site", "hour(seen)", "day(seen) as day"])
    sink.open(run_context(spark, tmp_path / "checkpoint", "query"))
    try:
        sink.write(batch, 0)
    finally:
        sink.close()

    found = Lake(tmp_path / "lake")
    sites = found.to_arrow().sort_by("offset")["site"].cast(pyarrow.binary()).to_pylist()
    first = [b"\x80", b"\x81", None, b"", b"a", b"a\x80", reserved.encode(), "é".encode() + b"\x80"]
    assert sites == [*first, b"a\0", "a\ufffd".encode()]
    folders = Counter(each.partition["by_site"] for each in found.files() for _ in range(each.rows))
    assert sorted(folders.values()) == [1, 1, 1, 1, 2, 2, 2]
    assert {None, "a", "a\ufffd", "\ufffd"} <= folders.keys()
    assert {each.partition["day"] for each in found.files()} == {"1969-12-31", "1970-01-01", "-290308-12-21"}
    assert {each.partition["hour"] for each in found.files()} == {"1969-12-31-23", "1970-01-01-00", "-290308-12-21-19"}


def test_a_lost_checkpoint_brings_no_row_twice(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "source", 3)
    archive(spark, tmp_path / "source", tmp_path / "lake", tmp_path / "first")
    write_source(tmp_path / "more", 5)
    shutil.rmtree(tmp_path / "first")

    report = archive(spark, tmp_path / "more", tmp_path / "lake", tmp_path / "second", files_per_batch=2)

    assert lake_hash(tmp_path / "lake") == source_hash(tmp_path / "more") == listed_hash(tmp_path / "lake")
    assert report.counters["rows_out"] == 240


def test_a_batch_that_comes_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sink = _sink(tmp_path / "lake")
    sink.open(run_context(spark, tmp_path / "checkpoint", "query"))
    batch = spark.createDataFrame(
        [(TOPIC, 0, each, rows([each])["timestamp"][0].as_py(), b"v") for each in (0, 1)], DDL
    )
    sink.write(batch, 7)
    sink.write(batch, 7)

    assert [(each.query, each.batch) for each in Lake(tmp_path / "lake").commits()] == [("query", 7)]
    with pytest.raises(SinkError, match="offset 0 of visits-0 comes in batch 8"):
        sink.write(batch, 8)
    sink.close()
    assert Lake(tmp_path / "lake").next_offsets() == {TOPIC: {0: 2}}


def test_a_second_query_is_told_who_has_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    first, second = _sink(tmp_path / "lake"), _sink(tmp_path / "lake")
    first.open(run_context(spark, tmp_path / "checkpoint", "query-1"))

    with pytest.raises(SinkError, match=r"written by query query-1 of job job, sink archive, process [0-9]+ on "):
        second.open(run_context(spark, tmp_path / "checkpoint", "query-2"))
    first.close()
    second.open(run_context(spark, tmp_path / "checkpoint", "query-2"))
    second.close()


def test_a_killed_driver_leaves_whole_batches_and_the_next_run_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    source, lake, checkpoint = (tmp_path / name for name in ("source", "lake", "checkpoint"))
    write_source(source, 3)
    command = [
        sys.executable,
        "-m",
        "tests.support.archiving",
        str(source),
        str(lake),
        str(checkpoint),
        "renaming",
        "3",
    ]
    process = Process(command, tmp_path / "driver.log")
    try:
        assert process.wait(TIMEOUT_S) == -9, process.log_text()[-3000:]
    finally:
        process.kill()

    assert Lake(lake).next_offsets() == {TOPIC: dict.fromkeys(range(3), 40)}
    archive(spark, source, lake, checkpoint)

    assert lake_hash(lake) == source_hash(source) == listed_hash(lake)
