"""Links between named nodes, proxies that the test owns: each direction between two nodes can be held up by itself.

What is held up is late, not lost, as TCP has it: it goes on when the way is open again, or its connection is reset.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeAlias, TypeVar

Way: TypeAlias = tuple[str, str]
"""From one node to another."""
Value = TypeVar("Value")

HOST: Final = "127.0.0.1"
PIECE_BYTES: Final = 1 << 16
ESTABLISHED: Final = "01"


class Connection(NamedTuple):
    """A connection through a link: who made it, to whom, and both its ends."""

    source: str
    target: str
    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]


class Network:
    """`with Network() as network:`; `link` makes a port behind which another node is.

    Threads: one runs the proxies; every method may be called by any other, and returns when it is done.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        # From here on the loop's thread alone has these.
        self._held: set[Way] = set()
        self._changed = asyncio.Event()
        self._connections: set[Connection] = set()
        self._servers: list[asyncio.Server] = []

    def link(self, target: str, port: int, source: Callable[[int], str | None]) -> int:
        """A port that leads to `port` of `target`; `source(client_port)` tells who connects, None if it is nobody."""

        async def make() -> int:
            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                # asyncio would log that it was cancelled.
                with contextlib.suppress(asyncio.CancelledError):
                    await self._join(reader, writer, source, target, port)

            server = await asyncio.start_server(connected, HOST, 0)
            self._servers.append(server)
            found: int = server.sockets[0].getsockname()[1]
            return found

        return self._do(make())

    def hold(self, ways: Iterable[Way]) -> None:
        """From now on nothing goes these ways, a connection's end neither."""

        async def change() -> None:
            self._held |= set(ways)

        self._do(change())

    def release(self, ways: Iterable[Way], *, resets: bool) -> None:
        """Let everything through again; `resets` ends the connections between these nodes instead."""

        async def change() -> None:
            freed = set(ways)
            self._held -= freed
            if resets:
                for each in list(self._connections):
                    if {(each.source, each.target), (each.target, each.source)} & freed:
                        for writer in each.writers:
                            writer.transport.abort()
            self._changed.set()
            self._changed = asyncio.Event()

        self._do(change())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def close() -> None:
            for server in self._servers:
                server.close()
            for each in list(self._connections):
                for writer in each.writers:
                    writer.transport.abort()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._do(close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what: Coroutine[object, object, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    async def _join(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source_of: Callable[[int], str | None],
        target: str,
        port: int,
    ) -> None:
        source = source_of(writer.get_extra_info("peername")[1])
        if source is None:
            writer.close()
            return
        try:
            # Not before the way is open: a server that is cut off hears of nobody who connects.
            await self._passable((source, target))
            far_reader, far_writer = await asyncio.open_connection(HOST, port)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection(source, target, (writer, far_writer))
        self._connections.add(connection)
        try:
            await asyncio.gather(
                self._carry(reader, far_writer, (source, target)), self._carry(far_reader, writer, (target, source))
            )
        finally:
            self._connections.discard(connection)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
        try:
            with contextlib.suppress(OSError):
                while data := await reader.read(PIECE_BYTES):
                    await self._passable(way)
                    writer.write(data)
                    await writer.drain()
            await self._passable(way)
        finally:
            writer.close()

    async def _passable(self, way: Way) -> None:
        while way in self._held:
            await self._changed.wait()


def owner_of(port: int, processes: Iterable[tuple[str, int]]) -> str | None:
    """Which of these (name, pid) has a connection whose local port this is; None if it is none, or gone already."""
    wanted = f"{port:04X}"
    inode = ""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].rpartition(":")[2] == wanted and fields[3] == ESTABLISHED:
            inode = fields[9]
    link = f"socket:[{inode}]"
    for name, pid in processes:
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) == link:
                        return name
    return None
