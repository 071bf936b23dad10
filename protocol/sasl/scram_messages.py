"""The four messages of a SCRAM exchange (RFC 5802), as Kafka reads and writes them.

Kafka knows no channel binding, so that a client begins with `n,` alone, and no names or nonces beyond ASCII. What is
signed is each message as it was received, extensions included.
"""

import base64
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_SAFE: Final = r"[\x01-\x2b\x2d-\x3c\x3e-\x7f]"
_NAME: Final = rf"(?:{_SAFE}|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_RESERVED: Final = rf"(?:m={_VALUE},)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"

_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,(?P<bare>{_RESERVED}n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST: Final = re.compile(
    rf"{_RESERVED}r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,10}}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<unsigned>c=(?:{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(rf"(?:e=(?P<error>{_SAFE}+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}")

LONGEST_BYTES: Final = 32 * 1024
"""Of a message, whose names and nonces take some hundred: a frame full of them costs a tenth of a second."""
NO_BINDING: Final = "n,,"
"""What a client begins with that binds to no channel and acts for itself."""


class ScramError(Exception):
    """A message that does not fit, or proves nothing. The text has no secret, but says more than a client may know."""


class ClientFirst(NamedTuple):
    """Who wants in. `bare` is the message without its beginning, which both sides sign."""

    user: str
    authorization_id: str
    nonce: str
    extensions: Mapping[str, str]
    bare: str


class ServerFirst(NamedTuple):
    """What the proof is to be made with. `text` is the message as it was sent, which both sides sign."""

    nonce: str
    salt: bytes
    iterations: int
    text: str


class ClientFinal(NamedTuple):
    """The client's proof. `unsigned` is the message without it, which both sides sign."""

    nonce: str
    proof: bytes
    unsigned: str


def client_first(user: str, nonce: str, extensions: Mapping[str, str]) -> str:
    """The first message without its beginning; `NO_BINDING` goes before it."""
    more = "".join(f",{name}={value}" for name, value in extensions.items())
    return f"n={_encoded_name(user)},r={nonce}{more}"


def read_client_first(message: bytes) -> ClientFirst:
    """Raises ScramError."""
    found = _matched(_CLIENT_FIRST, message, "client first")
    pairs = (each.split("=", 1) for each in found["extensions"].split(",")[1:])
    return ClientFirst(
        _decoded_name(found["name"]),
        _decoded_name(found["authorization_id"] or ""),
        found["nonce"],
        dict(pairs),
        found["bare"],
    )


def server_first(nonce: str, salt: bytes, iterations: int) -> ServerFirst:
    """The answer to a client's first message; `nonce` is the client's with the server's behind it."""
    return ServerFirst(nonce, salt, iterations, f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}")


def read_server_first(message: bytes) -> ServerFirst:
    """Raises ScramError."""
    found = _matched(_SERVER_FIRST, message, "server first")
    return ServerFirst(found["nonce"], base64.b64decode(found["salt"]), int(found["iterations"]), found[0])


def client_final_unsigned(nonce: str) -> str:
    """The last message of a client without the proof, which `with_proof` adds."""
    return f"c={base64.b64encode(NO_BINDING.encode()).decode()},r={nonce}"


def with_proof(unsigned: str, proof: bytes) -> bytes:
    """The client's last message."""
    return f"{unsigned},p={base64.b64encode(proof).decode()}".encode()


def read_client_final(message: bytes) -> ClientFinal:
    """Raises ScramError."""
    found = _matched(_CLIENT_FINAL, message, "client final")
    return ClientFinal(found["nonce"], base64.b64decode(found["proof"]), found["unsigned"])


def server_final(signature: bytes) -> bytes:
    """The server's proof that it knows the client's keys, too."""
    return b"v=" + base64.b64encode(signature)


def read_server_final(message: bytes) -> bytes:
    """The server's signature. Raises ScramError, also for the error that a server told."""
    found = _matched(_SERVER_FINAL, message, "server final")
    if found["error"] is not None:
        raise ScramError(f"the server refuses: {found['error']}")
    return base64.b64decode(found["signature"])


def _matched(pattern: re.Pattern[str], message: bytes, kind: str) -> re.Match[str]:
    # What is not ASCII fits nowhere, however it is read.
    found = None if len(message) > LONGEST_BYTES else pattern.fullmatch(message.decode("latin-1"))
    if found is None:
        raise ScramError(f"Invalid SCRAM {kind} message format")
    return found


def _encoded_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _decoded_name(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
