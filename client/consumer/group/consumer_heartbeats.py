"""What goes into a ConsumerGroupHeartbeat: everything at first and after a failure, then what has changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kavka.client.call import VersionRange
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.port import SubscriptionPattern
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

_ALL_VERSIONS: Final[VersionRange] = (0, 1)
_WITH_PATTERNS: Final[VersionRange] = (1, 1)


class _Said(NamedTuple):
    """What the coordinator was told last."""

    topics: frozenset[str]
    pattern: SubscriptionPattern | None
    owned: tuple[tuple[bytes, tuple[int, ...]], ...]


class ConsumerHeartbeats:
    """Makes them, and remembers what was said. Threads: the client's."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings: Final = settings
        self._said: _Said | None = None
        self.topics: frozenset[str] = frozenset()
        self.pattern: SubscriptionPattern | None = None

    @property
    def versions(self) -> VersionRange:
        """In which versions a heartbeat can go out."""
        return _ALL_VERSIONS if self.pattern is None else _WITH_PATTERNS

    def forget(self) -> None:
        """It is not known what the coordinator has heard: the next one says it all."""
        self._said = None

    def request(
        self, member_id: str, epoch: int, owned: Iterable[tuple[bytes, tuple[int, ...]]]
    ) -> ConsumerGroupHeartbeatRequest:
        """The next heartbeat; epoch 0 joins."""
        settings = self._settings
        says = _Said(self.topics, self.pattern, tuple(owned))
        said = self._said
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=settings.group_instance_id,
        )
        if said is None:
            request.rebalance_timeout_ms = settings.max_poll_interval_ms
            request.server_assignor = settings.remote_assignor
            request.rack_id = settings.client_rack or None
        if said is None or says.topics != said.topics:
            request.subscribed_topic_names = sorted(says.topics)
        if says.pattern is not None and (said is None or says.pattern != said.pattern):
            request.subscribed_topic_regex = says.pattern.pattern
        elif says.pattern is None and said is not None and said.pattern is not None:
            request.subscribed_topic_regex = ""
        if said is None or says.owned != said.owned:
            request.topic_partitions = [
                TopicPartitions(topic_id=topic, partitions=list(each)) for topic, each in says.owned
            ]
        self._said = says
        return request

    def farewell(self, member_id: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
        """Leaves, for good or for a while."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )
