"""Records of internal topics to their bytes, the common ones by hand; `record_decoding` is the way back.

Offset commits are most of what is ever written: what the general codec does in four calls each for key and value takes
one here. Everything else, and everything that is wrong, goes the general way.
"""

import struct
from typing import Final

from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue
from kavka.protocol.internal.record_codec import encode_key, encode_value


def encoded(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Key and value; a tombstone has no value. Raises EncodeError."""
    key, value, version = record
    if type(key) is OffsetCommitKey:
        group, topic = key.group.encode(), key.topic.encode()
        try:
            key_bytes = b"\0\1%b%b%b%b%b" % (
                _I16(len(group)),
                group,
                _I16(len(topic)),
                topic,
                _I32(key.partition),
            )
            if value is None:
                return key_bytes, None
            if version == _COMMIT_VERSION and type(value) is OffsetCommitValue:
                metadata = value.metadata.encode()
                head = _COMMIT_HEAD(_COMMIT_VERSION, value.offset, value.leader_epoch, len(metadata))
                return key_bytes, head + metadata + _I64(value.commit_timestamp)
        except struct.error:
            pass
    return encode_key(key), None if value is None else encode_value(value, version)


_COMMIT_VERSION: Final = 3
_COMMIT_HEAD: Final = struct.Struct(">hqih").pack
_I16: Final = struct.Struct(">h").pack
_I32: Final = struct.Struct(">i").pack
_I64: Final = struct.Struct(">q").pack
