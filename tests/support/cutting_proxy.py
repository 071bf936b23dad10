"""A proxy between a client and a server that loses connections, or what goes one way, when it is told to."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class CuttingProxy:
    """Stands before `host:port` at `bootstrap`.

    Threads: one accepts, two carry each connection's bytes; `_lock` guards the connections. The flags are set by the
    test's thread and read by those.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self.swallows_requests = False
        self.swallows_answers = False
        self.refuses = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept)

    @property
    def bootstrap(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def lead_to(self, host: str, port: int) -> None:
        """From now on who connects comes there."""
        self._server = host, port

    def cut(self) -> None:
        """Close all connections there are."""
        with self._lock:
            going, self._sockets = self._sockets, set()
        for each in going:
            # Wakes the thread that reads from it, which closes it.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let everything through again."""
        self.swallows_requests = self.swallows_answers = self.refuses = False

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, server}
            self._start(self._carry, client, server, True)
            self._start(self._carry, server, client, False)

    def _carry(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        try:
            while data := source.recv(65536):
                if not (self.swallows_requests if is_request else self.swallows_answers):
                    target.sendall(data)
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._sockets.discard(source)
            source.close()
