"""What Streams groups store in `__consumer_offsets` (KIP-1071).

Declared as Kafka 4.3 has them. The broker here writes none of these; who shows the topic reads them. How keys and
values are framed: `record_codec`.
"""

from typing import Final

from kavka.protocol.internal.record_codec import RecordTypes
from kavka.protocol.schema import Int8, Int16, Int32, Int64, NullableString, Record, String, Struct, Uint16, since


class StreamsGroupMetadataKey(Record, key=17, versions="0"):
    group_id: String


class LastAssignmentConfig(Struct):
    key: String
    value: String


class StreamsGroupMetadataValue(Record, key=17, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = since(0, tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = since(0, tag=1, default=None)


class StreamsGroupMemberMetadataKey(Record, key=19, versions="0"):
    group_id: String
    member_id: String


class Endpoint(Struct):
    host: String
    port: Uint16


class KeyValue(Struct):
    key: String
    value: String


class StreamsGroupMemberMetadataValue(Record, key=19, versions="0", flexible="0+"):
    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue]


class StreamsGroupTargetAssignmentMetadataKey(Record, key=20, versions="0"):
    group_id: String


class StreamsGroupTargetAssignmentMetadataValue(Record, key=20, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(0, tag=0, ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(Record, key=21, versions="0"):
    group_id: String
    member_id: String


class TargetTaskIds(Struct):
    subtopology_id: String
    partitions: list[Int32]


class StreamsGroupTargetAssignmentMemberValue(Record, key=21, versions="0", flexible="0+"):
    active_tasks: list[TargetTaskIds]
    standby_tasks: list[TargetTaskIds]
    warmup_tasks: list[TargetTaskIds]


class StreamsGroupCurrentMemberAssignmentKey(Record, key=22, versions="0"):
    group_id: String
    member_id: String


class CurrentTaskIds(Struct):
    subtopology_id: String
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = since(0, tag=0, default=None)


class StreamsGroupCurrentMemberAssignmentValue(Record, key=22, versions="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: list[CurrentTaskIds]
    standby_tasks: list[CurrentTaskIds]
    warmup_tasks: list[CurrentTaskIds]
    active_tasks_pending_revocation: list[CurrentTaskIds]
    standby_tasks_pending_revocation: list[CurrentTaskIds]
    warmup_tasks_pending_revocation: list[CurrentTaskIds]


class StreamsGroupTopologyKey(Record, key=23, versions="0"):
    group_id: String


class TopicConfig(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[TopicConfig]


class CopartitionGroup(Struct):
    source_topics: list[Int16]
    source_topic_regex: list[Int16]
    repartition_source_topics: list[Int16]


class Subtopology(Struct):
    subtopology_id: String
    source_topics: list[String]
    source_topic_regex: list[String]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[String]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]


class StreamsGroupTopologyValue(Record, key=23, versions="0", flexible="0+"):
    epoch: Int32
    subtopologies: list[Subtopology]


STREAMS_GROUP_RECORDS: Final[RecordTypes] = {
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
"""By the number that a key begins with: the classes of its body and of its value."""
