"""Messages in pieces, with records that are not in memory."""

from collections.abc import Sequence
from typing import Any

from kavka.protocol.codec import decode, encode, encode_parts
from kavka.protocol.encoding import INLINE_RECORDS_BYTES
from kavka.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kavka.protocol.schema import Message
from tests.support.message_values import STYLES, all_message_versions, message_value


class FileSlice:
    """Stands for bytes in a file."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def size_bytes(self) -> int:
        return len(self.content)


def response(*records: object) -> FetchResponse:
    partitions = [
        PartitionData(partition_index=index, error_code=0, high_watermark=9, records=each)
        for index, each in enumerate(records)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def joined(parts: Sequence[Any]) -> bytes:
    return b"".join(part.content if isinstance(part, FileSlice) else bytes(part) for part in parts)


def test_a_file_slice_stands_where_its_bytes_belong() -> None:
    contents = [b"first" * 100, b"", b"third"]
    for version in (0, 4, 11, 12, 16):
        slices = [FileSlice(content) for content in contents]

        parts = encode_parts(response(*slices), version)

        assert [part for part in parts if isinstance(part, FileSlice)] == slices
        assert joined(parts) == encode(response(*contents), version)


def test_large_records_in_memory_are_not_copied() -> None:
    large = memoryview(bytes(INLINE_RECORDS_BYTES + 1))

    parts = encode_parts(response(large, b"small", None), 12)

    assert any(part is large for part in parts)
    assert len(parts) == 3
    assert decode(FetchResponse, 12, joined(parts)).responses[0].partitions[1].records == b"small"


def test_parts_make_up_the_same_bytes_for_every_message() -> None:
    for cls, version in all_message_versions():
        for style in STYLES[:2]:
            message: Message = message_value(cls, version, style)
            assert joined(encode_parts(message, version)) == encode(message, version), (cls, version, style)
