"""Certificates that change while the broker runs: what counts from when, and what leaves the old ones in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from kavka.broker.metrics.registry import Metrics
from kavka.broker.security.listener_transports import FAILED_RELOADS, ListenerTransports
from kavka.broker.security.tls.principal import UnmappedError
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import SettingRefusedError
from tests.support.certificates import PASSWORD, Authority, Issued, subject

AUTHORITY = Authority()
FIRST = AUTHORITY.issue("broker")


class Rig:
    """Listeners' transports whose key store lies in a file that tests replace."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = directory / "keys.p12"
        self.trust = AUTHORITY.write_pem(directory / "trust.pem")
        self.metrics = Metrics()
        self.transports = ListenerTransports(self.metrics, self._died)
        self.put(FIRST)

    def put(self, issued: Issued) -> None:
        """Replace the key store's file whole, as an operator or a volume of secrets does."""
        fresh = issued.write_pkcs12(self.directory / "fresh.p12")
        fresh.replace(self.store)

    def config(self, others: Mapping[str, str] = MappingProxyType({})) -> BrokerConfig:
        return BrokerConfig(
            {
                "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
                "log.dirs": str(self.directory),
                "ssl.keystore.location": str(self.store),
                "ssl.keystore.password": PASSWORD,
                **others,
            }
        )

    def prepare(self, config: BrokerConfig) -> None:
        self.transports.prepare(config, config.listeners)

    def reconfigure(self, config: BrokerConfig) -> None:
        self.transports.reconfigure(config, config.listeners)

    @property
    def shown(self) -> bytes:
        """The certificate that a client would be shown now."""
        return self.transports._tls["SSL"].current.chains[0][0].public_bytes(Encoding.DER)

    @property
    def failures(self) -> int:
        return self.metrics.events().get(FAILED_RELOADS, 0)

    def _died(self, failure: BaseException) -> None:
        raise failure


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    rig.prepare(rig.config())
    yield rig
    rig.transports.stop()


def test_a_file_that_was_replaced_counts_at_the_next_look(rig: Rig) -> None:
    renewed = AUTHORITY.issue("broker")
    rig.put(renewed)
    assert rig.shown == FIRST.der
    rig.transports.look()
    assert rig.shown == renewed.der
    assert rig.failures == 0


def test_a_file_that_did_not_change_is_not_read_unless_somebody_asks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    monkeypatch.setattr("kavka.broker.security.listener_transports._made", lambda name, _settings: reads.append(name))
    rig.transports.look()
    assert reads == []
    # What it is given here cannot be used, which harms nobody who asks.
    rig.transports.look(was_asked=True)
    assert reads == ["SSL"]
    assert rig.failures == 1
    assert rig.shown == FIRST.der


