"""What the controller's orders ask of a replica, looked at by themselves. Pure functions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kavka.broker.partitions.role import RECOVERING
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest
from kavka.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrTopicState

TopicPartition = tuple[str, int]


def needs_records(state: "LeaderAndIsrPartitionState", broker_id: int) -> bool:
    """Whether the cluster counts on this replica to have all that was committed, and others may have it if it has not.

    Who is not in sync is added again by a leader that it has caught up with, and by nothing else (KIP-903: in the run
    of its process that this order is for). After an unclean election who decided so takes the loss.
    """
    is_unclean = state.leader == broker_id and state.leader_recovery_state == RECOVERING
    return broker_id in state.isr and len(state.replicas) > 1 and not is_unclean


def is_newer(
    partition: "Partition | None", topic: "LeaderAndIsrTopicState", state: "LeaderAndIsrPartitionState"
) -> bool:
    """Whether the partition can be hosted, and the order is newer than what is known of it.

    One of the same leader epoch changes nothing, as in Kafka: a new controller repeats to everybody what it has read.
    """
    if partition is None:
        return True
    is_same = not partition.is_offline and not is_another(partition, bytes(topic.topic_id))
    return is_same and state.leader_epoch > partition.role.leader_epoch


def is_another(partition: "Partition", topic_id: bytes) -> bool:
    """Whether the order is for another topic of the same name."""
    return ZERO_UUID not in (partition.topic_id, topic_id) and partition.topic_id != topic_id


def stop_errors(
    request: StopReplicaRequest, refused: Mapping[TopicPartition, ErrorCode]
) -> list[StopReplicaPartitionError]:
    return [
        StopReplicaPartitionError(
            topic_name=topic_state.topic_name,
            partition_index=state.partition_index,
            error_code=refused.get((topic_state.topic_name, state.partition_index), ErrorCode.NONE),
        )
        for topic_state in request.topic_states
        for state in topic_state.partition_states
    ]
