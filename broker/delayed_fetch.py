"""A fetch that waits for data: at most `max_wait_ms`, or until `min_bytes` can be answered."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.log_reading import Reading, ReadLimits, read_all
from kavka.broker.promise import Promise
from kavka.broker.purgatory import DelayedOperation
from kavka.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection


class DelayedFetch(DelayedOperation):
    """Waits at the end of the logs it reads. What it answers is read when the wait ends.

    Its connection's next request does not run before that, as in Kafka: else a client could have as many answers
    prepared as it may have requests, and each append would try them all.
    """

    waits_for_client = True

    __slots__ = ("_answer", "_connection", "_limits", "_min_bytes", "_readings", "promise")

    def __init__(
        self,
        readings: list[Reading],
        limits: ReadLimits,
        min_bytes: int,
        connection: "Connection",
        answer: Callable[[], FetchResponse],
    ) -> None:
        super().__init__()
        self._readings = readings
        self._limits = limits
        self._min_bytes = min_bytes
        self._connection = connection
        self._answer = answer
        self.promise: Final[Promise[FetchResponse]] = Promise()

    def is_satisfied(self) -> bool:
        limits = self._limits
        available = [reading for reading in self._readings if reading.available(limits)]
        if not available or self._min_bytes <= 1:
            return bool(available)
        found = 0
        for reading in available:
            found += reading.weigh(limits, self._min_bytes)
            if found >= self._min_bytes:
                return True
        return False

    def respond(self) -> None:
        self._connection.parked.pop(self, None)
        try:
            read_all(self._readings, self._limits)
            response = self._answer()
        except Exception as failure:  # noqa: BLE001 - handed on to the one who answers
            self.promise.fail(failure)
        else:
            self.promise.complete(response)
