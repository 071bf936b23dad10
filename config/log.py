"""The log: directories, segments, flushing, retention, what a batch may look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kavka.config.checks import NOT_NEGATIVE, POSITIVE, EachOneOf, GzipLevel, OneOf, at_least, between
from kavka.config.setting import Settings, setting
from kavka.config.values import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LIST, LONG, LONG_MAX, MEDIUM, STRING

if TYPE_CHECKING:
    from pathlib import Path


class LogSettings(Settings):
    """The log: directories, segments, flushing, retention, what a batch may look like."""

    log_dirs: tuple[Path, ...] = setting(
        "log.dirs",
        STRING,
        None,
        "The directories that hold the logs, separated by commas. Unset: log.dir.",
        importance=HIGH,
    )
    log_dir: str = setting(
        "log.dir",
        STRING,
        "/tmp/kafka-logs",
        "The directory that holds the logs where log.dirs is not set.",
        importance=HIGH,
    )
    log_segment_bytes: int = setting(
        "log.segment.bytes",
        INT,
        1_073_741_824,
        "A segment is closed before it would grow beyond this.",
        check=at_least(14),
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_roll_ms: int = setting(
        "log.roll.ms",
        LONG,
        None,
        "A segment is closed at this age. Unset: log.roll.hours.",
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_roll_hours: int = setting(
        "log.roll.hours", INT, 168, "A segment is closed at this age, in hours.", check=POSITIVE, importance=HIGH
    )
    log_roll_jitter_ms: int = setting(
        "log.roll.jitter.ms",
        LONG,
        None,
        "The most that is taken at random from the age at which a segment is closed. Unset: log.roll.jitter.hours.",
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_roll_jitter_hours: int = setting(
        "log.roll.jitter.hours", INT, 0, "The same, in hours.", check=NOT_NEGATIVE, importance=HIGH
    )
    log_index_size_max_bytes: int = setting(
        "log.index.size.max.bytes",
        INT,
        10_485_760,
        "The largest an index may grow; a full one closes its segment.",
        check=at_least(4),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_index_interval_bytes: int = setting(
        "log.index.interval.bytes",
        INT,
        4096,
        "About how many bytes of log lie between two index entries.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_flush_interval_messages: int = setting(
        "log.flush.interval.messages",
        LONG,
        LONG_MAX,
        "Messages that may gather in a partition before they are forced to disk.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_flush_interval_ms: int = setting(
        "log.flush.interval.ms",
        LONG,
        None,
        "How long messages may stay unforced. Unset: log.flush.scheduler.interval.ms.",
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_flush_scheduler_interval_ms: int = setting(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        "How often partitions are looked at for what is due to be forced to disk.",
        importance=HIGH,
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60000,
        "How often the recovery points are written down.",
        check=NOT_NEGATIVE,
        importance=HIGH,
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60000,
        "How often the log start offsets are written down.",
        check=NOT_NEGATIVE,
        importance=HIGH,
    )
    log_retention_ms: int = setting(
        "log.retention.ms",
        LONG,
        None,
        (
            "A closed segment is deleted when its newest message is so old; -1: never. Unset: "
            "log.retention.minutes, then log.retention.hours."
        ),
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_retention_minutes: int | None = setting(
        "log.retention.minutes", INT, None, "The same, in minutes.", importance=HIGH
    )
    log_retention_hours: int = setting("log.retention.hours", INT, 168, "The same, in hours.", importance=HIGH)
    log_retention_bytes: int = setting(
        "log.retention.bytes",
        LONG,
        -1,
        "The size a partition's log may reach before old segments are deleted; -1: no limit.",
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        LONG,
        300000,
        "How often segments are looked at for what is due to be deleted.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    log_segment_delete_delay_ms: int = setting(
        "log.segment.delete.delay.ms",
        LONG,
        60000,
        "How long a deleted file stays on disk after its rename.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    log_initial_task_delay_ms: int = setting(
        "log.initial.task.delay.ms",
        LONG,
        30000,
        "How long after the start the log's background work begins.",
        check=NOT_NEGATIVE,
        internal=True,
    )
    log_cleanup_policy: frozenset[str] = setting(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        "What becomes of old segments: deleted, compacted, or both.",
        check=EachOneOf("compact", "delete"),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_message_downconversion_enable: bool = setting(
        "log.message.downconversion.enable",
        BOOLEAN,
        True,
        "Whether old consumers get messages converted to the format they know.",
        scope=CLUSTER_WIDE,
    )
    log_message_timestamp_type: str = setting(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "Whether a message keeps its producer's time or gets the time of its append.",
        check=OneOf("CreateTime", "LogAppendTime"),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_message_timestamp_before_max_ms: int = setting(
        "log.message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        "How far in the past a producer's timestamp may lie.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_message_timestamp_after_max_ms: int = setting(
        "log.message.timestamp.after.max.ms",
        LONG,
        LONG_MAX,
        "How far in the future a producer's timestamp may lie.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_message_timestamp_difference_max_ms: int = setting(
        "log.message.timestamp.difference.max.ms",
        LONG,
        LONG_MAX,
        "The older name for both bounds; used for a bound that is not set itself.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    message_max_bytes: int = setting(
        "message.max.bytes",
        INT,
        1_048_588,
        "The largest record batch that is accepted.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        "producer",
        "How batches are stored: as the producer compressed them, uncompressed, or by one codec.",
        check=OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        INT,
        -1,
        "The level, where the broker compresses with gzip.",
        check=GzipLevel(),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level",
        INT,
        9,
        "The level, where the broker compresses with lz4.",
        check=between(1, 17),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        INT,
        3,
        "The level, where the broker compresses with zstd.",
        check=between(-131_072, 22),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    num_recovery_threads_per_data_dir: int = setting(
        "num.recovery.threads.per.data.dir",
        INT,
        1,
        "Threads for each log directory that recover logs at start and flush them at stop.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    background_threads: int = setting(
        "background.threads",
        INT,
        10,
        "Threads for the broker's background work on disks.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        "A producer id unused for so long is forgotten by its partition.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms",
        INT,
        600000,
        "How often partitions are looked at for producer ids to forget.",
        check=POSITIVE,
        internal=True,
    )
