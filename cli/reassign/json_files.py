"""Kafka's JSON of reassignments and of topics to move, as kafka-reassign-partitions.sh reads and writes it.

{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}
{"version":1,"topics":[{"topic":"orders"}]}
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kavka.cli.failing import Failure
from kavka.cli.reassign.placement import Assignment
from kavka.client.admin import TopicPartitionReplica
from kavka.client.topic_partition import TopicPartition

ANY_LOG_DIR: Final = "any"
VERSION: Final = 1
MOST_BYTES: Final = 256 * 1024 * 1024
"""A million partitions."""


class FileError(Failure):
    """A file that is no such JSON; the message says where it is wrong."""


class Reassignment(NamedTuple):
    """What a file asks for: new replicas, and the log directories of those that name one."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    log_dirs: dict[TopicPartitionReplica, str]


def read_reassignment(path: str) -> Reassignment:
    """Raises FileError, OSError."""
    return parse_reassignment(_text(path), path)


def read_topics(path: str) -> list[str]:
    """The names of the topics to move. Raises FileError, OSError."""
    return parse_topics(_text(path), path)


def parse_reassignment(text: str, name: str) -> Reassignment:
    """`name` is the file's, for messages. Raises FileError, where Kafka's tool refuses it too."""
    replicas: dict[TopicPartition, tuple[int, ...]] = {}
    log_dirs: dict[TopicPartitionReplica, str] = {}
    for row in _rows(text, name, "partitions"):
        partition = TopicPartition(_field(row, "topic", str, name), _field(row, "partition", int, name))
        if partition in replicas:
            raise FileError(f"{name}: {partition} is there twice")
        replicas[partition] = _brokers(row, partition, name)
        for broker_id, log_dir in zip(replicas[partition], _log_dirs(row, partition, name), strict=False):
            if log_dir != ANY_LOG_DIR:
                log_dirs[TopicPartitionReplica(*partition, broker_id)] = log_dir
    if not replicas:
        raise FileError(f"{name}: it names no partitions")
    return Reassignment(replicas, log_dirs)


def parse_topics(text: str, name: str) -> list[str]:
    """Raises FileError."""
    topics = [_field(row, "topic", str, name) for row in _rows(text, name, "topics")]
    doubled = sorted({topic for topic in topics if topics.count(topic) > 1})
    if doubled:
        raise FileError(f"{name}: topics are there twice: {', '.join(doubled)}")
    if not topics:
        raise FileError(f"{name}: it names no topics")
    return topics


def reassignment_text(replicas: Assignment, log_dirs: Mapping[TopicPartitionReplica, str] | None = None) -> str:
    """One line, by topic and partition, as Kafka's tool prints it."""
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "replicas": list(brokers),
            "log_dirs": [
                (log_dirs or {}).get(TopicPartitionReplica(topic, partition, each), ANY_LOG_DIR) for each in brokers
            ],
        }
        for (topic, partition), brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": VERSION, "partitions": rows}, separators=(",", ":"), ensure_ascii=False)


def _text(path: str) -> str:
    file = Path(path)
    if file.stat().st_size > MOST_BYTES:
        raise FileError(f"{path}: more than {MOST_BYTES} bytes are no reassignment")
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: no UTF-8 at byte {error.start}") from error


def _rows(text: str, name: str, key: str) -> Sequence[dict[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{name}: no JSON: {error}") from error
    if not isinstance(document, dict):
        raise FileError(f"{name}: a JSON object is expected")
    version = document.get("version", VERSION)
    if version != VERSION:
        raise FileError(f"{name}: version {version!r} is not known, only {VERSION}")
    rows = document.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FileError(f"{name}: {key} is to be a list of objects")
    return rows


def _field(row: Mapping[str, Any], key: str, kind: type[Any], name: str) -> Any:
    value = row.get(key)
    # true and false are numbers to Python.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FileError(f"{name}: {key} is to be {'a number' if kind is int else 'a text'}: {json.dumps(row)[:100]}")
    return value


def _brokers(row: Mapping[str, Any], partition: TopicPartition, name: str) -> tuple[int, ...]:
    brokers = row.get("replicas")
    if not isinstance(brokers, list) or not brokers or any(type(each) is not int for each in brokers):
        raise FileError(f"{name}: replicas of {partition} are to be a list of broker ids that is not empty")
    if len(set(brokers)) < len(brokers):
        raise FileError(f"{name}: replicas of {partition} name a broker twice")
    return tuple(brokers)


def _log_dirs(row: Mapping[str, Any], partition: TopicPartition, name: str) -> Sequence[str]:
    log_dirs = row.get("log_dirs")
    if log_dirs is None:
        return ()
    if not isinstance(log_dirs, list) or not all(isinstance(each, str) for each in log_dirs):
        raise FileError(f"{name}: log_dirs of {partition} are to be a list of texts")
    if len(log_dirs) != len(row["replicas"]):
        raise FileError(f"{name}: {partition} has {len(row['replicas'])} replicas and {len(log_dirs)} log_dirs")
    return log_dirs
