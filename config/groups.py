"""Consumer groups and their offsets."""

from __future__ import annotations

from kavka.config.checks import POSITIVE, EachOneOf, OneOf
from kavka.config.setting import Settings, setting
from kavka.config.values import HIGH, INT, INT_MAX, LIST, LONG, MEDIUM, SHORT, STRING


class GroupSettings(Settings):
    """Consumer groups and their offsets."""

    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic",),
        "The protocols by which groups rebalance: classic, consumer (KIP-848).",
        check=EachOneOf("consumer", "classic", "share", "unknown"),
        importance=MEDIUM,
    )
    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms",
        INT,
        6000,
        "The shortest session a classic member may ask for.",
        importance=MEDIUM,
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        "The longest session a classic member may ask for.",
        importance=MEDIUM,
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        "How long an empty classic group waits for more members before its first rebalance.",
        importance=MEDIUM,
    )
    group_max_size: int = setting(
        "group.max.size", INT, INT_MAX, "Members of a classic group at most.", check=POSITIVE, importance=MEDIUM
    )
    group_consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        INT,
        45000,
        "The session of a member of a consumer group.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    group_consumer_min_session_timeout_ms: int = setting(
        "group.consumer.min.session.timeout.ms",
        INT,
        45000,
        "The shortest session a consumer group can be given.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    group_consumer_max_session_timeout_ms: int = setting(
        "group.consumer.max.session.timeout.ms",
        INT,
        60000,
        "The longest session a consumer group can be given.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "How often a member of a consumer group gives a sign of life.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The shortest heartbeat interval a consumer group can be given.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15000,
        "The longest heartbeat interval a consumer group can be given.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    group_consumer_max_size: int = setting(
        "group.consumer.max.size",
        INT,
        INT_MAX,
        "Members of a consumer group at most.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        LIST,
        (
            "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
            "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        ),
        (
            "The assignors of consumer groups, the first is the default: Kafka's class names of the uniform and "
            "the range assignor."
        ),
        importance=MEDIUM,
    )
    group_consumer_migration_policy: str = setting(
        "group.consumer.migration.policy",
        STRING,
        "disabled",
        "Whether a group with members may move between the classic and the consumer protocol.",
        check=OneOf("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL", any_case=True),
        importance=MEDIUM,
        internal=True,
    )
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of the topic that holds the groups' offsets.",
        check=POSITIVE,
        importance=HIGH,
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "Replicas of that topic; fewer while fewer brokers live.",
        check=POSITIVE,
        importance=HIGH,
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes",
        INT,
        104_857_600,
        "The segment size of that topic.",
        check=POSITIVE,
        importance=HIGH,
    )
    offsets_topic_compression_codec: int = setting(
        "offsets.topic.compression.codec", INT, 0, "The codec of that topic's batches, as its number.", importance=HIGH
    )
    offsets_load_buffer_size: int = setting(
        "offsets.load.buffer.size",
        INT,
        5_242_880,
        "How much is read at a time when a group's state is loaded.",
        check=POSITIVE,
        importance=HIGH,
    )
    offsets_commit_timeout_ms: int = setting(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "How long a commit waits for the replicas.",
        check=POSITIVE,
        importance=HIGH,
    )
    offsets_commit_required_acks: int = setting(
        "offsets.commit.required.acks",
        SHORT,
        -1,
        "The acks a commit needs.",
        importance=HIGH,
        ignored="a commit always waits for all in-sync replicas, as with -1",
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        INT,
        10080,
        "How long the offsets of a group without members are kept.",
        check=POSITIVE,
        importance=HIGH,
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms",
        LONG,
        600000,
        "How often offsets are looked at for what is due to be forgotten.",
        check=POSITIVE,
        importance=HIGH,
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes",
        INT,
        4096,
        "The longest text that may be committed with an offset.",
        importance=HIGH,
    )
