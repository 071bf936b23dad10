"""The schema stage in Spark: each batch decoded once, bad rows apart, an id waited for until the registry has it."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from kavka.pipeline.running.decided_ids import DecidedIds
from kavka.pipeline.running.sink import SinkError
from kavka.pipeline.schemas.decoding import SparkDecoder, decoder
from kavka.pipeline.schemas.settings import schema_settings
from tests.support.schema_values import avro

FIELDS: list[dict[str, Any]] = [
    {"name": "site", "type": "string"},
    {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": FIELDS,
}
NEWER = VISIT | {"fields": [*FIELDS, {"name": "hits", "type": "int", "default": 1}]}
ROWS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)


def rows(spark: SparkSession, *values: bytes | None) -> DataFrame:
    return spark.createDataFrame(
        [(None, value, "visits", 0, offset, None, 0) for offset, value in enumerate(values)], ROWS
    )


def register(folder: Path, version: int, schema: Any, schema_id: int) -> None:
    (folder / "visits-value").mkdir(exist_ok=True)
    document = {"id": schema_id, "schema": json.dumps(schema)}
    (folder / "visits-value" / f"{version}.json").write_text(json.dumps(document))


def test_fields_are_columns_and_bad_rows_keep_what_they_were(spark: SparkSession) -> None:
    stage = decoder({"format": "json", "fields": "site string, at timestamp, topic string, l array<struct<x: int>>"})
    value = b'{"site":"a","at":"2024-01-01T00:00:00Z","topic":"t","l":[{"x":1}]}'
    good, bad = stage.decode(rows(spark, value, b"{", None))
    try:
        assert good.columns == [
            *("key", "topic", "partition", "offset", "timestamp", "timestampType", "site", "at", "value_topic", "l"),
        ]
        found = good.orderBy("offset").select("offset", "topic", "value_topic", "site", "at", "l").collect()
        assert [row["offset"] for row in found] == [0, 2]
        whole = found[0].asDict(recursive=True)
        assert {name: whole[name] for name in ("topic", "value_topic", "site", "l")} == {
            "topic": "visits",
            "value_topic": "t",
            "site": "a",
            "l": [{"x": 1}],
        }
        assert found[0]["at"].isoformat().startswith("2024-01-01T00:00:00")
        assert found[1]["site"] is None
        (wrong,) = bad.collect()
        assert (bytes(wrong["value"]), wrong["topic"], wrong["offset"]) == (b"{", "visits", 1)
        assert wrong["reason"].startswith("value: no JSON")
        assert stage.bad_rows == 1
    finally:
        stage.release()


def test_a_batch_waits_for_an_id_and_goes_on_with_new_columns(spark: SparkSession, tmp_path: Path) -> None:
    register(tmp_path, 1, VISIT, 1)
    settings = {
        "format": "avro",
        "subject": "visits-value",
        "on_change": "evolve",
        "into": "visit",
        "registry": {"directory": str(tmp_path)},
    }
    waited: list[float] = []

    def comes_later(seconds: float) -> bool:
        waited.append(seconds)
        register(tmp_path, 2, NEWER, 2)
        return False

    stage = SparkDecoder(schema_settings(settings), comes_later)
    old = avro(VISIT, {"site": "a", "timestamp": 1000}, 1)
    new = avro(NEWER, {"site": "b", "timestamp": 2000, "hits": 5}, 2)
    try:
        good, bad = stage.decode(rows(spark, old, new, b"?"))
        found = good.orderBy("offset").select("visit.site").collect()
        assert ([row["site"] for row in found], waited) == (["a", "b"], [0.5])
        assert [row["offset"] for row in bad.collect()] == [2]
        assert stage.waits is not None
        assert (stage.waits.count, stage.waits.reason) == (1, None)
        good, _ = stage.decode(rows(spark, old, new))
        assert [row["hits"] for row in good.orderBy("offset").select("visit.hits").collect()] == [1, 5]
    finally:
        stage.release()
        stage.close()


def test_keys_and_values_wait_for_unknown_ids_each_as_it_is_told(spark: SparkSession, tmp_path: Path) -> None:
    register(tmp_path, 1, VISIT, 1)
    avro_of = {"format": "avro", "schema": json.dumps(VISIT), "on_change": "ignore"}
    keys = {"format": "avro", "schema": '"int"', "unknown_ids": "dead_letters"}
    waited: list[float] = []

    def comes_later(seconds: float) -> bool:
        waited.append(seconds)
        register(tmp_path, 2, NEWER, 2)
        return False

    settings = schema_settings({**avro_of, "key": keys, "registry": {"directory": str(tmp_path)}})
    stage = SparkDecoder(settings, comes_later)
    value = avro(NEWER, {"site": "b", "timestamp": 2000, "hits": 5}, 2)
    known = (None, value, "visits", 0, 0, None, 0)
    unknown = (avro("int", 5, 9), value, "visits", 0, 2, None, 0)
    try:
        good, bad = stage.decode(spark.createDataFrame([known, unknown], ROWS))
        assert ([row["site"] for row in good.collect()], waited) == (["b"], [0.5])
        (wrong,) = bad.collect()
        assert (wrong["offset"], wrong["reason"]) == (2, "key: the registry has no schema with id 9")
    finally:
        stage.release()
        stage.close()


def test_an_id_that_gets_known_between_two_queries_is_the_same_to_both(spark: SparkSession, tmp_path: Path) -> None:
    register(tmp_path, 1, VISIT, 1)
    avro_of = {"format": "avro", "schema": json.dumps(VISIT), "on_change": "ignore", "unknown_ids": "dead_letters"}
    settings = schema_settings({**avro_of, "registry": {"directory": str(tmp_path)}})
    old = avro(VISIT, {"site": "a", "timestamp": 1000}, 1)
    new = avro(NEWER, {"site": "b", "timestamp": 2000, "hits": 5}, 2)
    file = tmp_path / "ids.json"

    def offsets(values: list[bytes]) -> tuple[list[int], list[int]]:
        """Of a query's good rows and bad ones: each is a process of its own."""
        stage = SparkDecoder(settings)
        stage.decide_by(DecidedIds(file))
        try:
            good, bad = stage.decode(rows(spark, *values))
            return sorted(row["offset"] for row in good.collect()), sorted(row["offset"] for row in bad.collect())
        finally:
            stage.release()
            stage.close()

    assert offsets([old, new, old]) == ([0, 2], [1])
    register(tmp_path, 2, NEWER, 2)
    # The dead letters' query is later, and finds more: what was bad is, and what comes behind is not.
    assert offsets([old, new, old, new]) == ([0, 2, 3], [1])
    assert offsets([old, new, old, new, old]) == ([0, 2, 3, 4], [1])


