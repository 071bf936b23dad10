"""Metadata (key 3): brokers, topics, partitions and who leads them; creates topics where asked and allowed.

v0 an empty topic list means all · v1 null does; controller, rack, is_internal · v2 cluster id
v4 allow_auto_topic_creation · v5 offline replicas · v7 leader epochs · v8 authorized operations · v9 flexible
v10 topic ids · v11 drops the cluster's authorized operations (KIP-700) · v12 topics by id
v13 a top-level error (KIP-1102)
"""

from kavka.protocol.schema import Bool, Int16, Int32, NullableString, Request, Response, String, Struct, Uuid, since


class MetadataRequestTopic(Struct):
    topic_id: Uuid = since(10, ignorable=True)
    name: NullableString = since(0, nullable_since=10)


class MetadataRequest(Request, key=3, versions="0-13", flexible="9+"):
    topics: list[MetadataRequestTopic] | None = since(0, nullable_since=1)
    allow_auto_topic_creation: Bool = since(4, default=True)
    include_cluster_authorized_operations: Bool = since(8, until=10)
    include_topic_authorized_operations: Bool = since(8)


class MetadataResponseBroker(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = since(1, default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = since(7, default=-1, ignorable=True)
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    offline_replicas: list[Int32] = since(5, ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: Int16
    name: NullableString = since(0, nullable_since=12)
    topic_id: Uuid = since(10, ignorable=True)
    is_internal: Bool = since(1, ignorable=True)
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: Int32 = since(8, default=-(2**31))


class MetadataResponse(Response, key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: Int32 = since(3, ignorable=True)
    brokers: list[MetadataResponseBroker]
    cluster_id: NullableString = since(2, default=None, ignorable=True)
    controller_id: Int32 = since(1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: Int32 = since(8, until=10, default=-(2**31))
    error_code: Int16 = since(13, ignorable=True)
