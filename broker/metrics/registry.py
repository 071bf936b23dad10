"""What the broker counts while it works, at the price of an integer addition.

Each thread counts in cells of its own (`ThreadCells`), so that no addition takes a lock or is lost; `Metrics` adds the
cells up when somebody asks. Names and forms for Prometheus are made in `exposition.py`, never on a request's way.

Of each API the times of its last requests are kept, as Kafka's own histograms keep a sample of recent ones: storing six
numbers costs a third of sorting six durations into buckets, and quantiles over a broker's whole life say nothing.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from kavka.broker.requests.slices import in_slices

RECENT_REQUESTS: Final = 512
"""How many requests of an API each thread remembers; a power of two."""

STAGES: Final = ("total", "request_queue", "local", "remote", "response_queue", "response_send")
"""Where a request's time goes; `total` is the sum of the others, which lie between two of `RequestTimes` each."""

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


RequestTimes = tuple[int, int, int, int, int, int]
"""When a request was received, taken from the queue, returned by its handler, completed, up for writing, sent (ns)."""


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
    """One thread's requests of one API: how many were answered, and the times of the last ones, oldest overwritten."""

    __slots__ = ("count", "recent")

    def __init__(self) -> None:
        self.count = 0
        self.recent: list[RequestTimes | None] = [None] * RECENT_REQUESTS

    def durations_ns(self, stage: int) -> list[int]:
        """How long the last requests spent in that one of STAGES."""
        times = [each for each in self.recent if each is not None]
        if stage == 0:
            return [each[-1] - each[0] for each in times]
        return [each[stage] - each[stage - 1] for each in times]


class ThreadCells:
    """What one thread counts.

    Threads: only the owning thread adds; any thread reads (each integer is read whole).
    """

    __slots__ = ("busy_ns", "events", "kind", "requests", "thread", "topics")

    def __init__(self, kind: str, thread: threading.Thread) -> None:
        self.kind = kind
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

    def produced(self, topic: str, batches: int, size_bytes: int, messages: int) -> None:
        """Count batches that were appended to partitions of that topic; `messages` without those of repeated ones."""
        cells = self.topics.get(topic)
        if cells is None:
            cells = self.topics[topic] = TopicCells()
        cells.produce_requests += batches
        cells.bytes_in += size_bytes
        cells.messages_in += messages

    def event(self, name: str, count: int = 1) -> None:
        """Count an event by its metric's name (without `_total`)."""
        self.events[name] = self.events.get(name, 0) + count

    def ran(self, runs: "Iterable[tuple[memoryview, int, int, int]]", sent_ns: int) -> None:
        """Count requests that were answered by one write: their frames, when each was received, started and done."""
        requests = self.requests
        for frame, received_ns, started_ns, done_ns in runs:
            cells = requests.get(frame[1])
            if cells is None:
                cells = requests[frame[1]] = RequestCells()
            count = cells.count
            cells.recent[count & (RECENT_REQUESTS - 1)] = (received_ns, started_ns, done_ns, done_ns, sent_ns, sent_ns)
            cells.count = count + 1

    def request(self, api_key: int, times: RequestTimes) -> None:
        """Count a request that has been answered."""
        cells = self.requests.get(api_key)
        if cells is None:
            cells = self.requests[api_key] = RequestCells()
        count = cells.count
        cells.recent[count & (RECENT_REQUESTS - 1)] = times
        cells.count = count + 1


T = TypeVar("T")
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

    Threads: `mine`, `enlist` and `count` by any thread, on its own cells; `_lock` guards the list of cells, the
    gauges, what is shared, and what is left of threads and topics that are gone.
    """

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.now_ns: Final = now_ns
        self._lock = threading.Lock()
        self._local = threading.local()
        self._cells: list[ThreadCells] = []
        self._gauges: list[Gauge] = []
        self._shared: dict[type[object], object] = {}
        self._gone = ThreadCells("gone", threading.main_thread())
        self._forgotten_topics = TopicCells()

    def mine(self) -> ThreadCells:
        """The calling thread's cells."""
        try:
            cells: ThreadCells = self._local.cells
        except AttributeError:
            cells = self._local.cells = ThreadCells("other", threading.current_thread())
            with self._lock:
                self._cells.append(cells)
        return cells

    def enlist(self, kind: str) -> ThreadCells:
        """The calling thread's cells, counted among its kind ("io", "network") from now on.

        To be said by threads that are made for that work, and by nobody else: many others answer requests.
        """
        cells = self.mine()
        cells.kind = kind
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

    def shared(self, mine: T) -> T:
        """What several parts count in together: the first of its type that was given, mostly `mine` itself."""
        with self._lock:
            found = self._shared.setdefault(type(mine), mine)
        assert isinstance(found, type(mine))
        return found

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
                for name, counted in in_slices(list(cells.topics.items())):
                    by_name.setdefault(name, TopicCells()).add(counted)
        for counted in in_slices(by_name.values()):
            every.add(counted)
        return every, by_name

    def requests(self) -> dict[int, list[RequestCells]]:
        """The counts of each API key, by thread."""
        by_key: dict[int, list[RequestCells]] = {}
        with self._lock:
            for cells in self._all_cells():
                for key, counted in list(cells.requests.items()):
                    by_key.setdefault(key, []).append(counted)
        return by_key

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
                left = self._gone.requests.setdefault(key, RequestCells())
                left.count += request.count
            for event, count in cells.events.items():
                self._gone.event(event, count)
        return iter((self._gone, *self._cells))
