"""What the broker counts while it works, at the price of an integer addition.

Each thread counts in cells of its own (`ThreadCells`), so that no addition takes a lock or is lost; `Metrics` adds the
cells up when somebody asks. Names and forms for Prometheus are made in `metrics_families.py`, never on a request's way.

Durations go into fixed buckets, a quarter of an octave wide (at most 19 % off) from 4 us up. A duration of zero is not recorded
at all: the requests that a stage lacks took no time in it.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

FINEST_NS_BITS: Final = 12
"""Durations are told apart in steps of 2**12 ns = 4.1 us."""
BUCKETS_PER_OCTAVE: Final = 4
BUCKETS: Final = 28 * BUCKETS_PER_OCTAVE
"""Up to 2**28 steps: 18 minutes."""
UPPER_BOUNDS_NS: Final = tuple(
    int(2 ** ((index + 1) / BUCKETS_PER_OCTAVE) * (1 << FINEST_NS_BITS)) for index in range(BUCKETS)
)
"""The upper bound of each bucket."""

STAGES: Final = ("total", "request_queue", "local", "remote", "response_queue", "response_send")
"""Where a request's time goes, in the order of `RequestCells.buckets`."""

TOPIC_COUNTERS: Final = (
    "messages_in",
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "produce_requests",
    "fetch_requests",
    "failed_produce_requests",
    "failed_fetch_requests",
)


def _bucket_of_steps() -> bytes:
    table = bytearray()
    for index in range(12 * BUCKETS_PER_OCTAVE):
        end = int(2 ** ((index + 1) / BUCKETS_PER_OCTAVE))
        table.extend(bytes([index]) * (end - len(table)))
    return bytes(table)


_TABLE: Final = _bucket_of_steps()
_TABLE_SIZE: Final = len(_TABLE)
_TABLE_END_NS: Final = _TABLE_SIZE << FINEST_NS_BITS


def bucket_of(duration_ns: int) -> int:
    """The bucket for a duration."""
    steps = max(duration_ns, 0) >> FINEST_NS_BITS
    if steps < _TABLE_SIZE:
        return _TABLE[steps]
    octaves = steps.bit_length() - _TABLE_SIZE.bit_length() + 1
    return min(_TABLE[steps >> octaves] + octaves * BUCKETS_PER_OCTAVE, BUCKETS - 1)


class TopicCells:
    """One thread's counts for one topic; the owning thread adds to the attributes directly."""

    __slots__ = TOPIC_COUNTERS

    messages_in: int
    bytes_in: int
    bytes_out: int
    bytes_rejected: int
    produce_requests: int
    fetch_requests: int
    failed_produce_requests: int
    failed_fetch_requests: int

    def __init__(self) -> None:
        for name in TOPIC_COUNTERS:
            setattr(self, name, 0)

    def add(self, other: "TopicCells") -> None:
        """Add another's counts to these."""
        for name in TOPIC_COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class RequestCells:
    """One thread's counts for one API: requests answered, and a row of buckets for each of STAGES."""

    __slots__ = ("buckets", "count")

    def __init__(self) -> None:
        self.count = 0
        self.buckets = [[0] * BUCKETS for _ in STAGES]

    def add(self, other: "RequestCells") -> None:
        """Add another's counts to these."""
        self.count += other.count
        for mine, theirs in zip(self.buckets, other.buckets, strict=True):
            mine[:] = map(int.__add__, mine, theirs)

    def copy(self) -> "RequestCells":
        """A copy that stays as it is."""
        copied = RequestCells()
        copied.add(self)
        return copied


class ThreadCells:
    """What one thread counts.

    Threads: only the owning thread adds; any thread reads (each integer is read whole).
    """

    __slots__ = ("busy_ns", "events", "kind", "requests", "thread", "topics")

    def __init__(self, kind: str, thread: threading.Thread) -> None:
        self.kind: Final = kind
        self.thread: Final = thread
        self.busy_ns = 0
        self.requests: dict[int, RequestCells] = {}
        self.topics: dict[str, TopicCells] = {}
        self.events: dict[str, int] = {}

    def topic(self, name: str) -> TopicCells:
        """The cells of that topic. For topics that exist only: what is counted stays until `Metrics.forget_topic`."""
        cells = self.topics.get(name)
        if cells is None:
            cells = self.topics[name] = TopicCells()
        return cells

    def event(self, name: str, count: int = 1) -> None:
        """Count an event by its metric's name (without `_total`)."""
        self.events[name] = self.events.get(name, 0) + count

    def request(
        self,
        api_key: int,
        received_ns: int,
        started_ns: int,
        local_done_ns: int,
        completed_ns: int,
        written_ns: int,
        sent_ns: int,
    ) -> None:
        """Count a request that has been answered, by the times at which it passed each stage.

        received, taken from the queue, handler returned, answer known, answer's turn came, answer handed to the socket.
        """
        cells = self.requests.get(api_key)
        if cells is None:
            cells = self.requests[api_key] = RequestCells()
        cells.count += 1
        total, queue, local, remote, response_queue, send = cells.buckets
        total_ns = sent_ns - received_ns
        if not 0 <= total_ns < _TABLE_END_NS:
            self._slow_request(cells, (received_ns, started_ns, local_done_ns, completed_ns, written_ns, sent_ns))
            return
        total[_TABLE[total_ns >> 12]] += 1
        local[_TABLE[local_done_ns - started_ns >> 12]] += 1
        if started_ns > received_ns:
            queue[_TABLE[started_ns - received_ns >> 12]] += 1
        if completed_ns > local_done_ns:
            remote[_TABLE[completed_ns - local_done_ns >> 12]] += 1
        if written_ns > completed_ns:
            response_queue[_TABLE[written_ns - completed_ns >> 12]] += 1
        if sent_ns > written_ns:
            send[_TABLE[sent_ns - written_ns >> 12]] += 1

    @staticmethod
    def _slow_request(cells: RequestCells, times: tuple[int, ...]) -> None:
        cells.buckets[0][bucket_of(times[-1] - times[0])] += 1
        for row, start_ns, end_ns in zip(cells.buckets[1:], times, times[1:], strict=False):
            if end_ns > start_ns:
                row[bucket_of(end_ns - start_ns)] += 1


