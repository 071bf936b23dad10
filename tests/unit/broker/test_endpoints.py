"""What a broker says about where it is reached."""

import socket

import pytest

from kavka.broker.metadata.endpoints import broker_info, unadvertised_listeners
from kavka.config.broker_config import BrokerConfig
from kavka.config.sources import load_config


def config(**settings: str) -> BrokerConfig:
    overrides = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    return load_config(None, overrides, {}).config


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"listeners": "PLAINTEXT://:9092"}, {"PLAINTEXT"}),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, {"PLAINTEXT"}),
        ({"listeners": "PLAINTEXT://10.0.0.1:9092"}, set()),
        ({"listeners": "PLAINTEXT://:9092", "advertised_listeners": "PLAINTEXT://a.example:1"}, set()),
    ],
)
def test_clients_of_listeners_that_advertise_nothing_are_told_what_they_reached(
    settings: dict[str, str], expected: set[str]
) -> None:
    assert unadvertised_listeners(config(**settings)) == expected


@pytest.mark.parametrize(
    ("settings", "host", "port"),
    [
        ({"listeners": "PLAINTEXT://10.0.0.1:9092"}, "10.0.0.1", 9092),
        ({"listeners": "PLAINTEXT://10.0.0.1:0"}, "10.0.0.1", 40_001),
        ({"listeners": "PLAINTEXT://:9092"}, socket.gethostname(), 9092),
        ({"listeners": "PLAINTEXT://:0", "advertised_listeners": "PLAINTEXT://a.example:77"}, "a.example", 77),
    ],
)
def test_a_broker_registers_what_can_be_reached(settings: dict[str, str], host: str, port: int) -> None:
    info = broker_info(5, config(**settings, broker_rack="r1"), lambda _: 40_001)

    endpoint = info.endpoints[0]
    assert (info.broker_id, info.rack, endpoint.host, endpoint.port) == (5, "r1", host, port)
    assert [each.name for each in info.features] == ["group.version", "transaction.version"]
