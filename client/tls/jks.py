"""JKS, Java's own store format before PKCS12: read alone, and with its password checked where there is one.

A file of big-endian numbers and Java's modified UTF-8:

    magic FEEDFEED, version 1 or 2, count, then entries: tag 1 (key) or 2 (certificate), alias, time, ...
    a SHA-1 over the password as UTF-16, "Mighty Aphrodite", and all before it

A key is PKCS#8 under Sun's key protector: 20 bytes of salt, the key xored with a chain of SHA-1 sums, a SHA-1 sum.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from kavka.client.tls.der import OCTETS, SEQUENCE, take
from kavka.client.tls.store_entries import KeyEntry, Store, StoreError

MAGIC: Final = b"\xfe\xed\xfe\xed"
_WHITENER: Final = b"Mighty Aphrodite"
_SUM_BYTES: Final = 20
_KEY_ENTRY: Final = 1
_TRUSTED_ENTRY: Final = 2
_MOST_ENTRIES: Final = 10_000
_KEY_PROTECTOR: Final = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier 1.3.6.1.4.1.42.2.17.1.1."""


def read_jks(data: bytes, password: str | None, key_password: str | None) -> Store:
    """The keys and certificates. Without a password nothing is checked, and keys cannot be read. Raises StoreError."""
    if password is not None:
        body, digest = data[:-_SUM_BYTES], data[-_SUM_BYTES:]
        whitened = hashlib.sha1(_utf16(password) + _WHITENER + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(whitened, digest):
            raise StoreError("its password is wrong, or it has been tampered with")
    try:
        return _read(_Reader(data[: -_SUM_BYTES or None]), key_password if key_password is not None else password)
    except IndexError:
        raise StoreError("it is cut short, or no JKS store") from None


def _read(reader: _Reader, key_password: str | None) -> Store:
    reader.take(len(MAGIC))
    version, count = reader.number(), reader.number()
    if version not in (1, 2) or count > _MOST_ENTRIES:
        raise StoreError("it is no JKS store of a version that is known")
    keys: list[KeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(count):
        tag, alias = reader.number(), reader.text()
        reader.take(8)
        if tag == _KEY_ENTRY:
            protected = reader.block()
            chain = [_certificate(reader, version) for _ in range(_bounded(reader.number()))]
            keys.append(_key_entry(alias, protected, chain, key_password))
        elif tag == _TRUSTED_ENTRY:
            trusted.append(_certificate(reader, version))
        else:
            raise StoreError(f"it has an entry of kind {tag}, which is neither a key nor a certificate")
    return Store(keys, trusted)


def _certificate(reader: _Reader, version: int) -> bytes:
    if version == 2 and (kind := reader.text()) != "X.509":
        raise StoreError(f"it has a certificate of the kind {kind!r}")
    return reader.block()


def _key_entry(alias: str, protected: bytes, chain: list[bytes], password: str | None) -> KeyEntry:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    from kavka.client.tls.pem import key_as_pem

    if not chain:
        raise StoreError(f"the key {alias!r} has no certificate")
    if password is None:
        raise StoreError("it has a private key, and no password is set")
    try:
        key = load_der_private_key(_unprotected(protected, alias, password), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise StoreError(f"the key {alias!r} cannot be read") from None
    return KeyEntry(alias, key_as_pem(key), chain)


def _unprotected(protected: bytes, alias: str, password: str) -> bytes:
    """The PKCS#8 bytes within EncryptedPrivateKeyInfo. Raises StoreError, ValueError."""
    outer, _ = take(protected, SEQUENCE)
    algorithm, rest = take(outer, SEQUENCE)
    if not algorithm.startswith(_KEY_PROTECTOR):
        raise StoreError(f"the key {alias!r} is encrypted in a way that JKS does not have")
    sealed, _ = take(rest, OCTETS)
    salt, hidden, digest = sealed[:_SUM_BYTES], sealed[_SUM_BYTES:-_SUM_BYTES], sealed[-_SUM_BYTES:]
    secret = _utf16(password)
    stream = bytearray()
    link = salt
    while len(stream) < len(hidden):
        link = hashlib.sha1(secret + link, usedforsecurity=False).digest()
        stream += link
    plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), digest):
        raise StoreError(f"the password of the key {alias!r} is wrong")
    return plain


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


def _bounded(count: int) -> int:
    if count > _MOST_ENTRIES:
        raise IndexError
    return count


class _Reader:
    """Walks over the bytes; raises IndexError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size_bytes: int) -> bytes:
        end = self._at + size_bytes
        if end > len(self._data):
            raise IndexError
        taken, self._at = self._data[self._at : end], end
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4))

    def block(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2))).decode("utf-8", "replace")
