"""The consumers of confluent-kafka, kafka-python, aiokafka and Kavka, as `group_member` drives them.

Settings come by Kafka's names; each class translates what its library calls otherwise. Imports are local, so that a
member process loads its own library alone.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from tests.support.group_member import BATCH_RECORDS, POLL_S, Journal, Library, Offsets, Report, split_partition

CALL_TIMEOUT_S = 120.0
KAFKA_PYTHON_POLL_MS = 500
INTEGERS = {
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "max.poll.records",
    "auto.commit.interval.ms",
    "metadata.max.age.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "fetch.max.wait.ms",
}


class Confluent:
    """librdkafka tells no generation."""

    generation = None

    def __init__(self, settings: dict[str, str], topics: list[str], pattern: str | None, journal: Journal) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._partition, self._journal = TopicPartition, journal
        for unknown in ("max.poll.records", "reconnect.backoff.max.ms"):
            settings.pop(unknown, None)
        self._consumer: Any = Consumer({**settings, "log_level": 3})
        self._consumer.subscribe(
            [pattern] if pattern else topics,
            on_assign=lambda _, found: journal.assigned(_named(found)),
            on_revoke=lambda _, found: journal.revoked(_named(found)),
            on_lost=lambda _, found: journal.lost(_named(found)),
        )

    def poll(self, report: Report) -> dict[str, int]:
        messages = self._consumer.consume(BATCH_RECORDS, POLL_S)
        found = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                self._journal.note("error", error=f"{message.error().name()}: {message.error().str()}")
        return report((f"{message.topic()}-{message.partition()}", message.offset()) for message in found)

    def commit(self, offsets: Offsets) -> None:
        for each in self._consumer.commit(offsets=self._asked(offsets), asynchronous=False):
            if each.error is not None:
                raise RuntimeError(each.error.name())

    def commit_async(self, offsets: Offsets, done: Callable[[Exception | None], None]) -> None:
        raise NotImplementedError("its callback cannot be told which commit it is about")

    def pause(self) -> None:
        self._consumer.pause(self._consumer.assignment())

    def resume(self) -> None:
        self._consumer.resume(self._consumer.assignment())

    def seek(self, partition: str, offset: int) -> None:
        self._consumer.seek(self._partition(*split_partition(partition), offset))

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()

    def _asked(self, offsets: Offsets) -> list[Any]:
        return [self._partition(*split_partition(name), offset) for name, offset in offsets.items()]


class KafkaPython:
    def __init__(self, settings: dict[str, str], topics: list[str], pattern: str | None, journal: Journal) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is not typed
            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                journal.revoked(_named(revoked))

            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                journal.assigned(_named(assigned))

            def on_partitions_lost(self, lost: Iterable[Any]) -> None:
                journal.lost(_named(lost))

        assignors = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "cooperative-sticky": CooperativeStickyAssignor,
        }
        self._partition, self._offset = TopicPartition, OffsetAndMetadata
        self._consumer: Any = KafkaConsumer(**_underscored(settings, assignors))
        journal.generation_of = lambda: self.generation
        # 3.0.12 sometimes never wakes from a rebalance (with Apache Kafka neither) when a topic's metadata comes during
        # it, or when poll's time ends in the middle: hence the question, and the longer polls.
        for topic in topics:
            self._consumer.partitions_for_topic(topic)
        self._consumer.subscribe(topics=topics, pattern=pattern, listener=Listener())

    @property
    def generation(self) -> int | None:
        return int(self._consumer._coordinator._generation.generation_id)

    def poll(self, report: Report) -> dict[str, int]:
        return report(_of_partitions(self._consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS)))

    def commit(self, offsets: Offsets) -> None:
        self._consumer.commit(self._asked(offsets))

    def commit_async(self, offsets: Offsets, done: Callable[[Exception | None], None]) -> None:
        def answered(_: Any, answer: Any) -> None:
            done(answer if isinstance(answer, Exception) else None)

        self._consumer.commit_async(self._asked(offsets), callback=answered)

    def pause(self) -> None:
        self._consumer.pause(*self._consumer.assignment())

    def resume(self) -> None:
        self._consumer.resume(*self._consumer.assignment())

    def seek(self, partition: str, offset: int) -> None:
        self._consumer.seek(self._partition(*split_partition(partition)), offset)

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()

    def _asked(self, offsets: Offsets) -> dict[Any, Any]:
        return {self._partition(*split_partition(name)): self._offset(at, "", -1) for name, at in offsets.items()}


class Aiokafka:
    """Its event loop runs in a thread of its own, so that it sends heartbeats while a batch is processed."""

    def __init__(self, settings: dict[str, str], topics: list[str], pattern: str | None, journal: Journal) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is not typed
            def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                journal.revoked(_named(revoked))

            def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                journal.assigned(_named(assigned))

        assignors = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
        self._partition = TopicPartition
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        journal.generation_of = lambda: self.generation
        for unknown in ("reconnect.backoff.ms", "reconnect.backoff.max.ms"):
            settings.pop(unknown, None)
        names = _underscored(settings, assignors)

        async def start() -> None:
            self._consumer: Any = AIOKafkaConsumer(**names)
            self._consumer.subscribe(topics=topics, pattern=pattern, listener=Listener())
            await self._consumer.start()

        self._call(start())

    @property
    def generation(self) -> int | None:
        return int(getattr(self._consumer._coordinator, "generation", -1))

    def poll(self, report: Report) -> dict[str, int]:
        async def poll() -> dict[str, int]:
            return report(_of_partitions(await self._consumer.getmany(timeout_ms=int(POLL_S * 1000))))

        found: dict[str, int] = self._call(poll())
        return found

    def commit(self, offsets: Offsets) -> None:
        self._call(self._consumer.commit(self._asked(offsets)))

    def commit_async(self, offsets: Offsets, done: Callable[[Exception | None], None]) -> None:
        async def commit() -> None:
            try:
                await self._consumer.commit(self._asked(offsets))
            except Exception as error:  # noqa: BLE001 - handed on to who asked
                done(error)
            else:
                done(None)

        asyncio.run_coroutine_threadsafe(commit(), self._loop)

    def pause(self) -> None:
        self._loop.call_soon_threadsafe(self._consumer.pause, *self._consumer.assignment())

    def resume(self) -> None:
        self._loop.call_soon_threadsafe(self._consumer.resume, *self._consumer.assignment())

    def seek(self, partition: str, offset: int) -> None:
        self._loop.call_soon_threadsafe(self._consumer.seek, self._partition(*split_partition(partition)), offset)

    def unsubscribe(self) -> None:
        self._loop.call_soon_threadsafe(self._consumer.unsubscribe)

    def close(self) -> None:
        self._call(self._consumer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _call(self, action: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(action, self._loop).result(CALL_TIMEOUT_S)

    def _asked(self, offsets: Offsets) -> dict[Any, int]:
        return {self._partition(*split_partition(name)): offset for name, offset in offsets.items()}


class Kavka:
    """Our own consumer."""

    def __init__(self, settings: dict[str, str], topics: list[str], pattern: str | None, journal: Journal) -> None:
        from kavka.client.consumer.consumer import Consumer
        from kavka.client.consumer.group.port import RebalanceListener

        class Listener(RebalanceListener):
            def on_revoked(self, partitions: Iterable[Any]) -> None:
                journal.revoked(_named(partitions))

            def on_assigned(self, partitions: Iterable[Any]) -> None:
                journal.assigned(_named(partitions))

            def on_lost(self, partitions: Iterable[Any]) -> None:
                journal.lost(_named(partitions))

        self._consumer = Consumer(settings)
        journal.generation_of = lambda: self.generation
        self._consumer.subscribe(re.compile(pattern) if pattern else topics, Listener())

    @property
    def generation(self) -> int | None:
        return self._consumer.group_metadata().generation_id

    def poll(self, report: Report) -> dict[str, int]:
        records = self._consumer.poll(POLL_S * 1000)
        return report((f"{record.topic}-{record.partition}", record.offset) for record in records)

    def commit(self, offsets: Offsets) -> None:
        self._consumer.commit_sync(self._asked(offsets))

    def commit_async(self, offsets: Offsets, done: Callable[[Exception | None], None]) -> None:
        self._consumer.commit_async(self._asked(offsets), lambda _, error: done(error))

    def pause(self) -> None:
        self._consumer.pause(self._consumer.assignment())

    def resume(self) -> None:
        self._consumer.resume(self._consumer.assignment())

    def seek(self, partition: str, offset: int) -> None:
        self._consumer.seek(self._partition(partition), offset)

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()

    def _partition(self, name: str) -> Any:
        from kavka.client.topic_partition import TopicPartition

        return TopicPartition(*split_partition(name))

    def _asked(self, offsets: Offsets) -> dict[Any, Any]:
        from kavka.client.consumer.group.port import OffsetAndMetadata

        return {self._partition(name): OffsetAndMetadata(offset) for name, offset in offsets.items()}


def _named(partitions: Iterable[Any]) -> list[str]:
    return [f"{each.topic}-{each.partition}" for each in partitions]


def _of_partitions(found: Mapping[Any, Iterable[Any]]) -> Iterable[tuple[str, int]]:
    for partition, records in found.items():
        for record in records:
            yield f"{partition.topic}-{partition.partition}", record.offset


def _underscored(settings: Mapping[str, str], assignors: Mapping[str, type]) -> dict[str, Any]:
    """Kafka's settings as keyword arguments of the Python clients."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        argument = name.replace(".", "_")
        if name in INTEGERS:
            found[argument] = int(value)
        elif name == "enable.auto.commit":
            found[argument] = value == "true"
        elif name == "partition.assignment.strategy":
            found[argument] = [assignors[each] for each in value.split(",")]
        else:
            found[argument] = value
    return found


LIBRARIES: dict[str, Callable[[dict[str, str], list[str], str | None, Journal], Library]] = {
    "confluent": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
    "kavka": Kavka,
}
