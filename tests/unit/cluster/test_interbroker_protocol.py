"""In which versions brokers send each other requests, by inter.broker.protocol.version."""

import pytest

from kavka.cluster.interbroker_protocol import InterBrokerProtocol
from kavka.protocol.api import ApiKey


@pytest.mark.parametrize(
    ("release", "leader_and_isr", "stop_replica", "update_metadata"),
    [
        ("2.8", 5, 3, 7),
        ("2.8-IV1", 5, 3, 7),
        ("3.1", 5, 3, 7),
        ("3.2", 6, 3, 7),
        ("3.3-IV3", 6, 3, 7),
        ("3.4", 7, 4, 8),
        ("3.9.2", 7, 4, 8),
    ],
)
def test_the_controllers_requests_have_the_versions_of_the_release(
    release: str, leader_and_isr: int, stop_replica: int, update_metadata: int
) -> None:
    spoken = InterBrokerProtocol(release)
    assert spoken.version(ApiKey.LEADER_AND_ISR) == leader_and_isr
    assert spoken.version(ApiKey.STOP_REPLICA) == stop_replica
    assert spoken.version(ApiKey.UPDATE_METADATA) == update_metadata
    assert spoken.version(ApiKey.CONTROLLED_SHUTDOWN) == 3


@pytest.mark.parametrize(("release", "allocates"), [("2.8", False), ("2.8-IV1", False), ("3.0", True), ("3.9", True)])
def test_controllers_hand_out_producer_ids_since_3_0(release: str, allocates: bool) -> None:
    assert InterBrokerProtocol(release).allocates_producer_ids is allocates
