"""A cluster's load by Kavka's own clients of every kind, and what all of it has come to in the end."""

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from kafka import KafkaConsumer
from kafka import TopicPartition as Place

from kavka.client import Admin
from kavka.client.admin import NewTopic
from kavka.client.topic_partition import TopicPartition
from tests.support.client_cluster import IDS, QUICK, ClientCluster
from tests.support.client_loads import LONG_MS, TIMEOUT_S, Copying, Feeding, Load, Reading, wait_for_progress
from tests.support.processes import wait_until

PARTITIONS: Final = len(IDS)
PROTOCOLS: Final[dict[str, dict[str, Any]]] = {
    "classic": {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 300, "max.poll.interval.ms": 60_000},
    "consumer": {"group.protocol": "consumer"},
}
"""Of groups."""


class Survivors(NamedTuple):
    """Loads that have come to their end, and what their source has then."""

    feeding: Feeding
    readings: dict[str, Reading]
    copies: dict[str, Copying]
    rows: list[list[Any]]
    ends: dict[TopicPartition, int]

    def check(self, admin: Admin, bootstrap: str) -> None:
        """All that can be asked of them."""
        self.feeding.check(self.rows)
        for protocol in PROTOCOLS:
            self.check_reading(protocol, admin)
            self.check_copies(protocol, admin, bootstrap)

    def check_reading(self, protocol: str, admin: Admin) -> None:
        """A group has read all there is, and its commits are still there."""
        reading = self.readings[protocol]
        for partition, end in self.ends.items():
            found = reading.values[partition]
            assert [found[offset] for offset in range(end)] == [row.value for row in self.rows[partition.partition]]
        assert committed(admin, reading.group_id) == self.ends

    def check_copies(self, protocol: str, admin: Admin, bootstrap: str) -> None:
        """Each record was copied once, in order, and the group's offsets say so."""
        target = self.copies[protocol].target
        for found, rows in zip(rows_of(bootstrap, target), self.rows, strict=True):
            assert [row.value for row in found] == [row.value for row in rows]
        assert committed(admin, target) == self.ends


class Loads:
    """One of each kind, on topics whose partitions are led by all brokers."""

    def __init__(self, cluster: ClientCluster, admin: Admin, suffix: str = "") -> None:
        self.source = f"numbers{suffix}"
        self.targets = {protocol: f"copies-{protocol}{suffix}" for protocol in PROTOCOLS}
        self.topics = [self.source, *self.targets.values()]
        # Each broker is the preferred leader of one.
        placed = {number: [*IDS[number:], *IDS[:number]] for number in range(PARTITIONS)}
        admin.create_topics([NewTopic(topic, assignment=placed) for topic in self.topics])
        # All brokers may have moved by the time that a client looks: one address stays.
        quick = {**QUICK, "bootstrap.servers": f"{cluster.door.bootstrap},{cluster.bootstrap}"}
        self.feeding = Feeding(quick, self.source, PARTITIONS)
        self.readings = {
            protocol: Reading(self.source, f"{protocol}{suffix}", {**quick, **settings})
            for protocol, settings in PROTOCOLS.items()
        }
        transactional = {**quick, "transaction.timeout.ms": LONG_MS}
        self.copies = {
            protocol: Copying(self.source, self.targets[protocol], transactional, {**quick, **settings})
            for protocol, settings in PROTOCOLS.items()
        }
        members = [member for reading in self.readings.values() for member in reading.members]
        self.all: list[Load] = [self.feeding, *members, *self.copies.values()]

    def start(self) -> None:
        for load in self.all:
            load.start()
        wait_for_progress(self.all)

    def finish(self, bootstrap: str) -> Survivors:
        self.feeding.end()
        rows = rows_of(bootstrap, self.source)
        ends = {TopicPartition(self.source, number): len(found) for number, found in enumerate(rows)}
        for reading in self.readings.values():
            reading.finish(ends)
        for copying in self.copies.values():
            copying.finish(ends)
        return Survivors(self.feeding, self.readings, self.copies, rows, ends)


def committed(admin: Admin, group_id: str) -> dict[TopicPartition, int]:
    found = admin.list_group_offsets({group_id: None}, require_stable=True)[group_id]
    return {partition: place.offset for partition, place in found.items() if place is not None}


def rows_of(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> list[list[Any]]:
    """What another library reads of each partition, committed records alone. No transaction is open any more."""
    places = [Place(topic, number) for number in range(partitions)]
    wait_for_markers(bootstrap, places)
    settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with closing(KafkaConsumer(bootstrap_servers=bootstrap.split(","), **settings)) as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found: list[list[Any]] = [[] for _ in places]
        deadline = time.monotonic() + TIMEOUT_S
        while any(consumer.position(place) < ends[place] for place in places):
            assert time.monotonic() < deadline, f"{topic} is not read to its end"
            for place, records in consumer.poll(timeout_ms=500).items():
                found[place.partition] += records
        return found


def wait_for_markers(bootstrap: str, places: Sequence[Place]) -> None:
    """Until no transaction is open there: its markers come after its end is acknowledged."""

    def ends(isolation_level: str) -> Any:
        settings = {"bootstrap_servers": bootstrap.split(","), "isolation_level": isolation_level}
        with closing(KafkaConsumer(**settings)) as consumer:
            return consumer.end_offsets(places)

    wait_until(lambda: ends("read_committed") == ends("read_uncommitted"), TIMEOUT_S, f"one is open in {places}")
