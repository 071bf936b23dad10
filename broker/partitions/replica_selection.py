"""Which replica a consumer is told to read from (KIP-392): Kafka's RackAwareReplicaSelector. Pure."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataSnapshot
    from kavka.broker.partitions.partition import Partition

THE_LEADER: Final = -1


def preferred_replica(
    partition: "Partition", fetch_offset: int, rack: str, snapshot: "MetadataSnapshot", listener_name: str
) -> int:
    """The in-sync replica in the consumer's rack that has most; -1 for the leader, this broker.

    It must have the offset, and be reached on the listener that the consumer knows. Asked of the leader alone.
    """
    own = snapshot.brokers.get(snapshot.own_broker_id)
    if own is not None and own.rack == rack:
        return THE_LEADER
    isr = partition.role.isr
    candidates = [
        (follower.end_offset, follower.caught_up_ms, broker_id)
        for broker_id, follower in list(partition.followers.items())
        if broker_id in isr
        and 0 <= follower.log_start_offset <= fetch_offset <= follower.end_offset
        and (broker := snapshot.brokers.get(broker_id)) is not None
        and broker.rack == rack
        and snapshot.endpoint(broker_id, listener_name) is not None
    ]
    return max(candidates)[2] if candidates else THE_LEADER
