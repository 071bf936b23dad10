"""A listener's TLS: what it is at one moment, and what may follow it while the broker runs.

A new key store is looked at before it counts (as KIP-226 asks): the key belongs to the certificate, each certificate is
signed by the next and valid now, and the broker is still who it was. What is not as it should be leaves the old one,
which clients know.
"""

from __future__ import annotations

import ssl
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.broker.network.peer_certificate import PeerCertificate
from kavka.broker.security.tls.distinguished_name import subject_name
from kavka.broker.security.tls.principal import EVERYBODY, SETTING, PrincipalRules
from kavka.client.tls.ciphers import java_name
from kavka.client.tls.contexts import TlsSettings, client_context, server_context, tls_settings_by
from kavka.client.tls.stores import read_key_store
from kavka.config.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from kavka.config.broker_config import BrokerConfig
    from kavka.config.listeners import Listener

Fingerprint = tuple[tuple[str, int, int, int] | None, ...]
"""Of the files with the stores: path, inode, size, when it was changed (ns); None where there is none."""


class ServerSettings(NamedTuple):
    """What the configuration says of one listener's TLS."""

    tls: TlsSettings
    mapping_rules: str
    allows_dn_changes: bool
    allows_san_changes: bool
    is_for_brokers: bool
    """Brokers connect by it, so that what it shows must be what it trusts."""


def server_settings(config: BrokerConfig, listener: Listener) -> ServerSettings:
    """Those of a listener: by its prefix, else the broker's.

    Where SASL says who a client is, certificates are asked for only by the listener's own `ssl.client.auth` (KIP-684),
    and no rule has to make a principal of one.
    """
    name = listener.name
    own_auth = config.listener_given(name, "ssl.client.auth")
    has_sasl = listener.security_protocol == "SASL_SSL"

    def value_of(setting: str) -> object:
        if setting == "ssl.client.auth" and has_sasl:
            return own_auth
        return config.listener_value(name, setting)

    return ServerSettings(
        tls_settings_by(value_of),
        EVERYBODY if has_sasl else config.listener_value(name, SETTING),
        config.listener_value(name, "ssl.allow.dn.changes"),
        config.listener_value(name, "ssl.allow.san.changes"),
        bool(config.zookeeper_connect) and config.inter_broker_listener_name == name,
    )


class ServerTls:
    """A listener's TLS at one moment. Reads the stores. Raises ConfigError."""

    def __init__(self, listener_name: str, settings: ServerSettings) -> None:
        self.settings: Final = settings
        # Looked at first: what is written while it is read shows by the next look.
        self.fingerprint: Final = fingerprint_of(settings.tls)
        store = read_key_store(settings.tls.key_store)
        if store is None:
            raise ConfigError(
                None, None, f"listener {listener_name} needs a key: ssl.keystore.location, or ssl.keystore.key as PEM"
            )
        self.chains: Final = [_checked_chain(entry.chain, settings.tls) for entry in store.keys]
        self.rules: Final = PrincipalRules(settings.mapping_rules)
        self.context: Final = server_context(settings.tls, store)
        if settings.is_for_brokers:
            _check_among_brokers(self.context, settings.tls)

    @property
    def expires_at(self) -> datetime:
        """When the first of its certificates is no longer valid."""
        return min(certificate.not_valid_after_utc for certificate in chain.from_iterable(self.chains))

    def check_validity(self) -> None:
        """Whether each of its certificates is valid now. Raises ConfigError."""
        now = datetime.now(UTC)
        for certificate in chain.from_iterable(self.chains):
            begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
            if not begins <= now <= ends:
                reason = f"the certificate of {_subject(certificate)} is valid from {begins} to {ends} only"
                raise ConfigError("ssl.keystore.location", self.settings.tls.keystore_location, reason)

    def check_succession(self, old: ServerTls) -> None:
        """Whether this may take the old one's place. Raises ConfigError, in Kafka's words."""
        self.check_validity()
        if len(self.chains) != len(old.chains):
            raise ConfigError(
                None,
                None,
                "Keystore entries do not match, existing store contains "
                f"{len(old.chains)} entries, new store contains {len(self.chains)} entries",
            )
        for (new_one, *_), (old_one, *_) in zip(self.chains, old.chains, strict=True):
            new_dn, old_dn = _subject(new_one), _subject(old_one)
            if not self.settings.allows_dn_changes and new_dn != old_dn:
                reason = f"Keystore DistinguishedName does not match: existing={old_dn}, new={new_dn}"
                raise ConfigError(None, None, reason)
            new_names, old_names = _alternative_names(new_one), _alternative_names(old_one)
            if not self.settings.allows_san_changes and not old_names <= new_names:
                reason = f"Keystore SubjectAltNames do not match: existing={sorted(old_names)}, new={sorted(new_names)}"
                raise ConfigError(None, None, reason)


