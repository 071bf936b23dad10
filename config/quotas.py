"""Windows in which quotas are measured, and limits of rates."""

from __future__ import annotations

from kavka.config.checks import NOT_NEGATIVE, POSITIVE
from kavka.config.setting import Settings, setting
from kavka.config.values import CLUSTER_WIDE, INT, LONG, LONG_MAX, MEDIUM


class QuotaSettings(Settings):
    """Windows in which quotas are measured."""

    quota_window_num: int = setting(
        "quota.window.num", INT, 11, "Samples kept of a client's produce, fetch and request rates.", check=POSITIVE
    )
    quota_window_size_seconds: int = setting(
        "quota.window.size.seconds", INT, 1, "The time a sample spans.", check=POSITIVE
    )
    controller_quota_window_num: int = setting(
        "controller.quota.window.num", INT, 11, "Samples kept of the rate of topic changes.", check=POSITIVE
    )
    controller_quota_window_size_seconds: int = setting(
        "controller.quota.window.size.seconds", INT, 1, "The time a sample spans.", check=POSITIVE
    )


class RateSettings(Settings):
    """Rates that are set at run time alone (KIP-73, KIP-113)."""

    leader_replication_throttled_rate: int = setting(
        "leader.replication.throttled.rate",
        LONG,
        LONG_MAX,
        "Bytes a second that leaders send of throttled replicas.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        internal=True,
    )
    follower_replication_throttled_rate: int = setting(
        "follower.replication.throttled.rate",
        LONG,
        LONG_MAX,
        "Bytes a second that followers fetch of throttled replicas.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        internal=True,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        LONG_MAX,
        "Bytes a second that are moved between log directories.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
        internal=True,
    )
