"""What a context made of Kafka's settings accepts and refuses, by handshakes in memory."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.client.tls.contexts import TlsSettings, client_context, server_context, tls_settings
from kavka.config.errors import ConfigError
from kavka.config.values import Password
from tests.support.certificates import CLIENT, SERVER, Authority, Issued, rsa_key
from tests.support.descriptors import descriptors
from tests.support.tls_pairs import joined

AUTHORITY = Authority()
BROKER = AUTHORITY.issue("broker")
HTTPS = {"ssl_endpoint_identification_algorithm": "https"}
USER = AUTHORITY.issue("user", hosts=())


def settings_of(own: Issued | None, trusted: bytes | None = None, **others: Any) -> TlsSettings:
    settings = tls_settings(SimpleNamespace(ssl_keystore_type="PEM", ssl_truststore_type="PEM", **HTTPS))
    if own is not None:
        key, chain = Password(own.key_pem().decode()), Password(own.chain_pem().decode())
        settings = replace(settings, keystore_key=key, keystore_certificate_chain=chain)
    if trusted is not None:
        settings = replace(settings, truststore_certificates=Password(trusted.decode()))
    return replace(settings, **others)


def server(own: Issued = BROKER, client_auth: str = "none", **others: Any) -> ssl.SSLContext:
    return server_context(settings_of(own, AUTHORITY.pem(), client_auth=client_auth, **others))


def client(own: Issued | None = None, trusted: bytes | None = None, **others: Any) -> ssl.SSLContext:
    return client_context(settings_of(own, trusted or AUTHORITY.pem(), **others))


def test_a_client_that_trusts_the_authority_reads_what_the_server_writes() -> None:
    ours, theirs = joined(server(), client())
    ours.tls.write(b"welcome")
    theirs.incoming.write(ours.outgoing.read())
    assert theirs.read() == b"welcome"
    assert theirs.tls.version() == "TLSv1.3"


def test_a_client_refuses_a_server_of_another_name_unless_it_is_not_to_look() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        joined(server(), client(), "elsewhere")
    joined(server(), client(endpoint_identification_algorithm=""), "elsewhere")


def test_a_client_refuses_a_server_of_another_authority() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        joined(server(), client(trusted=Authority("other").pem()))


@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_a_client_certificate_is_known_to_the_server(client_auth: str) -> None:
    ours, _ = joined(server(client_auth=client_auth), client(USER))
    assert ours.tls.getpeercert(binary_form=True) == USER.der


def test_a_client_without_certificate_is_refused_where_one_is_required() -> None:
    joined(server(client_auth="requested"), client())
    with pytest.raises(ssl.SSLError):
        joined(server(client_auth="required"), client())


@pytest.mark.parametrize(
    "unfit",
    [
        lambda: Authority("other").issue("user"),
        lambda: AUTHORITY.issue("user", ends=timedelta(minutes=-1)),
        lambda: AUTHORITY.issue("user", begins=timedelta(days=1)),
        lambda: AUTHORITY.issue("user", purposes=[SERVER]),
    ],
    ids=["foreign", "expired", "not valid yet", "for servers alone"],
)
@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_an_unfit_client_certificate_is_refused(unfit: Callable[[], Issued], client_auth: str) -> None:
    with pytest.raises(ssl.SSLError):
        joined(server(client_auth=client_auth), client(unfit()))


def test_a_certificate_for_clients_alone_is_no_servers() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        joined(server(AUTHORITY.issue("broker", purposes=[CLIENT])), client())


def test_whatever_is_in_a_trust_store_is_an_anchor() -> None:
    below = Authority("below", above=AUTHORITY)
    joined(server(below.issue("broker")), client(trusted=below.pem()))
    ours, _ = joined(server_context(settings_of(BROKER, USER.chain_pem(), client_auth="required")), client(USER))
    assert ours.tls.getpeercert(binary_form=True) == USER.der


def test_a_chain_is_sent_whole() -> None:
    below = Authority("below", above=AUTHORITY)
    joined(server(below.issue("broker")), client())


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_versions_are_those_that_are_enabled(version: str) -> None:
    other = "TLSv1.2" if version == "TLSv1.3" else "TLSv1.3"
    only = server(enabled_protocols=(version,))
    ours, _ = joined(only, client())
    assert ours.tls.version() == version
    with pytest.raises(ssl.SSLError):
        joined(only, client(enabled_protocols=(other,)))


def test_the_protocol_is_the_newest_version() -> None:
    ours, _ = joined(server(protocol="TLSv1.2"), client())
    assert ours.tls.version() == "TLSv1.2"


@pytest.mark.parametrize(
    ("suite", "expected"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ],
)
def test_a_suite_of_tls_1_2_alone_ends_tls_1_3(suite: str, expected: str) -> None:
    ours, _ = joined(server(cipher_suites=(suite,)), client())
    assert ours.tls.cipher() == (expected, "TLSv1.2", 128 if "AES128" in expected else 256)


@pytest.mark.parametrize(
    ("suite", "expected"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("SSL_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE-RSA-AES128-GCM-SHA256"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
    ],
)
def test_suites_for_rsa_keys_have_javas_names_too(suite: str, expected: str) -> None:
    issued = AUTHORITY.issue("broker", key=rsa_key())
    ours, _ = joined(server(issued, cipher_suites=(suite,)), client(cipher_suites=(suite,)))
    cipher = ours.tls.cipher()
    assert cipher is not None
    assert cipher[0] == expected


def test_what_cannot_be_chosen_of_tls_1_3_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        context = server(cipher_suites=("TLS_AES_128_GCM_SHA256",))
    assert "cannot be chosen among" in caplog.text
    with pytest.raises(ssl.SSLError):
        joined(context, client(enabled_protocols=("TLSv1.2",)))


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"cipher_suites": ("TLS_KRB5_WITH_3DES",)}, "no cipher suite that is known"),
        ({"cipher_suites": ("NOT-A-CIPHER",)}, "OpenSSL has none of them"),
        ({"cipher_suites": ("ALL:eNULL",)}, "no cipher suite that is known"),
        ({"enabled_protocols": ("TLSv1.1",)}, "must have TLSv1.2 or TLSv1.3"),
        ({"enabled_protocols": ("TLSv1.4",)}, "no version that is known"),
        ({"enabled_protocols": ("TLSv1.3",), "protocol": "TLSv1.2"}, "must have TLSv1.2 or TLSv1.3"),
        ({"protocol": "TLSv1"}, "must be one of"),
        ({"enabled_protocols": ("TLSv1.2",), "cipher_suites": ("TLS_AES_256_GCM_SHA384",)}, "of a version in"),
    ],
)
def test_what_cannot_be_served_is_refused(others: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        server(**others)
    assert "\n" not in str(caught.value)


def test_a_listener_without_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a key"):
        server_context(settings_of(None))


def test_a_key_of_another_certificate_is_refused() -> None:
    mixed = Issued(AUTHORITY, AUTHORITY.issue("other").key, BROKER.certificate)
    with pytest.raises(ConfigError, match="does not belong to the certificate"):
        server(mixed)


def test_keys_leave_no_file_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(context: ssl.SSLContext, path: str, keyfile: None = None, password: str | None = None) -> None:
        opened.append(path)
        load(context, path, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server()
    assert opened[0].startswith("/proc/self/fd/")
    monkeypatch.delattr(os, "memfd_create")
    joined(server(), client())
    assert opened[1].startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    # Whatever else this process has open, and other threads open and close: no key.
    assert [target for _, target in descriptors() if "kavka-key" in target or str(tmp_path) in target] == []


def test_nobody_renegotiates_and_no_ticket_outlives_a_certificate() -> None:
    context = server()
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.num_tickets == 0
    ours, theirs = joined(context, client())
    assert theirs.tls.session is None or not theirs.tls.session.has_ticket
    assert not ours.tls.session_reused


def test_settings_do_not_show_their_secrets() -> None:
    text = repr(settings_of(BROKER, AUTHORITY.pem(), key_password=Password("a-secret")))
    assert "PRIVATE KEY" not in text
    assert "a-secret" not in text
