"""CreateTopics (key 19): create topics.

v1 validate_only, error messages · v4 -1 stands for the broker's defaults (KIP-464)
v5 flexible, configs in the answer (KIP-525) · v6 may be throttled (KIP-599) · v7 topic ids (KIP-516)
"""

from kavka.protocol.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    since,
)


class CreatableReplicaAssignment(Struct):
    partition_index: Int32
    broker_ids: list[Int32]


class CreatableTopicConfig(Struct):
    name: String
    value: NullableString


class CreatableTopic(Struct):
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


class CreateTopicsRequest(Request, key=19, versions="0-7", flexible="5+"):
    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = since(1)


class CreatableTopicConfigs(Struct):
    name: String
    value: NullableString
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class CreatableTopicResult(Struct):
    name: String
    topic_id: Uuid = since(7, ignorable=True)
    error_code: Int16
    error_message: NullableString = since(1, ignorable=True)
    topic_config_error_code: Int16 = since(5, tag=0, ignorable=True)
    num_partitions: Int32 = since(5, default=-1, ignorable=True)
    replication_factor: Int16 = since(5, default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = since(5, ignorable=True)


class CreateTopicsResponse(Response, key=19, versions="0-7", flexible="5+"):
    throttle_time_ms: Int32 = since(2, ignorable=True)
    topics: list[CreatableTopicResult]
