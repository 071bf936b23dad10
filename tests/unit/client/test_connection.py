"""The protocol of one connection, by bytes alone."""

import struct
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.client.call import Call, RequestBuilder
from kavka.client.connection import Connection
from kavka.client.errors import UnsupportedVersionError
from kavka.protocol.codec import encode
from kavka.protocol.errors import DecodeError, EncodeError
from kavka.protocol.headers import ResponseHead, decode_request_header
from kavka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.schema import Request, Response

HEARTBEAT, API_VERSIONS, METADATA = 12, 18, 3


def connection(
    *, discover_versions: bool = False, max_in_flight: int = 3, ids: Iterator[int] | None = None
) -> Connection:
    return Connection(
        client_id="me",
        max_in_flight=max_in_flight,
        max_answer_bytes=1000,
        discover_versions=discover_versions,
        ids=ids,
    )


def heartbeat(deadline_ms: float = 0, versions: tuple[int, int] | None = None) -> Call:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return Call(request, lambda _: None, versions, deadline_ms)


def sent(line: Connection) -> Any:
    """The header of what was to be sent, which is taken."""
    data = b"".join(bytes(part) for part in line.unsent)
    line.unsent.clear()
    assert struct.unpack_from(">i", data)[0] == len(data) - 4
    return decode_request_header(data[4:])


def answer(header: Any, response: Response, *, correlation_id: int | None = None) -> memoryview:
    head = ResponseHead(header.api_key, header.api_version)
    given_id = header.correlation_id if correlation_id is None else correlation_id
    return memoryview(head.framed(given_id, encode(response, header.api_version))[4:])


def test_requests_are_numbered_and_answered_in_order() -> None:
    line = connection()
    first, second = heartbeat(), heartbeat()
    headers = []
    for call in (first, second):
        line.request(call)
        headers.append(sent(line))
    assert [header.client_id for header in headers] == ["me", "me"]
    assert headers[0].correlation_id != headers[1].correlation_id

    for call, header, code in ((first, headers[0], 27), (second, headers[1], 0)):
        answered = line.answered(answer(header, HeartbeatResponse(error_code=code)))
        assert answered is not None
        assert answered[0] is call
        assert answered[1].error_code == code
    assert line.in_flight == 0


def test_correlation_ids_start_over_after_the_last() -> None:
    line = connection(ids=count(2**31 - 1))
    for expected in (2**31 - 1, 0):
        line.request(heartbeat())
        assert sent(line).correlation_id == expected


def test_no_more_is_taken_than_may_be_in_flight_and_nothing_before_the_last_is_written() -> None:
    line = connection(max_in_flight=2)
    assert line.takes_another
    line.request(heartbeat())
    assert not line.takes_another, "the first one is not written yet"
    header = sent(line)
    assert line.takes_another
    line.request(heartbeat())
    line.unsent.clear()
    assert not line.takes_another
    line.answered(answer(header, HeartbeatResponse(error_code=0)))
    assert line.takes_another


def test_the_first_deadline_is_the_one_that_counts() -> None:
    line = connection()
    assert line.deadline_ms == float("inf")
    for deadline_ms in (500.0, 200.0, 900.0):
        line.request(heartbeat(deadline_ms))
    assert line.deadline_ms == 200


def test_what_was_in_flight_is_given_back_when_the_connection_is_abandoned() -> None:
    line = connection()
    calls = [heartbeat(), heartbeat()]
    for call in calls:
        line.request(call)
    assert line.abandon() == calls
    assert line.in_flight == 0


def wrong_id(header: Any) -> memoryview:
    return answer(header, HeartbeatResponse(error_code=0), correlation_id=header.correlation_id + 1)


def cut(header: Any) -> memoryview:
    return answer(header, HeartbeatResponse(error_code=0))[:-1]


def too_long(header: Any) -> memoryview:
    return memoryview(bytes(answer(header, HeartbeatResponse(error_code=0))) + b"\0")


def empty(_header: Any) -> memoryview:
    return memoryview(b"")


@pytest.mark.parametrize("lie", [wrong_id, cut, too_long, empty])
def test_an_answer_that_is_not_the_one_owed_is_an_error(lie: Any) -> None:
    line = connection()
    line.request(heartbeat())
    with pytest.raises(DecodeError):
        line.answered(lie(sent(line)))
    assert line.in_flight == 1, "who waits for it is still to be told"


def test_an_answer_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(DecodeError, match="nothing that was asked"):
        connection().answered(memoryview(bytes(8)))


@given(st.binary(max_size=64), st.booleans())
def test_whatever_comes_is_an_answer_or_a_decode_error(data: bytes, is_negotiating: bool) -> None:
    line = connection(discover_versions=is_negotiating)
    if is_negotiating:
        line.negotiate(0)
    else:
        line.request(heartbeat())
    line.unsent.clear()
    try:
        line.answered(memoryview(data))
    except DecodeError:
        assert line.in_flight in (0, 1)


def negotiated(*rows: tuple[int, int, int]) -> Connection:
    line = connection(discover_versions=True)
    line.negotiate(0)
    assert line.answered(answer(sent(line), served(*rows))) is None
    assert line.is_open
    return line


