"""`kavka produce` at work: sends what was read, counts what was delivered, says what was not."""

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.cli.failing import Failure
from kavka.cli.produce.input_record import InputRecord
from kavka.cli.produce.inputs import Found
from kavka.cli.progress import Update, amount
from kavka.client.api_errors import KafkaError, KafkaTimeoutError

if TYPE_CHECKING:
    from kavka.client.producer.delivery import RecordMetadata
    from kavka.client.producer.producer import Producer

UPDATE_S: Final = 0.1


class Sending:
    """Sends records to one topic. `send_all` is for one thread; what became of records comes in on the producer's."""

    def __init__(
        self,
        producer: "Producer",
        topic: str,
        *,
        complain: Callable[[str], object],
        update: Update,
        waits: bool = False,
        partition: int | None = None,
    ) -> None:
        """`complain` is told of each record that failed, by any thread. `waits`: for each record, before the next."""
        self._producer: Final = producer
        self._topic: Final = topic
        self._complain: Final = complain
        self._update: Final = update
        self._waits: Final = waits
        self._partition: Final = partition
        self._partitions = 0
        self._lock: Final = threading.Lock()
        self._failed = 0
        self._first_error: KafkaError | None = None
        self.sent = 0

    @property
    def failed(self) -> int:
        """Records that were not delivered, or were none."""
        with self._lock:
            return self._failed

    @property
    def first_error(self) -> KafkaError | None:
        """Of a record that was not delivered."""
        with self._lock:
            return self._first_error

    def open(self) -> None:
        """Find the topic. Raises Failure for a partition that it does not have, KafkaTimeoutError, KafkaError."""
        self._partitions = len(self._producer.partitions_for(self._topic))
        if self._partition is not None and (problem := self._problem(self._partition)):
            raise Failure(problem)

    def send_all(self, found: Iterable[Found]) -> None:
        """Send them, and wait until each is delivered or has failed. Raises OSError, KafkaError."""
        began_s = updated_s = time.monotonic()
        read_bytes = 0
        for each in found:
            read_bytes += each.read_bytes
            problem = each.problem if each.record is None else self._send(each.where, each.record)
            if problem:
                self._note(f"{each.where}: {problem}")
            now_s = time.monotonic()
            if now_s - updated_s >= UPDATE_S:
                updated_s = now_s
                self._update(read_bytes, amount(self.sent, read_bytes, now_s - began_s))
        self.flush()

    def flush(self) -> None:
        """Wait until all that was sent is delivered or has failed."""
        self._producer.flush()

    def _send(self, where: str, record: InputRecord) -> str:
        """Why it cannot be sent; nothing if it is on its way."""
        partition = self._partition if record.partition is None else record.partition
        if partition is not None and (problem := self._problem(partition)):
            return problem
        future = self._producer.send(
            self._topic,
            record.value,
            record.key,
            partition,
            record.timestamp_ms,
            record.headers,
            on_delivery=partial(self._delivered, where),
        )
        self.sent += 1
        if self._waits:
            future.exception()
        return ""

    def _problem(self, partition: int) -> str:
        if partition < self._partitions:
            return ""
        return f"topic {self._topic} has no partition {partition}, it has {self._partitions}"

    def _delivered(self, where: str, _metadata: "RecordMetadata", error: KafkaError | None) -> None:
        if error is not None:
            with self._lock:
                self._first_error = self._first_error or error
            self._note(f"{where}: {error}")

    def _note(self, problem: str) -> None:
        with self._lock:
            self._failed += 1
            self._complain(problem)


def in_transaction(
    producer: "Producer", sending: Sending, found: Iterable[Found], complain: Callable[[str], object]
) -> bool:
    """Send all in one transaction, which is aborted unless each was delivered; whether it was committed.

    Raises what ended the sending, KeyboardInterrupt too, when the transaction has been aborted. A commit that has begun
    cannot be taken back: `complain` is told that it counts, and KeyboardInterrupt is raised behind it.
    """
    producer.init_transactions()
    producer.begin_transaction()
    try:
        sending.send_all(found)
        if not sending.failed:
            _commit(producer, complain)
            return True
    except BaseException:
        _abort(producer)
        raise
    _abort(producer)
    return False


def _commit(producer: "Producer", complain: Callable[[str], object]) -> None:
    """Raises KafkaError, and KeyboardInterrupt when it is committed."""
    try:
        _patiently(producer.commit_transaction)
    except KeyboardInterrupt:
        _patiently(producer.commit_transaction)
        complain("the transaction was being committed already: its records count")
        raise


def _abort(producer: "Producer") -> None:
    """What keeps it from being aborted, the broker does once the transaction's time is over: nothing of it counts."""
    try:
        producer.abort_transaction()
    except KafkaError:
        return


def _patiently(call: Callable[[], None]) -> None:
    """Once more, if it was not done in time: it goes on meanwhile. Raises KafkaError."""
    try:
        call()
    except KafkaTimeoutError:
        call()
