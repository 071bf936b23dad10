"""Key stores and trust stores as they are configured: PEM (files and inline), PKCS12, JKS, told apart by their content.

A file's type says little: `JKS`, the default, has meant PKCS12 since Java 9, and Java reads either under either name.
The combinations that are refused are refused in Kafka's words (DefaultSslEngineFactory).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from kavka.client.tls.jks import MAGIC, read_jks
from kavka.client.tls.key_choice import shown_keys
from kavka.client.tls.pem import BEGIN, read_pem
from kavka.client.tls.pkcs12 import read_pkcs12
from kavka.client.tls.store_entries import Store, StoreError
from kavka.config.errors import ConfigError
from kavka.config.values import Password

PEM: Final = "PEM"
TYPES: Final = ("JKS", "PKCS12", PEM)
MOST_BYTES: Final = 16 * 1024 * 1024
_SEQUENCE: Final = 0x30


class KeyStoreSource(NamedTuple):
    """What the settings say of a key store: the values of `ssl.keystore.*` and `ssl.key.password`."""

    type: str
    location: str | None
    password: Password | None
    key_password: Password | None
    key: Password | None
    certificate_chain: Password | None


class TrustStoreSource(NamedTuple):
    """The values of `ssl.truststore.*`."""

    type: str
    location: str | None
    password: Password | None
    certificates: Password | None


def read_key_store(source: KeyStoreSource) -> Store | None:
    """The keys that are shown, one of each kind, and one at least; None where no key store is configured.

    Reads a file. Raises ConfigError.
    """
    if (problem := _key_store_problem(source)) is not None:
        raise ConfigError(None, None, problem)
    if source.key is not None and source.certificate_chain is not None:
        text = f"{source.key.value}\n{source.certificate_chain.value}".encode()
        store = _read(text, "ssl.keystore.key", "[hidden]", None, source.key_password)
    elif source.location is not None:
        store = _read_file("ssl.keystore.location", source.location, source.password, source.key_password)
    else:
        return None
    if not store.keys:
        raise ConfigError("ssl.keystore.location", source.location, "it has no private key")
    return Store(shown_keys(store.keys), store.certificates)


def read_trust_store(source: TrustStoreSource) -> tuple[bytes, ...] | None:
    """The trusted certificates, DER; None where no trust store is configured. Reads a file. Raises ConfigError."""
    if (problem := _trust_store_problem(source)) is not None:
        raise ConfigError(None, None, problem)
    if source.certificates is not None:
        name, shown = "ssl.truststore.certificates", "[hidden]"
        store = _read(source.certificates.value.encode(), name, shown, None, None)
    elif source.location is not None:
        name, shown = "ssl.truststore.location", source.location
        store = _read_file(name, source.location, source.password, None)
    else:
        return None
    # Java, too, trusts the own certificates of a key store that serves as a trust store, and nothing of their chains.
    trusted = (*store.certificates, *(entry.chain[0] for entry in store.keys))
    if not trusted:
        raise ConfigError(name, shown, "it has no certificate")
    return trusted


def _key_store_problem(source: KeyStoreSource) -> str | None:
    if source.type.upper() not in TYPES:
        return f"ssl.keystore.type {source.type} is not one of {', '.join(TYPES)}"
    is_pem = source.type.upper() == PEM
    if source.key is not None:
        if not is_pem:
            return f"SSL private key can be specified only for PEM, but key store type is {source.type}."
        if source.certificate_chain is None:
            return "SSL private key is specified, but certificate chain is not specified."
        if source.location is not None:
            return "Both SSL key store location and separate private key are specified."
    elif source.certificate_chain is not None:
        return "SSL certificate chain is specified, but private key is not specified"
    if is_pem and source.password is not None:
        return "SSL key store password cannot be specified with PEM format, only key password may be specified"
    if source.location is None and source.password is not None:
        return "SSL key store is not specified, but key store password is specified."
    return None


def _trust_store_problem(source: TrustStoreSource) -> str | None:
    if source.type.upper() not in TYPES:
        return f"ssl.truststore.type {source.type} is not one of {', '.join(TYPES)}"
    is_pem = source.type.upper() == PEM
    if source.certificates is not None:
        if not is_pem:
            return f"SSL trust store certs can be specified only for PEM, but trust store type is {source.type}."
        if source.location is not None:
            return "Both SSL trust store location and separate trust certificates are specified."
    if is_pem and source.password is not None:
        return "SSL trust store password cannot be specified for PEM format."
    if source.location is None and source.password is not None:
        return "SSL trust store is not specified, but trust store password is specified."
    return None


def _read_file(name: str, location: str, password: Password | None, key_password: Password | None) -> Store:
    try:
        with Path(location).open("rb") as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise ConfigError(name, location, f"it is larger than {MOST_BYTES} bytes")
            data = file.read(MOST_BYTES)
    except OSError as failure:
        raise ConfigError(name, location, f"it cannot be read: {failure.strerror}") from None
    return _read(data, name, location, password, key_password)


def _read(data: bytes, name: str, shown: str, password: Password | None, key_password: Password | None) -> Store:
    try:
        return _by_content(data, password, key_password)
    except StoreError as problem:
        raise ConfigError(name, shown, str(problem)) from None


def _by_content(data: bytes, password: Password | None, key_password: Password | None) -> Store:
    secret = None if password is None else password.value
    key_secret = None if key_password is None else key_password.value
    if BEGIN in data:
        return read_pem(data, None if key_secret is None else key_secret.encode())
    if data.startswith(MAGIC):
        return read_jks(data, secret, key_secret)
    if data[:1] == bytes([_SEQUENCE]):
        return read_pkcs12(data, None if secret is None else secret.encode())
    raise StoreError("it is none of PEM, PKCS12 and JKS")
