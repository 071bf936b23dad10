"""Clients that go on while a broker's security changes, each in a thread of its own, and what each of them was told."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import Producer as RdProducer

from kavka.client import Consumer, Producer, TopicPartition
from kavka.protocol.errors import ErrorCode
from tests.support.processes import wait_until
from tests.support.wire import PRODUCE_VERSION, RawClient, batch_of, produce_request

TIMEOUT_S: Final = 60.0
TICK_S: Final = 0.01


class Told(NamedTuple):
    """What became of one record of a `Prober`."""

    sent_ns: int
    code: int
    offset: int


class Worker:
    """A thread that does `_step` until the block is left. What it raises is raised there.

    Threads: `_step` runs on its own; what that one writes others only read.
    """

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self._is_over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join(2 * TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self.name} hangs"
        if self._failure is not None and error is None:
            raise self._failure

    def check(self) -> None:
        """Raises AssertionError if it has ended."""
        if self._failure is not None:
            raise AssertionError(f"{self.name} has ended") from self._failure

    def _run(self) -> None:
        try:
            self._begin()
            while not self._is_over.is_set():
                self._step()
            self._finish()
        except BaseException as failure:  # noqa: BLE001 - raised where the block is left
            self._failure = failure

    def _begin(self) -> None: ...

    def _step(self) -> None:
        raise NotImplementedError

    def _finish(self) -> None: ...


class SteadyProducer(Worker):
    """Sends numbered values to each partition, `rate` a second in all; every one of them is to be acknowledged."""

    def __init__(self, name: str, settings: Mapping[str, str], topic: str, partitions: int, rate: int) -> None:
        super().__init__(name)
        self._settings = settings
        self._topic = topic
        self._partitions = partitions
        self._rate = rate
        self.sent = 0
        self.acknowledged = 0

    @property
    def unacknowledged(self) -> int:
        return self.sent - self.acknowledged

    def _begin(self) -> None:
        self._began_s = time.monotonic()

    def _step(self) -> None:
        due = int((time.monotonic() - self._began_s) * self._rate)
        # While the broker makes it wait only so much is under way.
        while self.sent < due and self.unacknowledged < self._rate:
            number = self.sent // self._partitions
            self._send(f"{self.name}:{number}:".encode().ljust(200, b"."), self.sent % self._partitions)
            self.sent += 1
        self._poll()
        self._is_over.wait(TICK_S)

    def _send(self, value: bytes, partition: int) -> None:
        raise NotImplementedError

    def _poll(self) -> None:
        """Hear of what is acknowledged. Raises what one of them failed with."""
        raise NotImplementedError


class KavkasProducer(SteadyProducer):
    """By Kavka's own client."""

    def __init__(self, name: str, settings: Mapping[str, str], topic: str, partitions: int, rate: int) -> None:
        super().__init__(name, settings, topic, partitions, rate)
        self._futures: deque[Any] = deque()
        self.renewals = self.closed_connections = 0.0
        """How often it has authenticated again, and lost a connection. Known at the end."""

    def _begin(self) -> None:
        self._producer = Producer(self._settings, linger_ms=5)
        super()._begin()

    def _send(self, value: bytes, partition: int) -> None:
        self._futures.append(self._producer.send(self._topic, value, partition=partition))

    def _poll(self) -> None:
        while self._futures and self._futures[0].done():
            self._take()

    def _finish(self) -> None:
        while self._futures:
            self._take()
        metrics = self._producer.metrics
        self.renewals = metrics["successful-reauthentication-total"]
        self.closed_connections = metrics["connection-close-total"]
        self._producer.close()

    def _take(self) -> None:
        self._futures.popleft().result(TIMEOUT_S)
        self.acknowledged += 1


class LibrdkafkasProducer(SteadyProducer):
    """By librdkafka, which knows nothing of Kavka."""

    def _begin(self) -> None:
        self._producer = RdProducer({**self._settings, "enable.idempotence": True, "linger.ms": 5})
        super()._begin()

    def _send(self, value: bytes, partition: int) -> None:
        self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)

    def _poll(self) -> None:
        self._producer.poll(0)

    def _finish(self) -> None:
        assert self._producer.flush(TIMEOUT_S) == 0

    def _delivered(self, error: object, _message: object) -> None:
        assert error is None, error
        self.acknowledged += 1


