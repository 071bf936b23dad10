"""StopReplica (key 5): the controller tells a broker to stop following partitions, and perhaps to delete them.

v1 broker epoch (KIP-380) · v2 flexible · v3 a leader epoch and delete flag for each partition (KIP-570)
v4 KRaft controllers
"""

from kavka.protocol.schema import Bool, Int16, Int32, Int64, Request, Response, String, Struct, since


class StopReplicaPartitionV0(Struct):
    topic_name: String
    partition_index: Int32


class StopReplicaTopicV1(Struct):
    name: String
    partition_indexes: list[Int32]


class StopReplicaPartitionState(Struct):
    partition_index: Int32
    leader_epoch: Int32 = -1
    delete_partition: Bool


class StopReplicaTopicState(Struct):
    topic_name: String
    partition_states: list[StopReplicaPartitionState]


class StopReplicaRequest(Request, key=5, versions="0-4", flexible="2+"):
    controller_id: Int32
    is_k_raft_controller: Bool = since(4)
    controller_epoch: Int32
    broker_epoch: Int64 = since(1, default=-1, ignorable=True)
    delete_partitions: Bool = since(0, until=2)
    ungrouped_partitions: list[StopReplicaPartitionV0] = since(0, until=0)
    topics: list[StopReplicaTopicV1] = since(1, until=2)
    topic_states: list[StopReplicaTopicState] = since(3)


class StopReplicaPartitionError(Struct):
    topic_name: String
    partition_index: Int32
    error_code: Int16


class StopReplicaResponse(Response, key=5, versions="0-4", flexible="2+"):
    error_code: Int16
    partition_errors: list[StopReplicaPartitionError]
