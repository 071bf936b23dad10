"""Fetch (key 1): read record batches; consumers and followers alike.

v1 throttle time · v3 max_bytes for the whole answer (KIP-74) · v4 isolation level, aborted transactions (KIP-98)
v5 log start offset · v7 sessions (KIP-227) · v9 leader epoch fencing (KIP-320) · v10 zstd
v11 rack-aware reads (KIP-392) · v12 flexible, diverging epochs (KIP-595) · v13 topics by id
v15 replica_state instead of replica_id (KIP-903) · v16 the leader's whereabouts (KIP-951)
v17 directory ids (KIP-853) · v18 the follower's high watermark (KIP-1166)
"""

from kavka.protocol.schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    since,
)


class ReplicaState(Struct):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = since(9, default=-1, ignorable=True)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = since(12, default=-1)
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = since(17, tag=0, ignorable=True)
    high_watermark: Int64 = since(18, tag=1, default=2**63 - 1, ignorable=True)


class FetchTopic(Struct):
    topic: String = since(0, until=12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partitions: list[FetchPartition]


class ForgottenTopic(Struct):
    topic: String = since(7, until=12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partitions: list[Int32]


class FetchRequest(Request, key=1, versions="0-18", flexible="12+"):
    cluster_id: NullableString = since(12, tag=0, default=None, ignorable=True)
    replica_id: Int32 = since(0, until=14, default=-1)
    replica_state: ReplicaState = since(15, tag=1)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = since(3, default=0x7FFFFFFF, ignorable=True)
    isolation_level: Int8 = since(4, ignorable=True)
    session_id: Int32 = since(7, ignorable=True)
    session_epoch: Int32 = since(7, default=-1, ignorable=True)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = since(7)
    rack_id: String = since(11, ignorable=True)


class EpochEndOffset(Struct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Struct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    producer_id: Int64
    first_offset: Int64


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = since(4, default=-1, ignorable=True)
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = since(12, tag=0)
    current_leader: LeaderIdAndEpoch = since(12, tag=1)
    snapshot_id: SnapshotId = since(12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = since(4, ignorable=True)
    preferred_read_replica: Int32 = since(11, default=-1)
    records: NullableRecords


class FetchableTopicResponse(Struct):
    topic: String = since(0, until=12, ignorable=True)
    topic_id: Uuid = since(13, ignorable=True)
    partitions: list[PartitionData]


class NodeEndpoint(Struct):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class FetchResponse(Response, key=1, versions="0-18", flexible="12+"):
    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = since(7, ignorable=True)
    session_id: Int32 = since(7)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = since(16, tag=0)