Labels = Mapping[str, str]
Readings = Iterable[tuple[Labels, float]]


class Gauge:
    """A value that is read when somebody asks: `read()` gives (labels, value) pairs, by any thread."""

    __slots__ = ("help", "kind", "name", "read")

    def __init__(self, name: str, text: str, read: Callable[[], Readings], kind: str = "gauge") -> None:
        self.name: Final = name
        self.help: Final = text
        self.read: Final = read
        self.kind: Final = kind


class Metrics:
    """All cells and gauges of one broker.

    Threads: `mine` and `count` by any thread, on its own cells; `_lock` guards the list of cells, the gauges, and what is left of threads
    and topics that are gone.
    """

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.now_ns: Final = now_ns
        self._lock = threading.Lock()
        self._local = threading.local()
        self._cells: list[ThreadCells] = []
        self._gauges: list[Gauge] = []
        self._gone = ThreadCells("gone", threading.main_thread())
        self._forgotten_topics = TopicCells()

    def mine(self, kind: str = "other") -> ThreadCells:
        """The calling thread's cells. `kind` ("io", "network") is what its first call says."""
        try:
            cells: ThreadCells = self._local.cells
        except AttributeError:
            cells = self._local.cells = ThreadCells(kind, threading.current_thread())
            with self._lock:
                self._cells.append(cells)
        return cells

    def count(self, name: str, count: int = 1) -> None:
        """Count an event by its metric's name (without `_total`): for what is rarer than a request."""
        self.mine().event(name, count)

    def gauge(self, name: str, text: str, read: Callable[[], Readings | float], kind: str = "gauge") -> None:
        """Register a value to be read at scrape; `read()` gives a number, or (labels, number) pairs."""

        def readings() -> Readings:
            value = read()
            return (({}, float(value)),) if isinstance(value, (int, float)) else value

        with self._lock:
            self._gauges.append(Gauge(name, text, readings, kind))

    def gauges(self) -> list[Gauge]:
        """The registered gauges."""
        with self._lock:
            return list(self._gauges)

    def forget_topic(self, name: str) -> None:
        """A topic was deleted: it is not shown any longer, its counts stay in the sums over all topics."""
        with self._lock:
            for cells in (self._gone, *self._cells):
                counted = cells.topics.pop(name, None)
                if counted is not None:
                    self._forgotten_topics.add(counted)

    def topics(self) -> tuple[TopicCells, dict[str, TopicCells]]:
        """The counts of all topics together, and of each."""
        every, by_name = TopicCells(), dict[str, TopicCells]()
        with self._lock:
            every.add(self._forgotten_topics)
            for cells in self._all_cells():
                for name, counted in list(cells.topics.items()):
                    by_name.setdefault(name, TopicCells()).add(counted)
        for counted in by_name.values():
            every.add(counted)
        return every, by_name

    def requests(self) -> dict[int, RequestCells]:
        """The counts of each API key."""
        with self._lock:
            return self._requests_of(self._all_cells())

    def events(self) -> dict[str, int]:
        """The counts of each event."""
        counts: dict[str, int] = {}
        with self._lock:
            for cells in self._all_cells():
                for name, count in list(cells.events.items()):
                    counts[name] = counts.get(name, 0) + count
        return counts

    def busy(self, kind: str) -> tuple[int, int]:
        """How many threads of that kind there are, and how long they have worked together, in ns."""
        with self._lock:
            alive = [cells for cells in self._all_cells() if cells.kind == kind]
            return len(alive), sum(cells.busy_ns for cells in alive)

    def _all_cells(self) -> Iterator[ThreadCells]:
        """All cells, after folding those of threads that have ended. Under `_lock`."""
        ended = [cells for cells in self._cells if not cells.thread.is_alive()]
        for cells in ended:
            self._cells.remove(cells)
            for name, topic in cells.topics.items():
                self._gone.topic(name).add(topic)
            for key, request in cells.requests.items():
                self._gone.requests.setdefault(key, RequestCells()).add(request)
            for event, count in cells.events.items():
                self._gone.event(event, count)
        return iter((self._gone, *self._cells))

    @staticmethod
    def _requests_of(all_cells: Iterable[ThreadCells]) -> dict[int, RequestCells]:
        by_key: dict[int, RequestCells] = {}
        for cells in all_cells:
            for key, counted in list(cells.requests.items()):
                by_key.setdefault(key, RequestCells()).add(counted)
        return by_key
