"""Records of internal topics: declared like messages, with forms that no request has. Bytes written by Kafka 4.3.1."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.protocol import interpreter
from kavka.protocol.codec import decode, encode
from kavka.protocol.schema import Bytes, Int32, NullableString, Record, String, Struct, since


class ClassicProtocol(Struct):
    name: String
    metadata: Bytes


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Int32
    supported_protocols: list[ClassicProtocol]


class ConsumerGroupMemberMetadataValue(Record, versions="0", flexible="0+"):
    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: NullableString
    rebalance_timeout_ms: Int32 = -1
    server_assignor: NullableString
    classic_member_metadata: ClassicMemberMetadata | None = since(0, tag=0, default=None)


@pytest.mark.parametrize(
    "codec", [(encode, decode), (interpreter.encode, interpreter.decode)], ids=["compiled", "interpreted"]
)
def test_a_nullable_struct_in_a_tagged_field_has_its_marker_byte(
    codec: tuple[Callable[..., bytes], Callable[..., Any]],
) -> None:
    encode_it, decode_it = codec
    value = ConsumerGroupMemberMetadataValue(
        instance_id="",
        rack_id="",
        client_id="c",
        client_host="h",
        subscribed_topic_names=[],
        subscribed_topic_regex="",
        rebalance_timeout_ms=1,
        server_assignor="",
        classic_member_metadata=ClassicMemberMetadata(session_timeout_ms=7, supported_protocols=[]),
    )

    assert encode_it(value, 0).hex() == "0101026302680101000000010101000701000000070100"
    assert decode_it(ConsumerGroupMemberMetadataValue, 0, encode_it(value, 0)) == value

    value.classic_member_metadata = None
    assert encode_it(value, 0).hex() == "01010263026801010000000101" + "00"
    assert decode_it(ConsumerGroupMemberMetadataValue, 0, encode_it(value, 0)) == value
