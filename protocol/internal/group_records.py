"""What `__consumer_offsets` stores: committed offsets, classic groups, and groups of the consumer protocol (KIP-848).

| type | key | says |
|-|-|-|
| 0, 1 | OffsetCommitKey | a committed offset; both types have the same body, 1 is written |
| 2 | GroupMetadataKey | a classic group, all its members in one value |
| 3 | ConsumerGroupMetadataKey | a consumer group and its epoch |
| 4 | ConsumerGroupPartitionMetadataKey | the partitions of its subscribed topics (until Kafka 4.0) |
| 5 | ConsumerGroupMemberMetadataKey | what a member has subscribed to |
| 6 | ConsumerGroupTargetAssignmentMetadataKey | the epoch of the target assignment |
| 7 | ConsumerGroupTargetAssignmentMemberKey | a member's target assignment |
| 8 | ConsumerGroupCurrentMemberAssignmentKey | a member's current assignment |
| 16 | ConsumerGroupRegularExpressionKey | the topics that a subscribed regular expression resolves to |

Types 10 to 15 are share groups', 17 to 23 streams groups'. Declared as Kafka 4.3 has them, which is 3.9's with later
tagged fields. How keys and values are framed: `record_codec`.
"""

from typing import Final

from kavka.protocol.internal.record_codec import RecordTypes
from kavka.protocol.schema import (
    Bytes,
    Int8,
    Int32,
    Int64,
    NullableString,
    Record,
    String,
    Struct,
    Uuid,
    since,
)


class OffsetCommitKey(Record, key=1, versions="0"):
    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(Record, key=1, versions="0-4", flexible="4+"):
    """v1 has an expiry of its own (old clients' retention time), v3 a leader epoch (KIP-320), v4 a topic id."""

    offset: Int64
    leader_epoch: Int32 = since(3, default=-1, ignorable=True)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = since(1, 1, default=-1, ignorable=True)
    topic_id: Uuid = since(4, tag=0, ignorable=True)


class GroupMetadataKey(Record, key=2, versions="0"):
    group: String


class MemberMetadata(Struct):
    member_id: String
    group_instance_id: NullableString = since(3, default=None, ignorable=True)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = since(1, default=-1, ignorable=True)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


class GroupMetadataValue(Record, key=2, versions="0-4", flexible="4+"):
    protocol_type: String
    generation: Int32
    protocol: NullableString
    leader: NullableString
    current_state_timestamp: Int64 = since(2, default=-1, ignorable=True)
    members: list[MemberMetadata]


class ConsumerGroupMetadataKey(Record, key=3, versions="0"):
    group_id: String


class ConsumerGroupMetadataValue(Record, key=3, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64 = since(0, tag=0)


class ConsumerGroupPartitionMetadataKey(Record, key=4, versions="0"):
    group_id: String


class PartitionMetadata(Struct):
    partition: Int32
    racks: list[String]


class TopicMetadata(Struct):
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: list[PartitionMetadata]


class ConsumerGroupPartitionMetadataValue(Record, key=4, versions="0", flexible="0+"):
    topics: list[TopicMetadata]


class ConsumerGroupMemberMetadataKey(Record, key=5, versions="0"):
    group_id: String
    member_id: String


class ClassicProtocol(Struct):
    name: String
    metadata: Bytes


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Int32
    supported_protocols: list[ClassicProtocol]


class ConsumerGroupMemberMetadataValue(Record, key=5, versions="0", flexible="0+"):
    """`classic_member_metadata`: set for a member that speaks the classic protocol in a consumer group."""

    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: NullableString
    rebalance_timeout_ms: Int32 = -1
    server_assignor: NullableString
    classic_member_metadata: ClassicMemberMetadata | None = since(0, tag=0, default=None)


class ConsumerGroupTargetAssignmentMetadataKey(Record, key=6, versions="0"):
    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(Record, key=6, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(0, tag=0, ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(Record, key=7, versions="0"):
    group_id: String
    member_id: String


class TargetTopicPartition(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ConsumerGroupTargetAssignmentMemberValue(Record, key=7, versions="0", flexible="0+"):
    topic_partitions: list[TargetTopicPartition]


class ConsumerGroupCurrentMemberAssignmentKey(Record, key=8, versions="0"):
    group_id: String
    member_id: String


class CurrentTopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = since(0, tag=0, default=None)


class ConsumerGroupCurrentMemberAssignmentValue(Record, key=8, versions="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[CurrentTopicPartitions]
    partitions_pending_revocation: list[CurrentTopicPartitions]


class ConsumerGroupRegularExpressionKey(Record, key=16, versions="0"):
    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(Record, key=16, versions="0", flexible="0+"):
    topics: list[String]
    version: Int64
    timestamp: Int64


GROUP_RECORDS: Final[RecordTypes] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""By the number that a key begins with: the classes of its body and of its value."""