@pytest.mark.parametrize(
    ("issue", "told"),
    [
        (lambda: AUTHORITY.issue("another"), "DistinguishedName does not match: existing=CN=broker, new=CN=another"),
        (lambda: AUTHORITY.issue("broker", hosts=["localhost"]), "SubjectAltNames do not match"),
        (lambda: AUTHORITY.issue("broker", ends=timedelta(minutes=-1)), "is valid from"),
        (lambda: AUTHORITY.issue("broker", begins=timedelta(days=1)), "is valid from"),
        (lambda: Issued(AUTHORITY, AUTHORITY.issue("x").key, AUTHORITY.issue("broker").certificate), "cannot be read"),
    ],
    ids=["another name", "fewer hosts", "expired", "not yet valid", "another key"],
)
def test_what_is_not_as_it_should_be_leaves_the_old_ones(
    rig: Rig, issue: Callable[[], Issued], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        rig.put(issue())
    except ValueError:
        # PKCS12 does not take a key of another certificate.
        rig.store.write_bytes(b"0" + os.urandom(100))
    rig.transports.look()
    assert rig.shown == FIRST.der
    assert rig.failures == 1
    assert told in caplog.text
    with pytest.raises(SettingRefusedError, match=r"."):
        rig.prepare(rig.config())
    assert rig.shown == FIRST.der
    assert rig.failures == 2


def test_more_hosts_are_no_other_broker(rig: Rig) -> None:
    renewed = AUTHORITY.issue("broker", hosts=["localhost", "127.0.0.1", "kavka.example"])
    rig.put(renewed)
    rig.transports.look()
    assert rig.shown == renewed.der


def test_another_name_is_taken_where_it_is_allowed(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    allowed = {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}
    rig.prepare(rig.config(allowed))
    renewed = AUTHORITY.issue(subject("another", unit="x"), hosts=["elsewhere"])
    rig.put(renewed)
    rig.transports.look()
    assert rig.shown == renewed.der
    rig.transports.stop()


def test_a_chain_that_is_none_is_refused(rig: Rig) -> None:
    stranger = Authority("stranger", above=Authority("root"))
    issued = AUTHORITY.issue("broker")
    chain = issued.chain_pem() + stranger.certificate.public_bytes(Encoding.PEM)
    config = rig.config(
        {
            "ssl.keystore.location": str(rig.directory / "chain.pem"),
            "ssl.keystore.type": "PEM",
        }
    )
    (rig.directory / "chain.pem").write_bytes(issued.key_pem() + chain)
    with pytest.raises(SettingRefusedError, match="cannot be specified with PEM"):
        rig.prepare(config)
    config = BrokerConfig(
        {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(rig.directory / "chain.pem"),
        }
    )
    with pytest.raises(SettingRefusedError, match="not signed by the next in its chain"):
        rig.prepare(config)


def test_other_settings_count_when_the_change_does_and_not_before(rig: Rig) -> None:
    renewed = AUTHORITY.issue("broker")
    elsewhere = renewed.write_pkcs12(rig.directory / "elsewhere.p12")
    config = rig.config({"listener.name.ssl.ssl.keystore.location": str(elsewhere)})
    rig.prepare(config)
    assert rig.shown == FIRST.der
    rig.reconfigure(config)
    assert rig.shown == renewed.der


def test_a_change_that_was_prepared_in_vain_is_forgotten(rig: Rig) -> None:
    elsewhere = AUTHORITY.issue("broker").write_pkcs12(rig.directory / "elsewhere.p12")
    config = rig.config({"listener.name.ssl.ssl.keystore.location": str(elsewhere)})
    rig.prepare(config)
    rig.transports.keep_only([(rig.config(), rig.config().listeners)])
    rig.reconfigure(config)
    assert rig.shown == FIRST.der


def test_the_same_settings_again_have_the_file_read_again(rig: Rig) -> None:
    renewed = AUTHORITY.issue("broker")
    rig.put(renewed)
    rig.prepare(rig.config())
    assert rig.shown == renewed.der


def test_a_file_that_is_gone_leaves_what_was_read_of_it(rig: Rig) -> None:
    rig.store.unlink()
    rig.transports.look()
    assert rig.shown == FIRST.der
    assert rig.failures == 1


@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_a_trust_store_that_is_none_is_refused_although_nobody_is_asked_for_a_certificate(
    rig: Rig, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "other.pem").write_bytes(content)
    wrong = rig.config({"ssl.truststore.location": str(tmp_path / "other.pem")})

    for transports in (rig.transports, ListenerTransports(Metrics(), rig._died)):
        with pytest.raises(SettingRefusedError, match=r"ssl\.truststore\.location"):
            transports.prepare(wrong, wrong.listeners)
    rig.prepare(rig.config({"ssl.truststore.location": str(rig.trust), "ssl.truststore.type": "PEM"}))


def test_a_listener_that_is_gone_takes_its_certificates_with_it(rig: Rig) -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0"})
    rig.transports.keep_only([(config, config.listeners)])
    assert rig.transports.of("SSL").security_protocol == "CLOSED"
    assert rig.transports.seconds_to_expiry() == []


def test_an_open_listener_keeps_its_security_protocol(rig: Rig) -> None:
    with pytest.raises(SettingRefusedError, match="security protocol of listener SSL cannot change"):
        rig.prepare(rig.config({"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:PLAINTEXT"}))


def test_when_certificates_expire_is_known(rig: Rig) -> None:
    ((labels, seconds),) = rig.transports.seconds_to_expiry()
    assert labels == {"listener": "SSL"}
    assert 0 < seconds - timedelta(days=19).total_seconds() < timedelta(days=1).total_seconds()


def test_brokers_must_trust_what_they_show(rig: Rig) -> None:
    among_brokers = {
        "zookeeper.connect": "127.0.0.1:1",
        "inter.broker.listener.name": "SSL",
        "ssl.truststore.type": "PEM",
    }
    trusting = rig.config({**among_brokers, "ssl.truststore.location": str(rig.trust)})
    transports = ListenerTransports(Metrics(), rig._died)
    transports.prepare(trusting, trusting.listeners)
    other = Authority("other").write_pem(rig.directory / "other.pem")
    mistrusting = rig.config({**among_brokers, "ssl.truststore.location": str(other)})
    with pytest.raises(SettingRefusedError, match="A client SSLEngine created with the provided settings"):
        ListenerTransports(Metrics(), rig._died).prepare(mistrusting, mistrusting.listeners)
    required = rig.config(
        {**among_brokers, "ssl.truststore.location": str(rig.trust), "listener.name.ssl.ssl.client.auth": "required"}
    )
    transports.prepare(required, required.listeners)


def test_certificates_are_asked_for_where_sasl_follows_only_by_the_listeners_own_setting(rig: Rig) -> None:
    names = {"listeners": "SASL_SSL://127.0.0.1:0", "ssl.client.auth": "required"}
    for own, expected in (({}, 0), ({"listener.name.sasl_ssl.ssl.client.auth": "required"}, 2)):
        config = rig.config({**names, **own})
        transports = ListenerTransports(Metrics(), rig._died)
        transports.prepare(config, config.listeners)
        assert transports._tls["SASL_SSL"].current.context.verify_mode == expected


def test_who_is_known_by_sasl_needs_no_name_by_the_rules_for_certificates(rig: Rig) -> None:
    """The rules may be for another listener's clients: these were refused though they had shown who they are."""
    certificate = Authority("other").issue("anybody").der
    for protocol in ("SSL", "SASL_SSL"):
        rules = {"listeners": f"{protocol}://127.0.0.1:0", "ssl.principal.mapping.rules": "RULE:^CN=broker-(.*)$/$1/"}
        config = rig.config(rules)
        transports = ListenerTransports(Metrics(), rig._died)
        transports.prepare(config, config.listeners)
        made = transports._tls[protocol].current.rules
        if protocol == "SSL":
            with pytest.raises(UnmappedError):
                made.principal(certificate)
        else:
            made.principal(certificate)
