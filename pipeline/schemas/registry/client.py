"""Schemas over HTTP, as Confluent's registry and those like it (Karapace, Apicurio, Redpanda) serve them."""

import base64
import json
import ssl
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any, Final
from urllib.parse import quote, urlsplit

from kavka.pipeline.running.tables import SettingError
from kavka.pipeline.schemas.errors import SchemaMissingError, SchemaUnavailableError
from kavka.pipeline.schemas.registry.schema import RegisteredSchema, schema_of
from kavka.pipeline.schemas.settings import RegistrySettings
from kavka.pipeline.secret_references import resolved

_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_CHUNK_BYTES: Final = 64 << 10
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
        deadline = monotonic() + self._timeout_s
        connection = self._connect()
        try:
            connection.request("GET", self._path + path, headers=self._headers)
            answer = connection.getresponse()
            body = self._body(answer, deadline)
            return self._document(path, answer.status, body)
        except (OSError, HTTPException) as error:
            raise SchemaUnavailableError(f"{self._place} cannot be asked: {error or type(error).__name__}") from error
        finally:
            connection.close()

    def _body(self, answer: HTTPResponse, deadline: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while chunk := answer.read1(_CHUNK_BYTES):
            parts.append(chunk)
            size += len(chunk)
            if size > self._max_bytes:
                raise SchemaUnavailableError(f"{self._place} answers more than {self._max_bytes} bytes")
            if monotonic() > deadline:
                raise SchemaUnavailableError(f"{self._place} answers too slowly")
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
    return lambda: HTTPSConnection(host, port, timeout=timeout_s, context=context)
