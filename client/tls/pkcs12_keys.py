"""The private keys of a PKCS12 store that has several: `cryptography` gives the first alone.

Keys lie in parts of the store that are not encrypted themselves (RFC 7292), each sealed by itself:

    PFX: version, [data: AuthenticatedSafe: [data: SafeContents: [bag: kind, value, attributes], ...], ...], MAC
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.client.tls.der import INTEGER, OBJECT_IDENTIFIER, OCTETS, SEQUENCE, SET, element, take

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_EXPLICIT: Final = 0xA0
_DATA: Final = bytes.fromhex("2a864886f70d010701")
_KEY_BAG: Final = bytes.fromhex("2a864886f70d010c0a0101")
_SEALED_KEY_BAG: Final = bytes.fromhex("2a864886f70d010c0a0102")
_FRIENDLY_NAME: Final = bytes.fromhex("2a864886f70d010914")


class NamedKey(NamedTuple):
    """A key and its alias."""

    alias: str
    key: PrivateKeyTypes


def pkcs12_keys(data: bytes, password: bytes | None) -> list[NamedKey]:
    """All keys, in the store's order. Its integrity was checked before. Raises ValueError, TypeError."""
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    found = []
    for kind, value, attributes in _bags(data):
        if kind in (_KEY_BAG, _SEALED_KEY_BAG):
            key = load_der_private_key(value, password if kind == _SEALED_KEY_BAG else None)
            found.append(NamedKey(_alias(attributes), key))
    return found


def _bags(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The kind, the value and the attributes of each bag that is not encrypted as a whole."""
    whole = _only(data, SEQUENCE)
    _, rest = take(whole, INTEGER)
    content, _ = take(rest, SEQUENCE)
    for part in _each(_only(_contents(content), SEQUENCE), SEQUENCE):
        if not part.startswith(bytes([OBJECT_IDENTIFIER, len(_DATA)]) + _DATA):
            continue
        for bag in _each(_only(_contents(part), SEQUENCE), SEQUENCE):
            kind, rest = take(bag, OBJECT_IDENTIFIER)
            value, rest = take(rest, _EXPLICIT)
            yield kind, value, _only(rest, SET) if rest else b""


def _contents(info: bytes) -> bytes:
    """What a ContentInfo of the kind `data` holds."""
    kind, rest = take(info, OBJECT_IDENTIFIER)
    if kind != _DATA:
        raise ValueError("PKCS12 of a kind that is not known")
    return _only(_only(rest, _EXPLICIT), OCTETS)


def _alias(attributes: bytes) -> str:
    for attribute in _each(attributes, SEQUENCE):
        name, rest = take(attribute, OBJECT_IDENTIFIER)
        if name == _FRIENDLY_NAME:
            text, _ = element(_only(rest, SET))[1:]
            return text.decode("utf-16-be", "replace")
    return ""


def _each(data: bytes, tag: int) -> Iterator[bytes]:
    while data:
        content, data = take(data, tag)
        yield content


def _only(data: bytes, tag: int) -> bytes:
    return take(data, tag)[0]
