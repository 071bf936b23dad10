"""Ways to be in a group, and with which broker each is tried: every way with Kavka, each with one of Kafka's."""

from typing import Any, Final

import pytest

from tests.support.client_brokers import KAFKA_39, KAFKA_43, KAVKA

RANGE: Final = {"partition.assignment.strategy": "range"}
ROUND_ROBIN: Final = {"partition.assignment.strategy": "roundrobin"}
STICKY: Final = {"partition.assignment.strategy": "sticky"}
COOPERATIVE: Final = {"partition.assignment.strategy": "cooperative-sticky"}
NEW: Final = {"group.protocol": "consumer"}
"""KIP-848, which Kafka 3.9 with ZooKeeper does not have."""


def row(broker: Any, way: dict[str, str]) -> Any:
    """A parameter for `broker` and `way`."""
    name = way.get("group.protocol") or way["partition.assignment.strategy"]
    return pytest.param(*broker.values, way, id=f"{broker.id}-{name}", marks=broker.marks)


EVERY_WAY: Final = [
    *(row(KAVKA, way) for way in (RANGE, STICKY, COOPERATIVE, NEW)),
    row(KAFKA_39, RANGE),
    row(KAFKA_39, COOPERATIVE),
    row(KAFKA_43, STICKY),
    row(KAFKA_43, NEW),
]
