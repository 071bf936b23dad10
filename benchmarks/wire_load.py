"""Load by our own codec on plain connections: clients that cost so little that the broker is what is measured.

One asyncio loop (uvloop) drives all connections of a load; each connection belongs to that loop's thread.
"""

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import uvloop

from benchmarks.librdkafka import LoadFailedError
from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.schema import Request, schema_of
from tests.support.server import RunningServer

SIZE = struct.Struct(">i")
COORDINATOR_TIMEOUT_S = 120.0
RETRY_S = 0.05
NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)

Answered = Callable[[bytes], None]
Value = TypeVar("Value")


class Connection(asyncio.Protocol):
    """Requests go out as they come; the n-th answer goes to the n-th callback, as bytes behind the length."""

    __slots__ = ("_received", "_transport", "_waiting")

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._waiting: deque[Answered] = deque()

    def send(self, frame: bytes | bytearray, answered: Answered) -> None:
        """Send a whole frame. An exception in the callback ends the connection, and so the load."""
        assert self._transport is not None
        self._waiting.append(answered)
        self._transport.write(frame)

    async def answer_to(self, frame: bytes) -> bytes:
        """Send a whole frame: its answer."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.send(frame, answer.set_result)
        return await answer

    async def ask(self, request: Request, version: int) -> Any:
        """Send a request: its decoded answer."""
        key = _key(request)
        data = await self.answer_to(frame_of(request, version))
        _, position = decode_response_header(key, version, data)
        return decode(api.spec(key).response_class, version, data, position)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's has the methods, but another base class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        position, end = 0, len(received)
        while end - position >= 4:
            (size,) = SIZE.unpack_from(received, position)
            if end - position - 4 < size:
                break
            self._waiting.popleft()(received[position + 4 : position + 4 + size])
            position += 4 + size
        self._received = received[position:]

    def connection_lost(self, error: Exception | None) -> None:
        while self._waiting:
            waiting = getattr(self._waiting.popleft(), "__self__", None)
            if isinstance(waiting, asyncio.Future) and not waiting.done():
                waiting.set_exception(ConnectionError("the broker closed the connection"))


async def connect(server: RunningServer) -> Connection:
    return await connect_to(server.host, server.port)


async def connect_to(host: str, port: int, tls: ssl.SSLContext | None = None) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port, ssl=tls)
    return connection


def run(load: Coroutine[Any, Any, Value]) -> Value:
    return uvloop.run(load)


def frame_of(request: Request, version: int, correlation_id: int = 1) -> bytes:
    body = encode_request_header(_key(request), version, correlation_id, "bench") + encode(request, version)
    return SIZE.pack(len(body)) + body


async def wait_for_coordinator(connection: Connection, key: str, key_type: int = 0) -> None:
    """Until FindCoordinator names one: the first asker has the internal topic made."""
    deadline = asyncio.get_running_loop().time() + COORDINATOR_TIMEOUT_S
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    while (code := (await connection.ask(request, 4)).coordinators[0].error_code) != 0:
        if code not in NOT_YET or asyncio.get_running_loop().time() > deadline:
            raise LoadFailedError(f"FindCoordinator: {ErrorCode(code).name}")
        await asyncio.sleep(RETRY_S)


def check(error_code: int, what: str) -> None:
    """Raises LoadFailedError for an error that the load does not expect."""
    if error_code:
        raise LoadFailedError(f"{what}: {ErrorCode(error_code).name}")


def _key(request: Request) -> int:
    key = schema_of(type(request)).key
    assert key is not None
    return key
