"""The partitions that one fetcher follows, and what the next fetch has to say of them.

A fetch costs what has changed: partitions without news are in the leader's session, neither named nor looked at.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.broker.replication.fetch_state import FetchState, Phase, Position, beginning
from kavka.broker.replication.follower_session import FollowerSession
from kavka.protocol.errors import ErrorCode
from kavka.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.replication.throttle import ReplicationThrottle
    from kavka.storage.partition_log import PartitionLog

Key = tuple[str, int]
"""(topic, index)"""


class Told(NamedTuple):
    """What the leader's session knows of a partition."""

    topic_id: bytes
    fetch_offset: int
    last_fetched_epoch: int
    leader_epoch: int
    log_start_offset: int


class Followed:
    """One partition in one leader epoch; followed anew, it is another object.

    Threads: all but `key`, `partition` and `log` belong to the lock of its `FollowedPartitions`, `told_error` to the
    fetcher.
    """

    __slots__ = ("is_throttled", "key", "log", "partition", "resume_ms", "state", "told", "told_error")

    def __init__(self, partition: "Partition", log: "PartitionLog", state: FetchState) -> None:
        self.partition: Final = partition
        self.log: Final = log
        self.key: Final = (partition.topic, partition.index)
        self.state = state
        self.told: Told | None = None
        self.told_error: ErrorCode | None = None
        """The operator knows of it; None: since then something was copied."""
        self.resume_ms: float | None = None
        """Left out until then."""
        self.is_throttled = False

    @property
    def is_ready(self) -> bool:
        return self.state.phase is Phase.FETCHING and self.resume_ms is None and not self.is_throttled


class FetchPlan(NamedTuple):
    """What the next fetch says."""

    session_id: int
    session_epoch: int
    partitions: list[tuple[Key, Told]]
    forgotten: list[tuple[str, bytes, int]]
    uses_topic_ids: bool
    """Whether all of the topics have ids: without, Fetch v12 is the last version that will do."""


def position_of(log: "PartitionLog") -> Position:
    """Where the log stands."""
    return Position(log.log_end_offset, log.log_start_offset, log.high_watermark, log.epochs.latest_epoch)


