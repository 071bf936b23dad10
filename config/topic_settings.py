"""The settings of a topic, each with the broker settings that stand behind it."""

from __future__ import annotations

from kavka.config.checks import (
    NOT_NEGATIVE,
    POSITIVE,
    EachOneOf,
    GzipLevel,
    OneOf,
    Release,
    ThrottledReplicas,
    at_least,
    between,
)
from kavka.config.ignored import FORMAT, PREALLOCATION, TIERED
from kavka.config.setting import Settings, setting
from kavka.config.values import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LIST, LONG, LONG_MAX, MEDIUM, STRING


class TopicSettings(Settings):
    """What a topic can have of its own; what it does not comes from the broker (`synonyms`) or the default."""

    cleanup_policy: frozenset[str] = setting(
        "cleanup.policy",
        LIST,
        ("delete",),
        "What becomes of old segments: deleted, compacted, or both.",
        check=EachOneOf("compact", "delete"),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.cleanup.policy",),
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        "producer",
        "How batches are stored: as the producer compressed them, uncompressed, or by one codec.",
        check=OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("compression.type",),
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        INT,
        -1,
        "The level, where the broker compresses with gzip.",
        check=GzipLevel(),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("compression.gzip.level",),
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level",
        INT,
        9,
        "The level, where the broker compresses with lz4.",
        check=between(1, 17),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("compression.lz4.level",),
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        INT,
        3,
        "The level, where the broker compresses with zstd.",
        check=between(-131_072, 22),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("compression.zstd.level",),
    )
    segment_bytes: int = setting(
        "segment.bytes",
        INT,
        1_073_741_824,
        "A segment is closed before it would grow beyond this.",
        check=at_least(14),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.segment.bytes",),
    )
    segment_ms: int = setting(
        "segment.ms",
        LONG,
        604_800_000,
        "A segment is closed at this age.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.roll.ms", "log.roll.hours"),
    )
    segment_jitter_ms: int = setting(
        "segment.jitter.ms",
        LONG,
        0,
        "The most that is taken at random from the age at which a segment is closed.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    segment_index_bytes: int = setting(
        "segment.index.bytes",
        INT,
        10_485_760,
        "The largest an index may grow; a full one closes its segment.",
        check=at_least(4),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.index.size.max.bytes",),
    )
    index_interval_bytes: int = setting(
        "index.interval.bytes",
        INT,
        4096,
        "About how many bytes of log lie between two index entries.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.index.interval.bytes",),
    )
    preallocate: bool = setting(
        "preallocate",
        BOOLEAN,
        False,
        f"Not used: {PREALLOCATION}.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        ignored=PREALLOCATION,
        synonyms=("log.preallocate",),
    )
    flush_messages: int = setting(
        "flush.messages",
        LONG,
        LONG_MAX,
        "Messages that may gather before they are forced to disk.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.flush.interval.messages",),
    )
    flush_ms: int = setting(
        "flush.ms",
        LONG,
        LONG_MAX,
        "How long messages may stay unforced.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    retention_ms: int = setting(
        "retention.ms",
        LONG,
        604_800_000,
        "A closed segment is deleted when its newest message is so old; -1: never.",
        check=at_least(-1),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    retention_bytes: int = setting(
        "retention.bytes",
        LONG,
        -1,
        "The size a partition's log may reach before old segments are deleted; -1: no limit.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.retention.bytes",),
    )
    file_delete_delay_ms: int = setting(
        "file.delete.delay.ms",
        LONG,
        60000,
        "How long a deleted file stays on disk after its rename.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.segment.delete.delay.ms",),
    )
    delete_retention_ms: int = setting(
        "delete.retention.ms",
        LONG,
        86_400_000,
        "How long a tombstone and a transaction's marker stay in a compacted log.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.cleaner.delete.retention.ms",),
    )
    min_cleanable_dirty_ratio: float = setting(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        "The part of a log that must be uncompacted before it is compacted.",
        check=between(0, 1),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.cleaner.min.cleanable.ratio",),
    )
    min_compaction_lag_ms: int = setting(
        "min.compaction.lag.ms",
        LONG,
        0,
        "How long a message stays uncompacted at least.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
    )
    max_compaction_lag_ms: int = setting(
        "max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "How long a message stays uncompacted at most.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
    )
    max_message_bytes: int = setting(
        "max.message.bytes",
        INT,
        1_048_588,
        "The largest record batch that is accepted.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("message.max.bytes",),
    )
    message_downconversion_enable: bool = setting(
        "message.downconversion.enable",
        BOOLEAN,
        True,
        "Whether old consumers get messages converted to the format they know.",
        scope=CLUSTER_WIDE,
        synonyms=("log.message.downconversion.enable",),
    )
    message_timestamp_type: str = setting(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        "Whether a message keeps its producer's time or gets the time of its append.",
        check=OneOf("CreateTime", "LogAppendTime"),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.message.timestamp.type",),
    )
    message_timestamp_before_max_ms: int = setting(
        "message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        "How far in the past a producer's timestamp may lie.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_after_max_ms: int = setting(
        "message.timestamp.after.max.ms",
        LONG,
        LONG_MAX,
        "How far in the future a producer's timestamp may lie.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.message.timestamp.after.max.ms",),
    )
    message_timestamp_difference_max_ms: int = setting(
        "message.timestamp.difference.max.ms",
        LONG,
        LONG_MAX,
        "The older name for both bounds; used for a bound that is not set itself.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("log.message.timestamp.difference.max.ms",),
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        INT,
        1,
        "In-sync replicas that a write with acks=all needs.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("min.insync.replicas",),
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether a replica that is behind may lead when no other is left, at the price of losing messages.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        synonyms=("unclean.leader.election.enable",),
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        "Replicas whose leaders throttle replication: partition:broker pairs, or *.",
        check=ThrottledReplicas(),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        "Replicas whose followers throttle replication: partition:broker pairs, or *.",
        check=ThrottledReplicas(),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    message_format_version: str = setting(
        "message.format.version",
        STRING,
        "3.0-IV1",
        f"Not used: {FORMAT}.",
        check=Release(),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        ignored=FORMAT,
        synonyms=("log.message.format.version",),
    )
    local_retention_bytes: int = setting(
        "local.retention.bytes",
        LONG,
        -2,
        f"Not used: {TIERED}.",
        check=at_least(-2),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        ignored=TIERED,
        synonyms=("log.local.retention.bytes",),
    )
    local_retention_ms: int = setting(
        "local.retention.ms",
        LONG,
        -2,
        f"Not used: {TIERED}.",
        check=at_least(-2),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        ignored=TIERED,
        synonyms=("log.local.retention.ms",),
    )
    remote_storage_enable: bool = setting(
        "remote.storage.enable",
        BOOLEAN,
        False,
        f"Not used: {TIERED}.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        ignored=TIERED,
    )
    remote_log_copy_disable: bool = setting(
        "remote.log.copy.disable",
        BOOLEAN,
        False,
        f"Not used: {TIERED}.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        ignored=TIERED,
    )
    remote_log_delete_on_disable: bool = setting(
        "remote.log.delete.on.disable",
        BOOLEAN,
        False,
        f"Not used: {TIERED}.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        ignored=TIERED,
    )
