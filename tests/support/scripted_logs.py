"""Logs whose bounds a test says, in place of a cluster's."""

from collections.abc import Collection, Mapping

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.offsets import Offsets
from kavka.pipeline.source.subscription import Subscription


class ScriptedLogs:
    """Partitions from `first` to `stable`, 100 bytes an offset; `times` has the first offset of each since any time.

    `ends` are those of the logs, where open transactions hold back what is stable.
    """

    def __init__(
        self,
        first: Offsets,
        stable: Offsets,
        times: Mapping[TopicPartition, int | None] | None = None,
        ends: Offsets | None = None,
    ) -> None:
        self.first = first
        self.stable = stable
        self.times = times or {}
        self.ends = ends
        self.is_closed = False

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        return [each for each in sorted(self.stable) if subscription.matches(each.topic)]

    def first_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self.first[each] for each in partitions}

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self.stable[each] for each in partitions}

    def log_ends(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: (self.ends or self.stable)[each] for each in partitions}

    def offsets_at(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {each: self.times[each] for each in times_ms}

    def sizes_bytes(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: 100 * (self.stable[each] - self.first[each]) for each in partitions}

    def close(self) -> None:
        self.is_closed = True
