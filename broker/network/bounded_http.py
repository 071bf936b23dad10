"""HTTP for operators and tests: few connections, small requests, by the standard library's request handler.

Every answer closes its connection. A request's head is at most MAX_HEAD_BYTES; one that does not come, or is not taken,
within DEADLINE_S is dropped. As many connections are served at once as there are workers, each a thread that accepts
for itself.
"""

import io
import logging
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from kavka.config.thread_names import thread_name

MAX_HEAD_BYTES: Final = 8 * 1024
MOST_DRAINED_BYTES: Final = 64 * 1024
"""Of a request that is refused so much is read and dropped, lest the answer be lost with it."""
DEADLINE_S: Final = 10.0
ACCEPT_PAUSE_S: Final = 1.0
TEXT: Final = "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


class BoundedHttpServer:
    """Serves connections that `make_handler(connection, address)` each answers with one request's answer.

    Threads: `start` and `stop` by its owner; handlers run on the server's own threads, which `stop` joins. `_lock`
    guards `_open` and `_stopping`.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        workers: int,
        make_handler: "Callable[[socket.socket, Any], BoundedHandler]",
    ) -> None:
        """`name` begins the names of the threads, and of the settings that a failure names: NAME.host, NAME.port."""
        self._name = name
        self._host = host
        self._wanted_port = port
        self._make_handler = make_handler
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._threads = [
            threading.Thread(target=self._run, name=thread_name(f"{name}-{index}"), daemon=True)
            for index in range(workers)
        ]

    def start(self) -> int:
        """Listen and serve; the port. Raises OSError, which names the settings, where the address cannot be had."""
        try:
            listener = self._listener = self._listening_socket()
        except OSError as error:
            address = f"{self._name}.host={self._host} {self._name}.port={self._wanted_port}"
            # What Python adds to it is the same address again.
            reason = (error.strerror or str(error)).partition(" (while")[0]
            raise OSError(error.errno, f"{self._name} cannot be served at {address}: {reason}") from error
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.stop()
            raise
        return int(listener.getsockname()[1])

    def _listening_socket(self) -> socket.socket:
        if self._host:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            return socket.create_server((self._host, self._wanted_port), family=family)
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", self._wanted_port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", self._wanted_port))

    def stop(self) -> None:
        """Close all connections and join the threads. Nothing happens where `start` failed."""
        listener = self._listener
        if listener is None:
            return
        with self._lock:
            self._stopping.set()
            for connection in (listener, *self._open):
                _shut_down(connection)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        listener.close()

    def _run(self) -> None:
        listener = self._listener
        assert listener is not None
        while not self._stopping.is_set():
            try:
                connection, address = listener.accept()
            except OSError as error:
                if not self._stopping.is_set():
                    # Out of descriptors, mostly. The connection stays in the backlog, so asking at once would spin.
                    log.warning("cannot accept a connection server=%s error=%s", self._name, error)
                    self._stopping.wait(ACCEPT_PAUSE_S)
                continue
            with connection:
                self._serve(connection, address)

    def _serve(self, connection: socket.socket, address: Any) -> None:
        with self._lock:
            if self._stopping.is_set():
                return
            self._open.add(connection)
        try:
            handler = self._make_handler(connection, address)
            connection.shutdown(socket.SHUT_WR)
            handler.drain()
        except OSError as error:
            log.debug("a connection broke server=%s error=%s", self._name, error)
        except Exception:
            # One request's failure must not cost the worker, which nobody would miss.
            log.exception("a request failed server=%s", self._name)
        finally:
            with self._lock:
                self._open.discard(connection)


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
