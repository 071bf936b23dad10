"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677) as Kafka has them: keys, proofs, and both sides of an exchange.

Passwords are taken as they are, in UTF-8, without SASLprep, as in Kafka. The machines know no sockets and no clock.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from kavka.protocol.sasl.scram_messages import (
    NO_BINDING,
    ClientFirst,
    ScramError,
    ServerFirst,
    client_final_unsigned,
    client_first,
    read_client_final,
    read_client_first,
    read_server_final,
    read_server_first,
    server_final,
    server_first,
    with_proof,
)

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""Of credentials that are made; the broker serves what is stored with more."""
MOST_ITERATIONS: Final = 1_000_000
"""What a client does for a server that asks for so many: half a second. Beyond it is an attack."""
TOKEN_AUTH: Final = "tokenauth"
"""The extension by which a client says that its name is a delegation token's id (KIP-48)."""
_SALT_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NO_EXTENSIONS: Final[Mapping[str, str]] = MappingProxyType({})


class ScramMechanism(Enum):
    """The values are SASL's names. `number` is that of APIs 50 and 51."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """The hash function as `hashlib` names it."""
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    @property
    def key_size_bytes(self) -> int:
        """The length of keys, proofs and signatures."""
        return 32 if self is ScramMechanism.SHA_256 else 64

    @property
    def number(self) -> int:
        """As in DescribeUserScramCredentials (KIP-554)."""
        return 1 if self is ScramMechanism.SHA_256 else 2


class ScramCredential(NamedTuple):
    """What a server keeps of a password: enough to tell who knows it, not enough to log in."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


def text_of_salt(bits: int) -> bytes:
    """A salt as Kafka makes them: the digits of a number to the base of 36, as text.

    All salts of a broker look alike, or those that stand in for unknown users could be told from the others.
    """
    digits = bytearray()
    while bits or not digits:
        bits, digit = divmod(bits, 36)
        digits.append(ord(_DIGITS[digit]))
    return bytes(reversed(digits))


def new_salt() -> bytes:
    """A fresh random salt."""
    return text_of_salt(secrets.randbits(_SALT_BITS))


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """What a password becomes before keys are made of it: 4 ms for 8,192 iterations."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of_salted(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential of a password that came salted (AlterUserScramCredentials)."""
    stored_key = _hash(mechanism, _mac(mechanism, salted, b"Client Key"))
    return ScramCredential(salt, stored_key, _mac(mechanism, salted, b"Server Key"), iterations)


def credential_of(
    mechanism: ScramMechanism, password: str, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
) -> ScramCredential:
    """The credential of a password, with a fresh salt unless one is given."""
    own_salt = new_salt() if salt is None else salt
    return credential_of_salted(
        mechanism, salted_password(mechanism, password, own_salt, iterations), own_salt, iterations
    )


class ScramServer:
    """The server's side of one exchange. Threads: one at a time.

    `find(first)` gives the credential of who wants in; for unknown users one that nobody has the password of, so
    that the exchange takes the same course. It may raise ScramError.
    """

    def __init__(
        self, mechanism: ScramMechanism, find: Callable[[ClientFirst], ScramCredential], nonce: str | None = None
    ) -> None:
        """`nonce`: the server's part of it, fresh unless it is given."""
        self._mechanism = mechanism
        self._find = find
        self._own_nonce = new_salt().decode() if nonce is None else nonce
        self._begun: tuple[ClientFirst, ServerFirst, ScramCredential] | None = None
        self._is_spent = False
        self.is_complete = False

    def respond(self, message: bytes) -> bytes:
        """The answer to the client's next message. Raises ScramError; then nothing more is taken."""
        if self._is_spent:
            raise ScramError("the exchange is over")
        begun, self._begun = self._begun, None
        if begun is not None:
            self._is_spent = True
            return self._conclude(message, *begun)
        try:
            first = read_client_first(message)
            credential = self._find(first)
        except ScramError:
            self._is_spent = True
            raise
        answer = server_first(first.nonce + self._own_nonce, credential.salt, credential.iterations)
        self._begun = first, answer, credential
        return answer.text.encode()

    def _conclude(self, message: bytes, first: ClientFirst, sent: ServerFirst, credential: ScramCredential) -> bytes:
        final = read_client_final(message)
        # librdkafka before 2.6.1 puts its own nonce before the whole one once more. What both sides sign has the right
        # one, in the server's message, so that no proof can be used twice either way.
        if final.nonce not in (sent.nonce, first.nonce + sent.nonce):
            raise ScramError("Invalid client nonce in the final client message.")
        mechanism = self._mechanism
        if len(final.proof) != mechanism.key_size_bytes:
            raise ScramError("Invalid client credentials")
        signed = _signed(first.bare, sent.text, final.unsigned)
        client_key = _xor(_mac(mechanism, credential.stored_key, signed), final.proof)
        if not hmac.compare_digest(_hash(mechanism, client_key), credential.stored_key):
            raise ScramError("Invalid client credentials")
        self.is_complete = True
        return server_final(_mac(mechanism, credential.server_key, signed))


class ScramClient:
    """The client's side of one exchange: `first`, `final`, `verify`, each once, in this order. Threads: one."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        extensions: Mapping[str, str] = _NO_EXTENSIONS,
        nonce: str | None = None,
    ) -> None:
        """`nonce`: the client's part of it, fresh unless it is given. A token's extensions are {TOKEN_AUTH: "true"}."""
        self._mechanism = mechanism
        self._password = password
        self._nonce = new_salt().decode() if nonce is None else nonce
        self._bare = client_first(user, self._nonce, extensions)
        self._expected = b""

    def first(self) -> bytes:
        """Who wants in."""
        return (NO_BINDING + self._bare).encode()

    def final(self, message: bytes) -> bytes:
        """The proof, made with what the server has answered. Raises ScramError."""
        received = read_server_first(message)
        mechanism, iterations = self._mechanism, received.iterations
        if not received.nonce.startswith(self._nonce):
            raise ScramError("Invalid server nonce: does not start with client nonce")
        if not MIN_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ScramError(f"Requested iterations {iterations} is less than the minimum, or far too many")
        unsigned = client_final_unsigned(received.nonce)
        signed = _signed(self._bare, received.text, unsigned)
        salted = salted_password(mechanism, self._password, received.salt, iterations)
        client_key = _mac(mechanism, salted, b"Client Key")
        self._expected = _mac(mechanism, _mac(mechanism, salted, b"Server Key"), signed)
        return with_proof(unsigned, _xor(client_key, _mac(mechanism, _hash(mechanism, client_key), signed)))

    def verify(self, message: bytes) -> None:
        """Raises ScramError unless the server knows the same keys."""
        signature = read_server_final(message)
        if not self._expected or not hmac.compare_digest(signature, self._expected):
            raise ScramError("Invalid server signature in server final message")


def _signed(client_first_bare: str, server_first_text: str, client_final_text: str) -> bytes:
    return f"{client_first_bare},{server_first_text},{client_final_text}".encode()


def _mac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)


def _hash(mechanism: ScramMechanism, message: bytes) -> bytes:
    return hashlib.new(mechanism.hash_name, message).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
