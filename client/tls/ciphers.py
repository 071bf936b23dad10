"""Java's names of cipher suites, which settings of Kafka have, as OpenSSL's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

TLS13_SUITES: Final = frozenset(
    {
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)
OFFERED_TLS13: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
"""Those that OpenSSL offers as it comes."""
_JAVA: Final = re.compile(r"(?:TLS|SSL)_([A-Z0-9_]+)_WITH_([A-Z0-9_]+)")
_KEY_EXCHANGES: Final = {
    "RSA": "",
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "DHE_DSS": "DHE-DSS-",
}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
}


class CipherChoice(NamedTuple):
    """What `ssl.cipher.suites` asks for, as OpenSSL can be told."""

    tls12: tuple[str, ...]
    """OpenSSL's names, in the order given."""
    tls13: frozenset[str]
    """Suites of TLS 1.3: Python has no way to choose among them."""


def chosen_ciphers(names: Sequence[str]) -> CipherChoice:
    """The suites of these names, Java's or OpenSSL's. Raises ValueError with the first that is neither."""
    tls12: list[str] = []
    tls13: set[str] = set()
    for name in names:
        if name in TLS13_SUITES:
            tls13.add(name)
        else:
            tls12.append(_openssl_name(name))
    return CipherChoice(tuple(tls12), frozenset(tls13))


def java_name(cipher: str) -> str:
    """Java's name of a suite that OpenSSL names so; OpenSSL's where Java has none."""
    for key_exchange, begin in _KEY_EXCHANGES.items():
        for java, end in _CIPHERS.items():
            if begin + end == cipher:
                return f"TLS_{key_exchange}_WITH_{java}"
    return cipher


def _openssl_name(name: str) -> str:
    java = _JAVA.fullmatch(name)
    if java is None:
        if re.fullmatch(r"[A-Z0-9]+(?:-[A-Z0-9]+)+", name) is None:
            raise ValueError(name)
        return name
    if java[1] not in _KEY_EXCHANGES or java[2] not in _CIPHERS:
        raise ValueError(name)
    return _KEY_EXCHANGES[java[1]] + _CIPHERS[java[2]]
