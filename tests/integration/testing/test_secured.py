"""Brokers of tests with secured listeners: what is tested comes in by its own, the test by another."""

from collections.abc import Mapping
from typing import Any

import pytest

from kavka.client import AclBinding, AclOperation, Consumer, Producer, ResourceType
from kavka.client.api_errors import SaslAuthenticationError, TopicAuthorizationError
from kavka.config.errors import ConfigError
from kavka.testing import Broker, Cluster
from kavka.testing.shared import SharedBroker

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECURED: Mapping[str, str] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULE} user_alice="wonderland";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
TIMEOUT_S = 60


def alice(servers: str, password: str = "wonderland") -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{MODULE} username="alice" password="{password}";',
    }


@pytest.mark.parametrize("of_several", [False, True])
def test_a_client_comes_in_by_the_secured_listener_and_may_do_what_it_was_allowed(of_several: bool) -> None:
    with Cluster(2, SECURED) if of_several else Broker(SECURED) as served:
        assert list(served.listeners) == ["SASL_PLAINTEXT", "PLAINTEXT"]
        secured = served.bootstrap_at("SASL_PLAINTEXT")
        assert secured == served.bootstrap_servers
        served.create_topic("orders")
        served.produce("orders", ["of the test's own"])
        with Producer(alice(secured)) as producer:
            assert isinstance(producer.send("orders", b"x").exception(TIMEOUT_S), TopicAuthorizationError)
            served.admin.create_acls([AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.WRITE)])
            served.wait_until(lambda: producer.send("orders", b"of alice").exception(TIMEOUT_S) is None)
        served.assert_records("orders", ["of the test's own", "of alice"])
        with Consumer(alice(secured, "through the looking-glass")) as consumer:
            consumer.assign([("orders", 0)])
            with pytest.raises(SaslAuthenticationError):
                consumer.poll(TIMEOUT_S * 1000)


def test_it_is_the_same_after_a_restart() -> None:
    with Broker(SECURED) as broker:
        before = broker.bootstrap_at("SASL_PLAINTEXT"), broker.plain_servers
        broker.restart()
        assert (broker.bootstrap_at("SASL_PLAINTEXT"), broker.plain_servers) == before
        assert SharedBroker(broker, "mine.").bootstrap_at("PLAINTEXT") == before[1]


def test_without_a_plain_listener_what_the_test_asks_itself_is_refused_at_once() -> None:
    alone = {
        **SECURED,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    with Broker(alone) as broker:
        with pytest.raises(RuntimeError, match="no such listener"):
            broker.create_topic("orders")
        with pytest.raises(RuntimeError, match="no such listener"):
            broker.produce("orders", ["x"])
        with pytest.raises(ValueError, match="there is no listener 'SSL': there are SASL_PLAINTEXT"):
            broker.bootstrap_at("SSL")


def test_a_cluster_whose_brokers_may_tell_one_another_nothing_is_refused_at_once() -> None:
    settings = {name: value for name, value in SECURED.items() if name != "super.users"}
    with pytest.raises(ConfigError, match=r"super\.users: .* User:ANONYMOUS"):
        Cluster(2, settings)
    with Cluster(2, {**settings, "allow.everyone.if.no.acl.found": "true"}) as cluster:
        cluster.create_topic("orders")
