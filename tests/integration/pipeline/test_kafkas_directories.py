"""Spark reads a log directory as Apache Kafka left it: the rows are those that Kafka's own tool prints."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.kafka_directory import extract_kafka_directory, kafkas_dump

RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -?\d+ headerKeys: \[(.*?)\]"
)
COMMITTED = ("read_committed", 1)
UNCOMMITTED = ("read_uncommitted", 0)


def printed() -> dict[tuple[str, int], list[tuple[Any, ...]]]:
    """By topic and partition what Kafka's tool says: offset, time, sizes of key and value, names of headers."""
    found: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    rows: list[tuple[Any, ...]] = []
    for line in kafkas_dump():
        if line.startswith("Dumping "):
            topic, _, partition = line.removeprefix("Dumping ").split("/")[0].rpartition("-")
            rows = found.setdefault((topic, int(partition)), [])
        elif (record := RECORD.match(line)) is not None and "endTxnMarker" not in line:
            *numbers, names = record.groups()
            rows.append((*map(int, numbers), names.split(",") if names else []))
    return found


@pytest.mark.parametrize(("level", "aborted"), [COMMITTED, UNCOMMITTED])
def test_rows_are_those_that_kafkas_own_tool_prints(
    spark: SparkSession, tmp_path: Path, level: str, aborted: int
) -> None:
    directory = extract_kafka_directory(tmp_path / "logs")
    given = {"path": str(directory), "subscribePattern": "visits|keyed.*", "includeHeaders": "true"}
    rows = spark.read.format("kavka").options(**given, **{"kafka.isolation.level": level}).load()
    found: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    columns = "topic", "partition", "offset", "unix_millis(timestamp)", "length(key)", "length(value)", "headers.key"
    for topic, partition, *row in rows.selectExpr(*columns).orderBy("topic", "partition", "offset").collect():
        offset, time_ms, key, value, names = row
        sizes = (-1 if key is None else key, -1 if value is None else value)
        found.setdefault((topic, partition), []).append((offset, time_ms, *sizes, names or []))
    expected = printed()
    assert {("visits", 0), ("visits", 1), ("keyed.table", 0)} == expected.keys()
    # The one record that its producer took back.
    expected["visits", 1] = [row for row in expected["visits", 1] if row[0] != 9 or not aborted]
    assert {place: found[place] for place in expected} == expected
    assert found.keys() - expected.keys() == {("visits", 2)}
