"""Fetch sessions (KIP-227): a consumer that fetches the same partitions again need not name them again.

epoch 0, id 0     a full fetch that asks for a session
epoch n, id s     an incremental fetch: only what changed in the request, and in the answer
epoch -1          no session; with an id, that session ends
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from threading import Lock
from typing import ClassVar, Final, NamedTuple

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTION_AGE_MS: Final = 120_000
"""How long a session is safe from being evicted by another one."""
MAX_PARTITIONS: Final = 200_000
"""Of all sessions together, at half a kilobyte each. Nothing else bounds them: a client may name partitions at will."""

Key = tuple[str, bytes, int]
"""A partition in a fetch: topic, topic id, index. Before v13 the id is zero; later the id says which topic, and the
name is what this broker calls it, empty where it does not know."""

Identity = Key | tuple[bytes, int]
"""What a session knows a partition by: from v13 on without the name, which goes when the topic is deleted."""

Asked = list[tuple[Key, FetchPartition]]
"""All partitions that a fetch asks for, in the order in which they are read."""


class Changes(NamedTuple):
    """What a request says of its partitions: all of them in a full fetch, in an incremental one what is different."""

    asked: Sequence[tuple[Key, FetchPartition]] = ()
    forgotten: Iterable[Key] = ()
    """Their names do not matter where they have ids."""
    names: Mapping[bytes, str] | None = None
    """Those of topic ids, for topics that were asked for before this broker had heard of them."""


def epoch_after(epoch: int) -> int:
    """The epoch of a session's next request."""
    return 1 if epoch == 2**31 - 1 else epoch + 1


class FetchedPartition:
    """What the session remembers of one partition: what was asked, and what was last answered."""

    __slots__ = ("asked", "high_watermark", "key", "log_start_offset")

    def __init__(self, key: Key, asked: FetchPartition) -> None:
        self.key = key
        """With the name that the topic had when this broker first knew it: a deleted one keeps it."""
        self.asked = asked
        self.high_watermark = -1
        self.log_start_offset = -1

    def ask(self, partition: FetchPartition) -> None:
        """It is asked for otherwise. In another leader epoch nobody knows what the client took of earlier answers."""
        if partition.current_leader_epoch != self.asked.current_leader_epoch:
            self.high_watermark = self.log_start_offset = -1
        self.asked = partition

    def must_show(self, answer: PartitionData, has_records: bool) -> bool:
        """Whether an incremental answer has news of this partition; remembers what the client will know."""
        refused = bool(answer.error_code) or answer.diverging_epoch.epoch >= 0
        show = has_records or refused
        if answer.high_watermark != self.high_watermark:
            show = True
            self.high_watermark = answer.high_watermark
        if answer.log_start_offset != self.log_start_offset:
            show = True
            self.log_start_offset = answer.log_start_offset
        if refused:
            # Show it again next time even if nothing else changes: the client must see that the error is gone, and has
            # taken nothing else of this answer.
            self.high_watermark = -1
        return show


