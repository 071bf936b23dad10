"""A group's settings that are stored: used within the broker's limits only."""

import pytest

from kavka.config.broker_config import BrokerConfig
from kavka.config.group_config import usable_group_overrides

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("stored", "used"),
    [
        ({SESSION: "50000", HEARTBEAT: "6000"}, {SESSION: "50000", HEARTBEAT: "6000"}),
        ({SESSION: "10", HEARTBEAT: "6000"}, {HEARTBEAT: "6000"}),
        ({SESSION: "50000", HEARTBEAT: "9999999"}, {SESSION: "50000"}),
        ({SESSION: "soon", "no.such": "1"}, {}),
    ],
)
def test_what_lies_outside_of_the_brokers_limits_is_not_used(stored: dict[str, str], used: dict[str, str]) -> None:
    usable, problems = usable_group_overrides(stored, BrokerConfig())

    assert usable == used
    assert len(problems) == len(stored) - len(used)


@pytest.mark.parametrize(
    ("stored", "used"),
    [({SESSION: "7000", HEARTBEAT: "8000"}, {SESSION: "7000"}), ({SESSION: "4000"}, {}), ({HEARTBEAT: "46000"}, {})],
)
def test_a_session_outlasts_a_heartbeat(stored: dict[str, str], used: dict[str, str]) -> None:
    limits = {"group.consumer.min.session.timeout.ms": "1", "group.consumer.max.heartbeat.interval.ms": "100000"}

    usable, problems = usable_group_overrides(stored, BrokerConfig(limits))

    assert usable == used
    assert len(problems) == len(stored) - len(used)
