"""Batches for consumers that know older formats only (Fetch v0 to v3)."""

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.errors import CorruptRecordsError, UnsupportedCodecError
from kavka.protocol.records.legacy import to_legacy


def convert_down(
    batches: bytes | memoryview, magic: int, first_offset: int, limit_bytes: int
) -> tuple[bytes | memoryview, ErrorCode]:
    """The records from `first_offset` on as messages of `magic` 0 or 1, or no bytes and the error to answer with.

    CORRUPT_MESSAGE also where a batch would unpack to more than `limit_bytes`.
    """
    try:
        return to_legacy(batches, magic, first_offset=first_offset, limit_bytes=limit_bytes), ErrorCode.NONE
    except UnsupportedCodecError:
        return b"", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    except CorruptRecordsError:
        return b"", ErrorCode.CORRUPT_MESSAGE
