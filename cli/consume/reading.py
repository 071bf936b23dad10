"""`kavka consume` at work: polls, cuts off what is not wanted, shows the rest, and knows when to stop."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cli.consume.sources import Source
from kavka.cli.consume.stops import Stops
from kavka.client.consumer.group.port import OffsetAndMetadata

if TYPE_CHECKING:
    from kavka.client.consumer.consumer import Consumer
    from kavka.client.consumer.records import ConsumerRecord, ConsumerRecords

POLL_MS: Final = 500.0
POLL_TO_STOP_MS: Final = 50.0
"""While ends are in sight: transaction markers move the position and give no records."""


class Limits(NamedTuple):
    """When to stop, besides where partitions end. None: never."""

    max_messages: int | None = None
    idle_ms: int | None = None
    """After so long without a record."""


class Reading:
    """Reads until there is no more to be read. Owned by one thread."""

    def __init__(
        self,
        consumer: "Consumer",
        source: Source,
        stops: Stops,
        show: "Callable[[Sequence[ConsumerRecord]], None]",
        limits: Limits,
        now_ms: Callable[[], int],
        *,
        has_ends: bool,
    ) -> None:
        """`show` has the records written when it returns. `has_ends`: partitions come to an end."""
        self._consumer: Final = consumer
        self._source: Final = source
        self._stops: Final = stops
        self._show: Final = show
        self._limits: Final = limits
        self._now_ms: Final = now_ms
        self._has_ends: Final = has_ends
        self.count = 0
        """Records that were shown."""

    def run(self) -> None:
        """Returns at the end. What was shown is committed then, also when it is interrupted."""
        try:
            self._source.start(self._now_ms())
            self._read()
        except BaseException:
            self._source.break_off()
            raise
        self._source.finish()

    def _read(self) -> None:
        consumer = self._consumer
        last_ms = self._now_ms()
        while not self._is_over():
            records = consumer.poll(self._wait_ms(last_ms)) if consumer.assignment() or consumer.subscription() else ()
            now_ms = self._now_ms()
            self._source.tick(now_ms)
            self._stops.tick(now_ms)
            if records:
                last_ms = now_ms
                self._take(records)
            elif self._limits.idle_ms is not None and now_ms - last_ms >= self._limits.idle_ms:
                return

    def _wait_ms(self, last_ms: int) -> float:
        wait_ms = POLL_TO_STOP_MS if self._has_ends else POLL_MS
        if self._limits.idle_ms is not None:
            wait_ms = min(wait_ms, max(last_ms + self._limits.idle_ms - self._now_ms(), 0))
        return wait_ms

    def _take(self, records: "ConsumerRecords") -> None:
        for partition, rows in records.by_partition().items():
            wanted = self._stops.cut(partition, rows)
            if self._limits.max_messages is not None:
                wanted = wanted[: self._limits.max_messages - self.count]
            if wanted:
                self._show(wanted)
                self.count += len(wanted)
                last = wanted[-1]
                # Behind the last record lie a transaction's marker, or records that compaction took away.
                is_whole = len(wanted) == len(rows) and partition in self._consumer.assignment()
                following = self._consumer.position(partition, 0) if is_whole else last.offset + 1
                self._source.shown(partition, OffsetAndMetadata(following, last.leader_epoch))

    def _is_over(self) -> bool:
        if self._limits.max_messages is not None and self.count >= self._limits.max_messages:
            return True
        if not self._has_ends:
            return False
        if done := self._stops.finish():
            self._consumer.pause(done)
        assigned = self._consumer.assignment()
        return bool(assigned) and self._stops.are_done(assigned)
