"""What a group goes by, out of a consumer's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kavka.client.consumer.group.assignors.assignor import Assignor
from kavka.client.consumer.group.assignors.loading import load_assignors, protocol_of
from kavka.config.clients.consumer import ConsumerSettings


class GroupSettings(NamedTuple):
    """Named after Kafka's settings; the defaults are Kafka's too. Immutable, but for the assignors' own memory."""

    group_id: str
    group_instance_id: str | None = None
    uses_consumer_protocol: bool = False
    """group.protocol=consumer (KIP-848)."""
    remote_assignor: str | None = None
    assignors: Sequence[Assignor] = ()
    client_rack: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    exclude_internal_topics: bool = True
    leave_on_close: bool = True
    """internal.leave.group.on.close"""
    needs_stable_offsets: bool = False
    """internal.throw.on.fetch.stable.offset.unsupported"""

    @property
    def join_timeout_ms(self) -> int:
        """How long JoinGroup may take: it waits for members who may take so long to give up what they have."""
        return max(self.request_timeout_ms, self.max_poll_interval_ms + 5_000)


def group_settings(settings: ConsumerSettings) -> GroupSettings:
    """Out of a consumer's settings, which have a group.id. Raises ConfigError for assignors that are none."""
    assert settings.group_id is not None
    is_classic = settings.group_protocol == "classic"
    assignors = load_assignors(settings.partition_assignment_strategy) if is_classic else []
    if assignors:
        protocol_of(assignors)
    return GroupSettings(
        group_id=settings.group_id,
        group_instance_id=settings.group_instance_id,
        uses_consumer_protocol=not is_classic,
        remote_assignor=settings.group_remote_assignor,
        assignors=assignors,
        client_rack=settings.client_rack or None,
        session_timeout_ms=settings.session_timeout_ms,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        max_poll_interval_ms=settings.max_poll_interval_ms,
        enable_auto_commit=settings.enable_auto_commit,
        auto_commit_interval_ms=settings.auto_commit_interval_ms,
        retry_backoff_ms=settings.retry_backoff_ms,
        retry_backoff_max_ms=settings.retry_backoff_max_ms,
        request_timeout_ms=settings.request_timeout_ms,
        default_api_timeout_ms=settings.default_api_timeout_ms,
        exclude_internal_topics=settings.exclude_internal_topics,
        leave_on_close=settings.internal_leave_group_on_close,
        needs_stable_offsets=settings.internal_throw_on_fetch_stable_offset_unsupported,
    )
