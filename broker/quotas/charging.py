"""What one request costs its client, and for how long he has to pause for it (KIP-13, KIP-124, KIP-219).

The dispatcher makes a `Charge` where the client has a quota of any kind, tells it when the request has run, and asks it
for the throttle time when it answers. The client is answered at once; then its connection is muted.

    produce     its size, when it has run; and with an answer to come, the time that it took
    fetch       the time and the answer's size, when there is an answer: what exceeds the quota is not counted, and not
                answered either. One that waits has two times, on two threads maybe: its handler's, and its answer's
    others      the time; those that create or delete partitions count these, when the controller does it
    brokers'    the time, apart: what brokers ask of each other is never throttled

Kafka takes the time that a request is at work on its thread by the clock; here it is the processor's, which is the same
where nobody waits, and does not charge one client for the others. To encode the answer counts, too, but nobody pauses
for it before the next request. What network threads send later does not.
"""

import struct
import time
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.quotas.meters import Meter, MutationMeter
from kavka.broker.quotas.tally import NS_PER_MS
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection
    from kavka.broker.quotas.account import Account

PRODUCE_KEY: Final = 0
FETCH_KEY: Final = 1
METADATA_SINCE: Final = 3
"""The version of Metadata from which on answers begin with the throttle time."""
_INT: Final = struct.Struct(">i").pack
NS_PER_PERCENT: Final = 10_000_000
"""A thread that works all the time is at 100 percent."""
AUTHENTICATION: Final = frozenset({17, 36})
"""What comes before it is known who asks: SaslHandshake, SaslAuthenticate."""
BETWEEN_BROKERS: Final = frozenset({4, 5, 6, 7, 27, 56})
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, WriteTxnMarkers, AlterPartition."""


class Mutations:
    """The partitions that one request creates and deletes (KIP-599).

    Threads: any, one at a time.
    """

    __slots__ = ("_is_strict", "_meter", "_now_ms", "_throttle_ms", "_told_ms")

    def __init__(self, meter: MutationMeter, now_ms: Callable[[], int], *, is_strict: bool) -> None:
        self._meter = meter
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._told_ms = 0

    def record(self, partitions: int) -> None:
        """So many are to be made, or deleted. Raises BrokerError THROTTLING_QUOTA_EXCEEDED where they must not."""
        now_ms = self._now_ms()
        taken_ms = (self._meter.take_strictly if self._is_strict else self._meter.take)(partitions, now_ms)
        if taken_ms:
            self._throttle_ms, self._told_ms = taken_ms, now_ms
            if self._is_strict:
                raise BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    @property
    def throttle_ms(self) -> int:
        """What is left of the time that the client has to pause for."""
        return max(0, self._throttle_ms - (self._now_ms() - self._told_ms)) if self._throttle_ms else 0


class Charge:
    """One request's.

    Threads: that which runs the request, and whoever completes its answer, maybe before the other is done with it: each
    has a clock of its own, `_handled_ns` and `_resumed`. What one thread's clock says is nothing beside another's.
    """

    __slots__ = (
        "_counted_by",
        "_exceeded",
        "_exempt",
        "_handled_ns",
        "_handler",
        "_has_run",
        "_mutations",
        "_resumed",
        "account",
        "now_ns",
        "throttle_ms",
    )

    def __init__(self, account: "Account", exempt: Meter, now_ns: Callable[[], int]) -> None:
        """`exempt` counts the time of requests that have no quota."""
        self.account: Final = account
        self._exempt: Final = exempt
        self.now_ns: Final = now_ns
        self._handled_ns = time.thread_time_ns() if account.request is not None else 0
        """Up to when the time is counted of the thread that runs the request."""
        self._handler: Final = get_ident()
        self._has_run = False
        """Whether that thread is done with it."""
        self._resumed: tuple[int, int] | None = None
        """The thread that makes a fetch's answer, where that is not done by the handler, and its `_handled_ns`."""
        self._counted_by: Meter | None = None
        """What counts the request's time, once that is known."""
        self._mutations: Mutations | None = None
        self._exceeded: Meter | None = None
        """The one for which the client has to pause the longest."""
        self.throttle_ms = 0
        """For how long the client has to pause, as far as it is known."""

    def now_ms(self) -> int:
        """What meters take for now."""
        return self.now_ns() // NS_PER_MS

    @property
    def is_for_produce(self) -> bool:
        """Whether what the client produces is counted."""
        return self.account.produce is not None or self.account.request is not None

    def ran(self, api_key: int, size_bytes: int, request: Any, failure: Exception | None = None) -> None:
        """The request has run on its thread; its answer may come later. `failure`: what the handler raised."""
        self._has_run = True
        if api_key == PRODUCE_KEY:
            self._produced(size_bytes, wants_answer=request.acks != 0)
        elif api_key == FETCH_KEY and failure is None:
            # Its answer is what it may have to pause for, and may be on its way on another thread.
            meter = self._exempt if _is_of_follower(request) else self.account.request
            if self.account.request is not None and meter is not None:
                meter.add(self._handled(), self.now_ms())
        elif api_key in BETWEEN_BROKERS and not _is_refusal(failure):
            self.exempt()
        else:
            self._requested()

    def resumed(self) -> None:
        """A fetch's answer is made from here on by this thread: later than its handler ran, or elsewhere meanwhile."""
        if self.account.request is not None and (self._has_run or get_ident() != self._handler):
            self._resumed = get_ident(), time.thread_time_ns()

    def answered(self, *, later: bool = False) -> None:
        """The answer is made. `later`: by a promise, on whichever thread, be it one that has not made it."""
        if self._counted_by is not None and (not later or self._resumed is not None):
            self._counted_by.add(self._percentage(), self.now_ms())

    def exempt(self) -> None:
        """The request is one between brokers."""
        if self.account.request is not None:
            self._counted_by = self._exempt
            self._exempt.add(self._percentage(), self.now_ms())

    def most_fetched_bytes(self) -> int:
        """More than that would be throttled for sure, and so never be answered."""
        meter = self.account.fetch
        if meter is None:
            return 2**31 - 1
        window = meter.window
        return max(0, min(2**31 - 1, int(meter.limit * (window.samples - 1) * (window.sample_ms // 1000))))

    def fetched(self, size_bytes: int) -> bool:
        """A consumer's fetch can be answered with so many bytes: whether they may be sent. If not, nothing counts."""
        self._requested()
        meter = self.account.fetch
        if meter is not None:
            now_ms = self.now_ms()
            fetch_ms = meter.record(size_bytes, now_ms)
            if fetch_ms or self.throttle_ms:
                meter.add(-size_bytes, now_ms)
            self._throttle(fetch_ms, meter)
        return not self.throttle_ms

    def mutations(self, *, is_strict: bool) -> Callable[[int], None] | None:
        """What to tell of partitions that are to be made or deleted; None where that has no limit. See `Mutations`."""
        if self.account.mutation is None:
            return None
        self._mutations = Mutations(self.account.mutation, self.now_ms, is_strict=is_strict)
        return self._mutations.record

    def created(self, partitions: int) -> None:
        """So many are made as the client has asked for their topics: they count, but it is not to pause for them."""
        if self.account.mutation is not None:
            self.account.mutation.take(partitions, self.now_ms())

    def told(self, response: Any, version: int) -> Any:
        """The answer is there: with the throttle time in it, if the client has to pause and the answer can say so."""
        if self._mutations is not None and self.account.mutation is not None:
            self._throttle(self._mutations.throttle_ms, self.account.mutation)
            self._mutations = None
        if not self.throttle_ms or response is None:
            return response
        if response.__class__ is bytes:
            # Metadata's, which begins with it.
            return response if version < METADATA_SINCE else _INT(self.throttle_ms) + response[4:]
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = self.throttle_ms
        return response

    def mute(self, connection: "Connection") -> bool:
        """Have the connection pause if it has to: False if not. By who holds its `running`, and leaves it so then."""
        if self._exceeded is None:
            return False
        self._exceeded.pause(connection, self.throttle_ms, self.now_ms())
        return True

    def _produced(self, size_bytes: int, *, wants_answer: bool) -> None:
        if wants_answer:
            self._requested()
        meter = self.account.produce
        if meter is not None:
            self._throttle(meter.record(size_bytes, self.now_ms()), meter)

    def _requested(self) -> None:
        meter = self._counted_by = self.account.request
        if meter is not None:
            self._throttle(min(meter.record(self._percentage(), self.now_ms()), meter.window.sample_ms), meter)

    def _percentage(self) -> float:
        """Of a second, what this thread has done that has not been counted; nothing if it is not known since when."""
        resumed, thread = self._resumed, get_ident()
        if resumed is None or resumed[0] != thread:
            return self._handled() if thread == self._handler else 0.0
        now_ns = time.thread_time_ns()
        self._resumed = thread, now_ns
        return (now_ns - resumed[1]) / NS_PER_PERCENT

    def _handled(self) -> float:
        now_ns = time.thread_time_ns()
        since_ns, self._handled_ns = self._handled_ns, now_ns
        return (now_ns - since_ns) / NS_PER_PERCENT

    def _throttle(self, throttle_ms: int, meter: Meter) -> None:
        if throttle_ms > self.throttle_ms:
            self.throttle_ms, self._exceeded = throttle_ms, meter


def _is_refusal(failure: Exception | None) -> bool:
    return isinstance(failure, BrokerError) and failure.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _is_of_follower(request: Any) -> bool:
    return bool(max(request.replica_id, request.replica_state.replica_id) >= 0)
