"""A topic that is made, written, read and deleted again and again, under one name."""

import contextlib
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.chaos.clients import Client, Engagement
from tests.chaos.history import Life
from tests.support.processes import let_pass
from tests.support.wire import Wire

CALL_S: Final = 10.0
WRITE_S: Final = 30.0
READ_S: Final = 60.0
RECORDS: Final = 20
METADATA_VERSION: Final = 12
PAUSE_S: Final = 0.1


class Recreator(Client):
    """One life after the other; each topic id is one."""

    def __init__(self, engagement: Engagement, *, topic: str) -> None:
        super().__init__(engagement)
        self.topic = topic

    def work(self) -> None:
        admin = AdminClient(self.settings())
        former = bytes(16)
        while not self.is_over.is_set():
            found = self._until_known(admin, former)
            if found is None:
                return
            former = found
            acknowledged = self._write(self.done)
            self.history.note_life(Life(self.topic, self.done, tuple(acknowledged), tuple(self._read(acknowledged))))
            self._until_gone(admin, former)
            self.done += 1

    def _until_known(self, admin: AdminClient, former: bytes) -> bytes | None:
        """Create it until there is one of another id with a leader: that id."""
        new = NewTopic(self.topic, num_partitions=1, replication_factor=3)
        while not self.is_over.is_set():
            self._try(admin.create_topics([new], operation_timeout=CALL_S)[self.topic])
            for _ in range(20):
                found = self._look()
                if found is not None and found[0] != former and found[1] >= 0:
                    return found[0]
                let_pass(PAUSE_S)
        return None

    def _until_gone(self, admin: AdminClient, topic_id: bytes) -> None:
        while not self.is_over.is_set():
            self._try(admin.delete_topics([self.topic], operation_timeout=CALL_S)[self.topic])
            for _ in range(20):
                found = self._look()
                if found is not None and found[0] != topic_id:
                    return
                let_pass(PAUSE_S)

    def _try(self, asked: "Future[Any]") -> None:
        # What became of it is seen in the metadata: an answer may be lost, and done be what is refused now.
        with contextlib.suppress(KafkaException):
            asked.result(2 * CALL_S)

    def _look(self) -> tuple[bytes, int] | None:
        """The topic's id and leader as some broker knows it: no id where there is none; None where nobody answers."""
        for bootstrap in self.bootstrap.split(","):
            host, _, port = bootstrap.rpartition(":")
            with contextlib.suppress(OSError), Wire(host, int(port), timeout_s=2.0) as wire:
                asked = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=False)
                (told,) = wire.ask(asked, METADATA_VERSION).topics
                return bytes(told.topic_id), min((each.leader_id for each in told.partitions), default=-1)
        return None

    def _write(self, life: int) -> list[tuple[int, str]]:
        """What was acknowledged, and where."""
        acknowledged: list[tuple[int, str]] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset, value = message.offset(), message.value()
            if error is None and offset is not None and value is not None:
                acknowledged.append((offset, value.decode()))

        producer = Producer(self.settings(acks="all", message_timeout_ms=int(WRITE_S * 1000)))
        for number in range(RECORDS):
            producer.produce(self.topic, f"{self.topic}.{life}:{number}".encode(), partition=0, on_delivery=delivered)
        producer.flush(2 * WRITE_S)
        return acknowledged

    def _read(self, acknowledged: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """All from the beginning; again where that is another life's: a broker that was away tells of an old one."""
        wanted = set(acknowledged)
        prefix = f"{self.topic}.{self.done}:"
        read: list[tuple[int, str]] = []
        for _ in range(int(READ_S / CALL_S)):
            consumer = Consumer(self.settings(group_id=self.name, auto_offset_reset="earliest"))
            consumer.assign([TopicPartition(self.topic, 0, 0)])
            read = []
            for _ in range(int(CALL_S / 0.2)):
                for message in consumer.consume(1000, 0.2):
                    offset = message.offset()
                    if message.error() is None and offset is not None:
                        read.append((offset, (message.value() or b"").decode()))
                if wanted <= set(read):
                    break
            consumer.close()
            if wanted <= set(read) and all(value.startswith(prefix) for _, value in read):
                break
        return read
