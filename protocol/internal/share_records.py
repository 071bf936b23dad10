"""What share groups store (KIP-932): records in `__consumer_offsets`, and their progress in `__share_group_state`.

Declared as Kafka 4.3 has them. The broker here writes none of these; who shows the topics reads them. How keys and
values are framed: `record_codec`.
"""

from typing import Final

from kavka.protocol.internal.record_codec import RecordTypes
from kavka.protocol.schema import Int8, Int16, Int32, Int64, NullableString, Record, String, Struct, Uuid, since


class ShareGroupMemberMetadataKey(Record, key=10, versions="0"):
    group_id: String
    member_id: String


class ShareGroupMemberMetadataValue(Record, key=10, versions="0", flexible="0+"):
    rack_id: NullableString
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]


class ShareGroupMetadataKey(Record, key=11, versions="0"):
    group_id: String


class ShareGroupMetadataValue(Record, key=11, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64


class ShareGroupTargetAssignmentMetadataKey(Record, key=12, versions="0"):
    group_id: String


class ShareGroupTargetAssignmentMetadataValue(Record, key=12, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = since(0, tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Record, key=13, versions="0"):
    group_id: String
    member_id: String


class SharePartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ShareGroupTargetAssignmentMemberValue(Record, key=13, versions="0", flexible="0+"):
    topic_partitions: list[SharePartitions]


class ShareGroupCurrentMemberAssignmentKey(Record, key=14, versions="0"):
    group_id: String
    member_id: String


class ShareGroupCurrentMemberAssignmentValue(Record, key=14, versions="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[SharePartitions]


class ShareGroupStatePartitionMetadataKey(Record, key=15, versions="0"):
    group_id: String


class ShareTopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class ShareTopic(Struct):
    topic_id: Uuid
    topic_name: String


class ShareGroupStatePartitionMetadataValue(Record, key=15, versions="0", flexible="0+"):
    initializing_topics: list[ShareTopicPartitions]
    initialized_topics: list[ShareTopicPartitions]
    deleting_topics: list[ShareTopic]


class ShareSnapshotKey(Record, key=0, versions="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class StateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class ShareSnapshotValue(Record, key=0, versions="0", flexible="0+"):
    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(0, tag=0, default=-1)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: list[StateBatch]


class ShareUpdateKey(Record, key=1, versions="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateValue(Record, key=1, versions="0", flexible="0+"):
    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = since(0, tag=0, default=-1)
    state_batches: list[StateBatch]


SHARE_GROUP_RECORDS: Final[RecordTypes] = {
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
}
"""Of `__consumer_offsets`, by the number that a key begins with."""

SHARE_STATE_RECORDS: Final[RecordTypes] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
"""Of `__share_group_state`, by the number that a key begins with."""
