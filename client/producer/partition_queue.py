"""One partition's batches that wait to be sent."""

import threading
from collections import deque
from typing import Final

from kavka.client.producer.batch import ProducerBatch
from kavka.client.topic_partition import TopicPartition


class PartitionQueue:
    """Batches in the order in which they go out; only the last one takes records.

    Threads: any. `lock` guards all of it, and the batch that takes records.
    """

    __slots__ = ("batches", "filled_bytes", "is_muted", "lock", "open", "topic_partition", "unfinished")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition: Final = topic_partition
        self.lock: Final = threading.Lock()
        self.batches: Final[deque[ProducerBatch]] = deque()
        self.open: ProducerBatch | None = None
        self.unfinished: Final[deque[ProducerBatch]] = deque()
        """All that were begun and nobody was told of, waiting, under way or decided: finished in this order."""
        self.filled_bytes = 0
        """Of all batches that have ended: how much was ever sent here, for who has to choose a partition."""
        self.is_muted = False
        """Whether nothing may be sent while a batch is in flight. The client's thread's."""

    def begin(self, batch: ProducerBatch) -> None:
        """Close the batch that takes records, and have `batch` take them, which has one already. Under the lock."""
        self.end()
        self.batches.append(batch)
        self.unfinished.append(batch)
        self.open = batch

    def end(self) -> None:
        """The last batch takes no more records. Under the lock."""
        if self.open is not None:
            self.filled_bytes += self.open.writer.size_bytes
            self.open.trim()
            self.open = None
