"""AlterPartition (key 56): a leader asks the controller to change a partition's ISR (KIP-497).

v0 is flexible already · v1 leader recovery state (KIP-704) · v2 topics by id
v3 the ISR with broker epochs (KIP-903)
"""

from kavka.protocol.schema import Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, since


class BrokerState(Struct):
    broker_id: Int32
    broker_epoch: Int64 = -1


class AlterPartitionRequestPartitionData(Struct):
    partition_index: Int32
    leader_epoch: Int32
    new_isr: list[Int32] = since(0, until=2)
    new_isr_with_epochs: list[BrokerState] = since(3)
    leader_recovery_state: Int8 = since(1)
    partition_epoch: Int32


class AlterPartitionRequestTopicData(Struct):
    topic_name: String = since(0, until=1, ignorable=True)
    topic_id: Uuid = since(2, ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData]


class AlterPartitionRequest(Request, key=56, versions="0-3", flexible="0+"):
    broker_id: Int32
    broker_epoch: Int64 = -1
    topics: list[AlterPartitionRequestTopicData]


class AlterPartitionResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    leader_id: Int32
    leader_epoch: Int32
    isr: list[Int32]
    leader_recovery_state: Int8 = since(1, ignorable=True)
    partition_epoch: Int32


class AlterPartitionResponseTopicData(Struct):
    topic_name: String = since(0, until=1, ignorable=True)
    topic_id: Uuid = since(2, ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData]


class AlterPartitionResponse(Response, key=56, versions="0-3", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    topics: list[AlterPartitionResponseTopicData]
