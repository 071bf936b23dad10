"""What a consumer is subscribed to: topics by their names, or by patterns that are looked up in the metadata."""

from __future__ import annotations

from collections.abc import Collection
from re import Pattern
from typing import Final

from kavka.client.cluster import Cluster
from kavka.client.consumer.group.port import SubscriptionPattern
from kavka.client.metadata import Metadata


class Subscription:
    """Threads: the polling one's."""

    def __init__(self, metadata: Metadata, *, excludes_internal: bool) -> None:
        self._metadata: Final = metadata
        self._excludes_internal: Final = excludes_internal
        self._pattern: Pattern[str] | None = None
        self._matched: Cluster | None = None
        self.topics: frozenset[str] = frozenset()
        self.broker_pattern: SubscriptionPattern | None = None
        """Which the broker looks topics up by."""

    @property
    def is_by_pattern(self) -> bool:
        """Whether topics may come and go with the metadata."""
        return self._pattern is not None

    @property
    def is_known(self) -> bool:
        """Whether it can be said what it is: a pattern has to be looked up first."""
        return self._pattern is None or self._matched is not None

    def choose(self, topics: Collection[str]) -> None:
        """These topics. Raises TypeError or InvalidTopicError for what is no name; then nothing has changed."""
        names = frozenset(topics)
        self._metadata.want_only(names)
        self.clear()
        self.topics = names

    def match(self, pattern: Pattern[str] | SubscriptionPattern) -> None:
        """Whatever matches. What the broker finds comes as topic ids, whose names are in the metadata of all topics."""
        self.clear()
        if isinstance(pattern, SubscriptionPattern):
            self.broker_pattern = pattern
        else:
            self._pattern = pattern
        self._metadata.want_all()

    def clear(self) -> None:
        """Nothing."""
        self.topics = frozenset()
        self.broker_pattern = self._pattern = self._matched = None

    def look_up(self) -> bool:
        """Look for topics in a snapshot that was not looked at yet; whether other ones match than before."""
        pattern, cluster = self._pattern, self._metadata.cluster
        if pattern is None or cluster is self._matched or cluster.version == 0:
            return False
        is_first = self._matched is None
        self._matched = cluster
        topics = frozenset(
            name
            for name, info in cluster.topics.items()
            if not info.error_code and not (info.is_internal and self._excludes_internal) and pattern.fullmatch(name)
        )
        has_changed = topics != self.topics
        self.topics = topics
        return has_changed or is_first
