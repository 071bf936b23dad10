"""A struct in the tagged section that may be null, as Kafka writes it."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.protocol import codec, interpreter
from kavka.protocol.internal.group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)

BEFORE = bytes.fromhex("00 00 05 77697265 0b 2f3132372e302e302e31 02 02 74 01 00001388 00")
"""As Kafka 4.3.1 wrote it, up to the tagged section."""
NULL = BEFORE + bytes.fromhex("01 00 01 00")
"""Kafka says null where it could say nothing: mark 0, not the -1 of a struct elsewhere."""
PRESENT = BEFORE + bytes.fromhex("01 00 12 01 00002710 02 06 72616e6765 04 616263 00 00")


@pytest.mark.parametrize("decode", [codec.decode, interpreter.decode])
def test_a_tagged_struct_is_read_whether_it_is_there_null_or_left_out(decode: Callable[..., Any]) -> None:
    classic = ClassicMemberMetadata(
        session_timeout_ms=10_000, supported_protocols=[ClassicProtocol(name="range", metadata=b"abc")]
    )
    for data, expected in ((PRESENT, classic), (NULL, None), (BEFORE + b"\0", None)):
        value = decode(ConsumerGroupMemberMetadataValue, 0, data)
        assert value.classic_member_metadata == expected
        assert (value.client_id, value.rebalance_timeout_ms) == ("wire", 5000)
