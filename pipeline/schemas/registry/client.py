"""Schemas over HTTP, as Confluent's registry and those like it (Karapace, Apicurio, Redpanda) serve them."""

import base64
import json
import ssl
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR, socket
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import quote, urlsplit

from kavka.pipeline.running.tables import SettingError
from kavka.pipeline.schemas.errors import SchemaMissingError, SchemaUnavailableError
from kavka.pipeline.schemas.registry.schema import RegisteredSchema, schema_of
from kavka.pipeline.schemas.settings import RegistrySettings
from kavka.pipeline.secret_references import resolved

_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_CHUNK_BYTES: Final = 64 << 10
_CUT_AGAIN_S: Final = 0.1
_MISSING_CODES: Final = {40401, 40402, 40403}
"""No such subject, version, schema. A 404 without one of these may be any web server's."""


class HttpRegistry:
    """Asks a registry; one connection a request, for they are few. Follows no redirect: credentials go nowhere else.

    One thread's. Answers are bounded in size and time by the settings.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        """Raises SettingError if certificates cannot be read, SecretError for a reference that leads nowhere."""
        parts = urlsplit(settings.url or "")
        self._path: Final = parts.path.rstrip("/")
        self._max_bytes: Final = settings.max_bytes
        self._timeout_s: Final = settings.timeout_ms / 1000
        self._place: Final = f"{parts.scheme}://{parts.netloc}{self._path}"
        self._connect: Final = _connector(settings, parts.scheme, parts.hostname or "", parts.port)
        self._headers: Final = {"Accept": _ACCEPT, "Connection": "close"}
        if settings.username is not None:
            pair = resolved(f"{settings.username}:{settings.password}").encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Raises SchemaMissingError, SchemaUnavailableError."""
        return schema_of(self._get(f"/schemas/ids/{schema_id}"), schema_id)

    def by_version(self, subject: str, version: int | str) -> RegisteredSchema:
        """Raises SchemaMissingError, SchemaUnavailableError."""
        return schema_of(self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}"))

    def _get(self, path: str) -> Any:
        connection = self._connect()
        limit = _Limit(connection, self._timeout_s)
        try:
            with limit:
                connection.connect()
                connection.request("GET", self._path + path, headers=self._headers)
                answer = connection.getresponse()
                body = self._body(answer)
            # An answer that was cut off may look like a whole one.
            limit.check()
            return self._document(path, answer.status, body)
        except (OSError, HTTPException) as error:
            slowly = f"it answers too slowly, for more than {self._timeout_s:g} s"
            # The connection's own limit may be over a moment before.
            is_late = limit.is_over or isinstance(error, TimeoutError)
            what = slowly if is_late else error or type(error).__name__
            raise SchemaUnavailableError(f"{self._place} cannot be asked: {what}") from error
        finally:
            connection.close()

    def _body(self, answer: HTTPResponse) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := answer.read1(_CHUNK_BYTES):
            parts.append(chunk)
            size += len(chunk)
            if size > self._max_bytes:
                raise SchemaUnavailableError(f"{self._place} answers more than {self._max_bytes} bytes")
        return b"".join(parts)

    def _document(self, path: str, status: int, body: bytes) -> Any:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if status == 200:
            if document is None:
                raise SchemaUnavailableError(f"{self._place}{path} is no JSON")
            return document
        code = document.get("error_code") if isinstance(document, dict) else None
        if status == 404 and isinstance(code, int) and code in _MISSING_CODES:
            raise SchemaMissingError(f"{self._place} has no {path}")
        said = "a redirect, which is not followed" if 300 <= status < 400 else f"status {status}"
        raise SchemaUnavailableError(f"{self._place}{path} answers with {said}")


class _Limit:
    """Of the time for all of a request: the connection's own holds for each wait alone, byte by byte.

    Its thread cuts the connection off when the time is over; it has ended when the `with` has.
    """

    def __init__(self, connection: HTTPConnection, timeout_s: float) -> None:
        self._connection: Final = connection
        self._timeout_s: Final = timeout_s
        self._over: Final = Event()
        self._done: Final = Event()
        self._thread: Final = Thread(target=self._watch, name="registry-time-limit", daemon=True)

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def check(self) -> None:
        """Raises TimeoutError."""
        if self.is_over:
            raise TimeoutError

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        if self._done.wait(self._timeout_s):
            return
        self._over.set()
        while True:
            # There may be none yet, or another one by and by: while it connects, and before TLS has taken it over.
            connected = self._connection.sock
            with suppress(OSError):
                # Of the socket itself: TLS's own would wait for an answer.
                if connected is not None:
                    socket.shutdown(connected, SHUT_RDWR)
            if self._done.wait(_CUT_AGAIN_S):
                return


class _Tls(HTTPSConnection):
    """Its socket is there to be cut off before the handshake begins."""

    def __init__(self, host: str, port: int | None, timeout_s: float, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=timeout_s, context=context)
        self._tls: Final = context

    def connect(self) -> None:
        HTTPConnection.connect(self)
        wrapped = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = wrapped
        wrapped.do_handshake()


def _connector(settings: RegistrySettings, scheme: str, host: str, port: int | None) -> Callable[[], HTTPConnection]:
    timeout_s = settings.timeout_ms / 1000
    if scheme == "http":
        return lambda: HTTPConnection(host, port, timeout=timeout_s)
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.cert_file is not None:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except (OSError, ValueError) as error:
        raise SettingError("registry", f"certificates cannot be read: {error}") from error
    return lambda: _Tls(host, port, timeout_s, context)
