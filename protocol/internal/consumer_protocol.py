"""What consumers tell one another through a classic group: subscriptions in JoinGroup, assignments in SyncGroup.

    blob     0..1  version  i16; any version above the last known one begins like the last known one
             2..   body

v1 adds owned partitions (KIP-429) · v2 adds generation id · v3 adds rack id (KIP-881)

The bytes are clients': the broker reads them to know which topics a group is subscribed to, and to carry a group over
between the protocols. Whatever they hold, decoding ends in a value or a DecodeError.
"""

import struct
from typing import Final, TypeVar

from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import DecodeError
from kavka.protocol.schema import Buffer, Int32, NullableBytes, NullableString, Record, String, Struct, since

HIGHEST_VERSION: Final = 3
MAX_ELEMENTS: Final = 100_000
"""Topics and partitions' lists in one blob; ten times what a large cluster's consumers name."""


class TopicPartition(Struct):
    topic: String
    partitions: list[Int32]


class ConsumerProtocolSubscription(Record, versions="0-3"):
    topics: list[String]
    user_data: NullableBytes = None
    owned_partitions: list[TopicPartition] = since(1, ignorable=True)
    generation_id: Int32 = since(2, default=-1, ignorable=True)
    rack_id: NullableString = since(3, default=None, ignorable=True)


class ConsumerProtocolAssignment(Record, versions="0-3"):
    assigned_partitions: list[TopicPartition]
    user_data: NullableBytes = None


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = HIGHEST_VERSION) -> bytes:
    """The blob as a consumer sends it. Fields that the version lacks are left out."""
    return _I16.pack(version) + encode(subscription, version)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = HIGHEST_VERSION) -> bytes:
    """The blob as a group's leader sends it."""
    return _I16.pack(version) + encode(assignment, version)


def decode_subscription(data: Buffer) -> tuple[ConsumerProtocolSubscription, int]:
    """The subscription and the version it was read as. Raises DecodeError."""
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: Buffer) -> tuple[ConsumerProtocolAssignment, int]:
    """The assignment and the version it was read as. Raises DecodeError."""
    return _decode(ConsumerProtocolAssignment, data)


R = TypeVar("R", bound=Record)


def _decode(cls: type[R], data: Buffer) -> tuple[R, int]:
    if len(data) < _I16.size:
        raise DecodeError(f"{len(data)} bytes are too few for the consumer protocol")
    (version,) = _I16.unpack_from(data)
    if version < 0:
        raise DecodeError(f"version {version} of the consumer protocol")
    # Later versions only append, and Kafka itself leaves unread what follows the fields it knows.
    read_as = min(version, HIGHEST_VERSION)
    return decode(cls, read_as, data, _I16.size, max_elements=MAX_ELEMENTS, trailing=True), read_as


_I16: Final = struct.Struct(">h")
