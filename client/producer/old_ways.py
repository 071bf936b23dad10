"""How the producer of Kafka 0.8 sends: waiting for each record, or into a queue that is bounded in records."""

import threading
from collections.abc import Callable
from typing import Final

from kavka.client.api_errors import KafkaError
from kavka.client.client_thread import ClientThread
from kavka.client.interceptors import ProducerRecord
from kavka.client.metadata import Metadata
from kavka.client.producer.accumulator import RecordAccumulator
from kavka.client.producer.delivery import OnDelivery
from kavka.client.producer.errors import FailedToSendMessageError, QueueFullError
from kavka.client.producer.old_settings import OldWays
from kavka.client.producer.pipeline import Pipeline
from kavka.client.producer.send_future import SendFuture


class OldSending:
    """The way of 0.8's `send`. Threads: any; `_lock` guards `_unsent`."""

    def __init__(
        self,
        ways: OldWays,
        pipeline: Pipeline,
        thread: ClientThread,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        now_ms: Callable[[], float],
        max_block_ms: float,
    ) -> None:
        self._ways: Final = ways
        self._pipeline: Final = pipeline
        self._thread: Final = thread
        self._accumulator: Final = accumulator
        self._metadata: Final = metadata
        self._now_ms: Final = now_ms
        self._max_block_ms: Final = max_block_ms
        self._room: Final = threading.Semaphore(ways.queue_records)
        self._lock: Final = threading.Lock()
        self._unsent = 0

    def send(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> SendFuture:
        """Send a record. With sync it has been delivered then, or FailedToSendMessageError is raised; with async the
        future and the callback have the error. Raises QueueFullError.
        """
        if self._ways.is_sync:
            self._refuse_callbacks()
        if self._ways.refreshes_always and not self._thread.is_owner:
            self._thread.start()
            self._metadata.wait_for(self._metadata.request_update(), self._now_ms() + self._max_block_ms)
        if self._ways.is_sync:
            return self._delivered(self._pipeline.send(record, on_delivery))
        self._enter(record.topic)
        try:
            future = self._pipeline.send(record, on_delivery)
        except BaseException:
            self._room.release()
            raise
        future.add_done_callback(self._left)
        with self._lock:
            self._unsent += 1
            is_full = self._unsent >= self._ways.batch_records
            if is_full:
                self._unsent = 0
        if is_full:
            self._accumulator.push()
        return future

    def send_many(self, records: list[ProducerRecord], on_delivery: OnDelivery | None) -> list[SendFuture]:
        """Send records; with sync they go out together, and are waited for together."""
        if not self._ways.is_sync:
            return [self.send(record, on_delivery) for record in records]
        self._refuse_callbacks()
        futures = [self._pipeline.send(record, on_delivery) for record in records]
        for future in futures:
            self._delivered(future)
        return futures

    def _refuse_callbacks(self) -> None:
        if self._thread.is_owner:
            raise KafkaError("a callback cannot send with producer.type=sync: it would wait for itself")

    def _delivered(self, future: SendFuture) -> SendFuture:
        error = future.exception()
        if error is not None:
            message = f"Failed to send messages to {future.delivery.topic_partition}: {error}"
            raise FailedToSendMessageError(message) from error
        return future

    def _enter(self, topic: str) -> None:
        if self._room.acquire(blocking=False):
            return
        timeout_ms = self._ways.enqueue_timeout_ms
        if timeout_ms and not self._thread.is_owner:
            # Who waits for room has the queue sent, full batch or not.
            self._accumulator.push()
            if self._room.acquire(timeout=None if timeout_ms < 0 else timeout_ms / 1000):
                return
        raise QueueFullError(f"Event queue is full of unsent messages, could not send event to {topic!r}")

    def _left(self, _future: SendFuture) -> None:
        self._room.release()
