"""A read goes on while its broker deletes and compacts segments: over TCP, and from the very files."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.client import OffsetSpec, Producer
from kavka.client.admin.types.configs import AlterConfigOp, ConfigResource
from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source import file_reading, range_reading
from kavka.pipeline.source.errors import DataLossError
from kavka.pipeline.source.offsets import OffsetRange
from kavka.pipeline.source.read_options import read_options
from kavka.testing import Broker
from tests.support.processes import wait_until

RECORDS = 400
SEGMENTS = {"segment.bytes": "20000", "file.delete.delay.ms": "0"}
WAYS = ["brokers", "files"]
LONG_S = 120


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"log.retention.check.interval.ms": "100", "log.cleaner.backoff.ms": "50", "log.retention.ms": "-1"}
    with Broker(settings) as broker:
        yield broker


def filled(broker: Broker, topic: str, keys: int, **configs: str) -> None:
    """Records of a kilobyte, a batch each; so many keys."""
    broker.create_topic(topic, configs={**SEGMENTS, **configs})
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.size": "0"}) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d " % number + os.urandom(1000), b"%d" % (number % keys), 0)


def reading(broker: Broker, topic: str, way: str, *, fails: bool) -> Iterator[Any]:
    """All of the topic, a little at a time: a record a fetch, or a segment."""
    given = {"bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "failondataloss": str(fails)}
    slow = {"kafka.max.partition.fetch.bytes": "1", "kafka.fetch.max.bytes": "1", "columns": "offset,key,value"}
    path = {"path": str(broker.hosted.directory)} if way == "files" else {}
    options = read_options({**given, **slow, **path}, streaming=False)
    rows: Callable[..., Iterator[Any]] = file_reading.rows if way == "files" else range_reading.rows
    return rows(OffsetRange(topic, 0, 0, RECORDS), options)


def rows_of(batches: Iterator[Any]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def segments(broker: Broker, topic: str) -> list[Path]:
    return sorted((Path(broker.hosted.directory) / f"{topic}-0").glob("*.log"))


def retained(broker: Broker, topic: str) -> int:
    """Has retention take what lies before the last segments; the first offset that is left."""
    resource = ConfigResource.topic(topic)
    broker.admin.incremental_alter_configs({resource: [AlterConfigOp("retention.bytes", "60000")]})
    wait_until(lambda: len(segments(broker, topic)) < 6, LONG_S, "retention has not been there")
    first = broker.admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.EARLIEST})
    return first[TopicPartition(topic, 0)].offset


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fails", [True, False])
def test_retention_is_said_or_passed_over_and_no_record_comes_twice(broker: Broker, way: str, fails: bool) -> None:
    topic = f"retained-{way}-{fails}"
    filled(broker, topic, keys=RECORDS)
    read = reading(broker, topic, way, fails=fails)
    before = [row["offset"] for row in next(read).to_pylist()]
    first = retained(broker, topic)
    assert before[-1] < first - 1
    if fails:
        with pytest.raises(DataLossError, match="some records may be lost"):
            rows_of(read)
        return
    found = before + [row["offset"] for row in rows_of(read)]
    # What the reader had at hand when it was gone is no loss.
    assert found[: len(before)] == list(range(len(before)))
    assert found == sorted(set(found))
    assert set(found) >= set(range(first, RECORDS))
    assert len(found) < RECORDS


@pytest.mark.parametrize("way", WAYS)
def test_compaction_takes_no_keys_last_record_from_a_read(broker: Broker, way: str) -> None:
    topic = f"compacted-{way}"
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0", "min.compaction.lag.ms": "3600000"}
    filled(broker, topic, keys=7, **configs)
    read = reading(broker, topic, way, fails=True)
    before = next(read).to_pylist()
    size = sum(path.stat().st_size for path in segments(broker, topic))
    now = [AlterConfigOp("min.cleanable.dirty.ratio", "0.01"), AlterConfigOp("min.compaction.lag.ms", "0")]
    broker.admin.incremental_alter_configs({ConfigResource.topic(topic): now})

    def is_cleaned() -> bool:
        return sum(path.stat().st_size for path in segments(broker, topic)) < size / 4

    wait_until(is_cleaned, LONG_S, "the cleaner has not been there")
    found = before + rows_of(read)
    offsets = [row["offset"] for row in found]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < RECORDS
    last = {row["key"]: int(row["value"].split()[0]) for row in found}
    assert last == {b"%d" % (number % 7): number for number in range(RECORDS - 7, RECORDS)}
    assert all(int(row["value"].split()[0]) == row["offset"] for row in found)
