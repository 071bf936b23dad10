"""Produce answers that say who leads what is led elsewhere, so that the client need not ask for metadata (KIP-951)."""

from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.hosted import current_leader
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.produce import LeaderIdAndEpoch, NodeEndpoint, ProduceResponse

if TYPE_CHECKING:
    from kavka.broker.services import Services

LEADERS_SINCE: Final = 10


def name_leaders(services: "Services", listener_name: str, response: ProduceResponse, version: int) -> None:
    """Add the leaders, and where they are reached on that listener, for each NOT_LEADER_OR_FOLLOWER in the answer.

    As they are known now, whether the request was refused at once or has waited. Any thread, no lock held.
    """
    if version < LEADERS_SINCE:
        return
    endpoints: dict[int, NodeEndpoint] = {}
    snapshot = services.metadata.current
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            leader_id, leader_epoch = current_leader(services, topic.name, answer.index)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
            endpoint = snapshot.endpoint(leader_id, listener_name)
            if endpoint is not None:
                rack = snapshot.brokers[leader_id].rack
                endpoints[leader_id] = NodeEndpoint(
                    node_id=leader_id, host=endpoint.host, port=endpoint.port, rack=rack
                )
    response.node_endpoints = list(endpoints.values())