class FollowedPartitions:
    """Threads: any; `_lock` guards all attributes and what `Followed` says is its; under it only a throttle's
    lock is taken. `changed` is of it.

    `steps` is held by the fetcher while it appends to a log or cuts it, never while it waits for the leader: who has a
    partition handed from one fetcher to another waits for that step, which else would be taken beside the other's,
    and cut what the leader knows to be here. The log's own guard does not help: it is the same leader epoch.

    While `throttle` is exceeded, throttled partitions that are behind are not fetched (KIP-73).
    """

    def __init__(self, throttle: "ReplicationThrottle | None" = None) -> None:
        self._throttle: Final = throttle
        self._held_back = 0
        """How many partitions the throttle keeps out."""
        self._lock = threading.Lock()
        self.changed: Final = threading.Condition(self._lock)
        self.steps: Final = threading.Lock()
        self.orders = 0
        """How often somebody was to be followed: who saw that before it planned knows whether to wait."""
        self._entries: dict[Key, Followed] = {}
        self._session: Final = FollowerSession()
        self._names_all = False
        """Whether the next fetch is to be answered for each partition, with news or without."""
        self._fresh: dict[Key, None] = {}
        """Those of which the next fetch may have to say something."""
        self._forgotten: dict[Key, bytes] = {}
        """Those that the leader's session has and must not have any more, with their topics' ids."""
        self._resuming: list[tuple[float, int, Followed]] = []
        self._pauses = 0
        self._topics: dict[bytes, tuple[str, int]] = {}
        """Topic id -> its name, and how many of its partitions are followed."""

    def __len__(self) -> int:
        return len(self._entries)

    def follow(self, partition: "Partition", log: "PartitionLog", leader_epoch: int) -> Followed:
        """Begin to follow, or under another epoch; what is followed under this one already goes on.

        Between two `steps`, which the caller sees to.
        """
        with self._lock:
            self.orders += 1
            key = (partition.topic, partition.index)
            known = self._entries.get(key)
            if known is not None:
                if known.state.leader_epoch == leader_epoch and known.log is log:
                    return known
                self._remove(key)
            followed = Followed(partition, log, beginning(partition.topic_id, leader_epoch, position_of(log)))
            self._entries[key] = followed
            self._topics[partition.topic_id] = (partition.topic, self._count(partition.topic_id) + 1)
            self._fresh[key] = None
            # Whether its history is the leader's is to be said: that nothing is said of it proves nothing (`proving`).
            self._names_all = self._names_all or log.is_unproven
            self.changed.notify_all()
            return followed

    def unfollow(self, keys: Iterable[Key]) -> list[Followed]:
        """Those of the partitions that were followed here. What is under way for them is dropped when it comes.

        Waits for the fetcher's step, if there is one.
        """
        with self.steps, self._lock:
            return [followed for key in keys if (followed := self._remove(key)) is not None]

    def follows(self, followed: Followed) -> bool:
        """Whether this is what is followed of the partition now."""
        with self._lock:
            return self._entries.get(followed.key) is followed

    def all(self) -> list[Followed]:
        """As they are now."""
        with self._lock:
            return list(self._entries.values())

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic's name, if partitions of it are followed."""
        known = self._topics.get(topic_id)
        return known[0] if known is not None else None

    def truncating(self) -> list[Followed]:
        """Those that have to be cut to their high watermarks before they are fetched."""
        with self._lock:
            return [
                followed
                for key in self._fresh
                if (followed := self._entries[key]).state.phase is Phase.TRUNCATING and followed.resume_ms is None
            ]

    def plan(self, now_ms: float) -> FetchPlan | None:
        """The next fetch; None while there is nobody to ask for."""
        with self._lock:
            self._resume(now_ms)
            self._hold_back()
            session = self._session
            if self._names_all:
                self._names_all = False
                session.lost()
            if session.is_full:
                self._forgotten.clear()
                for followed in self._entries.values():
                    followed.told = None
                wanted: Iterable[Key] = self._entries
            else:
                wanted = list(self._fresh)
            told = list(self._tell(wanted))
            self._fresh = {key: None for key in self._fresh if not self._entries[key].is_ready}
            named = {(key, news.topic_id) for key, news in told}
            forgotten = [
                (topic, topic_id, index)
                for (topic, index), topic_id in self._forgotten.items()
                if ((topic, index), topic_id) not in named
            ]
            if not told and (session.is_full or (not forgotten and not self._is_anything_told())):
                return None
            self._forgotten.clear()
            return FetchPlan(session.id, session.epoch, told, forgotten, ZERO_UUID not in self._topics)

    def answered(self, session_id: int) -> None:
        """The leader answered the plan."""
        with self._lock:
            self._session.answered(session_id)

    def refused(self, code: int) -> None:
        """The leader refused the whole fetch."""
        with self._lock:
            self._session.refused(code)

    def lost(self) -> None:
        """No answer came."""
        with self._lock:
            self._session.lost()

    def asked_for(self, key: Key) -> tuple[Followed, FetchState] | None:
        """The partition that an answer is for, as it was asked for; None where that is out of date."""
        with self._lock:
            followed = self._entries.get(key)
            if followed is None or followed.told is None or not followed.is_ready:
                return None
            state, told = followed.state, followed.told
            if (told.fetch_offset, told.leader_epoch) != (state.fetch_offset, state.leader_epoch):
                return None
            return followed, state

    def advance(self, followed: Followed, state: FetchState, *, to_end: bool = False) -> None:
        """Go on from `state`. `to_end`: others come first in the next full fetch, as this one had its turn."""
        with self._lock:
            key = followed.key
            if self._entries.get(key) is not followed:
                return
            followed.state = state
            self._fresh[key] = None
            if to_end and self._session.is_full:
                self._entries[key] = self._entries.pop(key)

    def pause(self, followed: Followed, until_ms: float) -> None:
        """Leave the partition out until then."""
        with self._lock:
            if self._entries.get(followed.key) is not followed or followed.resume_ms is not None:
                return
            followed.resume_ms = until_ms
            self._pauses += 1
            heappush(self._resuming, (until_ms, self._pauses, followed))
            self._fresh[followed.key] = None

    def give_up(self, followed: Followed) -> bool:
        """Follow no more, until ordered anew; False when that is out of date."""
        with self._lock:
            return self._entries.get(followed.key) is followed and self._remove(followed.key) is not None

    def wait(self, now_ms: float, timeout_ms: float, orders_seen: int, is_over: Callable[[], bool]) -> None:
        """Wait for more `orders` than were seen, or for the end of a pause; `timeout_ms` at most."""
        with self._lock:
            if self._resuming:
                timeout_ms = min(timeout_ms, self._resuming[0][0] - now_ms)
        self.wait_out(timeout_ms, orders_seen, is_over)

    def wait_out(self, timeout_ms: float, orders_seen: int, is_over: Callable[[], bool]) -> None:
        """As `wait`, whatever pauses end."""
        with self._lock:
            if timeout_ms > 0 and self.orders == orders_seen and not is_over():
                self.changed.wait(timeout_ms / 1000)

    def _count(self, topic_id: bytes) -> int:
        known = self._topics.get(topic_id)
        return known[1] if known is not None else 0

    def _remove(self, key: Key) -> Followed | None:
        followed = self._entries.pop(key, None)
        if followed is not None:
            self._fresh.pop(key, None)
            topic_id = followed.state.topic_id
            self._topics[topic_id] = (key[0], self._count(topic_id) - 1)
            if not self._count(topic_id):
                del self._topics[topic_id]
            self._held_back -= followed.is_throttled
            if followed.told is not None:
                self._forgotten[key] = followed.told.topic_id
        return followed

    def _tell(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Told]]:
        for key in keys:
            followed = self._entries[key]
            if not followed.is_ready:
                if followed.told is not None:
                    self._forgotten[key] = followed.told.topic_id
                    followed.told = None
                continue
            state = followed.state
            news = Told(
                state.topic_id,
                state.fetch_offset,
                state.last_fetched_epoch,
                state.leader_epoch,
                state.log_start_offset,
            )
            if news != followed.told:
                followed.told = news
                yield key, news

    def _is_anything_told(self) -> bool:
        return any(followed.told is not None for followed in self._entries.values())

    def _resume(self, now_ms: float) -> None:
        while self._resuming and self._resuming[0][0] <= now_ms:
            followed = heappop(self._resuming)[2]
            followed.resume_ms = None

    def _hold_back(self) -> None:
        throttle = self._throttle
        if throttle is None or not (throttle.is_limited or self._held_back):
            return
        is_exceeded = throttle.is_exceeded()
        for key, followed in self._entries.items():
            is_throttled = is_exceeded and not followed.state.is_in_sync and throttle.concerns(followed.log)
            if is_throttled is not followed.is_throttled:
                followed.is_throttled = is_throttled
                self._held_back += 1 if is_throttled else -1
                self._fresh[key] = None
