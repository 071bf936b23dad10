"""Tokens from where they are handed out: by HTTP for a client's id and secret (KIP-768), or from a file."""

import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, unquote, urlsplit

from kavka.client.backoff import ExponentialBackoff
from kavka.client.security.bearer.token import LONGEST_CHARACTERS, TokenError
from kavka.config.values import Password

DEFAULT_TIMEOUT_MS: Final = 30_000
"""Kafka's client waits for ever where its settings do not say how long."""
_LONGEST_ANSWER_BYTES: Final = 2 * LONGEST_CHARACTERS
_SHOWN_CHARACTERS: Final = 200
_FOR_GOOD: Final = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505})
"""Answers that will be the same when the endpoint is asked again."""


class _AgainError(TokenError):
    """It may be better the next time."""


class Endpoint(NamedTuple):
    """Where tokens are fetched, and as whom. `context` is None for http."""

    url: str
    client_id: str
    client_secret: Password
    scope: str | None = None
    urlencodes: bool = False
    context: ssl.SSLContext | None = None
    connect_timeout_ms: float = DEFAULT_TIMEOUT_MS
    read_timeout_ms: float = DEFAULT_TIMEOUT_MS


def fetch_with_patience(
    endpoint: Endpoint,
    backoff_ms: float,
    backoff_max_ms: float,
    is_over: threading.Event,
    now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
) -> str:
    """A token's text, asked for again after ever longer pauses, `backoff_max_ms` after the first time at the latest.

    Raises TokenError.
    """
    backoff = ExponentialBackoff(backoff_ms, backoff_max_ms)
    until_ms = now_ms() + backoff_max_ms
    failures = 0
    while True:
        try:
            return fetch(endpoint)
        except _AgainError:
            failures += 1
            wait_ms = min(backoff.delay_ms(failures), until_ms - now_ms())
            if wait_ms <= 0 or is_over.wait(min(wait_ms / 1000, threading.TIMEOUT_MAX)):
                raise


def fetch(endpoint: Endpoint) -> str:
    """A token's text, asked for once. Raises TokenError."""
    status, body = _asked(endpoint)
    if not 200 <= status < 300:
        kind = TokenError if status in _FOR_GOOD else _AgainError
        raise kind(f"{_shown(endpoint.url)} answered {status}{_reason(body)}")
    document = _document(body)
    token = document.get("access_token")
    if not isinstance(token, str) or not token.strip():
        raise TokenError(f"{_shown(endpoint.url)} answered without an access_token")
    return token


def token_of_file(url: str) -> str:
    """The text in the file that a `file:` URL names. Raises TokenError."""
    path = Path(unquote(urlsplit(url).path))
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST_CHARACTERS + 1)
        return text.decode("ascii")
    except OSError as failure:
        raise TokenError(f"{path}: {failure.strerror}") from None
    except UnicodeDecodeError:
        raise TokenError(f"{path} holds no token") from None


def _asked(endpoint: Endpoint) -> tuple[int, bytes]:
    parts = urlsplit(endpoint.url)
    body = "grant_type=client_credentials"
    if endpoint.scope:
        body += f"&scope={quote_plus(endpoint.scope)}"
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {_credentials(endpoint)}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connect_s = endpoint.connect_timeout_ms / 1000
    connection = (
        http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=connect_s)
        if endpoint.context is None
        else http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=connect_s, context=endpoint.context)
    )
    try:
        connection.connect()
        connection.sock.settimeout(endpoint.read_timeout_ms / 1000)
        connection.request("POST", target, body.encode(), headers)
        answer = connection.getresponse()
        return answer.status, answer.read(_LONGEST_ANSWER_BYTES)
    except ssl.SSLError as failure:
        raise TokenError(f"{_shown(endpoint.url)}: {failure}") from None
    except (ValueError, OverflowError) as failure:
        # A time limit that no socket takes.
        raise TokenError(f"{_shown(endpoint.url)}: {failure}") from None
    except (OSError, http.client.HTTPException) as failure:
        raise _AgainError(f"{_shown(endpoint.url)}: {str(failure) or type(failure).__name__}") from None
    finally:
        connection.close()


def _credentials(endpoint: Endpoint) -> str:
    name, secret = endpoint.client_id, endpoint.client_secret.value
    if endpoint.urlencodes:
        name, secret = quote_plus(name), quote_plus(secret)
    return base64.b64encode(f"{name}:{secret}".encode()).decode()


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    return document if isinstance(document, dict) else {}


def _reason(body: bytes) -> str:
    """What the endpoint says went wrong (RFC 6749), cut short."""
    document = _document(body)
    said = [str(document[name])[:_SHOWN_CHARACTERS] for name in ("error", "error_description") if document.get(name)]
    return f": {' - '.join(said)}" if said else ""


def _shown(url: str) -> str:
    """The URL without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
