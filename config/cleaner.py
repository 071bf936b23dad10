"""The cleaner that compacts logs."""

from __future__ import annotations

from kavka.config.checks import NOT_NEGATIVE, POSITIVE, between
from kavka.config.setting import Settings, setting
from kavka.config.values import BOOLEAN, CLUSTER_WIDE, DOUBLE, DOUBLE_MAX, INT, LONG, LONG_MAX, MEDIUM


class CleanerSettings(Settings):
    """The cleaner that compacts logs."""

    log_cleaner_enable: bool = setting(
        "log.cleaner.enable", BOOLEAN, True, "Whether logs with the policy compact are compacted.", importance=MEDIUM
    )
    log_cleaner_threads: int = setting(
        "log.cleaner.threads",
        INT,
        1,
        "Cleaners that work at the same time.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        DOUBLE_MAX,
        "What the cleaners together may read and write a second.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        "Memory for the tables of keys, all cleaners together.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_io_buffer_size: int = setting(
        "log.cleaner.io.buffer.size",
        INT,
        524288,
        "Memory for the cleaners' reading and writing, all together.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        "How full a table of keys may get.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        LONG,
        15000,
        "The pause when there is nothing to compact.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "The part of a log that must be uncompacted before it is compacted.",
        check=between(0, 1),
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_delete_retention_ms: int = setting(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        "How long a tombstone and a transaction's marker stay in a compacted log.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "How long a message stays uncompacted at least.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "How long a message stays uncompacted at most.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
