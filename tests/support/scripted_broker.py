"""A broker on loopback that does what a test tells it, step by step: good answers, bad ones, none."""

import contextlib
import socket
import struct
from types import TracebackType
from typing import Any, Self

from kavka.client import Node
from kavka.protocol.api import VERSIONS, spec
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import RequestHeader, ResponseHead, decode_request_header
from kavka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kavka.protocol.schema import Response

HOST = "127.0.0.1"
TIMEOUT_S = 60.0
API_VERSIONS = 18


class Asked:
    """A request that came: its header and its message."""

    def __init__(self, header: RequestHeader, request: Any) -> None:
        self.header = header
        self.request = request


class Visitor:
    """One accepted connection. Everything waits, up to TIMEOUT_S."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(TIMEOUT_S)
        self.socket = connection

    def asked(self) -> Asked:
        """The next request."""
        (size,) = struct.unpack(">i", self._receive(4))
        frame = self._receive(size)
        header = decode_request_header(frame)
        request_class = spec(header.api_key).request_class
        return Asked(header, decode(request_class, header.api_version, frame, header.body_offset))

    def answer(self, asked: Asked, response: Response, *, correlation_id: int | None = None) -> None:
        """Answer in the request's version."""
        self.socket.sendall(framed(asked, response, correlation_id))

    def serve_versions(self, versions: dict[int, tuple[int, int]] | None = None) -> None:
        """Take a request for the versions and answer it: with these, or all that are known here."""
        asked = self.asked()
        assert asked.header.api_key == API_VERSIONS
        self.answer(asked, versions_response(versions))

    def closed_by_peer(self) -> bool:
        """Read on until the client has closed its side. Raises TimeoutError."""
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(65536):
                pass
        return True

    def reset(self) -> None:
        """Close so that the client gets an error, and loses what is on its way."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            piece = self.socket.recv(size - len(received))
            if not piece:
                raise ConnectionError("the client closed the connection")
            received += piece
        return received


class ScriptedBroker:
    """`with ScriptedBroker() as broker:` listens; connections wait until `accept` takes them."""

    def __init__(self, node_id: int = 1) -> None:
        self._listener = socket.create_server((HOST, 0), backlog=16)
        self._listener.settimeout(TIMEOUT_S)
        self.node = Node(node_id, HOST, self._listener.getsockname()[1])
        self._visitors: list[Visitor] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_listening()
        for visitor in self._visitors:
            visitor.socket.close()

    def accept(self) -> Visitor:
        """The next connection."""
        visitor = Visitor(self._listener.accept()[0])
        self._visitors.append(visitor)
        return visitor

    def stop_listening(self) -> None:
        """Refuse connections from now on; who waits in `accept`, on another thread, gets an OSError."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def framed(asked: Asked, response: Response, correlation_id: int | None = None) -> bytes:
    """An answer's bytes, with the correlation id of the request or another one."""
    header = asked.header
    head = ResponseHead(header.api_key, header.api_version)
    given = header.correlation_id if correlation_id is None else correlation_id
    return head.framed(given, encode(response, header.api_version))


def versions_response(versions: dict[int, tuple[int, int]] | None = None) -> ApiVersionsResponse:
    if versions is None:
        versions = {key: (known.oldest, known.newest) for key, known in VERSIONS.items()}
    rows = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in versions.items()]
    return ApiVersionsResponse(error_code=0, api_keys=rows)
