"""The committed offsets of one shard, and those that wait for the end of their transaction.

    group -> topic -> partition -> 36 bytes, and the metadata's UTF-8 behind them
             0..7   offset            i64
             8..15  log offset        i64; where in `__consumer_offsets` the record stands
             16..19 leader epoch      i32; -1 unknown
             20..27 commit timestamp  i64; ms
             28..35 expire timestamp  i64; ms, -1 none

One object for an offset, of a type that the garbage collector never looks at: a million of them cost about 170 MB less
than as tuples of ints, and its full passes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from itertools import chain
from struct import Struct
from sys import intern
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container

    from kavka.coordinator.runtime.result import Producer
    from kavka.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue

Partitions = dict[int, bytes]
Topics = dict[str, Partitions]
Groups = dict[str, Topics]


class CommittedOffset(NamedTuple):
    """What a group committed for a partition."""

    offset: int
    log_offset: int
    leader_epoch: int
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    metadata: str


class OffsetStore:
    """Committed and pending offsets by group, topic, partition. Changed by replaying records and markers only.

    A group has an open transaction from its first pending offset until the marker comes, even if a tombstone took the
    offset away meanwhile (KAFKA-15955: such a tombstone must win over the marker).

    Threads: all under the shard's lock.
    """

    __slots__ = ("_groups", "_open", "_pending", "_topic_entered", "_users", "count", "log_offset")

    def __init__(self, topic_entered: Callable[[str], None]) -> None:
        """`topic_entered`: called with each topic when the first group has an offset of it."""
        self._topic_entered = topic_entered
        self._groups: Groups = {}
        self._pending: dict[int, Groups] = {}
        self._open: dict[str, set[int]] = {}
        self._users: dict[str, int] = {}
        self.count = 0
        """How many offsets are committed."""
        self.log_offset = -1
        """Of the last record that was replayed."""

    def replay(
        self, key: "OffsetCommitKey", value: "OffsetCommitValue | None", log_offset: int, producer: "Producer | None"
    ) -> None:
        """Make the store what the record at `log_offset` says."""
        self.log_offset = log_offset
        if value is None:
            self._forget(key.group, key.topic, key.partition)
            return
        packed = _FIXED.pack(
            value.offset, log_offset, value.leader_epoch, value.commit_timestamp, value.expire_timestamp
        )
        if value.metadata:
            packed += value.metadata.encode()
        if producer is None:
            topics = self._groups.get(key.group)
            partitions = None if topics is None else topics.get(key.topic)
            if partitions is not None and key.partition in partitions:
                partitions[key.partition] = packed
            else:
                self._commit(key.group, key.topic, key.partition, packed)
        else:
            producer_id = producer.producer_id
            self._put(self._pending.setdefault(producer_id, {}), key.group, key.topic, key.partition, packed)
            self._open.setdefault(key.group, set()).add(producer_id)

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """What was pending of this producer stands now, where nothing later was committed; or is gone."""
        for group_id, topics in self._pending.pop(producer_id, {}).items():
            producers = self._open[group_id]
            producers.discard(producer_id)
            if not producers:
                del self._open[group_id]
            for topic, partitions in topics.items():
                for partition, packed in partitions.items() if committed else ():
                    before = self._groups.get(group_id, _NO_TOPICS).get(topic, _NO_PARTITIONS).get(partition)
                    if before is None or packed[_LOG_OFFSET] > before[_LOG_OFFSET]:
                        self._commit(group_id, topic, partition, packed)
                self._release(topic)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """What is committed, pending transactions apart."""
        topics = self._groups.get(group_id)
        if topics is None:
            return None
        packed = topics.get(topic, _NO_PARTITIONS).get(partition)
        return None if packed is None else _unpacked(packed)

    def topics_of(self, group_id: str) -> Iterable[str]:
        """The topics for which that group has committed offsets."""
        return self._groups.get(group_id, _NO_TOPICS).keys()

    def partitions_in(self, group_id: str, topic: str) -> list[int]:
        """The partitions of that topic for which the group has committed offsets."""
        return list(self._groups.get(group_id, _NO_TOPICS).get(topic, _NO_PARTITIONS))

    def count_of(self, group_id: str) -> int:
        """How many offsets the group has committed."""
        return sum(map(len, self._groups.get(group_id, _NO_TOPICS).values()))

    def is_open(self, group_id: str) -> bool:
        """Whether a transaction that has offsets of this group is still going on."""
        return group_id in self._open

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an offset of that partition waits for the end of a transaction."""
        return any(
            partition in self._pending[producer_id].get(group_id, _NO_TOPICS).get(topic, _NO_PARTITIONS)
            for producer_id in self._open.get(group_id, ())
        )

    def snapshot(self, group_id: str) -> list[tuple[str, int, int]]:
        """(topic, partition, offset) of all that the group has committed; for any thread, without the shard's lock.

        What changes meanwhile may be in it or not.
        """
        return [
            (topic, partition, _FIXED.unpack_from(packed)[0])
            for topic, partitions in list(self._groups.get(group_id, _NO_TOPICS).items())
            for partition, packed in list(partitions.items())
        ]

    def partitions_of(self, group_id: str, among: "Container[str] | None" = None) -> list[tuple[str, int]]:
        """Every (topic, partition) of which the group has an offset, committed or pending; each once.

        `among`: of these topics only.
        """
        found = {
            (topic, partition): None
            for topics in self._kept_of(group_id)
            for topic, partitions in topics.items()
            if among is None or topic in among
            for partition in partitions
        }
        return list(found)

    def log_offset_of(self, group_id: str, topic: str, partition: int) -> int:
        """Where the last commit of that partition stands, pending ones too; -1 if there is none."""
        kept = (topics.get(topic, _NO_PARTITIONS).get(partition) for topics in self._kept_of(group_id))
        return max((_FIXED.unpack_from(packed)[1] for packed in kept if packed is not None), default=-1)

    def groups(self) -> list[str]:
        """The groups that have an offset, committed or pending; each once."""
        return list(dict.fromkeys(chain(self._groups, *self._pending.values())))

    def _kept_of(self, group_id: str) -> Iterator[Topics]:
        yield self._groups.get(group_id, _NO_TOPICS)
        for producer_id in self._open.get(group_id, ()):
            yield self._pending[producer_id].get(group_id, _NO_TOPICS)

    @property
    def topics(self) -> KeysView[str]:
        """All topics of which some group has an offset, committed or pending."""
        return self._users.keys()

    def content(self) -> tuple[Mapping[str, object], Mapping[int, object]]:
        """Everything, for comparing two stores: what is committed, and what is pending by producer id."""
        return self._groups, self._pending

    def _commit(self, group_id: str, topic: str, partition: int, packed: bytes) -> None:
        self.count += self._put(self._groups, group_id, topic, partition, packed)

    def _put(self, groups: Groups, group_id: str, topic: str, partition: int, packed: bytes) -> bool:
        """Whether there was none before."""
        topics = groups.get(group_id)
        if topics is None:
            topics = groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            topic = intern(topic)
            users = self._users.get(topic, 0)
            self._users[topic] = users + 1
            if not users:
                self._topic_entered(topic)
            partitions = topics[topic] = {}
        size_before = len(partitions)
        partitions[partition] = packed
        return len(partitions) > size_before

    def _forget(self, group_id: str, topic: str, partition: int) -> None:
        self.count -= self._remove(self._groups, group_id, topic, partition)
        for producer_id in self._open.get(group_id, ()):
            self._remove(self._pending[producer_id], group_id, topic, partition)

    def _remove(self, groups: Groups, group_id: str, topic: str, partition: int) -> bool:
        """Whether there was one. A producer's groups stay entered until its marker comes, offsets or not."""
        topics = groups.get(group_id, _NO_TOPICS)
        partitions = topics.get(topic, _NO_PARTITIONS)
        if partition not in partitions:
            return False
        del partitions[partition]
        if not partitions:
            del topics[topic]
            self._release(topic)
            if not topics and groups is self._groups:
                del groups[group_id]
        return True

    def _release(self, topic: str) -> None:
        users = self._users[topic] - 1
        if users:
            self._users[topic] = users
        else:
            del self._users[topic]


def _unpacked(packed: bytes) -> CommittedOffset:
    offset, log_offset, leader_epoch, commit_timestamp_ms, expire_timestamp_ms = _FIXED.unpack_from(packed)
    return CommittedOffset(
        offset, log_offset, leader_epoch, commit_timestamp_ms, expire_timestamp_ms, packed[_FIXED.size :].decode()
    )


_FIXED: Final = Struct(">qqiqq")
_LOG_OFFSET: Final = slice(8, 16)
_NO_TOPICS: Final[Topics] = {}
_NO_PARTITIONS: Final[Partitions] = {}
