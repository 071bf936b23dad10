"""Records of TLS that no library would make: sealed by hand, with the keys that a client has noted."""

from __future__ import annotations

import hmac
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
OLD_CIPHER: Final = "ECDHE-RSA-AES256-GCM-SHA384"
_SERVER_RANDOM: Final = slice(11, 43)
"""In what a server says: behind the record's header, the message's, and the version."""
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


class OldRecordForger:
    """The same for TLS 1.2, with OLD_CIPHER."""

    def __init__(self, key_log: Path, heard: bytes) -> None:
        """`heard`: what the server has sent, from its first byte on."""
        lines = [line.split() for line in key_log.read_text().splitlines()]
        client_random, master = next(map(bytes.fromhex, words[1:]) for words in lines if words[0] == "CLIENT_RANDOM")
        keys = _keys_of(master, heard[_SERVER_RANDOM] + client_random)
        self._cipher = AESGCM(keys[:32])
        self._salt = keys[64:68]
        # The handshake's last message was the first.
        self._count = 1

    def seal(self, content: bytes, kind: int = DATA) -> bytes:
        """One record."""
        count = struct.pack(">Q", self._count)
        self._count += 1
        signed = count + struct.pack(">BHH", kind, 0x0303, len(content))
        header = struct.pack(">BHH", kind, 0x0303, len(count) + len(content) + 16)
        return header + count + self._cipher.encrypt(self._salt + count, content, signed)

    def hello(self) -> bytes:
        """Another handshake is begun."""
        body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x04\xc0\x30\0\xff" + b"\x01\0"
        return self.seal(b"\x01" + len(body).to_bytes(3) + body, HANDSHAKE)


def _keys_of(master: bytes, randoms: bytes) -> bytes:
    """Keys of 32 bytes and salts of 4: the client's and the server's each."""
    link = seed = b"key expansion" + randoms
    keys = b""
    while len(keys) < 72:
        link = hmac.digest(master, link, "sha384")
        keys += hmac.digest(master, link + seed, "sha384")
    return keys


def _expanded(secret: bytes, label: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + b"\0"
    return HKDFExpand(SHA384(), size, info).derive(secret)
