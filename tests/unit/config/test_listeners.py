from __future__ import annotations

import pytest

from kavka.config import BrokerConfig, ConfigError, Listener

MAP = "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL,PLAINTEXT:PLAINTEXT"


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://:0", Listener("PLAINTEXT", "", 0, "PLAINTEXT")),
        ("plaintext://localhost:9092", Listener("PLAINTEXT", "localhost", 9092, "PLAINTEXT")),
        ("PLAINTEXT://[::1]:9092", Listener("PLAINTEXT", "::1", 9092, "PLAINTEXT")),
        ("PLAINTEXT://[fe80::1%eth0]:9092", Listener("PLAINTEXT", "fe80::1%eth0", 9092, "PLAINTEXT")),
        ("SSL://0.0.0.0:65535", Listener("SSL", "0.0.0.0", 65535, "SSL")),
    ],
)
def test_a_listener_is_parsed(text: str, listener: Listener) -> None:
    assert BrokerConfig({"listeners": text}).listeners == (listener,)


def test_a_custom_name_gets_its_security_protocol_from_the_map() -> None:
    config = BrokerConfig({"listeners": "inside://:1,OUTSIDE://:2", "listener.security.protocol.map": MAP})

    assert [(listener.name, listener.security_protocol) for listener in config.listeners] == [
        ("INSIDE", "PLAINTEXT"),
        ("OUTSIDE", "SASL_SSL"),
    ]


def test_one_port_may_serve_ipv4_and_ipv6() -> None:
    given = {"listeners": "INSIDE://127.0.0.1:1,PLAINTEXT://[::1]:1", "listener.security.protocol.map": MAP}
    assert len(BrokerConfig(given).listeners) == 2


def test_nothing_is_advertised_unless_it_is_said() -> None:
    assert BrokerConfig().advertised_listeners == ()
    advertised = BrokerConfig({"advertised.listeners": "PLAINTEXT://kafka.example.com:443"}).advertised_listeners
    assert advertised == (Listener("PLAINTEXT", "kafka.example.com", 443, "PLAINTEXT"),)


def test_listeners_of_a_kraft_controller_are_left_out() -> None:
    config = BrokerConfig(
        {
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        }
    )
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "different name"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "different port"),
        ({"listeners": "PLAINTEXT://1.1.1.1:1,SSL://2.2.2.2:1"}, "different port"),
        ({"listeners": "NOBODY://:1"}, "No security protocol defined for listener NOBODY"),
        ({"listeners": "PLAINTEXT://host"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://[::1:9092"}, "NAME://host:port"),
        ({"listeners": "://:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://:70000"}, "port must be"),
        ({"listeners": "PLAINTEXT://:-1"}, "port must be"),
        ({"listeners": ""}, "at least one listener"),
        ({"listeners": "SSL://:1", "controller.listener.names": "SSL"}, "at least one listener"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "nonroutable"),
        ({"advertised.listeners": "PLAINTEXT://[::]:9092"}, "nonroutable"),
        ({"advertised.listeners": "PLAINTEXT://:9092"}, "needs a host"),
        ({"advertised.listeners": "SSL://host:9092"}, "subset"),
        ({"listener.security.protocol.map": "A:B"}, "must be one of PLAINTEXT"),
        ({"listener.security.protocol.map": "A"}, "LISTENER_NAME:SECURITY_PROTOCOL"),
        ({"inter.broker.listener.name": "INSIDE"}, "must be a listener name defined"),
        ({"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "SSL"}, "Only one of"),
        ({"listeners": "SSL://:1", "zookeeper.connect": "zk:2181"}, "must be a listener name defined"),
    ],
)
def test_wrong_or_contradicting_listeners_are_refused(given: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected.replace("(", r"\(")):
        BrokerConfig(given)


def test_brokers_that_use_sasl_need_their_mechanism_enabled() -> None:
    given = {
        "listeners": "SASL_SSL://:1",
        "security.inter.broker.protocol": "SASL_SSL",
        "zookeeper.connect": "zk:2181",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    with pytest.raises(ConfigError, match="must be included in"):
        BrokerConfig(given)
    assert BrokerConfig({**given, "sasl.mechanism.inter.broker.protocol": "PLAIN"}).listeners


def test_a_listener_prints_as_it_is_written() -> None:
    assert str(Listener("A", "::1", 5, "PLAINTEXT")) == "A://[::1]:5"
