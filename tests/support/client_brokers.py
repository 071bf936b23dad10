"""The brokers that the client's own suite runs against, as parameters of the fixture `broker`."""

from typing import Final

import pytest

KAVKA: Final = pytest.param("kavka", id="kavka")
KAFKA_39: Final = pytest.param("kafka-3.9", id="kafka-3.9", marks=pytest.mark.java)
"""With ZooKeeper: no groups of the consumer protocol, no transactions v2."""
KAFKA_43: Final = pytest.param("kafka-4.3", id="kafka-4.3", marks=pytest.mark.java)

ALL: Final = (KAVKA, KAFKA_39, KAFKA_43)
NEWER: Final = (KAVKA, KAFKA_43)
"""For what 3.9 does not have: `@pytest.mark.parametrize("broker", NEWER, indirect=True)`."""
