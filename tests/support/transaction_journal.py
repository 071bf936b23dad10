"""What became of transactions, as their producers know it, held against what read_committed readers see."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import Final, TypeAlias

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.support.server import RunningServer

Place: TypeAlias = tuple[str, int]
"""A topic's partition."""
View: TypeAlias = dict[Place, list[tuple[int, str]]]
"""By partition: (offset, value), in order."""

READ_TIMEOUT_S: Final = 60.0


class Fate(Enum):
    """How a transaction ended, as far as its producer was told."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """Nobody was told: all of it stands, or nothing."""


class Journal:
    """What producers were told. Threads: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[tuple[Fate, tuple[tuple[Place, str], ...]]] = []
        self.surprises: list[str] = []
        """What should not have been answered."""
        self.counts: Counter[str] = Counter()

    def note(self, fate: Fate, what: str, records: Iterable[tuple[Place, str]]) -> None:
        with self._lock:
            self._entries.append((fate, tuple(records)))
            self.counts[f"{what} {fate.value}"] += 1

    def surprise(self, what: str) -> None:
        with self._lock:
            self.surprises.append(what)

    def contradictions(self, view: View) -> list[str]:
        """Where what readers see is not what producers were told."""
        found = []
        seen = Counter((partition, value) for partition, rows in view.items() for _, value in rows)
        told: set[tuple[Place, str]] = set()
        for fate, records in self._entries:
            told.update(records)
            present = [record for record in records if seen[record]]
            if fate is Fate.COMMITTED and len(present) != len(records):
                found.append(f"committed and not there: {set(records) - set(present)}")
            if fate is Fate.ABORTED and present:
                found.append(f"aborted and there: {present}")
            if fate is Fate.UNKNOWN and present and len(present) != len(records):
                found.append(f"there in part: {present} of {records}")
        found += [f"there {count} times: {record}" for record, count in seen.items() if count > 1]
        found += [f"there and in no journal: {record}" for record in seen if record not in told]
        return found


def committed_view(broker: RunningServer, partitions: Iterable[Place]) -> View:
    """All that a read_committed reader sees now, from the beginning to where it ends."""
    view: View = {each: [] for each in partitions}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 2,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in view])
        unread = set(view)
        deadline = time.monotonic() + READ_TIMEOUT_S
        while unread:
            assert time.monotonic() < deadline, f"not read in time: {unread}"
            for message in consumer.consume(1000, 0.2):
                error, topic, index = message.error(), message.topic(), message.partition()
                assert topic is not None
                assert index is not None
                if error is None:
                    offset, value = message.offset(), message.value()
                    assert offset is not None
                    view[topic, index].append((offset, (value or b"").decode()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard((topic, index))
    finally:
        consumer.close()
    return view
