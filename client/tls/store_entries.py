"""What is in a key store or a trust store, whatever its format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final


class StoreError(Exception):
    """A store cannot be read; the text is for its operator, and has no secret in it."""


class KeyEntry:
    """A private key and its certificates. Shows nothing of the key when it is printed."""

    __slots__ = ("alias", "chain", "key_pem")

    def __init__(self, alias: str, key_pem: bytes, chain: Sequence[bytes]) -> None:
        self.alias: Final = alias
        self.key_pem: Final = key_pem
        """PKCS#8 as PEM, not encrypted."""
        self.chain: Final = tuple(chain)
        """DER, the key's own certificate first."""

    def __repr__(self) -> str:
        return f"KeyEntry({self.alias!r}, {len(self.chain)} certificates)"


class Store:
    """A store's contents."""

    __slots__ = ("certificates", "keys")

    def __init__(self, keys: Sequence[KeyEntry], certificates: Sequence[bytes]) -> None:
        self.keys: Final = tuple(keys)
        self.certificates: Final = tuple(certificates)
        """Those that are trusted, DER."""
