"""Requests about the cluster, its brokers, and those that brokers ask each other."""

from typing import Final

from kavka.broker.security.acl import Operation
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kavka.protocol.messages.alter_partition import AlterPartitionRequest
from kavka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from kavka.protocol.messages.describe_cluster import DescribeClusterRequest
from kavka.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kavka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kavka.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kavka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.integration.oracle.answers.stage import NOWHERE
from tests.integration.oracle.rights.table import TOO, Names, cluster, row, topic

NO_BROKER: Final = 77
DEPOSED: Final = 0
"""The epoch of a controller that there was before all others."""
ELECTION_TYPES_SINCE: Final = 1
EPOCHS_SINCE: Final = 2


@row(ApiKey.LEADER_AND_ISR, cluster(Operation.CLUSTER_ACTION), versions="5-99")
def leader_and_isr(version: int, names: Names) -> LeaderAndIsrRequest:
    states = [
        LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=DEPOSED,
            leader=NO_BROKER,
            leader_epoch=0,
            isr=[],
            partition_epoch=0,
            replicas=[],
            adding_replicas=[],
            removing_replicas=[],
        )
        for index in (0, 1)
    ]
    return LeaderAndIsrRequest(
        controller_id=NO_BROKER,
        controller_epoch=DEPOSED,
        topic_states=[LeaderAndIsrTopicState(topic_name=TOO, topic_id=NOWHERE, partition_states=states)],
        live_leaders=[],
    )


@row(ApiKey.STOP_REPLICA, cluster(Operation.CLUSTER_ACTION), versions="3-99")
def stop_replica(version: int, names: Names) -> StopReplicaRequest:
    states = [StopReplicaPartitionState(partition_index=index, delete_partition=False) for index in (0, 1)]
    return StopReplicaRequest(
        controller_id=NO_BROKER,
        controller_epoch=DEPOSED,
        topic_states=[StopReplicaTopicState(topic_name=TOO, partition_states=states)],
    )


@row(ApiKey.UPDATE_METADATA, cluster(Operation.CLUSTER_ACTION), versions="7-99")
def update_metadata(version: int, names: Names) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=NO_BROKER, controller_epoch=DEPOSED, topic_states=[], live_brokers=[])


@row(ApiKey.CONTROLLED_SHUTDOWN, cluster(Operation.CLUSTER_ACTION), versions="1-99")
def controlled_shutdown(version: int, names: Names) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=NO_BROKER)


@row(ApiKey.ALTER_PARTITION, cluster(Operation.CLUSTER_ACTION))
def alter_partition(version: int, names: Names) -> AlterPartitionRequest:
    return AlterPartitionRequest(broker_id=NO_BROKER, broker_epoch=0, topics=[])


@row(ApiKey.ALLOCATE_PRODUCER_IDS, cluster(Operation.CLUSTER_ACTION))
def allocate_producer_ids(version: int, names: Names) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=NO_BROKER, broker_epoch=0)


@row(ApiKey.UPDATE_FEATURES, cluster(Operation.ALTER))
def update_features(version: int, names: Names) -> UpdateFeaturesRequest:
    updates = [FeatureUpdateKey(feature="unheard.of", max_version_level=1)]
    return UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=updates)


@row(ApiKey.ELECT_LEADERS, cluster(Operation.ALTER))
def elect_leaders(version: int, names: Names) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=0, topic_partitions=[TopicPartitions(topic=TOO, partitions=[0])], timeout_ms=30_000
    )


@row(ApiKey.ALTER_PARTITION_REASSIGNMENTS, cluster(Operation.ALTER))
def alter_partition_reassignments(version: int, names: Names) -> AlterPartitionReassignmentsRequest:
    partitions = [ReassignablePartition(partition_index=0, replicas=None)]
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=TOO, partitions=partitions)])


@row(ApiKey.LIST_PARTITION_REASSIGNMENTS, cluster(Operation.DESCRIBE))
def list_partition_reassignments(version: int, names: Names) -> ListPartitionReassignmentsRequest:
    topics = [ListPartitionReassignmentsTopics(name=TOO, partition_indexes=[0])]
    return ListPartitionReassignmentsRequest(topics=topics)


@row(ApiKey.ALTER_REPLICA_LOG_DIRS, cluster(Operation.ALTER))
def alter_replica_log_dirs(version: int, names: Names) -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name=TOO, partitions=[0, 7])]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/nowhere", topics=topics)])


@row(ApiKey.DESCRIBE_LOG_DIRS, cluster(Operation.DESCRIBE), topic(Operation.DESCRIBE))
def describe_log_dirs(version: int, names: Names) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=TOO, partitions=[0])])


@row(ApiKey.DESCRIBE_CLUSTER, cluster(Operation.DESCRIBE), cluster(Operation.CLUSTER_ACTION))
def describe_cluster(version: int, names: Names) -> DescribeClusterRequest:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)
