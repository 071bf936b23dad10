"""The way of a request of a classic group's member that looks like the one before it: JoinGroup, SyncGroup, Heartbeat.

A member says the same of itself in each rebalance; but for the correlation id and the generation these requests are the
same bytes. A connection remembers the last one of each API that repeated itself, and what it was decoded to. The next
such request goes straight to the group's shard, which decides as ever. The reply that the shard keeps while a member
waits and the member's place among its connection's answers are one object (`MemberAnswer`); a heartbeat is answered at
once.

    request   head (key, version, correlation id: 8 bytes) | front: client id, group | generation i32, not in JoinGroup
              | tail
"""

import logging
import struct
from collections.abc import Callable
from functools import cache
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kavka.broker.coordination.clients import client_of
from kavka.broker.requests.prepared import HEAD_SIZE_BYTES, read_head
from kavka.broker.requests.prepared_group import OfGroup, front_of
from kavka.broker.waiting.short_answer import ShortAnswer
from kavka.protocol.codec import encode, encoder
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import ResponseHead
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kavka.protocol.messages.join_group import JoinGroupRequest
from kavka.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.network.connection import Connection
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services
    from kavka.coordinator.group.group import Client
    from kavka.protocol.schema import Response

JOIN_GROUP_KEY: Final = 11
HEARTBEAT_KEY: Final = 12
MAX_SIZE_BYTES: Final = 4096
"""What a connection may have remembered is bounded by this."""
GENERATION_SIZE_BYTES: Final = 4

_GENERATION: Final = struct.Struct(">i").unpack_from

Request: TypeAlias = JoinGroupRequest | SyncGroupRequest | HeartbeatRequest
Ask: TypeAlias = "Callable[[Any, Client, Services, Callable[[Any], object]], None]"
"""(request, client, services, answer): has the group's shard decide, and `answer(response)` called once. Any thread."""

log = logging.getLogger(__name__)


class RepeatedByMember(OfGroup):
    """What one connection remembers of a member's requests to one API.

    `_request` is used for each of them, one after the other: a shard keeps nothing of it but what never changes.
    """

    __slots__ = ("_client", "_key_version", "_request", "_rights_generation", "_services", "_tail", "_tail_place")

    def __init__(
        self, request: Request, client: "Client", front: bytes, frame: memoryview, services: "Services", rights: object
    ) -> None:
        """`rights`: the generation of those by which the request was admitted."""
        super().__init__(request.group_id, front, services.groups, frame.nbytes)
        self._request: Any = request
        self._client = client
        self._services = services
        self._rights_generation = rights
        (self._key_version, _) = read_head(frame)
        has_generation = frame[1] != JOIN_GROUP_KEY
        self._tail_place = HEAD_SIZE_BYTES + len(front) + (GENERATION_SIZE_BYTES if has_generation else 0)
        self._tail = frame[self._tail_place :].tobytes()

    def forget(self) -> None:
        self._request = None

    def matches(self, frame: memoryview) -> bool:
        """Whether a request is the remembered one, but for correlation id and generation, and the same rights count."""
        return self._rights_generation is self._services.generation and self._correlation_id(frame) is not None

    def _correlation_id(self, frame: memoryview) -> int | None:
        """That of a request that is the remembered one but for it and the generation, which is taken over."""
        # A view is compared, and read, at twice the cost of copying these few bytes first.
        data = frame.tobytes()
        correlation_id: int
        key_version, correlation_id = read_head(data)
        front, place, request = self._front, self._tail_place, self._request
        front_end = HEAD_SIZE_BYTES + len(front)
        if (
            request is None
            or key_version != self._key_version
            or data[place:] != self._tail
            or data[HEAD_SIZE_BYTES:front_end] != front
        ):
            return None
        if place > front_end:
            (request.generation_id,) = _GENERATION(data, front_end)
        return correlation_id


class RepeatedWaits(RepeatedByMember):
    """JoinGroup and SyncGroup: whoever ends the wait answers."""

    __slots__ = ("_ask", "encode", "head")

    def __init__(
        self,
        request: Request,
        client: "Client",
        front: bytes,
        frame: memoryview,
        services: "Services",
        rights: object,
        ask: Ask,
        response_class: "type[Response]",
    ) -> None:
        super().__init__(request, client, front, frame, services, rights)
        self._ask = ask
        self.head: Final = ResponseHead(frame[1], frame[3])
        self.encode: Final[Callable[[Any], bytes]] = encoder(response_class, frame[3])

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> "MemberAnswer | None":
        if frame.nbytes != self.size_bytes or self._rights_generation is not self._services.generation:
            return None
        if not may_wait and not self._groups.is_small(self.group_id):
            return None
        correlation_id = self._correlation_id(frame)
        return None if correlation_id is None else MemberAnswer(self, correlation_id, frame)

    def ask(self, answer: Callable[[Any], object]) -> None:
        """Have the shard decide on the request that was found to repeat itself last."""
        request = self._request
        if request is None:
            # The connection was closed just now: nobody waits for an answer.
            return
        self._ask(request, self._client, self._services, answer)


