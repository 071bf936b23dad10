"""LeaderAndIsr (key 4): the controller tells a broker which partitions it leads or follows.

v1 is_new · v2 grouped by topic, broker epoch (KIP-380) · v3 reassignment in progress (KIP-455) · v4 flexible
v5 topic ids and full or incremental type (KIP-516) · v6 leader recovery state (KIP-704) · v7 KRaft controllers
"""

from kavka.protocol.schema import Bool, Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, since


class LeaderAndIsrPartitionState(Struct):
    topic_name: String = since(0, until=1, ignorable=True)
    partition_index: Int32
    controller_epoch: Int32
    leader: Int32
    leader_epoch: Int32
    isr: list[Int32]
    partition_epoch: Int32
    replicas: list[Int32]
    adding_replicas: list[Int32] = since(3, ignorable=True)
    removing_replicas: list[Int32] = since(3, ignorable=True)
    is_new: Bool = since(1, ignorable=True)
    leader_recovery_state: Int8 = since(6)


class LeaderAndIsrTopicState(Struct):
    topic_name: String
    topic_id: Uuid = since(5, ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState]


class LeaderAndIsrLiveLeader(Struct):
    broker_id: Int32
    host_name: String
    port: Int32


class LeaderAndIsrRequest(Request, key=4, versions="0-7", flexible="4+"):
    controller_id: Int32
    is_k_raft_controller: Bool = since(7)
    controller_epoch: Int32
    broker_epoch: Int64 = since(2, default=-1, ignorable=True)
    type: Int8 = since(5)
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = since(0, until=1)
    topic_states: list[LeaderAndIsrTopicState] = since(2)
    live_leaders: list[LeaderAndIsrLiveLeader]


class LeaderAndIsrPartitionError(Struct):
    topic_name: String = since(0, until=4, ignorable=True)
    partition_index: Int32
    error_code: Int16


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid
    partition_errors: list[LeaderAndIsrPartitionError]


class LeaderAndIsrResponse(Response, key=4, versions="0-7", flexible="4+"):
    error_code: Int16
    partition_errors: list[LeaderAndIsrPartitionError] = since(0, until=4)
    topics: list[LeaderAndIsrTopicError] = since(5)
