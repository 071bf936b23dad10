"""The short way of produce requests of a client that has a quota: what it appends is counted at once.

Beside `PreparedProduces`, which does all the rest. Who has sent too much is answered with the throttle time,
and paused. While a quota is far off, the connection counts for itself (`quotas/tally.py`), and one request of some is
timed for the others, too.
"""

import math
import struct
import time
from random import Random
from typing import TYPE_CHECKING, Final

from kavka.broker.quotas.account import NOTHING
from kavka.broker.quotas.charging import NS_PER_PERCENT, Charge
from kavka.broker.quotas.tally import NS_PER_MS, Tally
from kavka.broker.requests.prepared import CLOSES
from kavka.broker.requests.prepared_produce import PRODUCE_KEY, Begun, PreparedProduces
from kavka.broker.requests.topic_shape import FLEXIBLE_SINCE
from kavka.broker.waiting.awaited_answer import AwaitedAnswer, MadeAnswer

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.network.connection import Connection
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.quotas.account import Account
    from kavka.broker.quotas.meters import Meter
    from kavka.broker.requests.handling import Context
    from kavka.broker.requests.prepared import Later
    from kavka.protocol.messages.produce import ProduceRequest

NEVER_MS: Final = 1 << 62
_INT: Final = struct.Struct(">i").pack
TIMED: Final = 512
"""One of so many is timed while the quota of time is far off, and one each time that something has to be told.

To ask for a thread's time has the kernel look whether another's turn has come: with one of 61 timed, a busy broker's
threads were interrupted three times as often, and a request cost a tenth more.

By chance: whoever knew which one it is could have the others cost what they like.
"""
DICE: Final = Random()
"""For any thread. A process that this broker is a part of keeps `random` for itself."""


class ChargedProduces(PreparedProduces):
    """The shapes of one connection's produce requests, by one client id. Threads: as PreparedProduces."""

    __slots__ = (
        "_account",
        "_client_id",
        "_due_ns",
        "_each",
        "_granted",
        "_inner",
        "_left",
        "_now_ns",
        "_run",
        "_sizes",
        "_spacing",
        "_times",
    )

    def __init__(self, inner: PreparedProduces, context: "Context", charge: "Charge") -> None:
        """`inner` knows the shapes."""
        self._inner = inner
        self._run = inner.run
        self._now_ns = charge.now_ns
        self._client_id = context.client_id
        self._count_for(charge.account)

    def learn(self, request: "ProduceRequest", context: "Context", partition: "Partition") -> None:
        # When other quotas count, what was learnt is forgotten first.
        account = NOTHING if context.charge is None else context.charge.account
        if account is not self._account:
            # What was not told stays with the meters that it is for.
            self._count_for(account)
        if context.client_id != self._client_id:
            # All that is known is to be charged to one.
            self._inner.forget()
            self._client_id = context.client_id
        self._inner.learn(request, context, partition)

    def _count_for(self, account: "Account") -> None:
        self._account = account
        self._sizes = _tally_for(account.produce)
        self._times = _tally_for(account.request)
        self._due_ns = 0
        """When the first of the two has to be told."""
        self._granted = self._left = 0
        """So many requests might go by without being timed since the last one that was, and may still."""
        self._each = 0.0
        """What the last request that was timed by chance has used of the quota of time."""
        self._spacing = 1
        """Of so many one is timed by chance: more and more, as everybody knows which one is the first."""

    def forget(self) -> None:
        self._inner.forget()

    def take_begun(self, frame: memoryview | None) -> Begun:
        return self._inner.take_begun(frame)

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> "bytes | Later | None":
        sizes, left = self._sizes, self._left
        used, now_ns = sizes.used + frame.nbytes, self._now_ns()
        if not left or used >= sizes.most or now_ns >= self._due_ns:
            return self._run_closely(frame, cells, may_wait)
        answer = self._run(frame, cells, may_wait)
        if answer is not None:
            sizes.used, sizes.used_ns = used, now_ns
            if answer:
                # As in Kafka: whoever wants no answer is not charged for the time.
                self._left = left - 1
        return answer

    def _run_closely(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> "bytes | Later | None":
        """As `run`, with a look at all that counts."""
        produce, _, request, _ = self._account
        began_ns = 0 if request is None else time.thread_time_ns()
        answer = self._run(frame, cells, may_wait)
        if answer is None:
            return None
        now_ns = self._now_ns()
        throttle_ms = 0
        exceeded: Meter | None = None
        if request is None:
            self._granted = self._left = TIMED - 1
        elif answer:
            told_ms = self._charge_time(request, time.thread_time_ns() - began_ns, now_ns)
            throttle_ms, exceeded = min(told_ms, request.window.sample_ms), request
        if produce is not None:
            produce_ms = _charge(produce, self._sizes, frame.nbytes, now_ns)
            if produce_ms > throttle_ms:
                throttle_ms, exceeded = produce_ms, produce
        self._due_ns = min(self._sizes.due_ms, self._times.due_ms) * NS_PER_MS
        if not throttle_ms or exceeded is None or answer is CLOSES:
            return answer
        return Throttled(answer, frame, exceeded, throttle_ms, now_ns // NS_PER_MS)

    def _charge_time(self, request: "Meter", taken_ns: int, now_ns: int) -> int:
        """Count one request's time, and that of those before it that were not timed: for how long to pause (ms).

        These count as the last one that was timed by chance, for it could be known when something has to be told.
        """
        times, spent = self._times, max(taken_ns, 1) / NS_PER_PERCENT
        is_by_chance = not self._left
        if is_by_chance:
            self._each = spent
        told_ms = _charge(request, times, spent + self._each * (self._granted - self._left), now_ns)
        # A quota may be any number: beside what one request takes the rest of it may be infinite.
        most = max(int(min((times.most - times.used) / self._each, 2 * TIMED)), 0)
        if is_by_chance:
            self._spacing = min(2 * self._spacing, 2 * TIMED - 1)
            self._left = int(DICE.random() * min(self._spacing, most + 1))
        else:
            self._left = min(self._left, most)
        self._granted = self._left
        return told_ms


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


def _tally_for(meter: "Meter | None") -> Tally:
    """A new one. Without a meter there is nobody whom it would have to tell."""
    tally = Tally()
    if meter is None:
        tally.most, tally.due_ms = math.inf, NEVER_MS
    return tally


def _charge(meter: "Meter", tally: Tally, value: float, now_ns: int) -> int:
    """Count what was used; for how long (ms) the client is to pause for it, 0 for not at all."""
    used, now_ms = tally.used + value, now_ns // NS_PER_MS
    if used < tally.most and now_ms < tally.due_ms:
        tally.used, tally.used_ns = used, now_ns
        return 0
    return meter.tell(tally, value, now_ms)


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
