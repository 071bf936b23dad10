"""One plain socket to a broker, speaking Kavka's own codec: any request, in any version, good or bad."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.schema import Request, schema_of

SIZE = struct.Struct(">i")
TIMEOUT_S = 20.0


class ClosedError(Exception):
    """The broker closed the connection instead of answering."""


class WireClient:
    """Requests go out one by one, or by `send` and `receive` as a pipeline; connects when it has to."""

    def __init__(self, host: str, port: int, *, client_id: str | None = "wire") -> None:
        self.address = (host, port)
        self.client_id = client_id
        self._socket: socket.socket | None = None
        self._correlation_id = 0
        self._ranges: dict[int, tuple[int, int]] | None = None

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The oldest and newest version of each API key that the broker advertises."""
        if self._ranges is None:
            answer = self.ask(ApiVersionsRequest(client_software_name="wire", client_software_version="1"), 3)
            self._ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        return self._ranges

    def ask(self, request: Request, version: int) -> Any:
        """The decoded answer. Raises ClosedError if there is none."""
        key = self.send(request, version)
        return self.receive(key, version)

    def send(self, request: Request, version: int) -> int:
        """Send without waiting; the request's API key."""
        key = schema_of(type(request)).key
        assert key is not None
        self._correlation_id += 1
        self.send_frame(
            encode_request_header(key, version, self._correlation_id, self.client_id) + encode(request, version)
        )
        return key

    def receive(self, key: int, version: int) -> Any:
        """The next answer, to the oldest request that has none."""
        frame = self.receive_frame()
        _, position = decode_response_header(key, version, frame)
        return decode(api.spec(key).response_class, version, memoryview(frame)[position:])

    def send_frame(self, frame: bytes, size: int | None = None) -> None:
        """Send bytes as a frame; `size` says something else than its length."""
        self._connected().sendall(SIZE.pack(len(frame) if size is None else size) + frame)

    def receive_frame(self) -> bytes:
        """The next frame's bytes. Raises ClosedError at the end of the stream."""
        (size,) = SIZE.unpack(self._exactly(SIZE.size))
        return self._exactly(size)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self.address, TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _exactly(self, count: int) -> bytes:
        connection = self._connected()
        received = bytearray()
        while len(received) < count:
            try:
                piece = connection.recv(count - len(received))
            except ConnectionError:
                piece = b""
            except TimeoutError:
                # An answer that comes later must not be taken for the next one.
                self.close()
                raise
            if not piece:
                self.close()
                raise ClosedError(f"closed after {len(received)} of {count} bytes")
            received += piece
        return bytes(received)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
