"""A private key's way into OpenSSL, which takes it from a file alone: one in memory, without a name."""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from pathlib import Path

from kavka.client.tls.pem import certificate_as_pem
from kavka.client.tls.store_entries import KeyEntry


def load_key(context: ssl.SSLContext, entry: KeyEntry) -> None:
    """Have a context use a key and its chain. Raises ssl.SSLError where they do not belong together."""
    chain = b"".join([certificate_as_pem(each) for each in entry.chain])
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kavka-key", os.MFD_CLOEXEC)
        try:
            _write(descriptor, entry.key_pem + chain)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    else:
        _load_sealed(context, entry, chain)


def _load_sealed(context: ssl.SSLContext, entry: KeyEntry, chain: bytes) -> None:
    """Where the system has no files in memory: one that is encrypted under a secret of the moment, and removed."""
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    secret = secrets.token_bytes(32).hex()
    key = load_pem_private_key(entry.key_pem, None)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(secret.encode()))
    descriptor, path = tempfile.mkstemp()
    try:
        try:
            _write(descriptor, sealed + chain)
        finally:
            os.close(descriptor)
        context.load_cert_chain(path, password=secret)
    finally:
        Path(path).unlink()


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
