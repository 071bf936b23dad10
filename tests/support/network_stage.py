"""The way of a request without a network: a network thread on a loop that tests turn, and sockets made of bytes."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

from kavka.broker.metrics.registry import Metrics
from kavka.broker.network.connection import ClientSession, Connection
from kavka.broker.network.limits import ConnectionLimits, ConnectionSettings
from kavka.broker.network.network_thread import NetworkThread
from kavka.broker.network.request_queue import RequestQueue
from kavka.broker.network.settings import NetworkSettings
from kavka.broker.network.transports import PLAINTEXT, Transport
from kavka.broker.requests.dispatcher import Dispatcher
from kavka.broker.requests.handling import Context, Handler
from kavka.broker.requests.io_thread import IoThread
from kavka.broker.requests.session import Sessions
from kavka.broker.services import Services
from kavka.cluster.promise import Promise
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

SIZE = struct.Struct(">i")
HEARTBEAT = 12
VERSION = 3
LISTENER = "PLAINTEXT"
PEER = "10.0.0.9"


class FakeSocket:
    """A client's end and ours: what it has sent, what it took, and how much more it takes before it is full."""

    _descriptors = iter(range(10_000, 10_000_000))

    def __init__(self, *, room: int = 1 << 30, piece: int = 1 << 30) -> None:
        self.descriptor = next(self._descriptors)
        self.input = bytearray()
        self.ended = False
        self.taken = bytearray()
        self.room = room
        self.piece = piece
        self.broken = False
        self.reset = False
        self.was_shut = False
        self.options: list[tuple[int, int, int]] = []
        self.closed = False
        self.calls: list[tuple[int, int]] = []
        """Of each write: how many buffers, and its flags."""

    def getpeername(self) -> tuple[str, int]:
        return PEER, 40_000

    def getsockname(self) -> tuple[str, int]:
        return "10.0.0.1", 9092

    def fileno(self) -> int:
        return -1 if self.closed else self.descriptor

    def close(self) -> None:
        self.closed = True

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self.options.append((level, option, value))

    def shutdown(self, how: int) -> None:
        assert not self.closed
        self.was_shut = True

    def recv_into(self, space: memoryview) -> int:
        assert not self.closed, "read after close"
        if not self.input:
            if self.reset:
                raise ConnectionResetError
            if self.ended:
                return 0
            raise BlockingIOError
        size = min(len(space), len(self.input))
        space[:size] = self.input[:size]
        del self.input[:size]
        return size

    def send(self, data: bytes | memoryview, flags: int = 0) -> int:
        self.calls.append((1, flags))
        return self.take(data)

    def sendmsg(self, buffers: list[bytes | memoryview], ancillary: tuple[()], flags: int = 0) -> int:
        self.calls.append((len(buffers), flags))
        return self.take(b"".join(buffers))

    def take(self, data: bytes | memoryview) -> int:
        assert not self.closed, "written after close"
        if self.broken:
            raise BrokenPipeError
        if not self.room:
            raise BlockingIOError
        size = min(len(data), self.room, self.piece)
        self.taken += data[:size]
        self.room -= size
        return size


class FakeFiles:
    """Stands for `os` where answers are sent: file slices made of bytes, and how often each was released."""

    def __init__(self, sockets: Callable[[int], FakeSocket]) -> None:
        self._sockets = sockets
        self.slices: list[FakeSlice] = []

    def slice_of(self, data: bytes) -> FakeSlice:
        piece = FakeSlice(len(self.slices), data)
        self.slices.append(piece)
        return piece

    def sendfile(self, out: int, source: int, position: int, size: int) -> int:
        piece = self.slices[source]
        assert piece.released == 0, "sent after release"
        if piece.error:
            raise OSError(piece.error, "broken")
        return self._sockets(out).take(piece.data[position : position + size])


class FakeSlice:
    """A file slice; `data` may be shortened, as a truncation does."""

    def __init__(self, number: int, data: bytes) -> None:
        self._number = number
        self.data = data
        self.position = 0
        self.size_bytes = len(data)
        self.released = 0
        self.error = 0
        """What reading the file fails with."""
        self.failures: list[OSError | None] = []

    def fileno(self) -> int:
        return self._number

    def failed(self, error: OSError | None) -> None:
        self.failures.append(error)

    def release(self) -> None:
        self.released += 1


class FakeLoop:
    """An event loop that a test turns: `turn` runs what was called, and the callbacks of sockets that are ready."""

    def __init__(self) -> None:
        self.sockets: dict[int, FakeSocket] = {}
        self.called: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self.readers: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        self.writers: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}

    def call_soon_threadsafe(self, function: Callable[..., object], *arguments: Any) -> None:
        self.called.append((function, arguments))

    def call_later(self, delay_s: float, function: Callable[..., object], *arguments: Any) -> None:
        """Nothing here waits for the clock."""

    def add_reader(self, descriptor: int, function: Callable[..., object], *arguments: Any) -> None:
        assert descriptor >= 0, "a closed socket is watched"
        self.readers[descriptor] = (function, arguments)

    def remove_reader(self, descriptor: int) -> bool:
        return self.readers.pop(descriptor, None) is not None

    def add_writer(self, descriptor: int, function: Callable[..., object], *arguments: Any) -> None:
        assert descriptor >= 0, "a closed socket is watched"
        self.writers[descriptor] = (function, arguments)

    def remove_writer(self, descriptor: int) -> bool:
        return self.writers.pop(descriptor, None) is not None

    def is_closed(self) -> bool:
        return False

    def turn(self) -> bool:
        """One turn of the loop; whether there was anything to do."""
        busy = False
        for _ in range(len(self.called)):
            function, arguments = self.called.popleft()
            function(*arguments)
            busy = True
        for descriptor, socket in list(self.sockets.items()):
            if (socket.input or socket.ended) and descriptor in self.readers:
                function, arguments = self.readers[descriptor]
                function(*arguments)
                busy = True
            if (socket.room or socket.broken) and descriptor in self.writers:
                function, arguments = self.writers[descriptor]
                function(*arguments)
                busy = True
        return busy

    def settle(self) -> None:
        """Turn until there is nothing to do."""
        for _ in range(10_000):
            if not self.turn():
                return
        raise AssertionError("the loop never rests")


