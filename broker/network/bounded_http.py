"""HTTP for operators and tests by the standard library's server: few connections, small requests.

Every answer closes its connection. A request's head is at most MAX_HEAD_BYTES; one that does not come, or is not taken,
within DEADLINE_S is dropped. Connections beyond those that are served at once, each by a thread, wait in the backlog.
"""

import io
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final

from kavka.config.thread_names import thread_name

MAX_HEAD_BYTES: Final = 8 * 1024
MOST_DRAINED_BYTES: Final = 64 * 1024
"""Of a request that is refused so much is read and dropped, lest the answer be lost with it."""
DEADLINE_S: Final = 10.0
ACCEPT_PAUSE_S: Final = 1.0
POLL_S: Final = 3600.0
"""So often the library looks whether it is to end; `stop` has it look at once."""
TEXT: Final = "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


class BoundedHttpServer(ThreadingMixIn, HTTPServer):
    """The library's server, with a limit of connections at once; `make_handler(connection, address, server)` answers.

    Threads: made, started and stopped by its owner. `_lock` guards `_open` and the beginning of `_stopping`.
    """

    # Two brokers at one port would each get some of the scrapes.
    allow_reuse_port = False
    request_queue_size = 128

    def __init__(self, name: str, host: str, port: int, most: int, make_handler: Callable[..., Any]) -> None:
        """Listens. `name` begins the names of threads, and of the settings that a failure names: NAME.host, NAME.port.

        Raises OSError where the address cannot be had.
        """
        self._name = name
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._stopping = threading.Event()
        self._free = threading.BoundedSemaphore(most)
        self._has_both = not host and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if self._has_both or ":" in host else socket.AF_INET
        self._acceptor = threading.Thread(
            target=self.serve_forever, args=(POLL_S,), name=thread_name(name), daemon=True
        )
        try:
            super().__init__((host, port), make_handler)
        except OSError as error:
            reason = f"{name} cannot be served at {name}.host={host} {name}.port={port}: {error.strerror or error}"
            raise OSError(error.errno, reason) from error

    def start(self) -> None:
        """Serve. Listens no more where the thread cannot be had, which raises."""
        try:
            self._acceptor.start()
        except BaseException:
            self.server_close()
            raise

    def stop(self) -> None:
        """Close all connections and join the threads."""
        with self._lock:
            self._stopping.set()
            for connection in (self.socket, *self._open):
                _shut_down(connection)
        self.shutdown()
        self._acceptor.join()
        self.server_close()

    def server_bind(self) -> None:
        if self._has_both:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # HTTPServer's own asks the resolver for the host's name besides.
        TCPServer.server_bind(self)
        self.server_port = self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if not self._stopping.is_set():
                # Out of descriptors, mostly. The connection stays in the backlog, so asking at once would spin.
                log.warning("cannot accept a connection server=%s error=%s", self._name, error)
                self._stopping.wait(ACCEPT_PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        with self._lock:
            self._open.add(request)
            if self._stopping.is_set():
                _shut_down(request)
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The library would join the thread that could not be started, too, when it closes.
            vars(self)["_threads"].reap()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        threading.current_thread().name = f"{self._acceptor.name}-connection"
        super().process_request_thread(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """However a connection ends, and where it got no thread."""
        with self._lock:
            self._open.discard(request)
        self.close_request(request)
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if isinstance(error := sys.exception(), OSError):
            log.debug("a connection broke server=%s error=%s", self._name, error)
        else:
            log.exception("a request failed server=%s", self._name)


class BoundedHandler(BaseHTTPRequestHandler):
    """One request. A subclass has the methods `do_GET` and so on, and says in `methods` which they are."""

    methods = "GET and HEAD"

    protocol_version = "HTTP/1.1"
    error_message_format = "%(message)s\n"
    error_content_type = TEXT

    def setup(self) -> None:
        super().setup()
        self.is_refused = False
        self.head = RequestHead(self.connection, time.monotonic() + DEADLINE_S)
        self.rfile = io.BufferedReader(self.head)

    def handle(self) -> None:
        super().handle()
        self.connection.shutdown(socket.SHUT_WR)
        self.drain()

    def drain(self) -> None:
        """Read what is left of a request that was refused, until its client closes: all of it once the answer is sent.

        A socket that is closed with bytes unread resets its connection, and the answer may not have been read by then.
        """
        if self.is_refused:
            self.head.drain()

    def parse_request(self) -> bool:
        self.close_connection = True
        if not super().parse_request():
            return False
        self.close_connection = True
        self.head.wait_no_longer()
        if self.request_version == "HTTP/0.9" or self.head.left_bytes <= 0:
            # The library would answer the one without a head, and leave out what was cut off the other.
            return self._refuse("not an HTTP request, or too long a one")
        return True

    def answer(self, status: int, content_type: str, body: bytes) -> None:
        """Send an answer, which closes the connection."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.is_refused = True
        if code == 501:
            code, message = 405, f"only {self.methods} are served"
        if self.request_version == "HTTP/0.9":
            self.request_version = "HTTP/1.0"
        super().send_error(code, message, explain)

    def version_string(self) -> str:
        return "kavka"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Scrapes are no events."""

    def _refuse(self, reason: str) -> bool:
        self.send_error(400, reason)
        return False


class RequestHead(io.RawIOBase):
    """A connection's first MAX_HEAD_BYTES, until the deadline."""

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s
        self.left_bytes = MAX_HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.wait_no_longer()
        size_bytes = self._connection.recv_into(memoryview(buffer)[: self.left_bytes]) if self.left_bytes > 0 else 0
        self.left_bytes -= size_bytes
        return size_bytes

    def drain(self) -> None:
        """Drop what comes until the end, MOST_DRAINED_BYTES or the deadline. Raises OSError."""
        left_bytes = MOST_DRAINED_BYTES
        while left_bytes > 0:
            self.wait_no_longer()
            size_bytes = len(self._connection.recv(MAX_HEAD_BYTES))
            if size_bytes == 0:
                return
            left_bytes -= size_bytes

    def wait_no_longer(self) -> None:
        """Have the connection's next call end by the deadline, be it reading or writing."""
        self._connection.settimeout(max(self._deadline_s - time.monotonic(), 0.001))


def _shut_down(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        log.debug("a connection was gone already")
