"""The HTTP server of /metrics, /healthz and /readyz: one thread, no blocking reads, bounded in every direction.

    /metrics  what Prometheus scrapes
    /healthz  200 while the broker lives, 503 with the reason after a fatal error
    /readyz   200 while it serves clients, 503 before and after

Every answer closes its connection. A request is at most MAX_REQUEST_BYTES of head; one that does not come, or is not
taken, within DEADLINE_S is dropped; beyond MAX_CONNECTIONS nobody is accepted until one is through.
"""

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

MAX_REQUEST_BYTES: Final = 8 * 1024
MAX_CONNECTIONS: Final = 64
DEADLINE_S: Final = 10.0
ACCEPT_PAUSE_S: Final = 1.0
RECEIVE_BYTES: Final = 4096
TEXT: Final = "text/plain; charset=utf-8"
EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

log = logging.getLogger(__name__)


class _Client:
    """One connection: what it sent so far, what it has yet to take."""

    __slots__ = ("answer", "deadline_s", "received", "socket")

    def __init__(self, client_socket: socket.socket, deadline_s: float) -> None:
        self.socket: Final = client_socket
        self.deadline_s: Final = deadline_s
        self.received = bytearray()
        self.answer: memoryview | None = None


class MetricsServer:
    """Serves one broker's metrics and health.

    `render()` gives the exposition; `failure()` the reason why the broker is not healthy, or None; `is_ready()`
    whether it serves.

    Threads: `start` and `stop` by the broker's owner; all else on the server's own thread, which `stop` joins.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        render: Callable[[], bytes],
        failure: Callable[[], str | None],
        is_ready: Callable[[], bool],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._wanted_port = port
        self._render = render
        self._failure = failure
        self._is_ready = is_ready
        self._now_s = now_s
        self._clients: dict[socket.socket, _Client] = {}
        self._selector: Final = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._stopping = False
        self._accepting = False
        self._accept_again_s: float | None = None
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> int:
        """Listen and serve; the port. Raises OSError, which names the settings, where the address cannot be had."""
        try:
            self._listener = self._listening_socket()
        except OSError as error:
            self.stop()
            address = f"metrics.host={self._host} metrics.port={self._wanted_port}"
            # What Python adds to it is the same address again.
            reason = (error.strerror or str(error)).partition(" (while")[0]
            raise OSError(error.errno, f"metrics cannot be served at {address}: {reason}") from error
        self._listener.setblocking(False)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        self._accept_more()
        self._thread.start()
        return int(self._listener.getsockname()[1])

    def _listening_socket(self) -> socket.socket:
        if self._host:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            return socket.create_server((self._host, self._wanted_port), family=family)
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", self._wanted_port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", self._wanted_port))

    def stop(self) -> None:
        """Close all connections and join the thread, if it was started."""
        self._stopping = True
        if self._thread.is_alive():
            self._wake_sender.send(b"\0")
            self._thread.join()
            self._listener.close()
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    def _run(self) -> None:
        try:
            while not self._stopping:
                for key, _ in self._selector.select(self._until_deadline_s()):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif isinstance(key.data, _Client):
                        self._serve(key.data)
                self._drop_overdue()
        except Exception:
            log.exception("the metrics server has stopped")
        finally:
            for client in list(self._clients.values()):
                self._close(client)

    def _until_deadline_s(self) -> float | None:
        """How long to sleep: for ever, with nobody there."""
        times_s = [client.deadline_s for client in self._clients.values()]
        if self._accept_again_s is not None:
            times_s.append(self._accept_again_s)
        return max(min(times_s) - self._now_s(), 0) if times_s else None

    def _drop_overdue(self) -> None:
        now_s = self._now_s()
        for client in [client for client in self._clients.values() if client.deadline_s <= now_s]:
            self._close(client)
        if self._accept_again_s is not None and self._accept_again_s <= now_s:
            self._accept_again_s = None
            self._accept_more()

    def _accept_more(self) -> None:
        room = len(self._clients) < MAX_CONNECTIONS and self._accept_again_s is None
        if room and not self._accepting:
            self._selector.register(self._listener, selectors.EVENT_READ)
        elif not room and self._accepting:
            self._selector.unregister(self._listener)
        self._accepting = room

    def _accept(self) -> None:
        try:
            client_socket, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # Out of descriptors, mostly. The connection stays in the backlog, so asking at once would spin.
            log.warning("cannot accept a metrics connection error=%s", error)
            self._accept_again_s = self._now_s() + ACCEPT_PAUSE_S
            self._accept_more()
            return
        client_socket.setblocking(False)
        client = self._clients[client_socket] = _Client(client_socket, self._now_s() + DEADLINE_S)
        self._selector.register(client_socket, selectors.EVENT_READ, client)
        self._accept_more()

    def _serve(self, client: _Client) -> None:
        try:
            if client.answer is None:
                self._receive(client)
            else:
                self._send(client, client.answer)
        except BlockingIOError:
            return
        except OSError:
            self._close(client)

    def _receive(self, client: _Client) -> None:
        data = client.socket.recv(RECEIVE_BYTES)
        client.received += data
        if b"\r\n\r\n" in client.received or b"\n\n" in client.received:
            answer = self._answer(bytes(client.received))
        elif not data:
            self._close(client)
            return
        elif len(client.received) > MAX_REQUEST_BYTES:
            answer = _response(400, b"the request is too long\n")
        else:
            return
        client.answer = memoryview(answer)
        self._selector.modify(client.socket, selectors.EVENT_WRITE, client)
        self._send(client, client.answer)

    def _send(self, client: _Client, answer: memoryview) -> None:
        client.answer = answer[client.socket.send(answer) :]
        if not client.answer:
            client.socket.shutdown(socket.SHUT_WR)
            self._close(client)

    def _close(self, client: _Client) -> None:
        self._selector.unregister(client.socket)
        client.socket.close()
        self._clients.pop(client.socket, None)
        self._accept_more()

    def _answer(self, request: bytes) -> bytes:
        words = request.split(b"\r\n", 1)[0].split(b"\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(400, b"not an HTTP request\n")
        method, path = words[0], words[1].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response(405, b"only GET and HEAD are served\n")
        status, content_type, body = self._page(path)
        return _response(status, body, content_type, head_only=method == b"HEAD")

    def _page(self, path: bytes) -> tuple[int, str, bytes]:
        if path == b"/metrics":
            try:
                return 200, EXPOSITION, self._render()
            except Exception:
                log.exception("cannot render the metrics")
                return 500, TEXT, b"the metrics could not be rendered; the log says why\n"
        if path == b"/healthz":
            reason = self._failure()
            return (200, TEXT, b"ok\n") if reason is None else (503, TEXT, f"{reason}\n".encode())
        if path == b"/readyz":
            return (200, TEXT, b"ready\n") if self._is_ready() else (503, TEXT, b"not ready\n")
        return 404, TEXT, b"there are /metrics, /healthz and /readyz\n"


def _response(status: int, body: bytes, content_type: str = TEXT, *, head_only: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\n"
        f"Content-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else body)
