"""Followers: fetching from leaders, falling behind, throttling."""

from __future__ import annotations

from kavka.config.checks import NOT_NEGATIVE, POSITIVE
from kavka.config.setting import Settings, setting
from kavka.config.values import CLUSTER_WIDE, HIGH, INT, LONG, MEDIUM, STRING


class ReplicationSettings(Settings):
    """Followers: fetching from leaders, falling behind, throttling."""

    num_replica_fetchers: int = setting(
        "num.replica.fetchers",
        INT,
        1,
        "Fetchers for each broker that partitions are copied from.",
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    num_replica_alter_log_dirs_threads: int = setting(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        "Threads that move partitions between log directories. Unset: one for each directory.",
        importance=HIGH,
    )
    replica_fetch_max_bytes: int = setting(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        "What a follower asks for in one partition; the first batch is always whole.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    replica_fetch_response_max_bytes: int = setting(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        "What a follower asks for in one answer.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    replica_fetch_min_bytes: int = setting(
        "replica.fetch.min.bytes",
        INT,
        1,
        "How much the leader waits for before it answers a follower.",
        importance=HIGH,
    )
    replica_fetch_wait_max_ms: int = setting(
        "replica.fetch.wait.max.ms", INT, 500, "How long the leader may wait for it.", importance=HIGH
    )
    replica_fetch_backoff_ms: int = setting(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        "A follower's pause after an error.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    replica_lag_time_max_ms: int = setting(
        "replica.lag.time.max.ms",
        LONG,
        30000,
        "A follower that has not caught up for so long leaves the in-sync replicas.",
        importance=HIGH,
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often the high watermarks are written down.",
        importance=HIGH,
    )
    replica_socket_timeout_ms: int = setting(
        "replica.socket.timeout.ms", INT, 30000, "How long a follower waits for its leader's answer.", importance=HIGH
    )
    replica_socket_receive_buffer_bytes: int = setting(
        "replica.socket.receive.buffer.bytes", INT, 65536, "SO_RCVBUF of a follower's connection.", importance=HIGH
    )
    replica_selector_class: str | None = setting(
        "replica.selector.class",
        STRING,
        None,
        (
            "Which replica a consumer is told to read from: Kafka's RackAwareReplicaSelector, or the leader if "
            "unset (KIP-392)."
        ),
        importance=MEDIUM,
    )
    replication_quota_window_num: int = setting(
        "replication.quota.window.num", INT, 11, "Samples kept of the replication rate.", check=POSITIVE
    )
    replication_quota_window_size_seconds: int = setting(
        "replication.quota.window.size.seconds", INT, 1, "The time a sample spans.", check=POSITIVE
    )
    alter_log_dirs_replication_quota_window_num: int = setting(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "Samples kept of the rate of moves between log directories.",
        check=POSITIVE,
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = setting(
        "alter.log.dirs.replication.quota.window.size.seconds", INT, 1, "The time a sample spans.", check=POSITIVE
    )
