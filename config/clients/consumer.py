"""The consumer's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kavka.config.checks import NOT_NEGATIVE, POSITIVE, OneOf, at_least
from kavka.config.clients.checks import BY_DURATION, NotEmpty, OffsetReset, duration_as_ms
from kavka.config.clients.every_client import CommonSettings
from kavka.config.clients.loading import Given, load
from kavka.config.errors import ConfigError
from kavka.config.setting import setting
from kavka.config.values import BOOLEAN, CLASS, HIGH, INT, LIST, MEDIUM, STRING

RANGE: Final = "org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE_STICKY: Final = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
_CLASSIC_ALONE: Final = ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms")


class ConsumerSettings(CommonSettings):
    """A consumer's settings, checked together. Immutable."""

    DOMAIN = "consumer"

    given: Mapping[str, Any]
    """The settings as they were given, by Kafka's names: what `configure` of deserializers is called with."""
    auto_offset_reset_by_ms: int | None
    """How far back from now auto.offset.reset=by_duration goes; None for the other ways."""
    allow_auto_create_topics: bool = setting(
        "allow.auto.create.topics",
        BOOLEAN,
        True,
        "Whether subscribing to a topic that is not there may create it, where the brokers' settings allow that too.",
        importance=MEDIUM,
    )
    auto_commit_interval_ms: int = setting(
        "auto.commit.interval.ms", INT, 5_000, "How often offsets are committed by themselves.", check=NOT_NEGATIVE
    )
    auto_offset_reset: str = setting(
        "auto.offset.reset",
        STRING,
        "latest",
        "Where to begin where no offset is committed, or it is not there any more: at the end, the beginning, "
        "so far back in time (KIP-1106), or by an error.",
        check=OffsetReset(),
        importance=MEDIUM,
    )
    check_crcs: bool = setting("check.crcs", BOOLEAN, True, "Check that records arrived as they were written.")
    client_rack: str = setting(
        "client.rack", STRING, "", "Where the consumer is: a replica there is fetched from, if the brokers say so."
    )
    default_api_timeout_ms: int = setting(
        "default.api.timeout.ms",
        INT,
        60_000,
        "How long calls may take that are given no time limit.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    enable_auto_commit: bool = setting(
        "enable.auto.commit",
        BOOLEAN,
        True,
        "Commit the offsets of what poll() gave out, by itself. Off without group.id.",
        importance=MEDIUM,
    )
    exclude_internal_topics: bool = setting(
        "exclude.internal.topics",
        BOOLEAN,
        True,
        "Whether a pattern leaves out topics that are the brokers' own.",
        importance=MEDIUM,
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        INT,
        52_428_800,
        "Bytes of an answer to a fetch; the first batch is whole in any case.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    fetch_max_wait_ms: int = setting(
        "fetch.max.wait.ms", INT, 500, "How long a broker waits for fetch.min.bytes.", check=NOT_NEGATIVE
    )
    fetch_min_bytes: int = setting(
        "fetch.min.bytes",
        INT,
        1,
        "Bytes that a fetch's answer should have, or the broker waits.",
        check=NOT_NEGATIVE,
        importance=HIGH,
    )
    group_id: str | None = setting(
        "group.id", STRING, None, "The group that shares out partitions and keeps offsets.", importance=HIGH
    )
    group_instance_id: str | None = setting(
        "group.instance.id",
        STRING,
        None,
        "Makes a static member: who comes back by this id in time has the partitions it had (KIP-345).",
        check=NotEmpty(),
        importance=MEDIUM,
    )
    group_protocol: str = setting(
        "group.protocol",
        STRING,
        "classic",
        "Who assigns partitions: a member (classic), or the broker (consumer, KIP-848).",
        check=OneOf("CONSUMER", "CLASSIC", any_case=True),
        importance=HIGH,
    )
    group_remote_assignor: str | None = setting(
        "group.remote.assignor", STRING, None, "The broker's assignor, with group.protocol=consumer.", importance=MEDIUM
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat.interval.ms",
        INT,
        3_000,
        "How often the coordinator is told that the member lives; less than session.timeout.ms.",
        importance=HIGH,
    )
    interceptor_classes: tuple[Any, ...] = setting(
        "interceptor.classes", LIST, (), "What sees records before poll() gives them out, and commits."
    )
    internal_leave_group_on_close: bool = setting(
        "internal.leave.group.on.close",
        BOOLEAN,
        True,
        "Whether close() leaves the group where it is not told what to do about that. False: the member keeps its "
        "place until its session is over.",
        internal=True,
    )
    internal_throw_on_fetch_stable_offset_unsupported: bool = setting(
        "internal.throw.on.fetch.stable.offset.unsupported",
        BOOLEAN,
        False,
        "Whether committed offsets are an UnsupportedVersionError where the broker (before 2.5) cannot leave out those "
        "of open transactions (KIP-447), rather than whatever it has.",
        internal=True,
    )
    isolation_level: str = setting(
        "isolation.level",
        STRING,
        "read_uncommitted",
        "Whether records of transactions are given out that were aborted, or are not finished.",
        check=OneOf("read_committed", "read_uncommitted"),
        importance=MEDIUM,
    )
    kavka_skip_corrupt_batches: bool = setting(
        "kavka.skip.corrupt.batches",
        BOOLEAN,
        False,
        "Leave out batches whose bytes are not what was written, with a warning, instead of raising an error.",
    )
    key_deserializer: Any = setting(
        "key.deserializer", CLASS, None, "Makes keys of bytes. Unset: they are bytes.", importance=HIGH
    )
    max_partition_fetch_bytes: int = setting(
        "max.partition.fetch.bytes",
        INT,
        1_048_576,
        "Bytes of a partition in an answer to a fetch; the first batch is whole in any case.",
        check=NOT_NEGATIVE,
        importance=HIGH,
    )
    max_poll_interval_ms: int = setting(
        "max.poll.interval.ms",
        INT,
        300_000,
        "A member that does not poll for so long leaves its group.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    max_poll_records: int = setting(
        "max.poll.records", INT, 500, "Records that poll() gives out at once.", check=POSITIVE, importance=MEDIUM
    )
    partition_assignment_strategy: tuple[Any, ...] = setting(
        "partition.assignment.strategy",
        LIST,
        (RANGE, COOPERATIVE_STICKY),
        "Assignors of the classic protocol, the preferred one first: range, roundrobin, sticky, cooperative-sticky, "
        "the names of Kafka's classes, or classes.",
        importance=MEDIUM,
    )
    receive_buffer_bytes: int = setting(
        "receive.buffer.bytes",
        INT,
        65_536,
        "SO_RCVBUF; -1: as the operating system has it. Not set it is -1 too: so little would hold up large answers.",
        check=at_least(-1),
        importance=MEDIUM,
    )
    session_timeout_ms: int = setting(
        "session.timeout.ms",
        INT,
        45_000,
        "A member of which the coordinator hears nothing for so long is no longer one.",
        importance=HIGH,
    )
    value_deserializer: Any = setting(
        "value.deserializer", CLASS, None, "Makes values of bytes. Unset: they are bytes.", importance=HIGH
    )


