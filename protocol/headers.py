"""Request and response headers: the few bytes in front of every message.

    request   v0  api_key i16 · api_version i16 · correlation_id i32                   only ControlledShutdown v0
              v1  the same · client_id, an int16-prefixed string or null
              v2  v1 · tagged fields                                                   flexible versions
    response  v0  correlation_id i32               ApiVersions always: a client that asked too high must read the answer
              v1  v0 · tagged fields

`client_id` never became a compact string. Tagged fields of a header are skipped: no version defines one.
"""

from collections.abc import Callable
from struct import Struct, error, pack
from typing import Final

from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.errors import DecodeError
from kavka.protocol.schema import Buffer
from kavka.protocol.varint import read_varint


class RequestHeader:
    """A parsed request header; `body_offset` is where the body starts in the data it was parsed from."""

    __slots__ = ("api_key", "api_version", "body_offset", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None, body_offset: int
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body_offset = body_offset

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r})"
        )


def decode_request_header(data: Buffer, position: int = 0) -> RequestHeader:
    """The header at `position`. An unknown key is taken to be inflexible, so that its number can be reported.

    Raises DecodeError if the bytes end early, the client id is not UTF-8 or its length is nonsense.
    """
    try:
        if data[position + 1] == _CONTROLLED_SHUTDOWN:
            api_key, api_version, correlation_id = _V0(data, position)
            if (api_key, api_version) == (_CONTROLLED_SHUTDOWN, 0):
                return RequestHeader(api_key, api_version, correlation_id, None, position + 8)
        api_key, api_version, correlation_id, length = _V1(data, position)
        position += 10
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(data):
                raise DecodeError(f"the client id of {length} bytes goes beyond the request")
            client_id = bytes(data[position:end]).decode()
            position = end
        if api_version >= _FLEXIBLE_SINCE.get(api_key, 32_768):
            if data[position]:
                position = _skip_tagged_fields(data, position)
            else:
                position += 1
    except (error, IndexError) as problem:
        raise DecodeError("the request header is cut short") from problem
    except UnicodeDecodeError as problem:
        raise DecodeError("the client id is not UTF-8") from problem
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def encode_request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header in front of a request's body."""
    head = pack(">hhi", api_key, api_version, correlation_id)
    if api_version == 0 and api_key == _CONTROLLED_SHUTDOWN:
        return head
    name = b"" if client_id is None else client_id.encode()
    tags = b"\0" if api_version >= _FLEXIBLE_SINCE.get(api_key, 32_768) else b""
    return head + pack(">h", -1 if client_id is None else len(name)) + name + tags


class ResponseHead:
    """What a broker writes in front of a response's body, in one version of an API: its size and its header. Immutable.

    For the way of every request, where whoever answers makes one for many answers and packs it inline.
    """

    __slots__ = ("counted_size_bytes", "format", "pack")

    def __init__(self, api_key: int, api_version: int) -> None:
        self.format: Final = ">iix" if _has_tagged_response(api_key, api_version) else ">ii"
        """For `struct`, to be packed together with what follows."""
        layout = Struct(self.format)
        self.pack: Final[Callable[[int, int], bytes]] = layout.pack
        """(size, correlation id) -> bytes. The size is that of the body and `counted_size_bytes`."""
        self.counted_size_bytes: Final = layout.size - _SIZE_OF_SIZE
        """Of the header: the size does not count itself."""

    def framed(self, correlation_id: int, body: bytes) -> bytes:
        """The whole answer."""
        return self.pack(self.counted_size_bytes + len(body), correlation_id) + body


def decode_response_header(api_key: int, api_version: int, data: Buffer, position: int = 0) -> tuple[int, int]:
    """(correlation id, body offset). Raises DecodeError if the bytes end early."""
    try:
        (correlation_id,) = _INT32(data, position)
        position += 4
        if _has_tagged_response(api_key, api_version):
            position = _skip_tagged_fields(data, position)
    except (error, IndexError) as problem:
        raise DecodeError("the response header is cut short") from problem
    return correlation_id, position


def _has_tagged_response(api_key: int, api_version: int) -> bool:
    return api_version >= _FLEXIBLE_SINCE.get(api_key, 32_768) and api_key != _API_VERSIONS


def _skip_tagged_fields(data: Buffer, position: int) -> int:
    count, position = read_varint(data, position)
    for _ in range(count):
        _, position = read_varint(data, position)
        size, position = read_varint(data, position)
        position += size
        if position > len(data):
            raise DecodeError("a tagged field of the header goes beyond the data")
    return position


_V0: Final = Struct(">hhi").unpack_from
_V1: Final = Struct(">hhih").unpack_from
_INT32: Final = Struct(">i").unpack_from
_SIZE_OF_SIZE: Final = 4
_CONTROLLED_SHUTDOWN: Final = int(ApiKey.CONTROLLED_SHUTDOWN)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_FLEXIBLE_SINCE: Final = {key: versions.flexible_since for key, versions in VERSIONS.items()}
