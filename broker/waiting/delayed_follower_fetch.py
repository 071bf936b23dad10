"""A follower's fetch that waits for data in any of its session's partitions: it looks at those that have news."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.log_reading import Reading, ReadLimits, is_available
from kavka.broker.partitions.session_news import SessionNews, WatchedPartition
from kavka.broker.waiting.delayed_fetch import FEW_PARTITIONS
from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.cluster.promise import Promise
from kavka.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection


class DelayedFollowerFetch(DelayedOperation):
    """Waits for `min_bytes`, as DelayedFetch does; a high watermark alone is no reason to answer.

    `answer` reads what is fresh by then. Threads: any ends the wait; long answers are left to an I/O thread.
    """

    waits_for_client = True

    __slots__ = ("_answer", "_connection", "_limits", "_min_bytes", "_news", "promise")

    def __init__(
        self,
        news: SessionNews,
        limits: ReadLimits,
        min_bytes: int,
        connection: "Connection",
        answer: Callable[[], FetchResponse],
    ) -> None:
        super().__init__()
        self._news = news
        self._limits = limits
        self._min_bytes = min_bytes
        self._connection = connection
        self._answer = answer
        self.promise: Final[Promise[FetchResponse]] = Promise()
        # Before anybody can end the wait, who would take it away in vain.
        connection.parked[self] = None
        # Before anybody asks whether it is satisfied: what comes meanwhile is told of.
        news.waiting[self] = None

    def heard_of(self, entry: WatchedPartition) -> None:
        """See `session_news.Waiting`."""
        if self._is_available(entry):
            self.try_complete()

    def is_satisfied(self) -> bool:
        found_bytes = 0
        for entry in list(self._news.fresh):
            if self._is_available(entry):
                if self._min_bytes <= 1:
                    return True
                found_bytes += Reading(entry.partition, entry.asked).weigh(self._limits, self._min_bytes)
        return found_bytes >= self._min_bytes

    def respond(self) -> None:
        connection = self._connection
        connection.parked.pop(self, None)
        settle = partial(self.promise.settle_by, self._answer)
        if len(self._news.fresh) > FEW_PARTITIONS:
            connection.thread.defer(connection, settle)
        else:
            settle()

    def _is_available(self, entry: WatchedPartition) -> bool:
        partition = entry.partition
        return partition is None or is_available(partition, entry.asked, self._limits)

    def _leave(self) -> None:
        self._news.waiting.pop(self, None)
        super()._leave()
