"""The sticky assignors' user data, byte for byte as Java's clients write and read them.

sticky             topics [ name string, partitions [ int32 ] ], generation int32 (since 2.3)
cooperative-sticky generation int32
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from kavka.client.consumer.group.assignors.assignor import NO_GENERATION
from kavka.client.topic_partition import TopicPartition


def encode_owned(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """The sticky assignor's user data."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    parts = [_INT32.pack(len(numbers))]
    for topic, each in numbers.items():
        name = topic.encode()
        parts.append(_INT16.pack(len(name)) + name + struct.pack(f">{len(each) + 1}i", len(each), *each))
    parts.append(_INT32.pack(generation))
    return b"".join(parts)


def decode_owned(data: bytes | None) -> tuple[Sequence[TopicPartition], int | None]:
    """What `encode_owned` wrote, or a client before 2.3: then there is no generation. Anything else is nothing."""
    if not data:
        return (), None
    try:
        partitions, position = _partitions(data)
        generation = _INT32.unpack_from(data, position)[0] if position < len(data) else None
    except (struct.error, UnicodeDecodeError):
        return (), None
    return partitions, generation


def encode_generation(generation: int) -> bytes:
    """The cooperative sticky assignor's user data."""
    return _INT32.pack(generation)


def decode_generation(data: bytes | None) -> int | None:
    """The generation in a member's user data; None where there are none, and no generation in anything else."""
    if data is None:
        return None
    return int(_INT32.unpack_from(data)[0]) if len(data) >= _INT32.size else NO_GENERATION


def _partitions(data: bytes) -> tuple[list[TopicPartition], int]:
    """Raises struct.error for lengths that lie: what is read must be there, so memory grows with `data` only."""
    (count,) = _INT32.unpack_from(data)
    position = _INT32.size
    found: list[TopicPartition] = []
    for _ in range(count):
        (length,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        if not 0 <= length <= len(data) - position:
            raise struct.error("a topic's length lies")
        topic = data[position : position + length].decode()
        position += length
        (numbers,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 <= numbers <= (len(data) - position) // _INT32.size:
            raise struct.error("a number of partitions lies")
        found += [TopicPartition(topic, number) for number in struct.unpack_from(f">{numbers}i", data, position)]
        position += numbers * _INT32.size
    return found, position


_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
