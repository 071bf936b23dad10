"""Clients that never tire, each a thread with librdkafka: numbering producers, readers, group members, a watcher.

They note in a `History` what they do, are told and see. A cluster that does not answer is waited for.
"""

import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.history import NOWHERE, Acknowledged, History, Isolation, Jump, Look, Place

FLUSH_S: Final = 300.0
NEVER_MS: Final = 3_600_000
ASK_S: Final = 5.0
TICK_S: Final = 0.02

COMMON: Final[Mapping[str, Any]] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "socket.timeout.ms": 10_000,
    "topic.metadata.refresh.interval.ms": 5_000,
    # librdkafka 2.16 that bootstraps anew may leave a TxnOffsetCommit with a handle that it has given up.
    "metadata.recovery.strategy": "none",
    # No logger of Python's: one was called with an error of librdkafka's pending, and ended its client (SystemError).
    "log_level": 0,
}


class Engagement(NamedTuple):
    """What every client is told: its name, whom to ask, where to note what comes of it, and when to stop."""

    name: str
    bootstrap: str
    history: History
    is_over: threading.Event


class Client(threading.Thread):
    """Works until `is_over` is set. `failure`: what ended it before."""

    def __init__(self, engagement: Engagement) -> None:
        super().__init__(name=engagement.name, daemon=True)
        _, self.bootstrap, self.history, self.is_over = engagement
        self.failure: BaseException | None = None
        self.done = 0
        """How often it has got through what it does: it grows while the cluster serves."""
        self.trouble = ""
        """What failed last, for who wonders why it does not get through."""

    def run(self) -> None:
        try:
            self.work()
        except BaseException as failure:
            self.failure = failure
            raise

    def work(self) -> None:
        raise NotImplementedError

    def group_member(self, group: str, topic: str, **others: Any) -> Consumer:
        """A consumer that has joined the group, or is about to; nothing is committed but by who calls."""
        consumer = Consumer(
            self.settings(
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=6000,
                heartbeat_interval_ms=1000,
                fetch_wait_max_ms=200,
                **others,
            )
        )
        consumer.subscribe([topic])
        return consumer

    def settings(self, **others: Any) -> dict[str, Any]:
        """Of a librdkafka client; underscores for dots."""
        return {
            **COMMON,
            "bootstrap.servers": self.bootstrap,
            **{key.replace("_", "."): value for key, value in others.items()},
        }


class NumberingProducer(Client):
    """Sends `NAME:NUMBER`, numbered in each partition, acks=all, and never gives one up.

    Without idempotence one record a partition is under way at a time: what is sent again may be there twice, but the
    next one lies behind. (librdkafka's max.in.flight counts by broker: after an election it reorders.)
    """

    def __init__(self, engagement: Engagement, *, places: Sequence[Place], is_idempotent: bool, rate: float) -> None:
        super().__init__(engagement)
        self.places = places
        self.is_idempotent = is_idempotent
        self.acknowledged = dict.fromkeys(places, 0)
        self._pause_s = len(places) / rate
        self._failures = 0
        if is_idempotent:
            self.history.idempotent.add(self.name)

    def work(self) -> None:
        producer = Producer(
            self.settings(
                acks="all",
                enable_idempotence=self.is_idempotent,
                # With more under way librdkafka (its issue 4953) begins another epoch when one of them is refused for
                # the gap that another left, and sends again under it what may be there already.
                max_in_flight=1,
                message_timeout_ms=NEVER_MS,
                message_send_max_retries=2**31 - 1,
                linger_ms=5,
                retry_backoff_ms=50,
                request_timeout_ms=5_000,
            )
        )
        numbers = dict.fromkeys(self.places, 0)
        while not self.is_over.is_set() and self._failures == 0:
            for place in self.places:
                if self.is_idempotent or self.acknowledged[place] == numbers[place]:
                    self._send(producer, place, numbers[place])
                    numbers[place] += 1
            producer.poll(self._pause_s)
        left = producer.flush(FLUSH_S)
        if left:
            self.history.surprise(f"{self.name} waits for {left} records {FLUSH_S} s after all was well again")
            producer.purge()

    def _send(self, producer: Producer, place: Place, number: int) -> None:
        value = f"{self.name}:{number}"

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failures += 1
                self.history.surprise(f"{self.name} is told of {value} to {place}: {error}")
                return
            # None: a duplicate, of which the broker does not remember any more where it lies.
            offset = message.offset()
            self.done += 1
            self.acknowledged[place] += 1
            self.history.note_acknowledged(
                Acknowledged(self.name, place, number, NOWHERE if offset is None else offset, value)
            )

        self.history.note_sent(self.name, place, number)
        while True:
            try:
                producer.produce(place[0], value.encode(), partition=place[1], on_delivery=delivered)
                return
            except BufferError:
                producer.poll(0.1)


