"""Passwords among the dynamic settings, as they lie in the tree: encrypted, in Kafka's own text (KIP-226).

    initializationVector:...,keyLength:128,salt:...,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,
    cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:15,encryptedPassword:...

The text says how it was made, so that each can be read whatever the settings are now; only the secret must be that of
then (`password.encoder.secret`). No error shows a password, nor what it is encrypted as.

Threads: immutable.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kavka.config.errors import ConfigError
from kavka.config.values import Password

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR

    from kavka.config.broker_config import BrokerConfig

AES: Final = "AES"
CBC_MODE: Final = "CBC"
GCM: Final = "GCM"
BLOCK_BYTES: Final = 16
NONCE_BYTES: Final = 12
TAG_BITS: Final = 128
SALT_BYTES: Final = 256
KEY_BITS: Final = (128, 192, 256)
MOST_CHARACTERS: Final = 1 << 20
MOST_ITERATIONS: Final = 1_000_000
"""Of what is read, too: a second's work. A text that asks for more is meant to hold a broker up."""
_PADDINGS: Final = {"CBC": "PKCS5Padding", "GCM": "NoPadding", "CTR": "NoPadding"}
_HASHES: Final = {
    "PBKDF2WithHmacSHA512": "sha512",
    "PBKDF2WithHmacSHA384": "sha384",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA1": "sha1",
}
_UNREADABLE: Final = "it cannot be decoded with password.encoder.secret"


