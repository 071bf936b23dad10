"""Public keys out of a set of them (JWKS, RFC 7517): only what can check a signature, and only asymmetric ones."""

import json
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from jwt import PyJWK
from jwt.exceptions import PyJWTError

MOST_KEYS: Final = 1000
FEWEST_RSA_BITS: Final = 2048
RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVES: Final = {"secp256r1": ("ES256",), "secp384r1": ("ES384",), "secp521r1": ("ES512",)}
EDWARDS_ALGORITHMS: Final = ("EdDSA",)
ALGORITHMS: Final = (*RSA_ALGORITHMS, *(each for names in CURVES.values() for each in names), *EDWARDS_ALGORITHMS)
"""All that a token may be signed with. None has a secret that the broker knows."""


class KeySetError(Exception):
    """Keys cannot be fetched, or these are none."""


class SigningKey(NamedTuple):
    """One public key. `algorithms`: what it may be used with."""

    public_key: Any
    algorithms: tuple[str, ...]


def read_keys(text: bytes) -> dict[str | None, SigningKey]:
    """The keys that can check signatures, by name; what is of no use is left out. Raises KeySetError if that is all."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise KeySetError("it is no JSON") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise KeySetError("it is no set of keys: it has no list of keys")
    keys: dict[str | None, SigningKey] = {}
    for entry in entries[:MOST_KEYS]:
        key = _signing_key(entry) if isinstance(entry, dict) else None
        if key is not None:
            name = entry.get("kid")
            keys[name if isinstance(name, str) else None] = key
    if not keys:
        raise KeySetError("no key of it can be used")
    return keys


def _signing_key(entry: dict[str, Any]) -> SigningKey | None:
    operations = entry.get("key_ops")
    if entry.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return None
    try:
        # Named: without an algorithm PyJWK takes the one that is usual for the key.
        key = _public(PyJWK(entry).key)
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if isinstance(key, RSAPublicKey):
        algorithms: tuple[str, ...] = RSA_ALGORITHMS if key.key_size >= FEWEST_RSA_BITS else ()
    elif isinstance(key, EllipticCurvePublicKey):
        algorithms = CURVES.get(key.curve.name, ())
    else:
        algorithms = EDWARDS_ALGORITHMS if isinstance(key, Ed25519PublicKey) else ()
    named = entry.get("alg")
    if named is not None:
        algorithms = tuple(each for each in algorithms if each == named)
    return SigningKey(key, algorithms) if algorithms else None


def _public(key: Any) -> Any:
    """Some publish their private keys, too: these sign nothing here."""
    return key.public_key() if isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey) else key
