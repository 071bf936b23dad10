"""The way of a follower's fetch that looks like the one before it.

A follower asks its leader again and again; in its session it names no more than partitions whose offsets have moved.
The connection remembers the bytes around these. What is named is read by hand, and who has all that there is costs a
look at the log's end, the note of how far he is, and an entry among those who wait. Whatever is unusual takes the
ordinary way, before anything has changed.

    request   head (8 bytes) | front: client, limits, session id | session epoch i32 | topics | tail: nothing forgotten,
              no rack, who asks
"""

import struct
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.log_reading import ReadLimits
from kavka.broker.requests.prepared import HEAD_SIZE_BYTES, Prepared, read_head
from kavka.broker.security.acl import CLUSTER, Operation
from kavka.broker.waiting.awaited_fetch import AwaitedFetch
from kavka.broker.waiting.delayed_fetch import FEW_PARTITIONS
from kavka.protocol.codec import encode
from kavka.protocol.headers import decode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.partitions.follower_fetch_session import FollowerFetchSession
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

FETCH_KEY: Final = 1
OLDEST_VERSION: Final = 15
"""From here on the replica's id and epoch stand at the end."""
MAX_SIZE_BYTES: Final = 4096
SESSION_EPOCH_PLACE: Final = 17
"""In the body, behind what is waited for, the limits, the isolation level and the session's id."""
MOST_IN_A_BYTE: Final = 127
TOPIC_ID_BYTES: Final = 16

_INT: Final = struct.Struct(">i").unpack_from
_PARTITION: Final = struct.Struct(">iiqiqiB")
_read_partition: Final = _PARTITION.unpack_from

Asked = list[tuple[bytes, FetchPartition]]
"""Topic ids, and what is asked of a partition each."""


class PreparedFetches(Prepared):
    """What one connection remembers of its follower's fetches: the session, and the bytes around what it names."""

    __slots__ = (
        "_broker_epoch",
        "_front",
        "_generation",
        "_key_version",
        "_limits",
        "_max_wait_ms",
        "_services",
        "_session",
        "_tail",
    )

    def __init__(
        self,
        services: "Services",
        session: "FollowerFetchSession",
        limits: ReadLimits,
        request: FetchRequest,
        front: bytes,
        tail: bytes,
        generation: object,
    ) -> None:
        """`generation`: of the rights by which the fetch was admitted."""
        self._services = services
        self._generation = generation
        self._session: FollowerFetchSession | None = session
        self._limits = limits
        self._max_wait_ms = request.max_wait_ms
        self._broker_epoch = request.replica_state.replica_epoch
        self._front = front
        self._tail = tail
        self._key_version = FETCH_KEY << 16 | limits.version

    def is_small(self, frame: memoryview) -> bool:
        # The handler hands on what has much to read.
        return True

    def forget(self) -> None:
        self._session = None

    def knows(self, session: "FollowerFetchSession", request: FetchRequest) -> bool:
        """Whether the next fetch is expected to look as this one, and the same rights to count."""
        return (
            self._session is session
            and self._generation is self._services.generation
            and self._max_wait_ms == request.max_wait_ms
            and self._broker_epoch == request.replica_state.replica_epoch
        )

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> AwaitedFetch | None:
        session = self._session
        if session is None or frame.nbytes > MAX_SIZE_BYTES or self._generation is not self._services.generation:
            return None
        if not may_wait and session.read_count > FEW_PARTITIONS:
            return None
        data = frame.tobytes()
        front, tail = self._front, self._tail
        place = HEAD_SIZE_BYTES + len(front)
        end = len(data) - len(tail)
        if end <= place + 4 or data[HEAD_SIZE_BYTES:place] != front or data[end:] != tail:
            return None
        key_version, correlation_id = read_head(data)
        asked = _asked(data, place + 4, end)
        if key_version != self._key_version or asked is None:
            return None
        (epoch,) = _INT(data, place)
        if not self._services.fetch_sessions.touch(session):
            self._session = None
            return None
        next_epoch = session.take_in(epoch, asked)
        if next_epoch is None:
            return None
        return AwaitedFetch(
            self._services, session, self._limits, correlation_id, self._max_wait_ms, self._broker_epoch, next_epoch
        )


def prepare_fetch(
    request: FetchRequest, context: "Context", services: "Services", session: "FollowerFetchSession", limits: ReadLimits
) -> Prepared | None:
    """What to try first with the next fetch, if that can be known: None to leave it as it is."""
    frame = context.frame
    version = context.api_version
    if (
        frame is None
        or version < OLDEST_VERSION
        or min(request.min_bytes, limits.max_bytes) != 1
        or request.max_wait_ms <= 0
        or request.rack_id
        or limits.wants_committed
        or limits.replica_id != session.replica_id
    ):
        return None
    authorizer = context.session.authorizer
    if authorizer is not None and (
        authorizer.audits_everything or not context.allows(Operation.CLUSTER_ACTION, CLUSTER, quiet=True)
    ):
        return None
    known = context.session.prepared.get(FETCH_KEY)
    if isinstance(known, PreparedFetches) and known.knows(session, request):
        return None
    topics, request.topics = request.topics, []
    forgotten, request.forgotten_topics_data = request.forgotten_topics_data, []
    was = request.session_id
    request.session_id = session.id
    try:
        emptied = encode(request, version)
    finally:
        request.topics, request.forgotten_topics_data, request.session_id = topics, forgotten, was
    start = decode_request_header(frame).body_offset
    front = frame[HEAD_SIZE_BYTES:start].tobytes() + emptied[:SESSION_EPOCH_PLACE]
    tail = emptied[SESSION_EPOCH_PLACE + 5 :]
    return PreparedFetches(services, session, limits, request, front, tail, context.generation)


def _asked(data: bytes, place: int, end: int) -> Asked | None:
    """What stands between session epoch and tail; None unless it is written the plain way."""
    asked: Asked = []
    topics = data[place] - 1
    place += 1
    if not 0 <= topics < MOST_IN_A_BYTE:
        return None
    for _ in range(topics):
        if place + TOPIC_ID_BYTES >= end:
            return None
        topic_id = data[place : place + TOPIC_ID_BYTES]
        partitions = data[place + TOPIC_ID_BYTES] - 1
        place += TOPIC_ID_BYTES + 1
        if not 0 <= partitions < MOST_IN_A_BYTE or place + partitions * _PARTITION.size >= end:
            return None
        for _ in range(partitions):
            index, leader_epoch, offset, last_epoch, start, most_bytes, tags = _read_partition(data, place)
            place += _PARTITION.size
            if tags:
                return None
            partition = FetchPartition(
                partition=index,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_epoch,
                log_start_offset=start,
                partition_max_bytes=most_bytes,
            )
            asked.append((topic_id, partition))
        if data[place]:
            return None
        place += 1
    return asked if place == end else None