def test_all_queries_of_a_run_read_by_the_schema_that_the_first_of_them_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    register(tmp_path, 1, VISIT, 1)
    ignores = {"format": "avro", "subject": "visits-value", "on_change": "ignore"}
    settings = schema_settings({**ignores, "registry": {"directory": str(tmp_path)}})
    decided, stages = DecidedIds(), [SparkDecoder(settings), SparkDecoder(settings)]
    other = {**VISIT, "fields": [{"name": "site", "type": "long"}]}
    values = [avro(VISIT, {"site": "a", "timestamp": 1000}, 1), avro(other, {"site": 7}, 2)]
    found = []
    for stage in stages:
        stage.decide_by(decided)
        try:
            stage.decode(rows(spark, values[0]))
            register(tmp_path, 2, other, 2)
            good, bad = stage.decode(rows(spark, *values))
            found.append(([row["offset"] for row in good.collect()], [row["offset"] for row in bad.collect()]))
        finally:
            stage.release()
            stage.close()
    assert found == [([0], [1])] * 2


def test_a_change_stops_the_job_where_it_is_to(spark: SparkSession, tmp_path: Path) -> None:
    register(tmp_path, 1, VISIT, 1)
    settings = {"format": "avro", "subject": "visits-value", "registry": {"directory": str(tmp_path)}}
    stage = decoder(settings)
    stage.decode(rows(spark, avro(VISIT, {"site": "a", "timestamp": 1000}, 1)))
    register(tmp_path, 2, NEWER, 2)
    with pytest.raises(SinkError, match="schema 2 has hits, which the job's has not"):
        stage.decode(rows(spark, avro(NEWER, {"site": "b", "timestamp": 2000, "hits": 5}, 2)))
