"""Records of TLS 1.3 that no library would make: sealed by hand, with the keys that a client has noted."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

ALERT: Final = 21
HANDSHAKE: Final = 22
DATA: Final = 23
SECRET_BYTES: Final = 48
_KEY_UPDATE: Final = 24


class RecordForger:
    """A client's writing side, for TLS_AES_256_GCM_SHA384, from its first record behind the handshake on."""

    def __init__(self, key_log: Path) -> None:
        """`key_log`: what `SSLContext.keylog_filename` named, with the secrets of one connection."""
        lines = [line.split() for line in key_log.read_text().splitlines()]
        secret = next(words[2] for words in lines if words[0] == "CLIENT_TRAFFIC_SECRET_0")
        self._use(bytes.fromhex(secret))

    def seal(self, content: bytes, kind: int = DATA) -> bytes:
        """One record."""
        size = len(content) + 1 + 16
        header = struct.pack(">BHH", DATA, 0x0303, size)
        nonce = (int.from_bytes(self._iv) ^ self._count).to_bytes(12)
        self._count += 1
        return header + self._cipher.encrypt(nonce, content + bytes([kind]), header)

    def key_update(self, *, asks_for_one: bool) -> bytes:
        """New keys from now on; whether the other side shall have new ones too."""
        sealed = self.seal(bytes([_KEY_UPDATE, 0, 0, 1, asks_for_one]), HANDSHAKE)
        self._use(_expanded(self._secret, b"traffic upd", SECRET_BYTES))
        return sealed

    def _use(self, secret: bytes) -> None:
        self._secret = secret
        self._cipher = AESGCM(_expanded(secret, b"key", 32))
        self._iv = _expanded(secret, b"iv", 12)
        self._count = 0


def _expanded(secret: bytes, label: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + b"\0"
    return HKDFExpand(SHA384(), size, info).derive(secret)
