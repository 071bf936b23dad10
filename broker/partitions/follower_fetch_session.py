"""A follower's fetch session at its leader: a fetch reads what is fresh (`session_news.py`), not all that is in it."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.fetch_sessions import (
    FINAL_EPOCH,
    Asked,
    Changes,
    FetchSession,
    Identity,
    Key,
    epoch_after,
)
from kavka.broker.partitions.session_news import REFRESH_MS, SessionNews, WatchedPartition
from kavka.broker.waiting.delayed_follower_fetch import DelayedFollowerFetch
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import FetchPartition, FetchResponse, PartitionData

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection
    from kavka.broker.partitions.log_reading import ReadLimits
    from kavka.broker.partitions.partition import Partition
    from kavka.protocol.messages.fetch import FetchRequest


class FollowerFetchSession(FetchSession):
    """Threads: as FetchSession; `fresh_news` guards itself."""

    __slots__ = ("_replica_id", "_unnamed", "_unseen", "_watched", "fresh_news")

    is_watched = True

    def __init__(
        self,
        session_id: int,
        asked: Iterable[tuple[Key, FetchPartition]],
        *,
        from_follower: bool,
        uses_topic_ids: bool,
        now_ms: int,
        replica_id: int,
    ) -> None:
        super().__init__(session_id, (), from_follower=from_follower, uses_topic_ids=uses_topic_ids, now_ms=now_ms)
        self.fresh_news: Final = SessionNews(now_ms)
        self._replica_id: Final = replica_id
        self._watched: OrderedDict[Identity, WatchedPartition] = OrderedDict()
        self.partitions = self._watched  # type: ignore[assignment]  # a dictionary takes other kinds, nobody puts any in
        self._unseen: list[WatchedPartition] = []
        """Those that `look_around` has still to look at; it belongs to the session's requests."""
        self._unnamed: set[WatchedPartition] = set()
        """Those of topics that this broker had not heard of when they were asked for."""
        for key, partition in asked:
            self._ask(key, partition)

    @property
    def read_count(self) -> int:
        return len(self.fresh_news.fresh)

    @property
    def replica_id(self) -> int:
        """Whose it is."""
        return self._replica_id

    def is_of(self, request: "FetchRequest") -> bool:
        # Else another's fetch would count as this follower's.
        return self._replica_id == (request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id)

    def end(self) -> None:
        """Hear of nothing any more, and keep nothing: a connection may know the session for as long as it is open."""
        with self._lock:
            self.fresh_news.end()
            for entry in self._watched.values():
                entry.leave()
            self._watched.clear()
            self._unnamed.clear()
            self._unseen = []
            self.fresh_news.fresh.clear()

    def go_on(self, epoch: int, uses_topic_ids: bool, changes: Changes) -> Asked:
        """As every session's, but what is returned are the partitions that are to be read now."""
        with self._lock:
            if self.epoch == FINAL_EPOCH:
                raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if self.epoch != epoch:
                raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            if self.uses_topic_ids != uses_topic_ids:
                raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
            for key, partition in changes.asked:
                self._ask(key, partition)
            for key in changes.forgotten:
                self._forget(key)
            names = changes.names
            if self._unnamed and names is not None:
                for entry in [each for each in self._unnamed if each.key[1] in names]:
                    self._unnamed.discard(entry)
                    _, topic_id, index = entry.key
                    entry.key = names[topic_id], topic_id, index
            self.epoch = epoch_after(epoch) if self._watched else FINAL_EPOCH
        return self.take()

    def take_in(self, epoch: int, asked: Sequence[tuple[bytes, FetchPartition]]) -> int | None:
        """As `go_on`, of a fetch that names partitions it has read before and forgets none: the next fetch's epoch.

        None, and nothing has changed, if that can't be said of it.
        """
        with self._lock:
            if epoch != self.epoch or epoch <= 0 or self._unnamed or not self.uses_topic_ids:
                return None
            entries = [self._watched.get((topic_id, partition.partition)) for topic_id, partition in asked]
            for entry in entries:
                if entry is None or entry.partition is None:
                    return None
            fresh = self.fresh_news.fresh
            for entry, (_, partition) in zip(entries, asked, strict=True):
                assert entry is not None
                if entry.asked.current_leader_epoch == partition.current_leader_epoch:
                    entry.asked = partition
                else:
                    entry.ask(partition)
                fresh[entry] = None
            self.epoch = epoch_after(epoch)
            return self.epoch

    def take(self) -> Asked:
        """What is fresh, to be read now."""
        return [(entry.key, entry.asked) for entry in self.take_entries()]

    def all_partitions(self) -> Asked:
        """All that are in it, fresh or not."""
        with self._lock:
            return [(entry.key, entry.asked) for entry in self._watched.values()]

    def take_entries(self) -> list[WatchedPartition]:
        """The same, with what is remembered of it."""
        watched, by_id = self._watched, self.uses_topic_ids
        return [
            entry for entry in self.fresh_news.take() if entry is watched.get(entry.key[1:] if by_id else entry.key)
        ]

    def wait(
        self, limits: "ReadLimits", min_bytes: int, connection: "Connection", answer: Callable[[], FetchResponse]
    ) -> DelayedFollowerFetch:
        """A fetch that waits for news."""
        return DelayedFollowerFetch(self.fresh_news, limits, min_bytes, connection, answer)

    def watch(self, key: Key, partition: "Partition | None") -> None:
        """Hear of what changes in the partition from now on, before it is read."""
        entry = self._watched.get(key[1:] if self.uses_topic_ids else key)
        if entry is None:
            return
        if partition is None:
            entry.leave()
        else:
            entry.watch(partition)

    def put_back(self, answers: Iterable[tuple[Key, PartitionData, bool]]) -> None:
        """Keep fresh what has more to tell: (partition, what was read of it, whether the follower has all there is)."""
        by_id = self.uses_topic_ids
        for key, answer, has_all in answers:
            entry = self._watched.get(key[1:] if by_id else key)
            if entry is not None and not (
                has_all
                and answer.error_code == 0
                and answer.high_watermark == entry.high_watermark
                and answer.log_start_offset == entry.log_start_offset
            ):
                self.fresh_news.fresh[entry] = None

    def look_around(self, now_ms: int, lag_time_max_ms: int, broker_epoch: int) -> None:
        """Look at some of the partitions, at all in `REFRESH_MS`, for what nobody tells of. Not under a lock."""
        share = self.fresh_news.refresh_due(now_ms, min(REFRESH_MS, lag_time_max_ms // 4))
        if not share:
            return
        fresh, unseen = self.fresh_news.fresh, self._unseen
        for _ in range(ceil(share * len(self._watched))):
            if not unseen:
                unseen = self._unseen = list(self._watched.values())
            if not unseen:
                return
            entry = unseen.pop()
            if entry not in fresh:
                entry.look_again(broker_epoch)

    def _ask(self, key: Key, partition: FetchPartition) -> None:
        identity: Identity = key[1:] if self.uses_topic_ids else key
        entry = self._watched.get(identity)
        if entry is None:
            entry = self._watched[identity] = WatchedPartition(key, partition, self.fresh_news, self._replica_id)
            if not key[0]:
                self._unnamed.add(entry)
        else:
            entry.ask(partition)
        self.fresh_news.fresh[entry] = None

    def _forget(self, key: Key) -> None:
        entry = self._watched.pop(key[1:] if self.uses_topic_ids else key, None)
        if entry is not None:
            self._unnamed.discard(entry)
            self.fresh_news.fresh.pop(entry, None)
            entry.leave()