class RepeatedHeartbeats(RepeatedByMember):
    """Heartbeats: nothing is written, and nobody waits."""

    __slots__ = ()

    def is_small(self, frame: memoryview) -> bool:
        return not self._services.logs.moves.moving

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> bytes | None:
        services = self._services
        if frame.nbytes != self.size_bytes or self._rights_generation is not services.generation:
            return None
        if not may_wait and services.logs.moves.moving:
            return None
        correlation_id = self._correlation_id(frame)
        if correlation_id is None:
            return None
        request = self._request
        try:
            code = self._groups.ask(self.group_id, lambda shard: shard.repeat_heartbeat(request))
        except Exception:  # noqa: BLE001 - the ordinary way meets it again, and answers and logs it
            return None
        if code is None:
            return None
        head, body = _heartbeat_answer(frame[3], code)
        return head.pack(head.counted_size_bytes + len(body), correlation_id) + body


class MemberAnswer(ShortAnswer):
    """A JoinGroup or SyncGroup on its short way: its place among the answers, and the shard's reply.

    Threads: made and parked by who runs the request; answered by any, once.
    """

    __slots__ = ("_correlation_id", "_repeated")

    def __init__(self, repeated: RepeatedWaits, correlation_id: int, frame: memoryview) -> None:
        self._repeated = repeated
        self._correlation_id = correlation_id
        self.api_key = frame[1]
        self.api_version = frame[3]
        self.answer = None
        self.completed_ns = 0
        self.local_done_ns = 0

    def park(self, connection: "Connection", received_ns: int, started_ns: int, done_ns: int, is_inline: bool) -> bool:
        """Take the next place among the connection's answers, and ask. See `prepared.Later`."""
        self.connection = connection
        self.received_ns = received_ns
        self.started_ns = started_ns
        connection.answers.slots.append(self)
        self._repeated.ask(self._put)
        self.local_done_ns = self.local_done_ns or monotonic_ns()
        return True

    def _put(self, response: "Response") -> None:
        """Answer, and have the connection go on."""
        connection, repeated, thread = self.connection, self._repeated, self.connection.thread
        self.completed_ns = now_ns = monotonic_ns()
        self.local_done_ns = self.local_done_ns or now_ns
        head = repeated.head
        try:
            body = repeated.encode(response)
        except Exception:
            # As where any answer can't be encoded: the place stays empty, so that no later answer takes it.
            log.exception("encoding failed api=%d version=%d", self.api_key, self.api_version)
            connection.close("the answer could not be encoded")
            return
        self.answer = head.pack(head.counted_size_bytes + len(body), self._correlation_id) + body
        connection.flush()
        if connection.answers.slots:
            connection.hold_up_large(self)
        if connection.pending:
            thread.wake(connection)
        if not connection.reading:
            thread.call(thread.resume, connection)


def prepare_wait(
    request: JoinGroupRequest | SyncGroupRequest,
    context: "Context",
    services: "Services",
    ask: Ask,
    response_class: "type[Response]",
) -> None:
    """Have a member's requests like this one, which is admitted, run by network threads while its group is small.

    And remember it, if the one before it was of the same group and as long: then the next may be the same again.
    """
    session, frame, key = context.session, context.frame, context.api_key
    known = session.prepared.get(key)
    if not frame or (isinstance(known, RepeatedWaits) and known.matches(frame)):
        return
    front = front_of(frame, request.group_id)
    if front is None:
        return
    was_as_long = isinstance(known, OfGroup) and known.fits(frame) and known.size_bytes == frame.nbytes
    if not was_as_long:
        session.prepare(key, OfGroup(request.group_id, front, services.groups, frame.nbytes))
    elif _may_remember(request, front, context):
        repeated = RepeatedWaits(
            request, client_of(context), front, frame, services, context.generation, ask, response_class
        )
        session.prepare(key, repeated)


def prepare_heartbeat(request: HeartbeatRequest, context: "Context", services: "Services") -> None:
    """Remember a heartbeat, which is admitted: the next one will be the same."""
    session, frame, key = context.session, context.frame, context.api_key
    known = session.prepared.get(key)
    if not frame or (isinstance(known, RepeatedHeartbeats) and known.matches(frame)):
        return
    front = front_of(frame, request.group_id)
    if front is not None and _may_remember(request, front, context):
        repeated = RepeatedHeartbeats(request, client_of(context), front, frame, services, context.generation)
        session.prepare(key, repeated)


def _may_remember(request: Request, front: bytes, context: "Context") -> bool:
    """Not where each request has to be audited, or its time counted; nor a long one, or one that is written oddly."""
    session, charge, frame = context.session, context.charge, context.frame
    if frame is None or frame.nbytes > MAX_SIZE_BYTES:
        return False
    if session.authorizer is not None and session.authorizer.audits_everything:
        return False
    if charge is not None and charge.account.request is not None:
        return False
    place = HEAD_SIZE_BYTES + len(front)
    return isinstance(request, JoinGroupRequest) or (
        frame.nbytes >= place + GENERATION_SIZE_BYTES and _GENERATION(frame, place)[0] == request.generation_id
    )


@cache
def _heartbeat_answer(version: int, code: ErrorCode) -> tuple[ResponseHead, bytes]:
    return ResponseHead(HEARTBEAT_KEY, version), encode(HeartbeatResponse(error_code=code), version)
