"""All clients of the chaos program together, the topics that they use, and what these hold in the end."""

import random
import threading
import time
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.chaos.checker import End
from tests.chaos.clients import COMMON, Client, Engagement, GroupMember, NumberingProducer, OffsetsWatcher, Reader
from tests.chaos.history import History, Isolation, Log, Place
from tests.chaos.recreator import Recreator
from tests.chaos.stage import Stage
from tests.chaos.transactors import Copier, Transactor
from tests.support.processes import wait_until
from tests.support.wire import codes_of

PARTITIONS: Final = 3
ORDERS, NOTES, MOVED, BOOKS, COPIES, AGAIN = "orders", "notes", "moved", "books", "copies", "again"
FACTORS: Final = {ORDERS: (3, 2), NOTES: (3, 2), MOVED: (2, 1), BOOKS: (3, 2), COPIES: (3, 2)}
"""Replication factor and min.insync.replicas."""
READERS_GROUP, COPIERS_GROUP = "readers", "copiers"
PLACES: Final = [(topic, index) for topic in FACTORS for index in range(PARTITIONS)]
CREATE_VERSION: Final = 7
STOP_S: Final = 400.0
PROGRESS_S: Final = 300.0
READ_S: Final = 300.0
RATE: Final = 40.0


def create_topics(stage: Stage) -> None:
    """Those that are there from the beginning. Waits until all their replicas are in sync."""
    for topic, (factor, min_isr) in FACTORS.items():
        config = CreatableTopicConfig(name="min.insync.replicas", value=str(min_isr))
        new = CreatableTopic(
            name=topic, num_partitions=PARTITIONS, replication_factor=factor, assignments=[], configs=[config]
        )
        request = CreateTopicsRequest(topics=[new], timeout_ms=30_000)
        told: list[object] = []
        wait_until(partial(_is_made, stage, request, told), PROGRESS_S, partial("not made: {0}".format, told))
    wait_until(lambda: len(stage.partitions()) >= len(PLACES), PROGRESS_S, "topics are not known")
    stage.wait_until_well(PROGRESS_S)


def _is_made(stage: Stage, request: CreateTopicsRequest, told: list[object]) -> bool:
    """Have it made. On a busy machine another controller may be elected, a broker lose its session, or it be made later
    than it was waited for: then it is there already.
    """
    try:
        told[:] = [stage.ask(stage.controller(), request, CREATE_VERSION, 40.0)]
    except (OSError, KeyError) as failure:
        told[:] = [failure]
        return False
    return codes_of(told[0]) <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}


class ClientFailureError(Exception):
    """A client was told what it has no answer to."""


