"""Transactions and their coordinator."""

from __future__ import annotations

from kavka.config.checks import POSITIVE
from kavka.config.setting import Settings, setting
from kavka.config.values import BOOLEAN, CLUSTER_WIDE, HIGH, INT, SHORT


class TransactionSettings(Settings):
    """Transactions and their coordinator."""

    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        INT,
        900000,
        "The longest a producer may let a transaction last.",
        check=POSITIVE,
        importance=HIGH,
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        "A transactional id unused for so long is forgotten.",
        check=POSITIVE,
        importance=HIGH,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10000,
        "How often transactions are looked at for those that last too long.",
        check=POSITIVE,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "How often transactional ids are looked at for those to forget.",
        check=POSITIVE,
    )
    transaction_partition_verification_enable: bool = setting(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a partition asks the coordinator before a transaction's first write to it (KIP-890).",
        scope=CLUSTER_WIDE,
    )
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of the topic that holds the transactions' state.",
        check=POSITIVE,
        importance=HIGH,
    )
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "Replicas of that topic; fewer while fewer brokers live.",
        check=POSITIVE,
        importance=HIGH,
    )
    transaction_state_log_min_isr: int = setting(
        "transaction.state.log.min.isr",
        INT,
        2,
        "In-sync replicas a write to that topic needs; fewer while fewer brokers live.",
        check=POSITIVE,
        importance=HIGH,
    )
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        "The segment size of that topic.",
        check=POSITIVE,
        importance=HIGH,
    )
    transaction_state_log_load_buffer_size: int = setting(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        "How much is read at a time when the state is loaded.",
        check=POSITIVE,
        importance=HIGH,
    )
