"""OAUTHBEARER's messages (RFC 7628) as Kafka has them (KIP-255, KIP-342)."""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

SEPARATOR: Final = "\1"
AFTER_ERROR: Final = b"\1"
"""What a client sends after the server has told it an error: then the server ends the exchange."""
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS: Final = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_FIRST: Final = re.compile(rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)", re.ASCII)
_NO_EXTENSIONS: Final[Mapping[str, str]] = MappingProxyType({})


class BearerError(Exception):
    """A message that does not fit. The text has nothing of it."""


class BearerFirst(NamedTuple):
    """A client's first message."""

    token: str
    authorization_id: str
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return f"BearerFirst(authorization_id={self.authorization_id!r})"


def bearer_first(token: str, extensions: Mapping[str, str] = _NO_EXTENSIONS, authorization_id: str = "") -> bytes:
    """What a client sends first."""
    name = authorization_id.replace("=", "=3D").replace(",", "=2C")
    pairs = {"auth": f"Bearer {token}", **extensions}
    text = "".join(f"{key}={value}{SEPARATOR}" for key, value in pairs.items())
    return f"n,{f'a={name}' if name else ''},{SEPARATOR}{text}{SEPARATOR}".encode()


def read_bearer_first(message: bytes) -> BearerFirst:
    """Raises BearerError."""
    found = _FIRST.fullmatch(message.decode("latin-1"))
    if found is None:
        raise BearerError("Invalid OAUTHBEARER client first message")
    pairs = dict(each.split("=", 1) for each in found["pairs"].split(SEPARATOR) if each)
    auth = pairs.pop("auth", None)
    if auth is None:
        raise BearerError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    parts = _AUTH.fullmatch(auth)
    if parts is None:
        raise BearerError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if parts["scheme"].lower() != "bearer":
        raise BearerError("Invalid scheme in OAUTHBEARER client first message")
    # As Kafka takes it: without decoding =2C and =3D.
    return BearerFirst(parts["token"], found["authorization_id"] or "", pairs)


def bearer_error(status: str, scope: str | None = None) -> str:
    """What a server answers to a token that it does not believe."""
    # Kafka's spaces, of which it has one where there is a scope.
    return f'{{"status":{json.dumps(status)}' + ("}" if scope is None else f', "scope":{json.dumps(scope)}}}')