class Reader(Client):
    """Reads partitions from their beginning on, in no group, and notes all that it is given and what it passed over."""

    def __init__(self, engagement: Engagement, *, places: Sequence[Place], isolation: Isolation) -> None:
        super().__init__(engagement)
        self.places = places
        self.isolation = isolation
        self._last = dict.fromkeys(places, -1)

    def work(self) -> None:
        consumer = Consumer(
            self.settings(
                group_id=self.name,
                enable_auto_commit=False,
                isolation_level=self.isolation.value,
                auto_offset_reset="error",
                fetch_wait_max_ms=200,
                fetch_error_backoff_ms=50,
            )
        )
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in self.places])
        while not self.is_over.is_set():
            self._take(consumer.consume(1000, 0.2))
        consumer.close()

    def _take(self, messages: Iterable[Message]) -> None:
        by_place: dict[Place, list[tuple[int, str]]] = {}
        for message in messages:
            place, offset = _place(message), message.offset()
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._AUTO_OFFSET_RESET:
                    self.history.surprise(f"{self.name} is told that {place} ends before what it has read: {error}")
                continue
            assert offset is not None
            by_place.setdefault(place, []).append((offset, (message.value() or b"").decode()))
            if offset != self._last[place] + 1:
                self.history.note_jump(Jump(self.isolation, place, self._last[place], offset))
            self._last[place] = offset
        for place, records in by_place.items():
            self.done += len(records)
            self.history.note_read(self.name, self.isolation, place, records)


class GroupMember(Client):
    """Consumes in a group, commits what it has consumed, and leaves and joins again at times."""

    def __init__(self, engagement: Engagement, *, topic: str, group: str, dice: random.Random) -> None:
        super().__init__(engagement)
        self.topic = topic
        self.group = group
        self._dice = dice

    def work(self) -> None:
        while not self.is_over.is_set():
            consumer = self.group_member(self.group, self.topic)
            for _ in range(self._dice.randrange(50, 300)):
                if self.is_over.is_set():
                    break
                self._go_on(consumer)
            consumer.close()

    def _go_on(self, consumer: Consumer) -> None:
        positions: dict[Place, int] = {}
        for message in consumer.consume(200, 0.3):
            offset = message.offset()
            if message.error() is None and offset is not None:
                positions[_place(message)] = offset + 1
        if not positions:
            return
        began = self.history.moment()
        try:
            told = consumer.commit(
                offsets=[TopicPartition(*place, offset) for place, offset in positions.items()], asynchronous=False
            )
        except KafkaException as failure:
            self.trouble = str(failure)
            return
        committed = [each for each in told or () if each.error is None]
        ended = self.history.moment()
        self.done += len(committed)
        self.history.note_looks(
            Look(self.group, (each.topic, each.partition), each.offset, began, ended, True) for each in committed
        )


class OffsetsWatcher(Client):
    """Asks for a group's committed offsets again and again."""

    def __init__(self, engagement: Engagement, *, group: str, places: Sequence[Place]) -> None:
        super().__init__(engagement)
        self.group = group
        self.places = places

    def work(self) -> None:
        consumer = Consumer(self.settings(group_id=self.group))
        while not self.is_over.wait(0.5):
            began = self.history.moment()
            try:
                told = consumer.committed([TopicPartition(*place) for place in self.places], ASK_S)
            except KafkaException as failure:
                self.trouble = str(failure)
                continue
            ended = self.history.moment()
            self.done += 1
            self.history.note_looks(
                Look(self.group, (each.topic, each.partition), max(each.offset, -1), began, ended, False)
                for each in told
                if each.error is None
            )
        consumer.close()


def _place(message: Message) -> Place:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return topic, partition
