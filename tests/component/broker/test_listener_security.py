"""A broker's ways to others: by the listener's settings, as they and the files behind them are now."""

import errno
import logging
from pathlib import Path

import pytest

from kavka.broker.interbroker import listener_security
from kavka.broker.interbroker.link_security import LinkSecurity
from kavka.broker.interbroker.listener_security import ListenerSecurity
from kavka.client.node import Node
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from tests.support.secure_listeners import BROKER_SECRET, BROKER_USER, SecureListeners, client_jaas

MECHANISM = "SCRAM-SHA-512"
JAAS = f"listener.name.inside.{MECHANISM.lower()}.sasl.jaas.config"
SETTINGS = {
    "zookeeper.connect": "127.0.0.1:2181",
    "listeners": "INSIDE://127.0.0.1:9093,CONTROL://127.0.0.1:9094,PLAINTEXT://127.0.0.1:9092",
    "listener.security.protocol.map": "INSIDE:SASL_SSL,CONTROL:SSL,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": MECHANISM,
    "sasl.mechanism.inter.broker.protocol": MECHANISM,
    JAAS: client_jaas(MECHANISM, BROKER_USER, BROKER_SECRET),
}


class Snapshots:
    """What DynamicConfig has: the newest settings."""

    def __init__(self, directory: Path) -> None:
        self.stores = SecureListeners(directory)
        stores = {
            **self.stores.stores("key", self.stores.key_store),
            **self.stores.stores("trust", self.stores.trust_store),
        }
        self.given = {**SETTINGS, **stores, "log.dirs": str(directory / "data")}
        self.current = BrokerConfig(self.given)

    def __call__(self) -> BrokerConfig:
        return self.current

    def change(self, **settings: str) -> None:
        changes = {name.replace("_", "."): value for name, value in settings.items()}
        self.current = BrokerConfig({**self.given, **changes})


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path)


def test_a_store_that_changes_counts_from_the_next_connection_on(snapshots: Snapshots, tmp_path: Path) -> None:
    security = ListenerSecurity(snapshots, "INSIDE")
    before = security.context()
    assert security.context() is before
    SecureListeners(tmp_path / "new").trust_store.replace(snapshots.stores.trust_store)
    assert security.context() is not before


def test_a_store_that_cannot_be_read_changes_nothing(snapshots: Snapshots, caplog: pytest.LogCaptureFixture) -> None:
    security = ListenerSecurity(snapshots, "INSIDE")
    before = security.context()
    snapshots.stores.key_store.write_bytes(b"no store")
    with caplog.at_level(logging.ERROR):
        assert security.context() is before
        assert security.context() is before
    assert len(caplog.records) == 1, "and is said once"


def test_what_could_not_be_read_for_a_while_is_tried_again(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    security = ListenerSecurity(snapshots, "INSIDE")
    before = security.context()
    SecureListeners(tmp_path / "new").trust_store.replace(snapshots.stores.trust_store)

    def fail(_settings: object) -> None:
        raise OSError(errno.EMFILE, "no descriptors")

    with monkeypatch.context() as patch:
        patch.setattr(listener_security, "context_of", fail)
        assert security.context() is before
    after = security.context()
    assert after is not before
    assert security.context() is after


def test_a_password_that_changes_is_the_next_ones(snapshots: Snapshots) -> None:
    security = ListenerSecurity(snapshots, "INSIDE")
    before, context = security.mechanism(), security.context()
    snapshots.change(num_io_threads="3")
    assert security.mechanism() is before
    assert security.context() is context, "other settings are no reason to make it anew"
    snapshots.given[JAAS] = client_jaas(MECHANISM, "another", "secret")
    snapshots.change()
    mechanism = security.mechanism()
    assert mechanism is not None
    assert b"n=another," in mechanism.begin().first()


def test_the_controllers_listener_has_its_own_ways(snapshots: Snapshots) -> None:
    security = LinkSecurity(snapshots, "CONTROL", frozenset({"markers"}))
    links = security.of_links()
    assert links is not None
    node = Node(2, "127.0.0.1", 9093)
    assert links.authentication(node._replace(lane="markers")) is not None
    assert links.authentication(node._replace(lane="control")) is None, "TLS alone says who it is"


def test_a_plaintext_listener_needs_nothing(snapshots: Snapshots) -> None:
    snapshots.given |= {"inter.broker.listener.name": "PLAINTEXT"}
    snapshots.change()
    security = LinkSecurity(snapshots, "PLAINTEXT", frozenset())
    assert (security.of_links(), security.of_fetcher()) == (None, None)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("sasl.mechanism.inter.broker.protocol", "GSSAPI", "Kerberos"),
        (JAAS, "org.apache.kafka.common.security.scram.ScramLoginModule required;", "username and password"),
        ("ssl.truststore.location", "/nowhere.p12", "nowhere"),
    ],
)
def test_what_cannot_log_in_at_others_is_no_start(snapshots: Snapshots, name: str, value: str, expected: str) -> None:
    snapshots.given[name] = value
    if name == "sasl.mechanism.inter.broker.protocol":
        snapshots.given["sasl.enabled.mechanisms"] = value
    snapshots.change()
    with pytest.raises(ConfigError, match=expected):
        LinkSecurity(snapshots, "INSIDE", frozenset())
