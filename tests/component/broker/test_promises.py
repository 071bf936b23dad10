"""Settings that promise safety which is not there yet: the broker does not start, and takes no such change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.server import Broker, StartError
from kavka.cluster.entity_configs import write_config
from kavka.config.broker_config import BrokerConfig
from kavka.config.sources import load_config
from kavka.protocol.errors import ErrorCode
from tests.support.probe import answers
from tests.support.processes import free_port
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker

NAMES = "PLAINTEXT:PLAINTEXT,SECRET:SSL,KNOWN:SASL_PLAINTEXT,BOTH:SASL_SSL"


@pytest.mark.parametrize(
    ("name", "text", "expectation"),
    [
        ("authorizer.class.name", "kafka.security.auth.SimpleAclAuthorizer", "Java class"),
        ("authorizer.class.name", "com.example.Authorizer", "Java class"),
        ("authorizer.zookeeper.url", "elsewhere:2181", "where the cluster's state is"),
        ("super.users", "User:admin", "every client may do everything"),
        ("super.users", "admin", "no principal"),
        ("allow.everyone.if.no.acl.found", "false", "every client may do everything"),
        ("allow.everyone.if.no.acl.found", "perhaps", "must be true or false"),
        ("zookeeper.set.acl", "true", "must be false without zookeeper.connect"),
        ("zookeeper.ssl.client.enable", "true", "without TLS"),
        ("principal.builder.class", "com.example.Principals", "Java class"),
        ("listener.name.plaintext.principal.builder.class", "com.example.Principals", "Java class"),
        ("ssl.engine.factory.class", "com.example.Engines", "Java class"),
        ("listener.name.plaintext.ssl.engine.factory.class", "com.example.Engines", "Java class"),
        ("security.providers", "com.example.Certified", "Java class"),
        ("sasl.login.class", "com.example.Login", "Java class"),
        ("listener.name.plaintext.scram-sha-512.sasl.login.class", "com.example.Login", "Java class"),
        ("sasl.client.callback.handler.class", "com.example.Callbacks", "Java class"),
        ("alter.config.policy.class.name", "com.example.Policy", "Java class"),
        ("create.topic.policy.class.name", "com.example.Policy", "Java class"),
        ("client.quota.callback.class", "com.example.Quotas", "Java class"),
        ("listeners", "SSL://127.0.0.1:0", "listener SSL needs a key"),
        ("listeners", "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0", "listener SASL_SSL needs a key"),
        ("listener.security.protocol.map", "PLAINTEXT:SASL_SSL", "listener PLAINTEXT needs a key"),
    ],
)
def test_a_promise_that_cannot_be_kept_stops_the_start(tmp_path: Path, name: str, text: str, expectation: str) -> None:
    settings = {"listeners": f"PLAINTEXT://{HOST}:0", "log.dirs": str(tmp_path / "data"), name: text}

    with pytest.raises(StartError) as refusal:
        Broker(BrokerConfig(settings)).start()

    complaint = str(refusal.value)
    assert expectation in complaint
    assert len(complaint.splitlines()) == 1
    if name != "listener.security.protocol.map":
        assert name in complaint
        assert text in complaint
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "variable", ["KAFKA_AUTHORIZER_CLASS_NAME", "KAFKA_SUPER_USERS", "KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND"]
)
def test_a_promise_in_the_environment_is_heard_too(tmp_path: Path, variable: str) -> None:
    overrides = [f"listeners=PLAINTEXT://{HOST}:0", f"log.dirs={tmp_path / 'data'}"]
    loaded = load_config(None, overrides, {variable: "User:admin"})

    assert loaded.unknown == []
    with pytest.raises(StartError, match=variable.removeprefix("KAFKA_").replace("_", ".").lower()):
        Broker(loaded.config).start()


def test_what_promises_nothing_by_itself_is_taken(tmp_path: Path) -> None:
    harmless = {
        "authorizer.class.name": "",
        "super.users": "",
        "allow.everyone.if.no.acl.found": "true",
        "security.inter.broker.protocol": "PLAINTEXT",
        "zookeeper.set.acl": "false",
        "ssl.keystore.location": "/etc/kafka/store.jks",
        "ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plaintext.ssl.keystore.password": "secret",
        "password.encoder.secret": "secret",
        "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "ssl.engine.factory.class": "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
        "listener.security.protocol.map": NAMES,
    }
    with RunningBroker(tmp_path, harmless) as running:
        assert answers(HOST, running.port)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path, {"listener.security.protocol.map": NAMES}) as running:
        yield running


@pytest.mark.parametrize("listener", ["SECRET", "BOTH"])
def test_a_listener_that_would_not_be_as_safe_as_it_says_is_not_opened(running: RunningBroker, listener: str) -> None:
    port = free_port()
    listeners = f"PLAINTEXT://{HOST}:{running.port},{listener}://{HOST}:{port}"
    before = running.described()

    answer = running.alter({"listeners": listeners})

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert f"listener {listener} needs a key" in answer.error_message
    assert running.described() == before
    assert not answers(HOST, port)


def test_an_open_listener_does_not_become_one_that_only_says_it_is_safe(running: RunningBroker) -> None:
    answer = running.alter({"listener.security.protocol.map": "PLAINTEXT:SSL"})

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "listener PLAINTEXT needs a key" in answer.error_message


@pytest.mark.parametrize("name", ["principal.builder.class", "listener.name.plaintext.principal.builder.class"])
def test_a_class_that_would_not_be_asked_is_not_taken(running: RunningBroker, name: str) -> None:
    answer = running.alter({name: "com.example.Principals"})

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "Java class" in answer.error_message


def test_a_stored_listener_that_would_not_be_as_safe_as_it_says_is_not_opened_by_a_start(
    running: RunningBroker,
) -> None:
    port = free_port()
    listeners = f"PLAINTEXT://{HOST}:{running.port},SECRET://{HOST}:{port}"
    write_config(
        running.broker.services.registry, f"brokers/{BROKER_ID}", {"listeners": listeners, "num.io.threads": "3"}
    )

    running.restart()

    assert answers(HOST, running.port)
    assert not answers(HOST, port)
    assert running.described()["num.io.threads"][0] == "3"
