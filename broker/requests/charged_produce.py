"""The short way of produce requests of a client that has a quota: what it appends is counted at once.

Beside `PreparedProduces`, which does all the rest. Who has sent too much is answered with the throttle time,
and paused.
"""

import struct
import time
from typing import TYPE_CHECKING, Final

from kavka.broker.quotas.account import NOTHING
from kavka.broker.quotas.charging import NS_PER_PERCENT, Charge
from kavka.broker.requests.prepared import CLOSES
from kavka.broker.requests.prepared_produce import PRODUCE_KEY, Begun, PreparedProduces
from kavka.broker.requests.topic_shape import FLEXIBLE_SINCE
from kavka.broker.waiting.awaited_answer import AwaitedAnswer, MadeAnswer

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.network.connection import Connection
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.quotas.meters import Meter
    from kavka.broker.requests.handling import Context
    from kavka.broker.requests.prepared import Later
    from kavka.protocol.messages.produce import ProduceRequest

_INT: Final = struct.Struct(">i").pack


class ChargedProduces(PreparedProduces):
    """The shapes of one connection's produce requests, by one client id. Threads: as PreparedProduces."""

    __slots__ = ("_account", "_client_id", "_inner", "_now_ms")

    def __init__(self, inner: PreparedProduces, context: "Context", charge: "Charge") -> None:
        """`inner` knows the shapes."""
        self._inner = inner
        self._now_ms = charge.now_ms
        self._account = charge.account
        self._client_id = context.client_id

    def learn(self, request: "ProduceRequest", context: "Context", partition: "Partition") -> None:
        # When other quotas count, what was learnt is forgotten first.
        self._account = NOTHING if context.charge is None else context.charge.account
        if context.client_id != self._client_id:
            # All that is known is to be charged to one.
            self._inner.forget()
            self._client_id = context.client_id
        self._inner.learn(request, context, partition)

    def forget(self) -> None:
        self._inner.forget()

    def take_begun(self, frame: memoryview | None) -> Begun:
        return self._inner.take_begun(frame)

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> "bytes | Later | None":
        produce, _, request, _ = self._account
        began_ns = time.thread_time_ns() if request is not None else 0
        answer = self._inner.run(frame, cells, may_wait)
        if answer is None:
            return None
        now_ms = self._now_ms()
        throttle_ms = 0
        exceeded: Meter | None = None
        # As in Kafka: whoever wants no answer is not charged for the time.
        if request is not None and answer:
            percentage = (time.thread_time_ns() - began_ns) / NS_PER_PERCENT
            throttle_ms = min(request.record(percentage, now_ms), request.window.sample_ms)
            exceeded = request
        if produce is not None:
            produce_ms = produce.record(frame.nbytes, now_ms)
            if produce_ms > throttle_ms:
                throttle_ms, exceeded = produce_ms, produce
        if not throttle_ms or exceeded is None or answer is CLOSES:
            return answer
        return Throttled(answer, frame, exceeded, throttle_ms, now_ms)


class Throttled:
    """An answer after which its connection pauses. See `prepared.Later`."""

    __slots__ = ("_answer", "_frame", "_meter", "_now_ms", "_throttle_ms")

    def __init__(
        self, answer: "bytes | Later", frame: memoryview, meter: "Meter", throttle_ms: int, now_ms: int
    ) -> None:
        self._answer = answer
        self._frame = frame
        self._meter = meter
        self._throttle_ms = throttle_ms
        self._now_ms = now_ms

    def park(self, connection: "Connection", received_ns: int, started_ns: int, done_ns: int, is_inline: bool) -> bool:
        """Put the answer in its place, and have the connection pause."""
        answer, version = self._answer, self._frame[3]
        if isinstance(answer, bytes):
            told = _told(answer, version, self._throttle_ms) if answer else answer
            made = MadeAnswer(told, connection, self._frame, received_ns, started_ns, done_ns)
            connection.answers.slots.append(made)
        else:
            if isinstance(answer, AwaitedAnswer):
                answer.amend(lambda made, codes: made if any(codes) else _told(made, version, self._throttle_ms))
            answer.park(connection, received_ns, started_ns, done_ns, is_inline)
        self._meter.pause(connection, self._throttle_ms, self._now_ms)
        return False


def _told(answer: bytes, version: int, throttle_ms: int) -> bytes:
    """An answer without errors, with the throttle time, which is its last field."""
    end = len(answer) - (version >= FLEXIBLE_SINCE)
    return answer[: end - 4] + _INT(throttle_ms) + answer[end:]


def charge_produces(context: "Context", charge: "Charge") -> None:
    """Have the client's requests charged that take the short way from now on."""
    session = context.session
    prepared = session.prepared.get(PRODUCE_KEY)
    if isinstance(prepared, PreparedProduces) and not isinstance(prepared, ChargedProduces):
        session.prepare(PRODUCE_KEY, ChargedProduces(prepared, context, charge))
