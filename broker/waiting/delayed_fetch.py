"""A fetch that waits for data: at most `max_wait_ms`, or until `min_bytes` can be answered."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.log_reading import Reading, ReadLimits, read_all
from kavka.broker.waiting.purgatory import DelayedOperation, WatchList
from kavka.cluster.promise import Promise
from kavka.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection

FEW_PARTITIONS: Final = 32
"""So many are answered by whoever ends the wait; of more, an I/O thread reads."""


class DelayedFetch(DelayedOperation):
    """Waits at the end of the logs it reads. What it answers is read when the wait ends.

    Its connection's next request does not run before that, as in Kafka: else a client could have as many answers
    prepared as it may have requests, and each append would try them all.

    Threads: any ends the wait, the timer's and those of the network too, which others wait for. They answer what is
    known to be short: a few partitions, read at their ends. The rest is left to an I/O thread. `_gate` guards what has
    been found.
    """

    waits_for_client = True

    __slots__ = (
        "_answer",
        "_begin",
        "_by_watch_list",
        "_connection",
        "_found",
        "_found_bytes",
        "_gate",
        "_limits",
        "_min_bytes",
        "_readings",
        "promise",
    )

    def __init__(
        self,
        readings: list[Reading],
        limits: ReadLimits,
        min_bytes: int,
        connection: "Connection",
        answer: Callable[[], FetchResponse],
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        """`begin()` is called by the thread that answers, before it reads."""
        super().__init__()
        self._begin = begin
        self._readings = readings
        self._limits = limits
        self._min_bytes = min_bytes
        self._connection = connection
        self._answer = answer
        self._by_watch_list: dict[WatchList, Reading] = {}
        if len(readings) > 1:
            self._by_watch_list.update(
                (reading.partition.data_arrived, reading) for reading in readings if reading.partition is not None
            )
        self._gate = threading.Lock()
        self._found: dict[Reading, int] = {}
        self._found_bytes = 0
        self.promise: Final[Promise[FetchResponse]] = Promise()

    def is_satisfied(self) -> bool:
        limits = self._limits
        return any(reading.available(limits) and self._suffices(reading) for reading in self._readings)

    def is_satisfied_by(self, changed: WatchList) -> bool:
        reading = self._by_watch_list.get(changed)
        if reading is None:
            return self.is_satisfied()
        # Of the others it is known what they have: whatever changes there is told of, too.
        return reading.available(self._limits) and self._suffices(reading)

    def respond(self) -> None:
        connection = self._connection
        connection.parked.pop(self, None)
        if self._takes_long():
            settle = self.promise.settle_by
            # The thread that stops the broker would convert for all who wait, one after the other.
            at_end = partial(settle, self._read_nothing) if self._limits.needs_conversion else None
            connection.thread.defer(connection, partial(settle, self._read), at_end)
        else:
            self.promise.settle_by(self._read)

    def _suffices(self, reading: Reading) -> bool:
        """Whether there is enough, together with what the other partitions were found to have."""
        if self._min_bytes <= 1:
            return True
        weight = reading.weigh(self._limits, self._min_bytes)
        with self._gate:
            # Logs grow: the larger one of two that were found at the same time is the later.
            more = weight - self._found.get(reading, 0)
            if more > 0:
                self._found[reading] = weight
                self._found_bytes += more
            return self._found_bytes >= self._min_bytes

    def _takes_long(self) -> bool:
        readings = self._readings
        if self._limits.needs_conversion or len(readings) > FEW_PARTITIONS:
            return True
        # What has come by the end of its time may lie anywhere; what ends the wait sooner has just been written.
        return self.expired and any([reading.available(self._limits) for reading in readings])

    def _read(self) -> FetchResponse:
        self._begin()
        read_all(self._readings, self._limits)
        return self._answer()

    def _read_nothing(self) -> FetchResponse:
        for reading in self._readings:
            reading.read(self._limits, 0, nothing_yet=False)
        return self._answer()
