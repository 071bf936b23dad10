"""Bounds of logs by asking brokers, with one administrator's client."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kavka.client.admin import Admin, IsolationLevel, ItemErrors, OffsetSpec
from kavka.client.api_errors import UnknownTopicOrPartitionError
from kavka.client.topic_partition import TopicPartition
from kavka.config.clients.admin import AdminSettings
from kavka.config.clients.without_effect import why_without_effect
from kavka.pipeline.secret_references import resolved_settings
from kavka.pipeline.source.offsets import Offsets
from kavka.pipeline.source.subscription import Subscription


class BrokerLogs:
    """A `LogBounds` of topics in a cluster. It connects when it is first asked. Threads: one at a time."""

    def __init__(self, settings: Mapping[str, Any], *, is_committed: bool) -> None:
        """`settings` are a consumer's; those that administrators have no use for are left out.

        References to secrets are resolved here. Raises ConfigError, SecretError.
        """
        self._admin: Final = Admin(resolved_settings(admin_settings(settings)))
        self._isolation: Final = IsolationLevel(int(is_committed))

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        names = subscription.topics
        if names is None:
            names = tuple(name for name in self._admin.list_topics() if subscription.matches(name))
        there = self._described(names)
        if subscription.assigned:
            return [each for each in subscription.assigned if each in set(there)]
        return there

    def _described(self, names: Collection[str]) -> list[TopicPartition]:
        if not names:
            return []
        try:
            described = self._admin.describe_topics(names)
        except UnknownTopicOrPartitionError:
            return []
        except ItemErrors as failed:
            others = [error for error in failed.errors.values() if not isinstance(error, UnknownTopicOrPartitionError)]
            if others:
                raise others[0] from failed
            described = dict(failed.results)
        return sorted(
            TopicPartition(topic.name, partition.partition)
            for topic in described.values()
            for partition in topic.partitions
        )

    def first_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._listed(partitions, OffsetSpec.EARLIEST, self._isolation)

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._listed(partitions, OffsetSpec.LATEST, self._isolation)

    def log_ends(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self._listed(partitions, OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED)

    def _listed(self, partitions: Collection[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel) -> Offsets:
        if not partitions:
            return {}
        found = self._admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=isolation)
        return {each: found[each].offset for each in partitions}

    def offsets_at(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        if not times_ms:
            return {}
        found = self._admin.list_offsets(times_ms, isolation_level=self._isolation)
        return {each: None if place.offset < 0 else place.offset for each, place in found.items()}

    def sizes_bytes(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The largest replica's size: a follower may be behind."""
        sizes = dict.fromkeys(partitions, 0)
        for log_dirs in self._admin.describe_log_dirs().values():
            for log_dir in log_dirs.values():
                for each, replica in log_dir.replicas.items():
                    if each in sizes and not replica.is_future:
                        sizes[each] = max(sizes[each], replica.size_bytes)
        return sizes

    def close(self) -> None:
        self._admin.close()


def admin_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a client's settings that an administrator's client has too, or that are every client's."""
    return {name: value for name, value in settings.items() if name in AdminSettings.ROWS or why_without_effect(name)}
