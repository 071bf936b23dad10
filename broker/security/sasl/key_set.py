"""The public keys that tokens are signed with (JWKS, RFC 7517), of a file or a page, kept up to date by a thread.

They are fetched anew every `refresh_ms`, sooner after a failure, and once a token names a key that is not known: then
at most every UNKNOWN_KEY_S seconds, however many unknown names come. Whoever asks for a key never waits: until it is
there, its tokens are not believed. Keys that a failed fetch does not bring stay.
"""

import http.client
import logging
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from kavka.broker.security.sasl.key_reading import KeySetError, SigningKey, read_keys
from kavka.config.errors import ConfigError
from kavka.config.thread_names import thread_name

UNKNOWN_KEY_S: Final = 10.0
TIMEOUT_S: Final = 5.0
"""For each step of a fetch."""
LONGEST_FETCH_S: Final = 20.0
LONGEST_WAIT_S: Final = 365 * 86_400.0
"""The system refuses to wait for ever in seconds."""
MOST_BYTES: Final = 1024 * 1024
PIECE_BYTES: Final = 64 * 1024

log = logging.getLogger(__name__)


class KeySet:
    """The keys of one address.

    Threads: `find` by any; its own thread fetches, from `start` to `stop`. `_wake` guards `_is_wanted` and `_stopping`.
    `_keys` is replaced whole.
    """

    def __init__(
        self,
        url: str,
        refresh_ms: int,
        retry_backoff_ms: int,
        retry_backoff_max_ms: int,
        now_s: Callable[[], float] = time.monotonic,
        web_context: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        """`web_context()`: by what to trust a page, for each fetch, as stores may change. Raises ConfigError."""
        self.url: Final = url
        self._web_context: Final = web_context
        self._refresh_s = min(refresh_ms / 1000, LONGEST_WAIT_S)
        self._backoff_s = max(retry_backoff_ms, 1) / 1000
        self._backoff_max_s = min(max(retry_backoff_max_ms, retry_backoff_ms, 1) / 1000, LONGEST_WAIT_S)
        self._now_s = now_s
        self._wake = threading.Condition()
        self._is_wanted = self._stopping = False
        self._last_wanted_s = float("-inf")
        self._connection: http.client.HTTPConnection | None = None
        self._keys: Mapping[str | None, SigningKey] = {}
        self._thread = threading.Thread(target=self._run, name=thread_name("sasl-keys"), daemon=True)

    def find(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        """The key of that name, or without one the only key there is for the algorithm. None: it is not known yet."""
        keys = self._keys
        if key_id is None:
            fitting = [each for each in keys.values() if algorithm in each.algorithms]
            return fitting[0] if len(fitting) == 1 else None
        key = keys.get(key_id)
        if key is None:
            self._want()
        return key

    def fetch(self) -> None:
        """Fetch the keys now. Raises KeySetError."""
        keys = read_keys(self._read())
        if keys.keys() != self._keys.keys():
            log.info("keys for tokens fetched url=%s keys=%d", shown_url(self.url), len(keys))
        self._keys = keys

    def start(self) -> None:
        """Fetch the keys from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, a fetch that goes on, too."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
            connection = self._connection
            if connection is not None and connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join()

    def _want(self) -> None:
        now_s = self._now_s()
        with self._wake:
            if now_s - self._last_wanted_s >= UNKNOWN_KEY_S:
                self._last_wanted_s = now_s
                self._is_wanted = True
                self._wake.notify()

    def _run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                self.fetch()
                failures = 0
            except KeySetError as error:
                failures += 1
                if not self._stopping:
                    log.warning("keys for tokens cannot be fetched url=%s reason=%s", shown_url(self.url), error)
            except Exception:
                failures += 1
                log.exception("keys for tokens cannot be fetched url=%s", shown_url(self.url))
            self._wait(min(self._backoff_s * 2 ** min(failures - 1, 30), self._backoff_max_s) if failures else None)

    def _wait(self, retry_s: float | None) -> None:
        """Until the next fetch is due, or a key is wanted; after a failure only until the former."""
        with self._wake:
            if retry_s is None:
                self._wake.wait_for(lambda: self._is_wanted or self._stopping, self._refresh_s)
            else:
                self._wake.wait_for(lambda: self._stopping, retry_s)
            self._is_wanted = False

    def _read(self) -> bytes:
        parts = urllib.parse.urlsplit(self.url)
        try:
            if parts.scheme == "file":
                with Path(urllib.request.url2pathname(parts.path)).open("rb") as file:
                    return _bounded(file.read, float("inf"))
            return self._read_page(parts)
        except (OSError, http.client.HTTPException, ValueError, ConfigError) as problem:
            raise KeySetError(getattr(problem, "strerror", None) or str(problem) or type(problem).__name__) from problem

    def _read_page(self, parts: urllib.parse.SplitResult) -> bytes:
        host, port = parts.hostname or "", parts.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=self._web_context())
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        )
        with self._wake:
            if self._stopping:
                raise KeySetError("the broker stops")
            self._connection = connection
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers={"Accept": "application/json", "Connection": "close"})
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                raise KeySetError(f"the server answers {response.status}")
            return _bounded(response.read1, time.monotonic() + LONGEST_FETCH_S)
        finally:
            with self._wake:
                self._connection = None
            connection.close()


def shown_url(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _bounded(read: Callable[[int], bytes], deadline_s: float) -> bytes:
    """All that there is. Raises KeySetError for too much, or too late."""
    parts: list[bytes] = []
    size = 0
    while part := read(PIECE_BYTES):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise KeySetError(f"it has more than {MOST_BYTES} bytes")
        if time.monotonic() > deadline_s:
            raise KeySetError("it takes too long")
    return b"".join(parts)
