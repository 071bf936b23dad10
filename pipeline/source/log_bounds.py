"""What has to be known of logs to plan what is read of them."""

from collections.abc import Collection, Mapping
from typing import Protocol

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.offsets import Offsets
from kavka.pipeline.source.subscription import Subscription


class LogBounds(Protocol):
    """Threads: one at a time. All raise KafkaError where the cluster cannot be asked."""

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        """Those there are now; a topic that is named and not there has none."""

    def first_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset of each."""

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Where reading ends, by the isolation level: after the last record, or the last that is stable."""

    def log_ends(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The end whatever transactions are open."""

    def offsets_at(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Each one's first record at or after a time, in milliseconds since 1970; None where there is none."""

    def sizes_bytes(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """How large the logs are on disk."""

    def close(self) -> None:
        """Again is allowed."""