class Load:
    """`with Load(stage.bootstrap, history, dice) as load:` works from then on; `finish` ends it in order."""

    def __init__(self, bootstrap: str, history: History, dice: random.Random) -> None:
        self.history = history
        self.bootstrap = bootstrap
        self._sending_is_over, self._reading_is_over = threading.Event(), threading.Event()
        make_sender = partial(self._make, self._sending_is_over)
        make_reader = partial(self._make, self._reading_is_over)
        self.producers: list[NumberingProducer] = [
            make_sender(NumberingProducer, name, places=places_of(topic), is_idempotent=is_idempotent, rate=RATE)
            for name, topic, is_idempotent in (
                ("idempotent", ORDERS, True),
                ("plain", NOTES, False),
                ("moving", MOVED, True),
            )
        ]
        self.transactors: list[Client] = [
            make_sender(Transactor, f"transactor-{each}", places=places_of(BOOKS), dice=random.Random(dice.random()))
            for each in range(2)
        ]
        self.copier: Copier = make_reader(Copier, "copier", source=ORDERS, target=COPIES, group=COPIERS_GROUP)
        self.members: list[Client] = [
            make_reader(
                GroupMember, f"member-{each}", topic=ORDERS, group=READERS_GROUP, dice=random.Random(dice.random())
            )
            for each in range(2)
        ]
        self.others: list[Client] = [
            make_sender(Recreator, "recreator", topic=AGAIN),
            make_reader(Reader, "reader-of-all", places=PLACES, isolation=Isolation.ALL),
            make_reader(Reader, "reader-of-committed", places=PLACES, isolation=Isolation.COMMITTED),
            *(
                make_reader(OffsetsWatcher, f"watcher-of-{group}", group=group, places=places_of(ORDERS))
                for group in (READERS_GROUP, COPIERS_GROUP)
            ),
        ]

    @property
    def clients(self) -> list[Client]:
        return [*self.producers, *self.transactors, self.copier, *self.members, *self.others]

    def check(self) -> None:
        """Raises ClientFailureError if a client could not go on."""
        failures = [f"{client.name}: {client.failure!r}" for client in self.clients if client.failure is not None]
        if failures:
            raise ClientFailureError(f"clients cannot go on: {failures}")

    def wait_for_progress(self, timeout_s: float = PROGRESS_S) -> list[str]:
        """Until all that has to get through has, since this call: who was the last. Raises TimeoutError naming them."""
        last: list[str] = []
        before = {client.name: client.done for client in self.clients}
        at_first = {(each.name, place): each.acknowledged[place] for each in self.producers for place in each.places}

        def waiting() -> list[str]:
            self.check()
            must = [*self.producers, *self.transactors, self.copier, *self.others[1:]]
            found = [f"{client.name} ({client.trouble})" for client in must if client.done == before[client.name]]
            if sum(each.done for each in self.members) == sum(before[each.name] for each in self.members):
                found.append(f"members ({[each.trouble for each in self.members]})")
            return found + [
                f"{each.name} to {place}"
                for each in self.producers
                for place in each.places
                if each.acknowledged[place] == at_first[each.name, place]
            ]

        def all_have() -> bool:
            if found := waiting():
                last[:] = found
            return not found

        wait_until(all_have, timeout_s, lambda: f"no progress: {last}")
        return last

    def finish(self) -> None:
        """End sending, wait until everything is acknowledged and copied, end reading."""
        self._sending_is_over.set()
        for client in self.clients:
            if client.is_over is self._sending_is_over:
                client.join(STOP_S)
                if client.is_alive():
                    self.history.surprise(f"{client.name} does not come to an end")
        ends = end_offsets(self.bootstrap, Isolation.COMMITTED)
        consumer = Consumer({**COMMON, "bootstrap.servers": self.bootstrap, "group.id": COPIERS_GROUP})
        asked = [TopicPartition(*place) for place in places_of(ORDERS)]

        def all_is_copied() -> bool:
            try:
                told = consumer.committed(asked, 5)
            except KafkaException:
                return False
            return all(each.error is None and each.offset >= ends[each.topic, each.partition] for each in told)

        try:
            wait_until(all_is_copied, STOP_S, "")
        except TimeoutError:
            self.history.surprise(f"not all is copied: {[(each.partition, each.offset) for each in asked]} of {ends}")
        consumer.close()
        self._reading_is_over.set()
        for client in self.clients:
            client.join(STOP_S)
        self.check()

    def __enter__(self) -> Self:
        for client in self.clients:
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sending_is_over.set()
        self._reading_is_over.set()

    def _make(self, is_over: threading.Event, kind: Any, name: str, **others: Any) -> Any:
        return kind(Engagement(name, self.bootstrap, self.history, is_over), **others)


def places_of(topic: str) -> list[Place]:
    return [(topic, index) for index in range(PARTITIONS)]


def read_end(bootstrap: str) -> End:
    """What all topics hold, once no transaction is open any more."""

    def is_settled() -> bool:
        return end_offsets(bootstrap, Isolation.ALL) == end_offsets(bootstrap, Isolation.COMMITTED)

    wait_until(is_settled, READ_S, "transactions stay open")
    everything, committed = (read_all(bootstrap, PLACES, isolation) for isolation in Isolation)
    return End(everything, committed, {COPIES: ORDERS})


def end_offsets(bootstrap: str, isolation: Isolation) -> dict[Place, int]:
    """Where readers of each partition come to its end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "ends", "isolation.level": isolation.value}
    consumer = Consumer({**COMMON, **settings})
    found: dict[Place, int] = {}

    def ask(place: Place) -> bool:
        try:
            found[place] = consumer.get_watermark_offsets(TopicPartition(*place), 5)[1]
        except KafkaException:
            return False
        return True

    for place in PLACES:
        wait_until(partial(ask, place), READ_S, f"{place} has no end")
    consumer.close()
    return found


def read_all(bootstrap: str, places: Sequence[Place], isolation: Isolation) -> dict[Place, Log]:
    """Every data record from the beginning to the end. Raises TimeoutError."""
    found: dict[Place, Log] = {place: [] for place in places}
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "end",
        "enable.auto.commit": False,
        "isolation.level": isolation.value,
        "enable.partition.eof": True,
    }
    consumer = Consumer({**COMMON, **settings})
    consumer.assign([TopicPartition(*place, 0) for place in places])
    unread = set(places)
    deadline = time.monotonic() + READ_S
    while unread:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not read to their ends: {unread}")
        for message in consumer.consume(1000, 0.2):
            topic, index, error = message.topic(), message.partition(), message.error()
            assert topic is not None
            assert index is not None
            if error is None:
                offset = message.offset()
                assert offset is not None
                found[topic, index].append((offset, (message.value() or b"").decode()))
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard((topic, index))
    consumer.close()
    return found
