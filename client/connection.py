"""One connection's protocol, with no socket and no clock: requests become bytes, frames become answers.

    negotiating --ApiVersions answered--> open           (open from the start where versions are not discovered)

A broker answers in the order of the requests. So an answer is that of the oldest request, or the peer lies: whatever
is wrong with it is a DecodeError, after which nothing that comes can be trusted, and the connection has to be closed.
"""

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from kavka import __version__
from kavka.client.broker_versions import BrokerVersions
from kavka.client.call import Call, VersionRange
from kavka.protocol.api import VERSIONS, ApiKey, spec
from kavka.protocol.buffer_pool import BufferPool
from kavka.protocol.codec import decode, encode_parts
from kavka.protocol.errors import DecodeError, ErrorCode
from kavka.protocol.framing import FrameReader
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.schema import Buffer, Request

SOFTWARE_NAME: Final = "kavka"
JOIN_LIMIT_BYTES: Final = 64 * 1024
VERSIONS_MAX_BYTES: Final = 256 * 1024
VERSIONS_MAX_ELEMENTS: Final = 10_000
"""A broker's versions are a hundred lines: it may not make us look at more before we know what it is."""
_CORRELATION_IDS: Final = 2**31
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_INFINITY: Final = float("inf")
_SIZE: Final = struct.Struct(">i")
_ERROR_CODE: Final = struct.Struct(">h")


class Connection:
    """What was asked on one connection and not answered yet, and what the broker can.

    Whoever has the socket writes `unsent`, feeds `reader` and gives its frames to `answered`. Threads: the client's
    owner alone. `ids` are the requests' correlation ids where they go on over connections; without, they begin at 0.
    """

    __slots__ = (
        "_client_id",
        "_ids",
        "_in_flight",
        "_max_answer_bytes",
        "_max_in_flight",
        "_served",
        "reader",
        "served",
        "unsent",
    )

    def __init__(
        self,
        *,
        client_id: str | None,
        max_in_flight: int,
        max_answer_bytes: int,
        discover_versions: bool,
        pool: BufferPool | None = None,
        ids: Iterator[int] | None = None,
    ) -> None:
        self._client_id = client_id
        self._max_in_flight = max_in_flight
        self._in_flight: deque[Call] = deque()
        self._ids = count() if ids is None else ids
        self._served: Mapping[int, VersionRange] | None = None
        self.served: BrokerVersions | None = None
        """What the broker can; None until it is known."""
        if not discover_versions:
            self._serve(BrokerVersions({key: (known.oldest, known.newest) for key, known in VERSIONS.items()}, {}, -1))
        self._max_answer_bytes = max_answer_bytes
        first_bytes = min(VERSIONS_MAX_BYTES, max_answer_bytes) if discover_versions else max_answer_bytes
        self.reader: Final = FrameReader(first_bytes, pool)
        self.unsent: list[Buffer] = []
        """What the socket has to be given, in this order."""

    @property
    def is_open(self) -> bool:
        """Whether the versions are known: requests may be sent."""
        return self._served is not None

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answers."""
        return len(self._in_flight)

    @property
    def takes_another(self) -> bool:
        """Whether one more request may be sent now: those before are written whole, and not too many are unanswered."""
        return self._served is not None and not self.unsent and len(self._in_flight) < self._max_in_flight

    @property
    def deadline_ms(self) -> float:
        """When the first of the answers that are owed is too late; infinity when none is owed."""
        in_flight = self._in_flight
        if not in_flight:
            return _INFINITY
        return in_flight[0].deadline_ms if len(in_flight) == 1 else min([call.deadline_ms for call in in_flight])

    def negotiate(self, deadline_ms: float) -> None:
        """Ask for the broker's versions: the first thing to do, if they are to be discovered."""
        self._ask_versions(VERSIONS[_API_VERSIONS].newest, deadline_ms)

    def request(self, call: Call, is_answered: bool = True) -> None:
        """Put a request on its way; one that no answer is owed to is not in flight.

        Raises UnsupportedVersionError or EncodeError, and nothing has happened."""
        assert self._served is not None
        self._put(call, call.choose_version(self._served.get(call.api_key)), is_answered)

    def answered(self, frame: memoryview) -> tuple[Call, Any] | None:
        """A frame came: the request it answers, and the answer. None when it was part of the negotiation.

        Records in the answer are views of `frame`. Raises DecodeError for anything that is not the answer owed.
        """
        if not self._in_flight:
            raise DecodeError(f"an answer of {len(frame)} bytes to nothing that was asked")
        call = self._in_flight[0]
        correlation_id, position = decode_response_header(call.api_key, call.version, frame)
        if correlation_id != call.correlation_id:
            raise DecodeError(f"the answer to request {correlation_id}, where {call.correlation_id} is next")
        if not self.is_open:
            self._negotiated(call, frame, position)
            return None
        answer = decode(spec(call.api_key).response_class, call.version, frame, position)
        self._in_flight.popleft()
        call.answer_size_bytes = len(frame)
        return call, answer

    def abandon(self) -> list[Call]:
        """The connection is closed: the requests that get no answer any more."""
        calls = [call for call in self._in_flight if self.is_open]
        self._in_flight.clear()
        self.unsent.clear()
        self.reader.forget()
        return calls

    def _serve(self, served: BrokerVersions) -> None:
        self.served = served
        self._served = served.ranges

    def _put(self, call: Call, version: int, is_answered: bool = True) -> None:
        parts = encode_parts(call.build(version), version)
        correlation_id = next(self._ids) % _CORRELATION_IDS
        head = encode_request_header(call.api_key, version, correlation_id, self._client_id)
        sized: list[Buffer] = [head]
        for part in parts:
            if not isinstance(part, bytes | bytearray | memoryview):
                raise TypeError("a client sends no parts of files")
            sized.append(part)
        size = sum(map(len, sized))
        sized[0] = _SIZE.pack(size) + head
        self.unsent += [b"".join(sized)] if size <= JOIN_LIMIT_BYTES else sized
        call.version = version
        call.size_bytes = size
        call.correlation_id = correlation_id
        if is_answered:
            self._in_flight.append(call)

    def _ask_versions(self, version: int, deadline_ms: float) -> None:
        self._put(Call(_versions_request(), _nobody, deadline_ms=deadline_ms), version)

    def _negotiated(self, call: Call, frame: memoryview, position: int) -> None:
        """The broker's versions; one that is older than ours says so in version 0, and is asked again (KIP-511)."""
        response_class = spec(_API_VERSIONS).response_class
        is_refused = frame[position : position + 2] == _ERROR_CODE.pack(ErrorCode.UNSUPPORTED_VERSION)
        version = 0 if is_refused else call.version
        answer: Any = decode(
            response_class, version, frame, position, max_elements=VERSIONS_MAX_ELEMENTS, trailing=is_refused
        )
        self._in_flight.popleft()
        served = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        if answer.error_code == ErrorCode.NONE:
            features = {each.name: each.max_version_level for each in answer.finalized_features}
            self._serve(BrokerVersions(served, features, answer.finalized_features_epoch))
            self.reader.max_size_bytes = self._max_answer_bytes
            return
        oldest, newest = served.get(_API_VERSIONS, (0, 0))
        if not is_refused or call.version == 0 or newest not in range(max(oldest, 0), call.version):
            raise DecodeError(f"no versions, but error {answer.error_code}")
        self._ask_versions(newest, call.deadline_ms)


def _versions_request() -> Request:
    from kavka.protocol.messages.api_versions import ApiVersionsRequest

    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)


def _nobody(_answer: Any) -> None:
    """The negotiation's answer is the connection's own."""
