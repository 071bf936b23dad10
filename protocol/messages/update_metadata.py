"""UpdateMetadata (key 6): the controller tells a broker about all brokers and partitions.

v1 several endpoints · v2 rack · v3 listener names (KIP-103) · v4 offline replicas (KIP-112)
v5 grouped by topic, broker epoch · v6 flexible · v7 topic ids (KIP-516) · v8 KRaft controllers
"""

from typing import Final

from kavka.protocol.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    since,
)

INCREMENTAL: Final = 0
"""`type` of what a controller on ZooKeeper sends: what is not named stays."""

FULL_UPDATE: Final = 2
"""`type`: there are no topics but those that are named (KIP-866). Kafka's brokers believe it of KRaft's controllers
alone, and take it for one like all others."""


class UpdateMetadataPartitionState(Struct):
    topic_name: String = since(0, until=4, ignorable=True)
    partition_index: Int32
    controller_epoch: Int32
    leader: Int32
    leader_epoch: Int32
    isr: list[Int32]
    zk_version: Int32
    replicas: list[Int32]
    offline_replicas: list[Int32] = since(4, ignorable=True)


class UpdateMetadataTopicState(Struct):
    topic_name: String
    topic_id: Uuid = since(7, ignorable=True)
    partition_states: list[UpdateMetadataPartitionState]


class UpdateMetadataEndpoint(Struct):
    port: Int32
    host: String
    listener: String = since(3, ignorable=True)
    security_protocol: Int16


class UpdateMetadataBroker(Struct):
    id: Int32
    v0_host: String = since(0, until=0, ignorable=True)
    v0_port: Int32 = since(0, until=0, ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = since(1, ignorable=True)
    rack: NullableString = since(2, ignorable=True)


class UpdateMetadataRequest(Request, key=6, versions="0-8", flexible="6+"):
    controller_id: Int32
    is_k_raft_controller: Bool = since(8)
    type: Int8 = since(8, tag=0)
    controller_epoch: Int32
    broker_epoch: Int64 = since(5, default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = since(0, until=4)
    topic_states: list[UpdateMetadataTopicState] = since(5)
    live_brokers: list[UpdateMetadataBroker]


class UpdateMetadataResponse(Response, key=6, versions="0-8", flexible="6+"):
    error_code: Int16
