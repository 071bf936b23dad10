"""Request and response headers, and the APIs that are exceptions."""

import struct

import pytest

from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.codec import encode
from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.headers import (
    ResponseHead,
    decode_request_header,
    decode_response_header,
    encode_request_header,
)
from kavka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

EVERY_VERSION = [(key, version) for key, known in VERSIONS.items() for version in range(known.oldest, known.newest + 1)]


@pytest.mark.parametrize("client_id", [None, "", "kůň"])
def test_a_request_header_survives_the_wire_in_every_version(client_id: str | None) -> None:
    for key, version in EVERY_VERSION:
        wire = encode_request_header(key, version, 77, client_id) + b"body"

        header = decode_request_header(b"...." + wire, 4)

        sent = None if (key, version) == (ApiKey.CONTROLLED_SHUTDOWN, 0) else client_id
        assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (key, version, 77, sent)
        assert (b"...." + wire)[header.body_offset :] == b"body"


def test_a_response_header_survives_the_wire_in_every_version() -> None:
    for key, version in EVERY_VERSION:
        wire = ResponseHead(key, version).framed(-5, b"")[4:]
        assert decode_response_header(key, version, wire + b"body") == (-5, len(wire))


@pytest.mark.parametrize(
    ("key", "version", "size_bytes"),
    [
        (ApiKey.PRODUCE, 8, 4),
        (ApiKey.PRODUCE, 9, 5),
        (ApiKey.API_VERSIONS, 2, 4),
        (ApiKey.API_VERSIONS, 3, 4),
        (ApiKey.API_VERSIONS, 4, 4),
        (ApiKey.SASL_HANDSHAKE, 1, 4),
        (ApiKey.OFFSET_DELETE, 0, 4),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 5),
    ],
)
def test_response_headers_have_tagged_fields_in_flexible_versions_but_for_api_versions(
    key: ApiKey, version: int, size_bytes: int
) -> None:
    assert ResponseHead(key, version).counted_size_bytes == size_bytes


def test_an_answer_begins_with_the_size_of_all_that_follows() -> None:
    for key, version in EVERY_VERSION:
        answer = ResponseHead(key, version).framed(-5, b"body")
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    assert encode_request_header(ApiKey.CONTROLLED_SHUTDOWN, 0, 9, "ignored") == struct.pack(">hhi", 7, 0, 9)
    assert decode_request_header(struct.pack(">hhi", 7, 0, 9)).client_id is None


def test_api_versions_of_a_version_to_come_is_still_read() -> None:
    wire = encode_request_header(ApiKey.API_VERSIONS, 99, 3, "new")
    header = decode_request_header(wire)

    assert (header.api_version, header.correlation_id, header.body_offset) == (99, 3, len(wire))


def test_the_answer_to_a_version_too_high_is_readable_for_every_client() -> None:
    served = [ApiVersion(api_key=18, min_version=0, max_version=4)]
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=served, throttle_time_ms=5)

    wire = ResponseHead(ApiKey.API_VERSIONS, 99).framed(3, encode(refusal, 0))[4:]

    assert wire == struct.pack(">ihihhh", 3, 35, 1, 18, 0, 4)


def test_an_unknown_key_is_read_far_enough_to_report_it() -> None:
    header = decode_request_header(struct.pack(">hhih", 12_345, 1, 6, -1))

    assert (header.api_key, header.correlation_id) == (12_345, 6)


def test_tagged_fields_of_a_header_are_skipped() -> None:
    wire = struct.pack(">hhih", ApiKey.PRODUCE, 9, 1, -1) + b"\x02\x00\x03abc\x81\x01\x00"

    assert decode_request_header(wire + b"body").body_offset == len(wire)


@pytest.mark.parametrize("cut", range(23))
def test_a_header_cut_short_is_refused(cut: int) -> None:
    wire = struct.pack(">hhih", ApiKey.PRODUCE, 9, 1, 4) + b"name" + b"\x02\x00\x03abc\x81\x01\x00"
    assert len(wire) == 23
    with pytest.raises(DecodeError):
        decode_request_header(wire[:cut])


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(struct.pack(">h", 32_767) + b"x", id="client-id-too-long"),
        pytest.param(struct.pack(">h", 2) + b"\xc3\x28\x00", id="client-id-not-utf-8"),
        pytest.param(struct.pack(">h", -1) + b"\xff\xff\xff\xff\xff\x01", id="endless-varint"),
        pytest.param(struct.pack(">h", -1) + b"\x01\x00\x7fabc", id="tagged-field-too-long"),
    ],
)
def test_a_header_that_lies_is_refused(tail: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_request_header(struct.pack(">hhi", ApiKey.PRODUCE, 9, 1) + tail)


def test_a_response_header_cut_short_is_refused() -> None:
    for size in range(5):
        with pytest.raises(DecodeError):
            decode_response_header(ApiKey.PRODUCE, 9, ResponseHead(ApiKey.PRODUCE, 9).pack(0, 1)[4 : 4 + size])