class PasswordEncoder:
    """Encodes and decodes with one secret."""

    def __init__(self, secret: Password, cipher: str, key_function: str | None, key_bits: int, iterations: int) -> None:
        """Raises ConfigError for a cipher, a function or a length that is not served."""
        self._secret = secret
        self._cipher = cipher
        self._mode = _mode_of(cipher)
        self._key_function = key_function or "PBKDF2WithHmacSHA512"
        self._key_bits = key_bits
        self._iterations = iterations
        if self._mode is None:
            known = ", ".join(f"AES/{mode}/{padding}" for mode, padding in _PADDINGS.items())
            raise ConfigError("password.encoder.cipher.algorithm", cipher, f"must be one of {known}")
        if self._key_function not in _HASHES:
            raise ConfigError(
                "password.encoder.keyfactory.algorithm", key_function, f"must be one of {', '.join(_HASHES)}"
            )
        if key_bits not in KEY_BITS:
            raise ConfigError(
                "password.encoder.key.length", key_bits, f"must be one of {', '.join(map(str, KEY_BITS))}"
            )
        if iterations > MOST_ITERATIONS:
            raise ConfigError("password.encoder.iterations", iterations, f"must be at most {MOST_ITERATIONS}")

    def encode(self, password: str) -> str:
        """The text to be stored."""
        assert self._mode is not None
        salt = secrets.token_bytes(SALT_BYTES)
        vector = secrets.token_bytes(NONCE_BYTES if self._mode == GCM else BLOCK_BYTES)
        key = self._key(self._key_function, salt, self._iterations, self._key_bits)
        encrypted = _encrypt(self._mode, key, vector, password.encode())
        # In the order in which Kafka's map has them.
        fields = {
            "initializationVector": _base64(vector),
            "keyLength": str(self._key_bits),
            "salt": _base64(salt),
            "keyFactoryAlgorithm": self._key_function,
            "cipherAlgorithm": self._cipher,
            **({"authenticationTagLength": str(TAG_BITS)} if self._mode == GCM else {}),
            "iterations": str(self._iterations),
            "passwordLength": str(_java_length(password)),
            "encryptedPassword": _base64(encrypted),
        }
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        """The password. Raises ConfigError, which says of neither what it is."""
        try:
            return self._decoded(dict(part.strip().partition(":")[::2] for part in text[:MOST_CHARACTERS].split(",")))
        except (KeyError, ValueError, binascii.Error):
            raise ConfigError(None, None, _UNREADABLE) from None

    def _decoded(self, fields: Mapping[str, str]) -> str:
        mode = _mode_of(fields["cipherAlgorithm"])
        key_bits, iterations = _number(fields["keyLength"]), _number(fields["iterations"])
        vector = base64.b64decode(fields["initializationVector"], validate=True)
        if mode is None or key_bits not in KEY_BITS or not 0 < iterations <= MOST_ITERATIONS or not vector:
            raise ValueError
        if mode == GCM and _number(fields["authenticationTagLength"]) != TAG_BITS:
            raise ValueError
        salt = base64.b64decode(fields["salt"], validate=True)
        encrypted = base64.b64decode(fields["encryptedPassword"], validate=True)
        key = self._key(fields["keyFactoryAlgorithm"], salt, iterations, key_bits)
        password = _decrypt(mode, key, vector, encrypted).decode()
        if _java_length(password) != _number(fields["passwordLength"]):
            raise ValueError
        return password

    def _key(self, function: str, salt: bytes, iterations: int, key_bits: int) -> bytes:
        return hashlib.pbkdf2_hmac(_HASHES[function], self._secret.value.encode(), salt, iterations, key_bits // 8)


def encoder_of(config: BrokerConfig) -> PasswordEncoder | None:
    """That of `password.encoder.secret`; None without it. Raises ConfigError."""
    return _encoder(config, config.password_encoder_secret)


def old_encoder_of(config: BrokerConfig) -> PasswordEncoder | None:
    """That of `password.encoder.old.secret`, for what was stored before; None without it. Raises ConfigError."""
    return _encoder(config, config.password_encoder_old_secret)


def _encoder(config: BrokerConfig, secret: Password | None) -> PasswordEncoder | None:
    if secret is None or not secret.value:
        return None
    return PasswordEncoder(
        secret,
        config.password_encoder_cipher_algorithm,
        config.password_encoder_keyfactory_algorithm,
        config.password_encoder_key_length,
        config.password_encoder_iterations,
    )


def _mode_of(cipher: str) -> str | None:
    """CBC, GCM or CTR, of a cipher as Java names them; `AES` alone is what Java makes of it. None for others."""
    parts = cipher.split("/")
    if len(parts) != 3 or parts[0] != AES:
        return None
    return parts[1] if _PADDINGS.get(parts[1]) == parts[2] else None


def _encrypt(mode: str, key: bytes, vector: bytes, plain: bytes) -> bytes:
    # Loaded where there are passwords to be stored or read, only.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if mode == GCM:
        return AESGCM(key).encrypt(vector, plain, None)
    if mode == CBC_MODE:
        missing = BLOCK_BYTES - len(plain) % BLOCK_BYTES
        plain += bytes([missing]) * missing
    encryptor = _cipher(mode, key, vector).encryptor()
    return encryptor.update(plain) + encryptor.finalize()


def _decrypt(mode: str, key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    """Raises ValueError where it was encrypted with another key."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if mode == GCM:
        try:
            return AESGCM(key).decrypt(vector, encrypted, None)
        except InvalidTag:
            raise ValueError from None
    decryptor = _cipher(mode, key, vector).decryptor()
    plain = decryptor.update(encrypted) + decryptor.finalize()
    if mode != CBC_MODE:
        return plain
    missing = plain[-1] if plain else 0
    if not 0 < missing <= BLOCK_BYTES or plain[-missing:] != bytes([missing]) * missing:
        raise ValueError
    return plain[:-missing]


def _cipher(mode: str, key: bytes, vector: bytes) -> Cipher[CBC | CTR]:
    """Raises ValueError for a vector that the mode does not take."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CBC(vector) if mode == CBC_MODE else modes.CTR(vector))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise ValueError
    return int(text)


def _java_length(text: str) -> int:
    """As Java counts: in units of UTF-16."""
    return len(text.encode("utf-16-le")) // 2


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