class SteadyConsumer(Worker):
    """Reads all partitions of a topic as a group's only member, and commits."""

    def __init__(self, settings: Mapping[str, str], topic: str, group_id: str) -> None:
        super().__init__(f"reader of {topic}")
        self._settings = settings
        self._topic = topic
        self._group_id = group_id
        self._awaited: int | None = None
        self.numbers: dict[tuple[str, int], list[int]] = {}
        """By producer and partition."""
        self.read = 0

    def wait_for(self, count: int) -> None:
        """Until it has read so many, and committed them."""
        wait_until(lambda: self.read >= count or self._failure, TIMEOUT_S, lambda: f"read {self.read} of {count}")
        self.check()

    def _begin(self) -> None:
        settings = {**self._settings, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        self._consumer = Consumer(settings, group_id=self._group_id)
        self._consumer.subscribe([self._topic])

    def _step(self) -> None:
        records = list(self._consumer.poll(100))
        for record in records:
            name, number, _ = bytes(record.value).split(b":", 2)
            self.numbers.setdefault((name.decode(), record.partition), []).append(int(number))
        if records:
            self._consumer.commit_sync()
            self.read += len(records)

    def _finish(self) -> None:
        partitions = {partition for _, partition in self.numbers}
        asked = [TopicPartition(self._topic, each) for each in partitions]
        self.committed = sum(each.offset for each in self._consumer.committed(asked).values() if each is not None)
        self._consumer.close()


class Prober(Worker):
    """Sends records to partition 0 of a topic over one connection, some at once, and keeps what it is told of each.

    It never authenticates again, and ends with its connection.
    """

    def __init__(self, name: str, connect: Callable[[], RawClient], topic: str, at_once: int) -> None:
        super().__init__(name)
        self._connect = connect
        self._topic = topic
        self._at_once = at_once
        self._under_way: deque[tuple[int, Any]] = deque()
        self.told: list[Told] = []
        self.is_closed = False

    @property
    def last_code(self) -> int | None:
        return self.told[-1].code if self.told else None

    def wait_for(self, code: ErrorCode, since_ns: int) -> None:
        """Until a record that was sent since then has become that."""
        wait_until(
            lambda: self._failure is not None or any(_is_told(each, code, since_ns) for each in self.told[-50:]),
            TIMEOUT_S,
            lambda: f"{self.name} is told {self.last_code} instead of {code}",
        )
        self.check()

    def _begin(self) -> None:
        self._client = self._connect()
        batch = batch_of([self.name.encode()], timestamp_ms=time.time_ns() // 1_000_000)
        self._request = produce_request(self._topic, batch)

    def _step(self) -> None:
        try:
            while len(self._under_way) < self._at_once:
                sent_ns = time.monotonic_ns()
                self._client.send(self._request, PRODUCE_VERSION)
                self._under_way.append((sent_ns, self._request))
            self._receive()
        except ConnectionError:
            self.is_closed = True
            self._is_over.set()

    def _receive(self) -> None:
        sent_ns, request = self._under_way.popleft()
        (topic,) = self._client.answer(request, PRODUCE_VERSION).responses
        (part,) = topic.partition_responses
        self.told.append(Told(sent_ns, part.error_code, part.base_offset))

    def _finish(self) -> None:
        while self._under_way and not self.is_closed:
            self._receive()
        self._client.close()


def _is_told(told: Told, code: int, since_ns: int) -> bool:
    return told.sent_ns > since_ns and told.code == code


class Guest(Worker):
    """Produces to partition 0 of a topic for as long as it is let in; what waits after that is dropped at the end."""

    def __init__(self, name: str, settings: Mapping[str, str], topic: str) -> None:
        super().__init__(name)
        self._settings = settings
        self._topic = topic
        self._sent_ns = 0
        self._under_way: Any = None
        self.heard_ns: list[int] = []
        """When each record was sent that was acknowledged."""

    def wait_until_heard(self) -> None:
        wait_until(lambda: self._failure is not None or self.heard_ns, TIMEOUT_S, f"{self.name} gets nothing through")
        self.check()

    def wait_until_silent(self, ms: float) -> None:
        """Until nothing of it was acknowledged for so long."""
        wait_until(
            lambda: self._failure is not None or time.monotonic_ns() - self.heard_ns[-1] > ms * 1_000_000,
            TIMEOUT_S,
            f"{self.name} is still heard",
        )
        self.check()

    def _begin(self) -> None:
        self._producer = Producer(self._settings)

    def _step(self) -> None:
        if self._under_way is None:
            self._sent_ns = time.monotonic_ns()
            self._under_way = self._producer.send(self._topic, b"value", partition=0)
        elif self._under_way.done():
            self._under_way.result()
            self._under_way = None
            self.heard_ns.append(self._sent_ns)
        else:
            self._is_over.wait(TICK_S)

    def _finish(self) -> None:
        self._producer.close(0)
