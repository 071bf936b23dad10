"""Which partitions of a follower's fetch session have news: the others cost a fetch nothing.

A follower has thousands of partitions in its session, and a fetch brings data of a few. So each partition in a session
is watched for as long as it is in it: whatever is appended, committed or decided there makes it fresh, and an answer
looks at what is fresh. It stays fresh until a read finds that there is nothing to tell.

Changes that nobody tells of (a log's start that retention moved) are found by `refresh_due`, every now and then; then
the leader is told too that the follower goes on fetching what it did not name.
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from kavka.broker.partitions.fetch_sessions import FetchedPartition, Key
from kavka.broker.partitions.log_reading import has_same_end
from kavka.broker.partitions.partition_waits import committed
from kavka.protocol.errors import BrokerError
from kavka.protocol.messages.fetch import FetchPartition

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition

REFRESH_MS: Final = 2_000
"""How often all of a session's partitions are looked at."""
LEAST_SHARE: Final = 1 / 32
"""Of them, to be looked at at once."""


class Waiting(Protocol):
    """A fetch that waits for news."""

    def heard_of(self, entry: "WatchedPartition") -> None:
        """There may be something to read now. Any thread, with no lock held."""


class WatchedPartition(FetchedPartition):
    """One partition in a follower's session, which hears of its changes (`partition_waits.Follows`).

    Threads: `partition` is set under the lock of `news`, `key` under the session's.
    """

    __slots__ = ("news", "partition", "replica_id")

    def __init__(self, key: Key, asked: FetchPartition, news: "SessionNews", replica_id: int) -> None:
        super().__init__(key, asked)
        self.news: Final = news
        self.replica_id: Final = replica_id
        self.partition: Partition | None = None

    def watch(self, partition: "Partition") -> None:
        """Hear of this partition's changes from now on; before it is read, so that none is missed.

        Not where the session is over, which a fetch that waited may learn later: nobody would have it leave again.
        """
        if self.partition is partition:
            return
        self.leave()
        sessions = partition.sessions
        for other in list(sessions):
            # A session that its follower has lost is not ended by anybody: here another one takes its place.
            if isinstance(other, WatchedPartition) and other.replica_id == self.replica_id:
                other.leave()
                other.news.fresh[other] = None
        with self.news.lock:
            if not self.news.is_over:
                self.partition = partition
                sessions[self] = None

    def leave(self) -> None:
        """Hear of no more changes."""
        # Another session of the follower may do so just while this one's begins to watch.
        with self.news.lock:
            partition, self.partition = self.partition, None
            if partition is not None:
                partition.sessions.pop(self, None)

    def end_moved(self) -> None:
        """See Follows."""
        self.news.add(self)

    def is_news(self) -> None:
        """See Follows."""
        self.news.fresh[self] = None

    def has_all(self, hosted: "Mapping[tuple[str, int], Partition]") -> bool:
        """Whether the follower asks for what comes behind the leader's end, as one whose history is the leader's."""
        partition, asked = self.partition, self.asked
        if partition is None or hosted.get((self.key[0], self.key[2])) is not partition:
            return False
        log, role = partition.log, partition.role
        return (
            log is not None
            and role.is_leader
            and role.leader_epoch == asked.current_leader_epoch
            and self.replica_id in role.replicas
            and log.log_end_offset == asked.fetch_offset
            and has_same_end(log, asked)
        )

    def was_told(self) -> bool:
        """Whether the follower knows where the leader's log begins, and what is committed."""
        log = None if self.partition is None else self.partition.log
        return (
            log is not None
            and log.high_watermark == self.high_watermark
            and log.log_start_offset == self.log_start_offset
        )

    def look_again(self, broker_epoch: int) -> None:
        """See whether what was told is out of date; if not, the follower has all, and goes on to fetch."""
        partition, asked = self.partition, self.asked
        log = None if partition is None else partition.log
        if partition is not None and log is not None:
            role, end_offset = partition.role, log.log_end_offset
            if (
                role.is_leader
                and role.leader_epoch == asked.current_leader_epoch
                and self.replica_id in role.replicas
                and end_offset == asked.fetch_offset
                and log.high_watermark == self.high_watermark
                and log.log_start_offset == self.log_start_offset
            ):
                with suppress(BrokerError):
                    if partition.follower_fetched(
                        self.replica_id,
                        asked.fetch_offset,
                        leader_epoch=role.leader_epoch,
                        leader_end_offset=end_offset,
                        log_start_offset=asked.log_start_offset,
                        broker_epoch=broker_epoch,
                    ):
                        committed((partition,))
                    return
        self.news.fresh[self] = None


class SessionNews:
    """The fresh partitions of one session.

    Threads: any; each access to the dictionaries is one operation, atomic by itself. An entry leaves `fresh` before it
    is read, so that a change meanwhile makes it fresh again. `_refreshed_ms` belongs to the session's requests. `lock`
    is a leaf: that of its entries' partitions, and of `is_over`.
    """

    __slots__ = ("_refreshed_ms", "fresh", "is_over", "lock", "waiting")

    def __init__(self, now_ms: int) -> None:
        """`now_ms`: of a monotonic clock, as for `refresh_due`."""
        self.fresh: Final[dict[WatchedPartition, None]] = {}
        self.waiting: Final[dict[Waiting, None]] = {}
        """Whoever waits for news; one at most, unless the follower uses its session twice at a time."""
        self.lock: Final = threading.Lock()
        self.is_over = False
        self._refreshed_ms = now_ms

    def end(self) -> None:
        """Nobody begins to watch any more."""
        with self.lock:
            self.is_over = True

    def add(self, entry: WatchedPartition) -> None:
        """The partition is fresh. Any thread, with no lock held."""
        self.fresh[entry] = None
        if self.waiting:
            for waiting in list(self.waiting):
                waiting.heard_of(entry)

    def take(self) -> list[WatchedPartition]:
        """All that is fresh, to be read now; those come first that have been so for longest."""
        taken = list(self.fresh)
        for entry in taken:
            self.fresh.pop(entry, None)
        return taken

    def refresh_due(self, now_ms: int, every_ms: int) -> float:
        """Which share of the partitions is to be looked at now, so that it is all of them in that time; a few at once.

        To look at all at a time would hold up, for milliseconds, whatever else the thread has to do.
        """
        share = (now_ms - self._refreshed_ms) / max(every_ms, 1)
        if share < LEAST_SHARE:
            return 0.0
        self._refreshed_ms = now_ms
        return min(share, 1.0)