class FakeHangUps:
    """The sockets here are unknown to the kernel: tests tell the network thread themselves who has left."""

    def watch(self, connection: Connection) -> None: ...

    def forget(self, connection: Connection) -> None: ...

    def close(self) -> None: ...


class Stage:
    """A network thread, the queue, I/O threads that tests run, and a handler that does as the group id says.

    "now" is answered at once, "later" by `promises` while others run, "hold" by `promises` while they wait; "fail" and
    "crash" raise, "silent" has no answer.
    """

    def __init__(
        self,
        *,
        max_requests: int = 500,
        max_bytes: int = -1,
        handlers: Mapping[int, Handler] | None = None,
        services: Any = None,
        new_session: Callable[[str], ClientSession] | None = None,
        transport: Transport = PLAINTEXT,
    ) -> None:
        self.metrics = Metrics()
        self.cells = self.metrics.mine()
        self.queue = RequestQueue(max_requests, max_bytes)
        self.limits = ConnectionLimits(ConnectionSettings())
        self.rejected: list[str] = []
        self.answered: list[Context] = []
        self.promises: list[Promise[Any]] = []
        self.ran: list[int] = []
        handler = Handler(HeartbeatRequest, (0, 4), 0, self._handle, None)
        self.dispatcher = Dispatcher(
            {HEARTBEAT: handler, **(handlers or {})},
            services or Services(),
            self.queue,
            lambda _, why: self.rejected.append(why),
        )
        self.deaths: list[BaseException] = []
        settings = NetworkSettings(
            max_request_size_bytes=1 << 20, max_idle_ms=-1, send_buffer_bytes=-1, receive_buffer_bytes=-1
        )
        self.thread = NetworkThread(
            0,
            self.queue,
            settings,
            self.limits,
            self._run_nothing_inline,
            new_session or Sessions(()).new,
            self.metrics,
            self.answered.extend,
            lambda _, why: self.rejected.append(why),
            self.deaths.append,
            transport_of=lambda _: transport,
        )
        self.thread._loop.close()
        self.loop = FakeLoop()
        self.thread._loop = cast(Any, self.loop)
        self.thread._hang_ups.close()
        self.thread._hang_ups = cast(Any, FakeHangUps())
        self.thread.cells = self.cells
        self.io_threads = [
            IoThread(index, self.queue, self.dispatcher, self.metrics, self.deaths.append) for index in range(2)
        ]

    def _run_nothing_inline(self, connection: Connection, _received_ns: int, _cells: object) -> None:
        self.queue.put(connection)

    def connect(self, socket: FakeSocket | None = None) -> tuple[Connection, FakeSocket]:
        socket = socket or FakeSocket()
        self.loop.sockets[socket.descriptor] = socket
        assert self.limits.take_place(LISTENER)
        assert self.limits.admit(LISTENER, PEER)
        fake: Any = socket
        self.thread.adopt(fake, PEER, LISTENER)
        self.loop.turn()
        return self.thread.connections[self.thread._next_id], socket

    def run_one(self, index: int = 0) -> bool:
        """Let an I/O thread take one connection from the queue; False if there is none."""
        if not self.queue.qsize():
            return False
        connection = self.queue.get()
        assert connection is not None
        self.io_threads[index].run_turn(connection, self.cells, 0)
        return True

    def settle(self) -> None:
        """Until neither the loop nor an I/O thread has anything to do."""
        self.loop.settle()
        while self.run_one():
            self.loop.settle()

    def _handle(self, request: HeartbeatRequest, context: Context, _services: object) -> Any:
        self.ran.append(context.correlation_id)
        match request.group_id:
            case "later" | "hold" as kind:
                promise: Promise[Any] = Promise(effects_complete=kind == "later")
                self.promises.append(promise)
                return promise
            case "fail":
                raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            case "crash":
                raise ZeroDivisionError
            case "silent":
                return None
        return HeartbeatResponse(error_code=0)


def request(correlation_id: int, what: str = "now", *, pad: int = 0) -> bytes:
    """One framed request; `pad` bytes behind its last field, which servers leave alone, make it longer."""
    body = encode(HeartbeatRequest(group_id=what, generation_id=1, member_id="m"), VERSION) + bytes(pad)
    frame = encode_request_header(HEARTBEAT, VERSION, correlation_id, "c") + body
    return SIZE.pack(len(frame)) + frame


def answers(taken: bytes | bytearray) -> list[tuple[int, int]]:
    """(correlation id, error code) of each answer, all of them whole."""
    found = []
    position = 0
    while position < len(taken):
        (size,) = SIZE.unpack_from(taken, position)
        frame = bytes(taken[position + 4 : position + 4 + size])
        assert len(frame) == size, "half an answer"
        correlation_id, body = decode_response_header(HEARTBEAT, VERSION, frame)
        found.append((correlation_id, decode(HeartbeatResponse, VERSION, memoryview(frame)[body:]).error_code))
        position += 4 + size
    return found
