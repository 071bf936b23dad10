"""PEM: keys and certificates as text, in a file or in a setting (KIP-651)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kavka.client.tls.store_entries import KeyEntry, Store, StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

BEGIN: Final = b"-----BEGIN "
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
_LINE: Final = 64


def read_pem(data: bytes, key_password: bytes | None) -> Store:
    """The keys and certificates of a PEM text. With a key, the certificates are its chain. Raises StoreError."""
    keys: list[bytes] = []
    certificates: list[bytes] = []
    for label, text in _blocks(data):
        if label in _CERTIFICATES:
            certificates.append(_decoded(label, text))
        elif label.endswith("PRIVATE KEY"):
            keys.append(_key_pem(label, text, key_password))
    if not keys:
        return Store((), certificates)
    if len(keys) > 1:
        raise StoreError("it has more than one private key")
    if not certificates:
        raise StoreError("it has a private key, but no certificate")
    return Store((KeyEntry("kafka", keys[0], certificates),), ())


def key_as_pem(key: PrivateKeyTypes) -> bytes:
    """The key as PKCS#8, not encrypted."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificate_as_pem(der: bytes) -> bytes:
    """A certificate's text."""
    return _armoured("CERTIFICATE", der)


def _blocks(data: bytes) -> Iterator[tuple[str, str]]:
    found = False
    for match in _BLOCK.finditer(data.decode("ascii", "replace")):
        found = True
        yield match[1], match[2]
    if not found:
        raise StoreError("it has no PEM in it")


def _decoded(label: str, text: str) -> bytes:
    """A block in one line, as a setting may have it, is as good as one in many (as in Kafka)."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise StoreError(f"the text of a {label} is no base64") from None


def _key_pem(label: str, text: str, password: bytes | None) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    is_encrypted = label == "ENCRYPTED PRIVATE KEY" or "ENCRYPTED" in text
    if is_encrypted and password is None:
        raise StoreError("its private key is encrypted, and ssl.key.password is not set")
    # What has headers of its own (Proc-Type) keeps its lines.
    block = f"-----BEGIN {label}-----{text}-----END {label}-----\n".encode() if ":" in text else None
    if block is None:
        block = _armoured(label, _decoded(label, text))
    try:
        key = load_pem_private_key(block, password if is_encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        reason = "its private key cannot be read" + (": is ssl.key.password wrong?" if is_encrypted else "")
        raise StoreError(reason) from None
    return key_as_pem(key)


def _armoured(label: str, der: bytes) -> bytes:
    text = base64.b64encode(der).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode()
