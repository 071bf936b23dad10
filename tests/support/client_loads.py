"""Loads by Kavka's own clients, each of whose records is accounted for: sent, read by groups, copied exactly once."""

from __future__ import annotations

import threading
import traceback
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kavka.client import Consumer, Producer
from kavka.client.api_errors import AbortableError, KafkaError, RebalanceInProgressError
from kavka.client.consumer import RebalanceListener
from kavka.client.consumer.group.errors import CommitFailedError
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.producer.delivery import RecordMetadata
from kavka.client.topic_partition import TopicPartition
from tests.support.processes import wait_until

TIMEOUT_S: Final = 180.0
TICK_S: Final = 0.02
AT_ONCE: Final = 4
LONG_MS: Final = 600_000

Settings = Mapping[str, Any]


class Load:
    """Something that goes on in a thread until `end`. `progress` counts; `surprise` is what it met unforeseen."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.progress = 0
        self.surprise = ""
        self.is_ending: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run_noted, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Let it come to its end, and wait for that. Raises AssertionError for a surprise."""
        self.is_ending.set()
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        assert not self.surprise, self.surprise

    def run(self) -> None:
        raise NotImplementedError

    def _run_noted(self) -> None:
        try:
            self.run()
        except BaseException:  # noqa: BLE001  # whoever waits raises it
            self.surprise = f"{self.name}: {traceback.format_exc()}"


def wait_for_progress(loads: Sequence[Load], more: int = 3) -> None:
    """Until each has come further from here on. Raises AssertionError for what surprised one of them."""
    wanted = {load: load.progress + more for load in loads}

    def have_gone_on() -> bool:
        for load in loads:
            assert not load.surprise, load.surprise
        return all(load.progress >= goal for load, goal in wanted.items())

    def late() -> str:
        return f"no progress: {[load.name for load, goal in wanted.items() if load.progress < goal]}"

    wait_until(have_gone_on, TIMEOUT_S, late)


class Feeding(Load):
    """An idempotent producer that sends numbers in turn to partitions, and notes what it is told of each.

    Progress is made when all partitions have got further.
    """

    def __init__(self, settings: Settings, topic: str, partitions: int) -> None:
        super().__init__(f"feeding {topic}")
        self._topic = topic
        self._partitions = partitions
        self.sent = 0
        self.heard: Counter[int] = Counter()
        self.offsets: dict[int, int] = {}
        self.errors: dict[int, KafkaError] = {}
        self._acknowledged = [0] * partitions
        self.producer = Producer({"linger.ms": 5, "batch.size": 500, "delivery.timeout.ms": LONG_MS, **settings})

    def run(self) -> None:
        with self.producer:
            while not self.is_ending.wait(TICK_S):
                for _ in range(AT_ONCE):
                    self._send(self.sent)
                    self.sent += 1

    def _send(self, number: int) -> None:
        partition = number % self._partitions

        def note(metadata: RecordMetadata, error: KafkaError | None) -> None:
            self.heard[number] += 1
            if error is not None:
                self.errors[number] = error
                return
            self.offsets[number] = metadata.offset
            self._acknowledged[partition] += 1
            self.progress = min(self._acknowledged)

        self.producer.send(self._topic, b"%d" % number, partition=partition, on_delivery=note)

    def check(self, rows: Sequence[Sequence[Any]]) -> None:
        """All that was sent is there once, in order, where its callback said; each callback came once."""
        assert self.errors == {}
        assert self.heard == Counter(range(self.sent))
        for partition in range(self._partitions):
            found = [int(row.value) for row in rows[partition]]
            assert found == list(range(partition, self.sent, self._partitions)), f"partition {partition}"
            assert [self.offsets[number] for number in found] == [row.offset for row in rows[partition]]


class Member(Load, RebalanceListener):
    """A consumer of a group, which commits by hand what it has read; see `Reading`."""

    def __init__(self, group: Reading, name: str, settings: Settings) -> None:
        super().__init__(name)
        self._group = group
        self._settings = settings
        self.owned: set[TopicPartition] = set()

    def run(self) -> None:
        with Consumer(self._settings) as consumer:
            consumer.subscribe([self._group.topic], self)
            while not self.is_ending.is_set():
                records = consumer.poll(200)
                for record in records:
                    self._group.read(self, record)
                if records:
                    self._commit(consumer)
            self._commit(consumer)

    def _commit(self, consumer: Consumer) -> None:
        places = {place: consumer.position(place) for place in consumer.assignment()}
        try:
            consumer.commit_sync({place: OffsetAndMetadata(offset) for place, offset in places.items()})
        except (CommitFailedError, RebalanceInProgressError):
            # The partitions went to others, or are about to.
            return
        self._group.committed(places)
        self.progress += 1

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        assert not self.owned & set(partitions), f"{self.name} is told twice of {partitions}"
        self.owned |= set(partitions)
        self._group.assigned(self, partitions)

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        assert set(partitions) <= self.owned, f"{self.name} is told of {partitions}, which it has not"
        self.owned -= set(partitions)


