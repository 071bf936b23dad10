"""PKCS12: what keytool writes since Java 9, whatever name the file has."""

from __future__ import annotations

from kavka.client.tls.pem import key_as_pem
from kavka.client.tls.store_entries import KeyEntry, Store, StoreError


def read_pkcs12(data: bytes, password: bytes | None) -> Store:
    """The first key with its chain, and the certificates. Raises StoreError.

    Where there is a key the other certificates of the store are its chain, put in order.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        content = load_pkcs12(data, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise StoreError("it cannot be read as PKCS12: is the password wrong?") from None
    others = [each.certificate for each in content.additional_certs]
    if content.key is None:
        own = [] if content.cert is None else [content.cert.certificate]
        return Store((), [each.public_bytes(Encoding.DER) for each in (*own, *others)])
    if content.cert is None:
        raise StoreError("it has a private key, but no certificate for it")
    chain = [content.cert.certificate]
    while others:
        issuer = next((each for each in others if each.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        chain.append(issuer)
        others.remove(issuer)
    alias = (content.cert.friendly_name or b"").decode("utf-8", "replace")
    entry = KeyEntry(alias, key_as_pem(content.key), [each.public_bytes(Encoding.DER) for each in chain])
    return Store((entry,), [each.public_bytes(Encoding.DER) for each in others])
