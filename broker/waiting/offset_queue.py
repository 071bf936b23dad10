"""Who waits for one partition's high watermark, in the order of offsets: it answers from the head.

A produce with acks=all of a known shape, or such a commit, costs an entry here: no promise, no lock and no timer of its
own. One alarm a queue, at the first deadline, sees to those that are late; it is set again only while somebody waits.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sized
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final, Protocol

from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.broker.waiting.purgatory import Purgatory
    from kavka.broker.waiting.timer import TimerEntry

NEVER_NS: Final = 1 << 63
LOOK_NS: Final = 10_000_000_000
"""How often at least those are looked for whose client has left: deadlines are the clients', and may be weeks away."""

Fate = Callable[[int, int], ErrorCode | None]
"""(leader epoch, required offset) -> what has become of that: NONE if it is committed; None: that is still open."""

log = logging.getLogger(__name__)


class Thread(Protocol):
    """A network thread, as `connection.Owner` has it."""

    def call(self, function: Callable[..., object], *arguments: Any) -> None: ...

    def wake(self, connection: Any, /) -> None: ...

    def resume(self, connection: Any) -> None: ...


class Connection(Protocol):
    """A client's, as far as answers are concerned."""

    @property
    def closed(self) -> bool: ...

    @property
    def reading(self) -> bool: ...

    @property
    def pending(self) -> Sized: ...

    @property
    def thread(self) -> Thread: ...

    def flush(self) -> None: ...

    def close(self, reason: str) -> None: ...


class Answering(Protocol):
    """A request that is answered when all its offsets are committed, or can't be any more."""

    @property
    def connection(self) -> Connection: ...

    def settle(self, place: int, code: ErrorCode) -> bool:
        """What has become of one of its offsets; True if that was the last one: it is answered. Any thread, no lock."""


class AwaitedOffset:
    """One offset that a request waits for: it is answered once the high watermark is there.

    `leader_epoch` is from before the append. Once another broker has led since, the records may have been cut off.
    """

    __slots__ = ("answering", "deadline_ns", "leader_epoch", "place", "required_offset")

    def __init__(
        self, answering: Answering, place: int, leader_epoch: int, required_offset: int, deadline_ns: int
    ) -> None:
        self.answering: Final = answering
        self.place: Final = place
        self.leader_epoch: Final = leader_epoch
        self.required_offset: Final = required_offset
        self.deadline_ns: Final = deadline_ns


Settled = list[tuple[AwaitedOffset, ErrorCode]]


