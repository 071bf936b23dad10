"""Contexts of OpenSSL from Kafka's settings: which versions, ciphers and certificates, and whom to trust.

What OpenSSL is told as Java would behave: any certificate of a trust store is an anchor, be it a root's or not; a
certificate must be meant for its use; nobody renegotiates. A server gives no tickets in TLS 1.3, so that each
connection shows its certificate anew.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kavka.client.tls.ciphers import OFFERED_TLS13, chosen_ciphers
from kavka.client.tls.dh_parameters import load_dh_parameters
from kavka.client.tls.key_loading import load_key
from kavka.client.tls.store_entries import Store
from kavka.client.tls.stores import KeyStoreSource, TrustStoreSource, read_key_store, read_trust_store
from kavka.config.errors import ConfigError
from kavka.config.values import Password

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS: Final = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
_ANY_VERSION: Final = frozenset({"TLS", "SSL"})
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TlsSettings:
    """The settings `ssl.*` that a context is made of, each named as the setting is. `tls_settings` makes them."""

    protocol: str
    enabled_protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    endpoint_identification_algorithm: str
    client_auth: str
    """For servers: none, requested or required."""
    keystore_type: str
    keystore_location: str | None
    keystore_password: Password | None
    key_password: Password | None
    keystore_key: Password | None
    keystore_certificate_chain: Password | None
    truststore_type: str
    truststore_location: str | None
    truststore_password: Password | None
    truststore_certificates: Password | None

    @property
    def key_store(self) -> KeyStoreSource:
        """Where the own key and certificates are."""
        return KeyStoreSource(
            self.keystore_type,
            self.keystore_location,
            self.keystore_password,
            self.key_password,
            self.keystore_key,
            self.keystore_certificate_chain,
        )

    @property
    def trust_store(self) -> TrustStoreSource:
        """Where the certificates are that are trusted."""
        return TrustStoreSource(
            self.truststore_type, self.truststore_location, self.truststore_password, self.truststore_certificates
        )


def tls_settings(settings: object) -> TlsSettings:
    """Those of any object whose attributes are settings, as `settings.ssl_keystore_location`."""
    return tls_settings_by(lambda name: getattr(settings, name.replace(".", "_"), None))


def tls_settings_by(value_of: Callable[[str], Any]) -> TlsSettings:
    """The same where `value_of("ssl.keystore.location")` has a value, or None."""

    def text(name: str, default: str) -> str:
        value = value_of(name)
        return default if value is None else str(value)

    return TlsSettings(
        protocol=text("ssl.protocol", "TLSv1.3"),
        enabled_protocols=tuple(value_of("ssl.enabled.protocols") or ()),
        cipher_suites=tuple(value_of("ssl.cipher.suites") or ()),
        endpoint_identification_algorithm=text("ssl.endpoint.identification.algorithm", ""),
        client_auth=text("ssl.client.auth", "none"),
        keystore_type=text("ssl.keystore.type", "JKS"),
        keystore_location=value_of("ssl.keystore.location"),
        keystore_password=value_of("ssl.keystore.password"),
        key_password=value_of("ssl.key.password"),
        keystore_key=value_of("ssl.keystore.key"),
        keystore_certificate_chain=value_of("ssl.keystore.certificate.chain"),
        truststore_type=text("ssl.truststore.type", "JKS"),
        truststore_location=value_of("ssl.truststore.location"),
        truststore_password=value_of("ssl.truststore.password"),
        truststore_certificates=value_of("ssl.truststore.certificates"),
    )


def server_context(settings: TlsSettings, own: Store | None = None) -> ssl.SSLContext:
    """For a listener. Reads the stores, but not a key store that is given as `own`. Raises ConfigError, of one line."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    if not _load_own(context, settings, own or read_key_store(settings.key_store)):
        raise ConfigError(None, None, "a listener with TLS needs a key: ssl.keystore.location or ssl.keystore.key")
    context.verify_mode = _CLIENT_AUTH[settings.client_auth.lower()]
    if context.verify_mode != ssl.CERT_NONE:
        _load_trusted(context, settings)
    else:
        # Nobody is asked for a certificate; a store that is named and no store is a mistake all the same, as in Kafka.
        read_trust_store(settings.trust_store)
    _restrict(context, settings)
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """For connections to brokers: without a trust store whom the system trusts. Reads the stores. Raises ConfigError.

    Who connects gives `server_hostname`: it is checked, unless `ssl.endpoint.identification.algorithm` is empty.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = settings.endpoint_identification_algorithm
    if algorithm and algorithm.lower() != "https":
        raise ConfigError("ssl.endpoint.identification.algorithm", algorithm, "must be https, or empty")
    context.check_hostname = bool(algorithm)
    _load_own(context, settings, read_key_store(settings.key_store))
    _load_trusted(context, settings)
    _restrict(context, settings)
    return context


def _load_own(context: ssl.SSLContext, settings: TlsSettings, store: Store | None) -> bool:
    if store is None:
        return False
    for entry in store.keys:
        try:
            load_key(context, entry)
        except ssl.SSLError as failure:
            reason = "the private key does not belong to the certificate"
            if failure.reason != "KEY_VALUES_MISMATCH":
                reason = f"OpenSSL refuses the key {entry.alias!r}: {failure.reason}"
            raise ConfigError("ssl.keystore.location", settings.keystore_location, reason) from None
    return True


def _load_trusted(context: ssl.SSLContext, settings: TlsSettings) -> None:
    trusted = read_trust_store(settings.trust_store)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if trusted is None:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH if context.protocol == ssl.PROTOCOL_TLS_SERVER else ssl.Purpose.SERVER_AUTH
        )
        return
    try:
        context.load_verify_locations(cadata=b"".join(trusted))
    except ssl.SSLError as failure:
        reason = f"OpenSSL refuses a certificate: {failure.reason}"
        raise ConfigError("ssl.truststore.location", settings.truststore_location, reason) from None


def _restrict(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Versions and ciphers. Raises ConfigError for what cannot be served."""
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.minimum_version, context.maximum_version = _versions(settings)
    if not settings.cipher_suites:
        return
    name = "ssl.cipher.suites"
    shown = ",".join(settings.cipher_suites)
    try:
        choice = chosen_ciphers(settings.cipher_suites)
    except ValueError as unknown:
        raise ConfigError(name, shown, f"{unknown} is no cipher suite that is known") from None
    if choice.tls12:
        try:
            context.set_ciphers(":".join(choice.tls12))
        except ssl.SSLError:
            raise ConfigError(name, shown, "OpenSSL has none of them") from None
        if context.protocol == ssl.PROTOCOL_TLS_SERVER and any(each.startswith("DHE-") for each in choice.tls12):
            load_dh_parameters(context)
    if not choice.tls13:
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    elif not choice.tls12:
        context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_3)
    if context.minimum_version > context.maximum_version:
        raise ConfigError(name, shown, "none of them is of a version in ssl.enabled.protocols")
    if choice.tls13 and choice.tls13 != OFFERED_TLS13 and context.maximum_version == ssl.TLSVersion.TLSv1_3:
        log.warning(
            "TLS 1.3's cipher suites cannot be chosen among: all are offered asked=%s offered=%s",
            ",".join(sorted(choice.tls13)),
            ",".join(sorted(OFFERED_TLS13)),
        )


def _versions(settings: TlsSettings) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    """The oldest and the newest. `ssl.protocol` is the newest, whatever is enabled, as Kafka documents it."""
    name = "ssl.enabled.protocols"
    given = settings.enabled_protocols or tuple(_VERSIONS)
    shown = ",".join(given)
    for each in (*given, settings.protocol):
        if each not in _VERSIONS and each not in _OLD_VERSIONS and each not in _ANY_VERSION:
            raise ConfigError(name, shown, f"{each} is no version that is known")
    newest = _VERSIONS.get(settings.protocol)
    if newest is None and settings.protocol not in _ANY_VERSION:
        raise ConfigError("ssl.protocol", settings.protocol, "must be one of TLSv1.2, TLSv1.3, TLS")
    enabled = sorted({_VERSIONS[each] for each in given if each in _VERSIONS})
    if newest is not None:
        enabled = [each for each in enabled if each <= newest]
    if not enabled:
        raise ConfigError(name, shown, f"must have TLSv1.2 or TLSv1.3, and not only newer than {settings.protocol}")
    return enabled[0], enabled[-1]