def served(*rows: tuple[int, int, int], error_code: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in rows]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def test_nothing_is_sent_before_the_versions_are_known() -> None:
    line = connection(discover_versions=True)
    line.negotiate(0)
    assert sent(line).api_key == API_VERSIONS
    assert not line.is_open
    assert not line.takes_another


@pytest.mark.parametrize(
    ("of_the_broker", "of_the_request", "chosen"),
    [((0, 3), None, 3), ((0, 99), None, 4), ((1, 3), (0, 2), 2), ((2, 3), (0, 2), 2), ((0, 9), (1, 1), 1)],
)
def test_the_newest_version_is_taken_that_all_have(
    of_the_broker: tuple[int, int], of_the_request: tuple[int, int] | None, chosen: int
) -> None:
    line = negotiated((HEARTBEAT, *of_the_broker))
    line.request(heartbeat(versions=of_the_request))
    assert sent(line).api_version == chosen


@pytest.mark.parametrize("rows", [[], [(HEARTBEAT, 0, 1)], [(HEARTBEAT, 4, 9)], [(HEARTBEAT, 3, 2)]])
def test_without_a_version_that_both_have_nothing_is_sent(rows: list[tuple[int, int, int]]) -> None:
    line = negotiated(*rows)
    with pytest.raises(UnsupportedVersionError, match="Heartbeat in versions 2 to 3"):
        line.request(heartbeat(versions=(2, 3)))
    assert line.unsent == []
    assert line.in_flight == 0


def test_a_request_is_made_for_the_version_that_was_chosen() -> None:
    asked = []

    def build(version: int) -> Request:
        asked.append(version)
        return MetadataRequest(topics=[] if version == 0 else None)

    line = negotiated((METADATA, 0, 0))
    line.request(Call(RequestBuilder(METADATA, build), lambda _: None))
    assert asked == [0]
    assert sent(line).api_version == 0


def test_a_request_that_does_not_fit_its_version_changes_nothing() -> None:
    line = connection()
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="static")
    with pytest.raises(EncodeError):
        line.request(Call(request, lambda _: None, (0, 0)))
    assert line.unsent == []
    assert line.in_flight == 0
    assert line.takes_another


def test_a_broker_that_is_older_is_asked_again_in_its_own_version() -> None:
    line = connection(discover_versions=True)
    line.negotiate(700)
    first = sent(line)
    refusal = served((API_VERSIONS, 0, 2), error_code=35)
    frame = memoryview(struct.pack(">i", first.correlation_id) + encode(refusal, 0))
    assert line.answered(frame) is None
    assert not line.is_open
    assert line.deadline_ms == 700

    again = sent(line)

    assert again.api_version == 2
    line.answered(answer(again, served((HEARTBEAT, 0, 1))))
    assert line.is_open


@pytest.mark.parametrize(
    "rows", [[(API_VERSIONS, 0, 4)], [(API_VERSIONS, 0, 99)], [(API_VERSIONS, -9, -1)], [(API_VERSIONS, 2, 1)]]
)
def test_a_broker_that_refuses_what_it_offers_is_not_asked_for_ever(rows: list[tuple[int, int, int]]) -> None:
    line = connection(discover_versions=True)
    line.negotiate(0)
    frame = struct.pack(">i", sent(line).correlation_id) + encode(served(*rows, error_code=35), 0)
    with pytest.raises(DecodeError, match="error 35"):
        line.answered(memoryview(frame))


def test_a_broker_that_refuses_and_offers_nothing_is_asked_once_more_in_the_oldest_version() -> None:
    line = connection(discover_versions=True)
    line.negotiate(0)
    for expected in (4, 0):
        header = sent(line)
        assert header.api_version == expected
        frame = memoryview(struct.pack(">i", header.correlation_id) + encode(served(error_code=35), 0))
        if expected:
            line.answered(frame)
        else:
            with pytest.raises(DecodeError, match="error 35"):
                line.answered(frame)


def test_a_broker_that_gives_no_versions_is_an_error() -> None:
    line = connection(discover_versions=True)
    line.negotiate(0)
    with pytest.raises(DecodeError, match="error 58"):
        line.answered(answer(sent(line), served(error_code=58)))


def test_little_is_taken_of_a_broker_whose_versions_are_not_known() -> None:
    line = connection(discover_versions=True)
    line.negotiate(0)
    assert line.reader.max_size_bytes == 1000, "the limit of all answers is a limit of the first, too"
    many = [(key, 0, 1) for key in range(10_001)]
    with pytest.raises(DecodeError, match="more elements"):
        line.answered(answer(sent(line), served(*many)))
    large = Connection(client_id=None, max_in_flight=1, max_answer_bytes=10_000_000, discover_versions=True)
    large.negotiate(0)
    assert large.reader.max_size_bytes == 256 * 1024
    large.answered(answer(sent(large), served((HEARTBEAT, 0, 1))))
    assert large.reader.max_size_bytes == 10_000_000


def test_a_refused_negotiation_gives_no_calls_back() -> None:
    line = connection(discover_versions=True)
    line.negotiate(0)
    assert line.abandon() == []
