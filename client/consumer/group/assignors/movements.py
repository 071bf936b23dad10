"""Which partitions of which topic have moved between which members, so that none is sent where one just came from."""

from __future__ import annotations

from kavka.client.topic_partition import TopicPartition


class Movements:
    """The moves of one balancing. A partition that moves twice counts as moved from its first owner to its last."""

    __slots__ = ("_moved", "_pairs")

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, tuple[str, str]] = {}
        self._pairs: dict[tuple[str, str, str], dict[TopicPartition, None]] = {}

    def note(self, partition: TopicPartition, source: str, target: str) -> None:
        """It moves from `source` to `target`."""
        before = self._moved.pop(partition, None)
        if before is not None:
            key = (partition.topic, *before)
            del self._pairs[key][partition]
            if not self._pairs[key]:
                del self._pairs[key]
            source = before[0]
            if source == target:
                return
        self._moved[partition] = source, target
        self._pairs.setdefault((partition.topic, source, target), {})[partition] = None

    def better(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """The one to be moved instead: of the same topic, it came from `target` and just goes back."""
        before = self._moved.get(partition)
        if before is not None:
            source = before[0]
        back = self._pairs.get((partition.topic, target, source))
        return next(iter(back)) if back else partition
