"""Bytes that no honest peer sends: both codecs answer with a DecodeError and nothing else."""

import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol import interpreter
from kavka.protocol.codec import decode, decoder, encode
from kavka.protocol.errors import DecodeError
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.fetch import FetchRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.list_offsets import ListOffsetsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.messages.produce import ProduceRequest
from kavka.protocol.schema import Message
from tests.support.examples import examples
from tests.support.message_values import all_message_versions, message_value

PAIRS = list(all_message_versions())
IDS = [f"{cls.__name__}-v{version}" for cls, version in PAIRS]
BOTH_CODECS = pytest.mark.parametrize("codec_decode", [decode, interpreter.decode])


@pytest.mark.parametrize(("cls", "version"), PAIRS, ids=IDS)
def test_a_message_cut_short_anywhere_is_refused(cls: type[Message], version: int) -> None:
    wire = memoryview(encode(message_value(cls, version, "full"), version))
    decode_it = decoder(cls, version)

    for size in range(len(wire)):
        with pytest.raises(DecodeError):
            decode_it(wire[:size])
    for size in range(0, len(wire), 1 + len(wire) // 8):
        with pytest.raises(DecodeError):
            interpreter.decode(cls, version, wire[:size])


@pytest.mark.parametrize(("cls", "version"), PAIRS, ids=IDS)
def test_bytes_behind_a_message_are_refused_unless_allowed(cls: type[Message], version: int) -> None:
    message = message_value(cls, version, "full")
    wire = encode(message, version) + b"\0"

    for codec_decode in (decode, interpreter.decode):
        with pytest.raises(DecodeError, match="1 bytes too many"):
            codec_decode(cls, version, wire)
        assert codec_decode(cls, version, wire, trailing=True) == message


@pytest.mark.parametrize(("cls", "version"), PAIRS, ids=IDS)
def test_changed_bytes_mean_the_same_to_both_codecs(cls: type[Message], version: int) -> None:
    chance = random.Random(f"{cls.__name__} {version}")
    wire = encode(message_value(cls, version, "unknown-tags"), version)
    for _ in range(12):
        changed = bytearray(wire)
        for _ in range(chance.randint(1, 3)):
            if changed:
                changed[chance.randrange(len(changed))] = chance.choice(
                    (0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256))
                )
        assert outcome(decode, cls, version, bytes(changed)) == outcome(
            interpreter.decode, cls, version, bytes(changed)
        )


@given(data=st.binary(max_size=200), pair=st.sampled_from(PAIRS))
@examples(300)
def test_random_bytes_mean_the_same_to_both_codecs(data: bytes, pair: tuple[type[Message], int]) -> None:
    assert outcome(decode, *pair, data) == outcome(interpreter.decode, *pair, data)