def consumer_settings(given: Mapping[str, Any] | None = None, **keywords: Any) -> ConsumerSettings:
    """Settings by Kafka's names, and by keywords with underscores in place of dots; a keyword counts over a name.

    Values are text, as in properties files, or of the setting's own type. Raises ConfigError.
    """
    loaded = load(ConsumerSettings, given, keywords, "consumer")
    values = loaded.values
    values["group.protocol"] = values["group.protocol"].lower()
    _check_group(loaded)
    group_id, instance_id = values["group.id"], values["group.instance.id"]
    named = f"consumer-{group_id}-{instance_id}" if instance_id is not None else None
    kind = Given(f"consumer-{group_id or 'null'}", values, loaded.given)
    settings = kind.settings(ConsumerSettings, named)
    reset = values["auto.offset.reset"]
    by_ms = duration_as_ms(reset.removeprefix(BY_DURATION)) if reset.startswith(BY_DURATION) else None
    settings.__dict__["auto_offset_reset_by_ms"] = by_ms
    return settings


def _check_group(loaded: Given) -> None:
    values, given = loaded.values, loaded.given
    if values["group.protocol"] == "consumer":
        for name in _CLASSIC_ALONE:
            if name in given:
                raise ConfigError(None, None, f"{name} cannot be set when group.protocol=CONSUMER")
    else:
        if "group.remote.assignor" in given:
            raise ConfigError(None, None, "group.remote.assignor cannot be set when group.protocol=CLASSIC")
        if values["heartbeat.interval.ms"] >= values["session.timeout.ms"]:
            raise ConfigError(None, None, "Heartbeat must be set lower than the session timeout")
    if values["group.id"] is None:
        if given.get("enable.auto.commit") is not None and values["enable.auto.commit"]:
            reason = "enable.auto.commit cannot be set to true when default group id (null) is used."
            raise ConfigError(None, None, reason)
        values["enable.auto.commit"] = False
