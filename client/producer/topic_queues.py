"""One topic's queues: by key, and by sticking to one of them (KIP-480, KIP-794)."""

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import Final

from kavka.client.cluster import NO_LEADER, TopicInfo
from kavka.client.dice import DICE
from kavka.client.producer.partition_queue import PartitionQueue
from kavka.client.producer.partitioners import KeyHash, Keyless
from kavka.client.topic_partition import TopicPartition

MEMO_KEYS: Final = 8192
MEMO_KEY_BYTES: Final = 64
"""Keys come again and again: finding one that is known costs a tenth of hashing it. Longer ones are not kept."""
WEIGHED_PARTITIONS: Final = 64
"""Of how many partitions the load is looked at when one is chosen; of more, as many by chance."""


class TopicQueues:
    """A topic's partitions as the producer sees them.

    Threads: `learn` on the client's thread; the rest by any that send. What changes is swapped whole: `queues` before
    `by_key`, so that no thread notes a queue of before among the keys of after.
    """

    __slots__ = (
        "_available",
        "_ever",
        "_hash",
        "_is_adaptive",
        "_stuck_since_bytes",
        "by_key",
        "queues",
        "sticky",
        "topic",
    )

    def __init__(self, topic: str, hashing: KeyHash, *, is_adaptive: bool = True) -> None:
        """`is_adaptive`: who sticks to a partition rather chooses one on which little waits."""
        self.topic: Final = topic
        self._hash: Final = hashing
        self._is_adaptive: Final = is_adaptive
        self._ever: tuple[PartitionQueue, ...] = ()
        self.queues: tuple[PartitionQueue, ...] = ()
        self.by_key: dict[bytes, PartitionQueue] = {}
        """Keys that came lately."""
        self.sticky: PartitionQueue | None = None
        """Where records without a key go now."""
        self._available: tuple[PartitionQueue, ...] = ()
        self._stuck_since_bytes = 0

    def learn(self, info: TopicInfo, avoided_nodes: Collection[int] = ()) -> None:
        """The topic has these partitions, fewer than before if it is a new one. None of an avoided node is stuck to."""
        count = len(info.partitions)
        if count != len(self.queues):
            added = (PartitionQueue(TopicPartition(self.topic, number)) for number in range(len(self._ever), count))
            self._ever = (*self._ever, *added)
            self.queues = self._ever[:count]
            self.by_key = {}
        led = {number for number, partition in info.partitions.items() if partition.leader_id != NO_LEADER}
        good = {number for number in led if info.partitions[number].leader_id not in avoided_nodes}
        chosen = good or led
        self._available = tuple(queue for queue in self.queues if queue.topic_partition.partition in chosen)
        if self.sticky is not None and self._available and self.sticky not in self._available:
            self.sticky = None

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of a partition that the topic has, or has had."""
        return self._ever[partition]

    def of_key(self, key: bytes) -> PartitionQueue:
        """Where this key's records go."""
        by_key, queues, hashing = self.by_key, self.queues, self._hash
        queue = by_key.get(key)
        if queue is None:
            if not key and hashing.needs_bytes:
                return self.without_key()
            queue = queues[hashing.hash_of(key) % len(queues)]
            if len(key) <= MEMO_KEY_BYTES:
                if len(by_key) >= MEMO_KEYS:
                    by_key.clear()
                by_key[key] = queue
        return queue

    def without_key(self) -> PartitionQueue:
        """Where a record without a key goes."""
        if self._hash.keyless is Keyless.STICKY:
            return self.sticky or self.stick()
        if self._hash.keyless is Keyless.HASHED:
            return self.queues[self._hash.hash_of(b"") % len(self.queues)]
        return DICE.choice(self._available or self.queues)

    def is_worn_out(self, queue: PartitionQueue, enough_bytes: int) -> bool:
        """Whether the partition that is stuck to has got its share: a batch was full, or small ones together were."""
        return queue.open is not None or queue.filled_bytes - self._stuck_since_bytes >= enough_bytes

    def stick(self, choose: Callable[[float], float] | None = None) -> PartitionQueue:
        """Choose another partition to stick to: the less waits there, the likelier. `choose` gives a part of a sum."""
        available = self._available or self.queues
        candidates: Sequence[PartitionQueue] = [queue for queue in available if queue is not self.sticky] or available
        if len(candidates) > WEIGHED_PARTITIONS:
            candidates = DICE.sample(candidates, WEIGHED_PARTITIONS)
        if not self._is_adaptive:
            chosen = DICE.choice(candidates)
        else:
            waiting = [len(queue.batches) for queue in candidates]
            most = max(waiting)
            sums = list(accumulate(most + 1 - length for length in waiting))
            drawn = DICE.random() * sums[-1] if choose is None else choose(sums[-1])
            chosen = next(queue for queue, sum_ in zip(candidates, sums, strict=True) if drawn < sum_)
        self._stuck_since_bytes = chosen.filled_bytes
        self.sticky = chosen
        return chosen