class ListenerTls:
    """A listener's TLS as it is now, for its connections.

    Threads: any; `current` is replaced whole, `_lock` guards the counts.
    """

    def __init__(
        self,
        first: ServerTls,
        authenticated: Callable[[], None] = lambda: None,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        """`authenticated` and `refused` count handshakes that have succeeded and failed."""
        self.current = first
        self.authenticated: Final = authenticated
        self.refused: Final = refused
        self._lock: Final = threading.Lock()
        self._connections: Final[Counter[tuple[str, str]]] = Counter()

    def connections(self) -> dict[tuple[str, str], int]:
        """How many are open, by cipher (Java's name) and version."""
        with self._lock:
            return {(java_name(cipher), version): count for (cipher, version), count in self._connections.items()}

    def opened(self, cipher: tuple[str, str]) -> None:
        """See `Secured`."""
        with self._lock:
            self._connections[cipher] += 1

    def closed(self, cipher: tuple[str, str]) -> None:
        """See `Secured`."""
        with self._lock:
            self._connections[cipher] -= 1

    def wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """See `Secured`."""
        return self.current.context.wrap_bio(incoming, outgoing, server_side=True)

    def peer(self, tls: ssl.SSLObject) -> PeerCertificate | None:
        """See `Secured`. Raises ValueError where no rule makes a principal of the client's certificate."""
        der = tls.getpeercert(binary_form=True)
        return None if der is None else PeerCertificate(der, self.current.rules.principal(der))


def fingerprint_of(settings: TlsSettings) -> Fingerprint:
    """What tells that a store's file is another one than before."""
    return tuple([_file_print(path) for path in (settings.keystore_location, settings.truststore_location)])


def _file_print(path: str | None) -> tuple[str, int, int, int] | None:
    if path is None:
        return None
    try:
        status = Path(path).stat()
    except OSError:
        return path, 0, 0, 0
    return path, status.st_ino, status.st_size, status.st_mtime_ns


def _checked_chain(given: tuple[bytes, ...], settings: TlsSettings) -> list[Certificate]:
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509 import load_der_x509_certificate

    shown = settings.keystore_location
    try:
        certificates = [load_der_x509_certificate(each) for each in given]
    except ValueError:
        raise ConfigError("ssl.keystore.location", shown, "a certificate in it cannot be read") from None
    for certificate, issuer in pairwise(certificates):
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature):
            reason = f"the certificate of {_subject(certificate)} is not signed by the next in its chain"
            raise ConfigError("ssl.keystore.location", shown, reason) from None
    return certificates


def _check_among_brokers(server: ssl.SSLContext, settings: TlsSettings) -> None:
    """Connect to oneself, as another broker with these settings would. Raises ConfigError, in Kafka's words."""
    client = client_context(settings)
    client.check_hostname = False
    ends = []
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends.append(client.wrap_bio(to_client, to_server))
    ends.append(server.wrap_bio(to_server, to_client, server_side=True))
    try:
        for _ in range(4):
            for end in ends:
                _go_on(end)
        # The client learns by reading, in TLS 1.3, that its certificate was refused.
        _read(ends[0])
    except ssl.SSLError as failure:
        reason = (
            "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created with "
            f"those settings: {failure.reason}"
        )
        raise ConfigError(None, None, reason) from None


def _go_on(end: ssl.SSLObject) -> None:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return


def _read(end: ssl.SSLObject) -> None:
    try:
        end.read(1)
    except ssl.SSLWantReadError:
        return


def _subject(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return subject_name(certificate.public_bytes(Encoding.DER))


def _alternative_names(certificate: Certificate) -> frozenset[str]:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    return frozenset([str(getattr(name, "value", name)) for name in names])