class Reading:
    """A group of members, whose reads and commits are held against one another.

    Threads: the members'; `_lock` guards all.
    """

    def __init__(self, topic: str, group_id: str, settings: Settings, members: int = 2) -> None:
        self.topic: Final = topic
        self.group_id: Final = group_id
        own = {"group.id": group_id, "auto.offset.reset": "earliest", "enable.auto.commit": False, **settings}
        self.members: Final = [Member(self, f"{group_id}-{number}", own) for number in range(members)]
        self.values: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
        self.at: dict[TopicPartition, int] = {}
        """What is committed, as far as members were told."""
        self._next: dict[tuple[Member, TopicPartition], int | None] = {}
        self._least: dict[tuple[Member, TopicPartition], int] = {}
        """What was committed when it was assigned."""
        self._lock = threading.Lock()

    def assigned(self, member: Member, partitions: Collection[TopicPartition]) -> None:
        with self._lock:
            for partition in partitions:
                self._next[member, partition] = None
                self._least[member, partition] = self.at.get(partition, 0)

    def read(self, member: Member, record: Any) -> None:
        """What a member reads goes on where it ended, or begins where others have committed: nothing is left out."""
        partition = record.topic_partition
        with self._lock:
            wanted = self._next[member, partition]
            if wanted is None:
                first, last = self._least[member, partition], len(self.values[partition])
                assert first <= record.offset <= last, f"{member.name} begins {partition} at {record.offset}"
            else:
                assert record.offset == wanted, f"{member.name} reads {record.offset} of {partition}, not {wanted}"
            before = self.values[partition].setdefault(record.offset, record.value)
            assert before == record.value, f"{partition} has two records at {record.offset}"
            self._next[member, partition] = record.offset + 1

    def committed(self, places: Mapping[TopicPartition, int]) -> None:
        with self._lock:
            for partition, offset in places.items():
                self.at[partition] = max(self.at.get(partition, 0), offset)

    def finish(self, ends: Mapping[TopicPartition, int]) -> None:
        """Wait until all is read and committed, then end."""

        def is_done() -> bool:
            for member in self.members:
                assert not member.surprise, member.surprise
            return self.at == ends

        wait_until(is_done, TIMEOUT_S, lambda: f"{self.group_id} committed {self.at} of {ends}")
        for member in self.members:
            member.end()


class Copying(Load):
    """Copies what a topic has to another one, in transactions that have the group's offsets, too."""

    def __init__(self, source: str, target: str, producer: Settings, consumer: Settings) -> None:
        super().__init__(f"copying to {target}")
        self._source = source
        self.target: Final = target
        own = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed"}
        self._consumer_settings = {"group.id": target, **own, **consumer}
        self.producer = Producer({"transactional.id": target, "max.block.ms": LONG_MS, **producer})
        self.at: dict[TopicPartition, int] = {}
        self.aborted = 0
        self.versions: set[int] = set()
        """Of the protocol by which transactions were committed."""

    def run(self) -> None:
        with self.producer, Consumer(self._consumer_settings) as consumer:
            self.producer.init_transactions()
            consumer.subscribe([self._source])
            while not self.is_ending.is_set():
                records = consumer.poll(200)
                if records:
                    self._copy(consumer, records)

    def _copy(self, consumer: Consumer, records: Sequence[Any]) -> None:
        producer = self.producer
        transactions = producer._transactions
        assert transactions is not None
        places = {record.topic_partition: record.offset + 1 for record in records}
        try:
            producer.begin_transaction()
            for record in records:
                producer.send(self.target, record.value, partition=record.partition)
            producer.send_offsets_to_transaction(places, consumer.group_metadata())
            producer.commit_transaction()
        except AbortableError:
            producer.abort_transaction()
            self.aborted += 1
            self._go_back(consumer)
            return
        self.at.update(places)
        self.versions.add(2 if transactions.is_transaction_v2 else 1)
        self.progress += 1

    def _go_back(self, consumer: Consumer) -> None:
        """Read on from what is committed; a partition that goes meanwhile is somebody else's."""
        for partition, place in consumer.committed(consumer.assignment()).items():
            consumer.seek(partition, 0 if place is None else place.offset)

    def finish(self, ends: Mapping[TopicPartition, int]) -> None:
        """Wait until all is copied, then end."""

        def is_done() -> bool:
            assert not self.surprise, self.surprise
            return self.at == ends

        wait_until(is_done, TIMEOUT_S, lambda: f"{self.name}: {self.at} of {ends}, {self.aborted} aborted")
        self.end()
