"""A producer whose transactions each carry a marker of how far they got: what is written again starts there."""

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeAlias

from kavka.client import Producer
from kavka.client.api_errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
)
from kavka.pipeline.secret_references import resolved_settings
from kavka.pipeline.sending.marker_reading import NOTHING_READ, MarkersRead, read_markers
from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerPlace
from kavka.pipeline.sending.steps import BEGUN, COMMITTED, FENCED, MARKED, SENT, OnStep, unwatched

TRANSACTION_TIMEOUT_MS: Final = 60_000
MOST_REQUEST_BYTES: Final = 32 << 20
"""As `buffer.memory`: how long a record may be is the broker's to say. A producer's own limit would end a job for good
by one that its source has taken.
"""
_FENCED: Final = (ProducerFencedError, InvalidProducerEpochError)

Row: TypeAlias = tuple[bytes | None, bytes | None, int | None, Sequence[tuple[str, bytes | None]]]
"""Key, value, time in milliseconds (None: now), headers."""


class TransactionTooLongError(KafkaError):
    """A transaction was aborted by its coordinator, as it was open for longer than its time limit."""


class FencedWriterError(KafkaError):
    """Another producer has taken over the marker: a later attempt at the same, or another driver."""


class Transactions(NamedTuple):
    """How transactions are: `timeout_ms` is `transaction.timeout.ms`, `rows` a limit of each one's rows (0: none).

    An open transaction holds back the last stable offset of what it writes to, for all readers of committed records:
    for its time limit at most.
    """

    timeout_ms: int = TRANSACTION_TIMEOUT_MS
    rows: int = 0


class MarkedProducer:
    """Opened, it is the only producer that can move its marker; `marker` is what the last transaction left.

    Use: `open`, and then for each transaction `begin`, any number of `send`, `commit`. Raises
    FencedWriterError when another one has been opened since, TransactionTooLongError, KafkaError. Close it then.
    Threads: one.
    """

    def __init__(
        self,
        place: MarkerPlace,
        name: MarkerName,
        transactions: Transactions = Transactions(),  # noqa: B008 - it is immutable
        on_step: OnStep = unwatched,
    ) -> None:
        """Raises ConfigError for settings that cannot be used. Nothing is connected yet."""
        self.name: Final = name
        self.marker: Marker | None = None
        self.read = NOTHING_READ
        """What was read of markers when it was opened, for whoever reads on."""
        self._place: Final = place
        self._timeout_ms: Final = transactions.timeout_ms
        self._on_step: Final = on_step
        self._began = 0.0
        self.producer: Final = Producer(
            {
                "linger.ms": "20",
                "batch.size": "131072",
                "max.request.size": str(MOST_REQUEST_BYTES),
                **resolved_settings(place.settings),
                "transactional.id": name.transactional_id,
                "transaction.timeout.ms": str(transactions.timeout_ms),
            }
        )

    def open(self, known: MarkersRead) -> Marker | None:
        """Shut out whoever has this marker now, end what he left open, and only then read how far he got."""
        try:
            self.producer.init_transactions()
        except KafkaError as error:
            raise self._meaning(error) from error
        self._on_step(FENCED)
        place, name = self._place, self.name
        # Where it goes now, and where it may have gone before the topic had so many partitions.
        unread = [each for each in range(place.partition_count) if each not in known.offsets]
        partitions = sorted({*unread, place.partition_of(name)})
        self.read = read_markers(place, known, 2 * self._timeout_ms, name.__eq__, partitions)
        self.marker = self.read.furthest(name)
        return self.marker

    def begin(self) -> None:
        """Open a transaction."""
        self.producer.begin_transaction()
        self._began = time.monotonic()
        self._on_step(BEGUN)

    def send(self, topic: str, partition: int | None, rows: Iterable[Row]) -> None:
        """Put rows into the transaction, in their order; without a partition each key's hash decides."""
        send = self.producer.send
        try:
            for key, value, timestamp_ms, headers in rows:
                send(topic, value, key, partition, timestamp_ms, headers)
        except KafkaError as error:
            raise self._meaning(error) from error

    def commit(self, marker: Marker) -> None:
        """End the transaction, with the marker in it."""
        deadline = time.monotonic() + self._timeout_ms / 1000
        producer, place = self.producer, self._place
        try:
            producer.flush()
            self._on_step(SENT)
            # Last, so that others' markers behind it have little to wait for.
            producer.send(place.topic, marker.encode(), self.name.encode(), place.partition_of(self.name))
            producer.flush()
            self._on_step(MARKED)
            while True:
                try:
                    producer.commit_transaction()
                    break
                except KafkaTimeoutError:
                    if time.monotonic() > deadline:
                        raise
        except KafkaError as error:
            raise self._meaning(error) from error
        self.marker = marker
        self._on_step(COMMITTED)

    def _meaning(self, error: KafkaError) -> KafkaError:
        """The error, or what it comes from."""
        found: BaseException | None = error
        kinds = []
        while found is not None:
            kinds.append(found)
            found = found.__cause__
        if not any(isinstance(each, (*_FENCED, InvalidTxnStateError)) for each in kinds):
            return error
        if self._began and time.monotonic() - self._began > self._timeout_ms / 1000:
            return TransactionTooLongError(
                f"a transaction to {self.name.topic}-{self.name.partition} was open for longer than "
                f"{self._timeout_ms} ms: give it a longer time limit, smaller batches, or fewer rows a transaction"
            )
        return FencedWriterError(f"{self.name.transactional_id!r} belongs to a later producer: {error}")

    def close(self) -> None:
        """What is open is aborted. Again is allowed."""
        self.producer.close(self._timeout_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