@BOTH_CODECS
@pytest.mark.parametrize(
    ("cls", "version", "wire"),
    [
        pytest.param(MetadataRequest, 1, struct.pack(">i", 2**31 - 1), id="array-of-structs"),
        pytest.param(MetadataRequest, 9, b"\xff\xff\xff\xff\x07" + bytes(50), id="compact-array-of-structs"),
        pytest.param(DeleteTopicsRequest, 0, struct.pack(">i", 1_000_000) + bytes(50), id="array-of-strings"),
        pytest.param(HeartbeatRequest, 0, struct.pack(">h", 32_767) + bytes(50), id="string"),
        pytest.param(HeartbeatRequest, 4, b"\xff\xff\x01" + bytes(50), id="compact-string"),
        pytest.param(HeartbeatRequest, 4, b"\x81\x80\x02" + bytes(40_000), id="string-over-its-limit"),
        pytest.param(HeartbeatRequest, 4, b"\xff\xff\xff\xff\xff\xff\x01" + bytes(50), id="varint-of-seven-bytes"),
        pytest.param(HeartbeatRequest, 4, b"\xff\xff\xff\xff\x0f" + bytes(50), id="varint-of-32-bits"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01\xff\xff\xff\xff\x07", id="tagged-field-count"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01\x01\x09\x05abc", id="tagged-field-size"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01", id="no-tagged-section"),
    ],
)
def test_lengths_that_lie_are_refused(
    codec_decode: Callable[..., Message], cls: type[Message], version: int, wire: bytes
) -> None:
    with pytest.raises(DecodeError):
        codec_decode(cls, version, wire)


@BOTH_CODECS
@pytest.mark.parametrize(
    ("cls", "version", "wire"),
    [
        pytest.param(MetadataRequest, 0, struct.pack(">i", -1), id="array-null-since-v1"),
        pytest.param(HeartbeatRequest, 0, struct.pack(">h", -1), id="string"),
        pytest.param(HeartbeatRequest, 4, b"\x00", id="compact-string"),
        pytest.param(DeleteTopicsRequest, 1, struct.pack(">ih", 1, -1) + bytes(4), id="element"),
    ],
)
def test_null_where_it_may_not_be_is_refused(
    codec_decode: Callable[..., Message], cls: type[Message], version: int, wire: bytes
) -> None:
    with pytest.raises(DecodeError, match="null"):
        codec_decode(cls, version, wire)


@BOTH_CODECS
def test_any_negative_length_is_null_as_it_is_to_kafka(codec_decode: Callable[..., Message]) -> None:
    assert codec_decode(MetadataRequest, 1, struct.pack(">i", -7)) == MetadataRequest(topics=None)


@BOTH_CODECS
def test_strings_are_utf_8(codec_decode: Callable[..., Message]) -> None:
    with pytest.raises(DecodeError, match="UTF-8"):
        codec_decode(HeartbeatRequest, 0, b"\0\x02\xc3\x28" + bytes(6))


@BOTH_CODECS
@pytest.mark.parametrize(
    ("cls", "version", "wire"),
    [
        pytest.param(MetadataRequest, 0, struct.pack(">i", 11) + struct.pack(">h", 0) * 11, id="structs"),
        pytest.param(DeleteTopicsRequest, 4, b"\x0c" + b"\x01" * 11 + bytes(5), id="strings"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01\x0b" + b"\x05\x00" * 11, id="unknown-tagged-fields"),
    ],
)
def test_a_message_has_a_budget_of_elements(
    codec_decode: Callable[..., Message], cls: type[Message], version: int, wire: bytes
) -> None:
    codec_decode(cls, version, wire, max_elements=11)
    with pytest.raises(DecodeError, match="more elements"):
        codec_decode(cls, version, wire, max_elements=10)


@BOTH_CODECS
def test_elements_count_against_one_budget_at_all_depths(codec_decode: Callable[..., Message]) -> None:
    partition = struct.pack(">iqi", 0, 0, 0)
    topic = struct.pack(">hi", 0, 2) + partition * 2
    wire = struct.pack(">iiii", -1, 0, 0, 3) + topic * 3

    codec_decode(FetchRequest, 0, wire, max_elements=9)
    with pytest.raises(DecodeError, match="more elements"):
        codec_decode(FetchRequest, 0, wire, max_elements=8)


@BOTH_CODECS
@pytest.mark.parametrize("size", [4, 6])
def test_a_known_tagged_field_is_as_long_as_its_tag_says(codec_decode: Callable[..., Message], size: int) -> None:
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], cluster_id="four")
    wire = encode(request, 12)
    assert wire.endswith(b"\x01\x00\x05\x05four")

    with pytest.raises(DecodeError):
        codec_decode(FetchRequest, 12, wire[:-6] + bytes((size,)) + wire[-5:] + b"\0" * (size > 5))


def test_a_request_of_megabytes_of_nothing_is_refused_quickly() -> None:
    wire = struct.pack(">i", 8_000_000 // 2) + bytes(8_000_000)
    with pytest.raises(DecodeError, match="more elements"):
        decode(MetadataRequest, 0, wire)


@pytest.mark.parametrize("cls", [ProduceRequest, ListOffsetsRequest, HeartbeatRequest])
def test_an_empty_body_is_refused(cls: type[Message]) -> None:
    with pytest.raises(DecodeError, match="cut short"):
        decode(cls, 1, b"")


def outcome(codec_decode: Callable[..., Message], cls: type[Message], version: int, data: bytes) -> bytes | None:
    """What was understood, encoded again (a float that is not a number equals itself that way); None for a refusal."""
    try:
        return interpreter.encode(codec_decode(cls, version, data), version)
    except DecodeError:
        return None
