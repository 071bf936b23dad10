"""Bounds of logs by their files alone, where no broker is named to be asked."""

from collections.abc import Collection, Mapping
from typing import Final

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.files.bounds import bounds
from kavka.pipeline.files.folders import FILES, find_folder, partitions
from kavka.pipeline.files.isolation import READ_UNCOMMITTED
from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.offsets import Offsets
from kavka.pipeline.source.subscription import Subscription


class FileLogs:
    """A `LogBounds` of the logs in some directories. Threads: any.

    Its calls raise PartitionFilesError, CorruptInputError, OSError where Kafka's errors would be a broker's.
    """

    def __init__(self, directories: tuple[str, ...], isolation: str) -> None:
        self._directories: Final = directories
        self._isolation: Final = isolation

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        there = [each for each in partitions(self._directories) if subscription.matches(each.topic)]
        assigned = set(subscription.assigned)
        return [each for each in there if each in assigned] if assigned else there

    def first_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self._bounds(each, READ_UNCOMMITTED).start for each in partitions}

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self._bounds(each, self._isolation).stop for each in partitions}

    def log_ends(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {each: self._bounds(each, READ_UNCOMMITTED).stop for each in partitions}

    def _bounds(self, partition: TopicPartition, isolation: str) -> range:
        return bounds(self._directories, *partition, isolation)

    def offsets_at(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        if times_ms:
            raise OptionError("times are looked up by brokers: kafka.bootstrap.servers is to be given beside path")
        return {}

    def sizes_bytes(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self._size(each) for each in partitions}

    def _size(self, partition: TopicPartition) -> int:
        folder = find_folder(self._directories, *partition)
        return sum(FILES.size(folder / name) for name in FILES.listdir(folder) if name.endswith(".log"))

    def close(self) -> None:
        """Nothing is kept open."""
