"""The parts of a fetch's answer that both of its ways make."""

from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.fetch_sessions import Key
from kavka.broker.partitions.hosted import current_leader
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData

if TYPE_CHECKING:
    from kavka.broker.services import Services

REPLICATED_BYTES: Final = "kafka_server_brokertopicmetrics_replicationbytesout"
LEADERS_SINCE: Final = 16
"""The first version told of the new leader: the field is older, but Kafka fills it with the address (KIP-951)."""
LEADER_ERRORS: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def name_leader(
    services: "Services", listener_name: str, answer: PartitionData, topic: str, endpoints: dict[int, NodeEndpoint]
) -> None:
    """Say who leads now, so that the client need not ask (KIP-951)."""
    leader_id, leader_epoch = current_leader(services, topic, answer.partition_index)
    answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    snapshot = services.metadata.current
    endpoint = snapshot.endpoint(leader_id, listener_name)
    if endpoint is not None:
        rack = snapshot.brokers[leader_id].rack
        endpoints[leader_id] = NodeEndpoint(node_id=leader_id, host=endpoint.host, port=endpoint.port, rack=rack)


def by_topic(shown: list[tuple[Key, PartitionData]]) -> list[FetchableTopicResponse]:
    """Entries grouped where neighbours have the same topic, so that the order of reading is kept."""
    topics: list[FetchableTopicResponse] = []
    last: tuple[str, bytes] | None = None
    for (name, topic_id, _), answer in shown:
        if last != (name, topic_id):
            last = (name, topic_id)
            topics.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(answer)
    return topics