class FetchSession:
    """One client's session: its partitions, in the order in which they are read.

    Threads: any, as a client may use its session on two connections; `_lock` guards the partitions and the epoch, and
    that of the cache `last_used_ms`.
    """

    __slots__ = ("_lock", "created_ms", "epoch", "from_follower", "id", "last_used_ms", "partitions", "uses_topic_ids")

    is_watched: ClassVar = False
    """Whether it knows by itself which partitions have news: `FollowerFetchSession`."""

    def __init__(
        self,
        session_id: int,
        asked: Iterable[tuple[Key, FetchPartition]],
        *,
        from_follower: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id: Final = session_id
        self.from_follower: Final = from_follower
        self.uses_topic_ids: Final = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms
        self.epoch = INITIAL_EPOCH + 1
        self.partitions: OrderedDict[Identity, FetchedPartition] = OrderedDict(
            [(key[1:] if uses_topic_ids else key, FetchedPartition(key, partition)) for key, partition in asked]
        )
        self._lock = Lock()

    @property
    def read_count(self) -> int:
        """How many of its partitions the next fetch reads."""
        return len(self.partitions)

    def is_of(self, request: FetchRequest) -> bool:
        """Whether who asks may go on with it. A consumer's session is anybody's who knows its id, as in Kafka."""
        return True

    def end(self) -> None:
        """It is over: nobody goes on with it."""

    def go_on(self, epoch: int, uses_topic_ids: bool, changes: Changes) -> Asked:
        """Take in an incremental request: all that is asked for now; with nothing left the session is over.

        Looking at the epoch and changing the partitions are one step, so that of two requests on two connections the
        earlier one never undoes what the later one said. Raises BrokerError FETCH_SESSION_ID_NOT_FOUND,
        INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR; then nothing has changed.
        """
        with self._lock:
            if self.epoch == FINAL_EPOCH:
                raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if self.epoch != epoch:
                raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            if self.uses_topic_ids != uses_topic_ids:
                raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
            partitions = self.partitions
            for key, partition in changes.asked:
                identity: Identity = key[1:] if uses_topic_ids else key
                known = partitions.get(identity)
                if known is None:
                    partitions[identity] = FetchedPartition(key, partition)
                else:
                    known.ask(partition)
            for key in changes.forgotten:
                partitions.pop(key[1:] if uses_topic_ids else key, None)
            names = changes.names
            if names is not None:
                for known in partitions.values():
                    if not known.key[0]:
                        _, topic_id, index = known.key
                        known.key = names.get(topic_id, ""), topic_id, index
            self.epoch = epoch_after(epoch) if partitions else FINAL_EPOCH
            return [(known.key, known.asked) for known in partitions.values()]

    def news(self, answers: Iterable[tuple[Key, PartitionData, int]], epoch: int) -> list[tuple[Key, PartitionData]]:
        """What an answer has to show of these partitions, each with the size of its records in bytes.

        A partition with records goes to the end, so that the others get their turn. Raises BrokerError
        INVALID_FETCH_SESSION_EPOCH when the session, by another request, is beyond the `epoch` of this answer.
        """
        with self._lock:
            if self.epoch != epoch:
                raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            shown: list[tuple[Key, PartitionData]] = []
            by_id = self.uses_topic_ids
            for key, answer, size_bytes in answers:
                identity: Identity = key[1:] if by_id else key
                known = self.partitions.get(identity)
                if known is None:
                    continue
                if known.must_show(answer, size_bytes > 0):
                    shown.append((key, answer))
                if size_bytes:
                    self.partitions.move_to_end(identity)
            return shown


class FetchSessions:
    """The sessions of this broker: at most `max_sessions`, with `max_partitions` together, or a request's more.

    Threads: any; `_lock` guards all attributes, and is never held over reading.
    """

    def __init__(
        self,
        max_sessions: int,
        now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
        max_partitions: int = MAX_PARTITIONS,
    ) -> None:
        self._max_sessions = max_sessions
        self._max_partitions = max_partitions
        self._now_ms = now_ms
        # A process that this broker is a part of keeps `random` for itself.
        self._dice = Random()
        self._lock = Lock()
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    @property
    def size(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """How many partitions all sessions hold."""
        with self._lock:
            return self._count_partitions()

    def partition_count_of(self, request: FetchRequest) -> int:
        """How many partitions the session has to be read that the request goes on with, if it does."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return 0
        session = self.session_of(request)
        return 0 if session is None else session.read_count

    def session_of(self, request: FetchRequest) -> FetchSession | None:
        """The session that the request names, if there is one."""
        with self._lock:
            return self._sessions.get(request.session_id)

    def end(self, request: FetchRequest) -> FetchSession | None:
        """End the session that the request names: what it was, if there was one."""
        with self._lock:
            ended = self._sessions.pop(request.session_id, None)
        if ended is not None:
            ended.end()
        return ended

    def resume(
        self, request: FetchRequest, uses_topic_ids: bool, changes: Changes
    ) -> tuple[FetchSession | None, Asked]:
        """The session that the request goes on with, and all partitions that it asks for.

        None for a full fetch, which ends the session it names, and where no partition is left. Raises BrokerError
        FETCH_SESSION_ID_NOT_FOUND, also where the session is ended because it has grown beyond what there is room for,
        INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
        """
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self.end(request)
            return None, list(changes.asked)
        with self._lock:
            session = self._sessions.get(request.session_id)
        if session is None or not session.is_of(request):
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        size = len(session.partitions)
        asked = session.go_on(epoch, uses_topic_ids, changes)
        with self._lock:
            if len(session.partitions) > size and not self._has_room_beside(session):
                if session.id in self._sessions:
                    self._evict(session)
                raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if session.epoch == FINAL_EPOCH:
                self._sessions.pop(session.id, None)
                return None, asked
            session.last_used_ms = self._now_ms()
            # It may have been ended, or evicted, meanwhile.
            if session.id in self._sessions:
                self._sessions.move_to_end(session.id)
        return session, asked

    def touch(self, session: FetchSession) -> bool:
        """Note that it is used; False if it has been ended, or evicted."""
        with self._lock:
            if self._sessions.get(session.id) is not session:
                return False
            session.last_used_ms = self._now_ms()
            self._sessions.move_to_end(session.id)
            return True

    def open(
        self,
        asked: Asked,
        *,
        from_follower: bool,
        uses_topic_ids: bool,
        new: Callable[..., FetchSession] = FetchSession,
    ) -> FetchSession | None:
        """A new session for these partitions, or None when there is no room: the client then goes on without.

        `new` makes it, of whatever kind.
        """
        with self._lock:
            now_ms = self._now_ms()
            if not self._has_room_for(len(asked), from_follower, now_ms):
                return None
            if len(self._sessions) >= self._max_sessions and not self._evict_for(len(asked), from_follower, now_ms):
                return None
            session_id = self._dice.randrange(1, 2**31)
            while session_id in self._sessions:
                session_id = self._dice.randrange(1, 2**31)
            session = self._sessions[session_id] = new(
                session_id, asked, from_follower=from_follower, uses_topic_ids=uses_topic_ids, now_ms=now_ms
            )
            return session

    def _count_partitions(self) -> int:
        return sum([len(session.partitions) for session in self._sessions.values()])

    def _has_room_beside(self, session: FetchSession) -> bool:
        """Whether there is still room for all, now that this one has grown."""
        return self._has_room_for(0, session.from_follower, self._now_ms(), beside=session)

    def _has_room_for(self, size: int, privileged: bool, now_ms: int, beside: FetchSession | None = None) -> bool:
        """Whether so many partitions find room, if need be that of sessions that nobody has used for long.

        Followers get that of any client: without a session each of their fetches would read all they follow.
        """
        room = self._max_partitions - self._count_partitions()
        for session in list(self._sessions.values()):
            if room >= size:
                break
            is_stale = now_ms - session.last_used_ms > EVICTION_AGE_MS
            if session is not beside and (is_stale or (privileged and not session.from_follower)):
                room += len(session.partitions)
                self._evict(session)
        return room >= size

    def _evict_for(self, size: int, privileged: bool, now_ms: int) -> bool:
        """Make room by KIP-227's rules: the stalest if it is stale, else a smaller or less privileged older one."""
        if not self._sessions:
            return False
        stalest = next(iter(self._sessions.values()))
        if now_ms - stalest.last_used_ms > EVICTION_AGE_MS:
            return self._evict(stalest)
        evictable = [
            session
            for session in self._sessions.values()
            if (privileged and not session.from_follower)
            or (session.from_follower <= privileged and now_ms - session.created_ms > EVICTION_AGE_MS)
        ]
        if not evictable:
            return False
        smallest = min(evictable, key=lambda session: (session.from_follower, len(session.partitions)))
        if privileged and not smallest.from_follower:
            return self._evict(smallest)
        return len(smallest.partitions) < size and self._evict(smallest)

    def _evict(self, session: FetchSession) -> bool:
        del self._sessions[session.id]
        session.end()
        return True