class OffsetQueue:
    """One partition's. `fate` says what has become of an offset; it takes no lock.

    Whoever takes an entry out settles it: once. Bounded by the requests that a connection may have unanswered.

    Threads: any; `_gate` guards all but reading `entries`, which is swapped, or changed by one operation. Under it the
    timer's lock is taken, and the purgatory is told.
    """

    __slots__ = ("_alarm", "_alarm_ns", "_fate", "_gate", "_purgatory", "entries")

    def __init__(self, fate: Fate, purgatory: "Purgatory") -> None:
        self.entries: deque[AwaitedOffset] = deque()
        self._fate: Final = fate
        self._purgatory: Final = purgatory
        self._gate = threading.Lock()
        self._alarm: TimerEntry | None = None
        self._alarm_ns = NEVER_NS

    def add(self, entry: AwaitedOffset) -> None:
        """Wait, unless it is over already. No lock may be held."""
        with self._gate:
            entries = self.entries
            if entries and entries[-1].required_offset > entry.required_offset:
                self._insert(entry)
            else:
                entries.append(entry)
            if entry.deadline_ns < self._alarm_ns:
                self._set_alarm(entry.deadline_ns, monotonic_ns())
        # What happened before it was here has told nobody of it.
        code = self._fate(entry.leader_epoch, entry.required_offset)
        if code is not None and self._take_back(entry):
            settle([(entry, code)])

    def settle_reached(self, *others: "OffsetQueue") -> None:
        """The high watermark has moved, and that of others: answer those at the heads that wait no more. No lock."""
        taken = self._reached()
        for other in others:
            taken += other._reached()
        settle(taken)

    def settle_ended(self) -> None:
        """The leadership has changed: answer all that wait no more, wherever they stand. No lock may be held."""
        settle(self._sift(lambda entry: self._fate(entry.leader_epoch, entry.required_offset)))

    def expire_all(self) -> None:
        """Answer all that wait: the broker stops."""
        settle(self._sift(self._fate_or_late))

    def _reached(self) -> Settled:
        taken: Settled = []
        fate = self._fate
        with self._gate:
            entries = self.entries
            while entries:
                code = fate(entries[0].leader_epoch, entries[0].required_offset)
                if code is None:
                    break
                taken.append((entries.popleft(), code))
        return taken

    def _ring(self) -> None:
        """The alarm: by the timer's thread."""
        now_ns = monotonic_ns()
        late = self._sift(
            lambda entry: (
                self._fate_or_late(entry) if entry.deadline_ns <= now_ns or entry.answering.connection.closed else None
            )
        )
        with self._gate:
            self._alarm_ns = NEVER_NS
            if self.entries:
                self._set_alarm(min([entry.deadline_ns for entry in self.entries]), now_ns)
            else:
                self._purgatory.left(self)
        settle(late)

    def _fate_or_late(self, entry: AwaitedOffset) -> ErrorCode:
        code = self._fate(entry.leader_epoch, entry.required_offset)
        return ErrorCode.REQUEST_TIMED_OUT if code is None else code

    def _sift(self, code_of: Callable[[AwaitedOffset], ErrorCode | None]) -> Settled:
        taken: Settled = []
        with self._gate:
            left: deque[AwaitedOffset] = deque()
            for entry in self.entries:
                code = code_of(entry)
                if code is None:
                    left.append(entry)
                else:
                    taken.append((entry, code))
            # Whole: who looks without the lock must not find it empty meanwhile.
            self.entries = left
        return taken

    def _insert(self, entry: AwaitedOffset) -> None:
        """Of two threads that appended, the later one may come first. Gate held."""
        entries = self.entries
        place = len(entries)
        while place and entries[place - 1].required_offset > entry.required_offset:
            place -= 1
        entries.insert(place, entry)

    def _take_back(self, entry: AwaitedOffset) -> bool:
        """False if somebody else has taken it."""
        with self._gate:
            try:
                self.entries.remove(entry)
            except ValueError:
                return False
            return True

    def _set_alarm(self, deadline_ns: int, now_ns: int) -> None:
        """At the first deadline, in place of the one that is set. Gate held."""
        if self._alarm is not None:
            self._purgatory.timer.cancel(self._alarm)
        self._alarm_ns = min(deadline_ns, now_ns + LOOK_NS)
        self._alarm = self._purgatory.timer.schedule(self._ring, max(self._alarm_ns - now_ns, 0) / 1_000_000)
        self._purgatory.entered(self)


def settle(taken: Settled) -> None:
    """Tell requests what has become of their offsets, and write the answers of each connection at once.

    No lock may be held. Raises nothing.
    """
    connections: dict[Connection, None] = {}
    for entry, code in taken:
        answering = entry.answering
        try:
            if answering.settle(entry.place, code):
                connections[answering.connection] = None
        except Exception:
            # One client's answer is not to keep the others from theirs.
            log.exception("a produce could not be answered")
            answering.connection.close("the answer could not be made")
    write_answers(connections)


def write_answers(connections: Iterable[Connection]) -> None:
    """Write what is ready, and have the connections go on that waited for that."""
    for connection in connections:
        if connection.closed:
            continue
        connection.flush()
        thread = connection.thread
        if connection.pending:
            thread.wake(connection)
        if not connection.reading:
            thread.call(thread.resume, connection)
