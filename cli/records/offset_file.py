"""The file that says before which offsets records are deleted, as Kafka's DeleteRecordsCommand reads it.

    {"partitions": [{"topic": "visits", "partition": 0, "offset": 42}], "version": 1}

An offset of -1 is the end: all records that are there.
"""

import json
from pathlib import Path
from typing import Any, Final

from kavka.client.topic_partition import TopicPartition

MAX_BYTES: Final = 64 * 1024 * 1024
_KEYS: Final = ("topic", "partition", "offset")


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """The offsets by partition. Raises OSError, ValueError whose text says what is wrong."""
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    return parsed_offsets(path.read_bytes())


def parsed_offsets(data: bytes) -> dict[TopicPartition, int]:
    """The offsets that the bytes say. Raises ValueError."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("no JSON: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise ValueError('an object with "partitions", a list, is expected')
    if document.get("version", 1) != 1:
        raise ValueError(f"version {document['version']!r} is not known, 1 is")
    offsets: dict[TopicPartition, int] = {}
    for row in document["partitions"]:
        partition, offset = _row(row)
        if partition in offsets:
            raise ValueError(f"{partition} is there twice")
        offsets[partition] = offset
    if not offsets:
        raise ValueError("no partition is named")
    return offsets


def _row(row: Any) -> tuple[TopicPartition, int]:
    if not isinstance(row, dict) or any(key not in row for key in _KEYS):
        raise ValueError(f"each partition needs {', '.join(_KEYS)}; this has not: {json.dumps(row)[:80]}")
    topic, partition, offset = (row[key] for key in _KEYS)
    if not isinstance(topic, str) or type(partition) is not int or type(offset) is not int:
        raise ValueError(f"topic is text, partition and offset are numbers; here they are not: {json.dumps(row)[:80]}")
    if not 0 <= partition < 2**31 or not -1 <= offset < 2**63:
        raise ValueError(f"there is no such partition or offset: {json.dumps(row)[:80]}")
    return TopicPartition(topic, partition), offset
