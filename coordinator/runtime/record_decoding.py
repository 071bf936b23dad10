"""Records of internal topics from their bytes, the common ones by hand.

A load decodes millions of offset commits, nearly all of few groups and topics: names are decoded once and shared, which
also keeps them in memory once. Everything else goes the general way.
"""

import struct
from typing import Final

from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.errors import DecodeError
from kavka.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue
from kavka.protocol.internal.record_codec import RecordTypes, decode_key, decode_value

MAX_NAMES: Final = 10_000
"""Pairs of group and topic that one load remembers; then it begins anew."""


class RecordDecoder:
    """Decodes one log's records. Owned by the thread that loads."""

    __slots__ = ("_has_commits", "_names", "_types")

    def __init__(self, types: RecordTypes) -> None:
        self._types = types
        self._has_commits = types.get(1, (None,))[0] is OffsetCommitKey
        self._names: dict[bytes, tuple[str, str]] = {}

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord:
        """The record. Raises UnknownRecordTypeError, DecodeError."""
        names = self._names.get(key[:-4])
        if names is None and self._has_commits and key[:2] in _COMMIT_KEYS:
            names = self._learn(key)
        if names is not None:
            record = _offset_commit(names, key, value)
            if record is not None:
                return record
        decoded_key, value_class = decode_key(self._types, key)
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        return CoordinatorRecord(decoded_key, *decode_value(value_class, value))

    def _learn(self, key: bytes) -> tuple[str, str] | None:
        """Group and topic of a key; None if it isn't exactly as long as it says."""
        try:
            decoded, _ = decode_key(self._types, key)
        except DecodeError:
            return None
        assert isinstance(decoded, OffsetCommitKey)
        sizes = (len(decoded.group.encode()), len(decoded.topic.encode()))
        if len(key) != 2 + 2 + sizes[0] + 2 + sizes[1] + 4:
            return None
        if len(self._names) >= MAX_NAMES:
            self._names.clear()
        names = self._names[key[:-4]] = (decoded.group, decoded.topic)
        return names


def _offset_commit(names: tuple[str, str], key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """None for a value of another version, or that is not whole: the general way says what is wrong with it."""
    decoded_key = _new_key(OffsetCommitKey)
    decoded_key.group, decoded_key.topic = names
    (decoded_key.partition,) = _unpack_partition(key, len(key) - 4)
    decoded_key.unknown_tagged_fields = ()
    if value is None:
        return _new_record(CoordinatorRecord, (decoded_key, None, 0))
    size = len(value)
    if size < _COMMIT_SIZE:
        return None
    version, offset, leader_epoch, metadata_size, timestamp_ms = _unpack_commit(value)
    if version != _COMMIT_VERSION:
        return None
    metadata = ""
    if metadata_size:
        if metadata_size < 0 or size < _COMMIT_SIZE + metadata_size:
            return None
        try:
            metadata = value[_METADATA : _METADATA + metadata_size].decode()
        except UnicodeDecodeError:
            return None
        (timestamp_ms,) = _unpack_timestamp(value, _METADATA + metadata_size)
    decoded = _new_value(OffsetCommitValue)
    decoded.offset = offset
    decoded.leader_epoch = leader_epoch
    decoded.metadata = metadata
    decoded.commit_timestamp = timestamp_ms
    decoded.expire_timestamp = -1
    decoded.topic_id = _NO_TOPIC_ID
    decoded.unknown_tagged_fields = ()
    return _new_record(CoordinatorRecord, (decoded_key, decoded, _COMMIT_VERSION))


_COMMIT_KEYS: Final = frozenset({b"\0\0", b"\0\1"})
_COMMIT_VERSION: Final = 3
_METADATA: Final = 16
"""Where the metadata stands in a value of version 3: behind version, offset, leader epoch and its own length."""
_COMMIT_SIZE: Final = 24
"""A value of version 3 without metadata."""
_NO_TOPIC_ID: Final = bytes(16)

_unpack_partition: Final = struct.Struct(">i").unpack_from
_unpack_commit: Final = struct.Struct(">hqihq").unpack_from
_unpack_timestamp: Final = struct.Struct(">q").unpack_from
_new_key: Final = OffsetCommitKey.__new__
_new_value: Final = OffsetCommitValue.__new__
_new_record: Final = tuple.__new__
