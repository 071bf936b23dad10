"""PKCS12: what keytool writes since Java 9, whatever name the file has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kavka.client.tls.pem import key_as_pem
from kavka.client.tls.pkcs12_keys import NamedKey, pkcs12_keys
from kavka.client.tls.store_entries import KeyEntry, Store, StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate


def read_pkcs12(data: bytes, password: bytes | None) -> Store:
    """The keys, each with its chain as far as that is there, and the certificates of no chain. Raises StoreError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        content = load_pkcs12(data, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise StoreError("it cannot be read as PKCS12: is the password wrong?") from None
    others = [each.certificate for each in (content.cert, *content.additional_certs) if each is not None]
    entries = []
    for alias, key in _keys(data, password, content):
        own = next((each for each in others if _is_of(each, key)), None)
        if own is None:
            raise StoreError("it has a private key, but no certificate for it")
        chain = [each.public_bytes(Encoding.DER) for each in _chain(own, others)]
        entries.append(KeyEntry(alias, key_as_pem(key), chain))
    shown = {each for entry in entries for each in entry.chain}
    trusted = [each.public_bytes(Encoding.DER) for each in others]
    return Store(entries, [each for each in trusted if each not in shown])


def _is_of(certificate: Certificate, key: PrivateKeyTypes) -> bool:
    """An authority's may be of a kind of key that nothing here knows: then it is not this key's."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return certificate.public_key() == key.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return False


def _chain(own: Certificate, others: Sequence[Certificate]) -> list[Certificate]:
    """A certificate and those above it."""
    chain = [own]
    # Those of one name, as a former one and its successor, are not above each other.
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in others if each.subject == chain[-1].issuer and each not in chain), None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _keys(data: bytes, password: bytes | None, content: PKCS12KeyAndCertificates) -> list[NamedKey]:
    from cryptography.exceptions import UnsupportedAlgorithm

    if content.key is None:
        return []
    try:
        found = pkcs12_keys(data, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Written by neither Java nor OpenSSL: what cryptography has found of it is not nothing.
        found = []
    name = b"" if content.cert is None else content.cert.friendly_name or b""
    return found or [NamedKey(name.decode("utf-8", "replace"), content.key)]
