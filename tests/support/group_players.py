"""Consumers as far as their groups see them: members that own, read and commit, on a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from random import Random
from typing import Any

from kavka.client.backoff import ExponentialBackoff
from kavka.client.bootstrap import Bootstrap
from kavka.client.client_metrics import Metrics
from kavka.client.consumer.group.assignors.loading import load_assignors
from kavka.client.consumer.group.group import Group
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.port import GroupMembershipOperation, OffsetAndMetadata, RebalanceListener
from kavka.client.consumer.member_metrics import MemberMetrics
from kavka.client.coordinators import Coordinators
from kavka.client.kafka_error import KafkaError
from kavka.client.metadata import Metadata, MetadataSettings
from kavka.client.topic_partition import TopicPartition
from tests.support.group_broker import NODE, GroupBroker


class Places:
    """An `Assignments`: where each partition is read."""

    def __init__(self) -> None:
        self.at: dict[TopicPartition, int | None] = {}
        self.withheld: set[TopicPartition] = set()
        self.released: set[TopicPartition] = set()
        self.topics: Collection[str] | None = None

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self.at)

    def withhold(self, partitions: Collection[TopicPartition]) -> None:
        self.withheld |= set(partitions)

    def replace(self, partitions: Collection[TopicPartition]) -> None:
        self.at = {each: self.at.get(each) for each in partitions}
        self.withheld.clear()
        self.released &= set(partitions)

    def restrict(self, topics: Collection[str] | None) -> None:
        self.topics = topics

    def release(self, partitions: Collection[TopicPartition]) -> None:
        self.released |= set(partitions)

    def gives_out(self, partition: TopicPartition) -> bool:
        """Whether a poll may give out records of it."""
        is_wanted = self.topics is None or partition.topic in self.topics
        return is_wanted and partition in self.released and partition not in self.withheld

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {each: OffsetAndMetadata(offset) for each, offset in self.at.items() if offset is not None}


class Player(RebalanceListener):
    """A consumer with one thread for all: `own` is what its client's thread does, `poll` what its user does.

    It reads a record of each partition a poll. `told` is what its listener was told it has; `events` all it was told.
    """

    def __init__(
        self,
        broker: GroupBroker,
        name: str,
        strategies: Collection[Any] = ("range",),
        *,
        topics: Collection[str] = ("t",),
        subscribes: bool = True,
        **settings: Any,
    ) -> None:
        self.broker = broker
        self.name = name
        self.network = broker.network(name)
        self.assignments = Places()
        self.told: set[TopicPartition] = set()
        self.events: list[tuple[str, set[TopicPartition]]] = []
        self.errors: list[Exception] = []
        self.news = 0
        self.polls = 0
        self.stuck_until_ms = self.frozen_until_ms = 0.0
        """Its user does not poll before; its process does nothing at all before. Seen to by `shuffled_round`."""
        self.on_told: Callable[[Player, str, Collection[TopicPartition]], None] = lambda player, what, each: None
        self._submitted: list[Callable[[], Any]] = []
        self._fetching: dict[TopicPartition, Future[Any]] = {}
        self.metadata = Metadata(
            Bootstrap((NODE,), on_found=lambda: None), MetadataSettings(), wake=lambda: None, now_ms=self.now_ms
        )
        given = {"group_id": "g", "enable_auto_commit": False, **settings}
        if not given.get("uses_consumer_protocol"):
            given["assignors"] = load_assignors(strategies)
        self.settings = GroupSettings(**given)
        self.metrics = Metrics("consumer", name, now_ms=self.now_ms)
        coordinators = Coordinators(self.network, self.metadata, ExponentialBackoff(100, 1000))
        self.group = Group(
            self.settings,
            self.network,
            self.metadata,
            coordinators,
            MemberMetrics(self.metrics, lambda: len(self.assignments.at)),
            self,
        )
        if subscribes:
            self.group.subscribe(topics, self)

    # GroupHost

    def submit(self, call: Callable[[], Any]) -> None:
        self._submitted.append(call)

    def on_news(self) -> None:
        self.news += 1

    def wait(self, future: Future[Any], deadline_ms: float) -> bool:
        while not future.done() and self.now_ms() < deadline_ms:
            self.own()
            self.broker.advance(5)
        return future.done()

    def now_ms(self) -> float:
        return self.broker.now_ms

    # The client's thread

    def own(self) -> float:
        """One round of the client's thread."""
        submitted, self._submitted = self._submitted, []
        for call in submitted:
            call()
        self.network.deliver()
        if not self.network.is_cut and self.metadata.due_in_ms(self.now_ms()) == 0:
            request = self.metadata.request()
            answer = self.broker.metadata()
            if request.topics is not None:
                wanted = {topic.name for topic in request.topics}
                answer.topics = [topic for topic in answer.topics if topic.name in wanted]
            self.metadata.updated(answer, self.now_ms())
        return self.group.work(self.now_ms())

    # The user's thread

    def poll(self, *, commits: bool = True) -> None:
        """One poll: what the group wants, then a record of each partition; positions are committed now and then."""
        now_ms = self.now_ms()
        try:
            self.group.poll_began(now_ms)
        except Exception as error:  # noqa: BLE001  # looked at by the test
            self.errors.append(error)
        self._find_positions()
        places = self.assignments
        for partition, offset in places.at.items():
            if offset is not None and places.gives_out(partition):
                places.at[partition] = offset + 1
        if commits and not self.settings.enable_auto_commit:
            offsets = {each: at for each, at in places.consumed().items() if each not in places.withheld}
            self.polls += 1
            if offsets and self.polls % 3 == 0:
                # It does not wait for it, so that newer ones could overtake it.
                self.group.commit(offsets, now_ms + 3_000)
            elif offsets:
                self.group.commit_async(offsets)
        self.group.poll_ended(self.now_ms())

    def _find_positions(self) -> None:
        for partition in list(self._fetching):
            future = self._fetching[partition]
            if future.done():
                del self._fetching[partition]
                if partition in self.assignments.at and not isinstance(future.exception(), KafkaError):
                    found = future.result().get(partition)
                    self.assignments.at[partition] = found.offset if found is not None else 0
        for partition, offset in self.assignments.at.items():
            if offset is None and partition in self.assignments.released and partition not in self._fetching:
                self._fetching[partition] = self.group.offsets_of([partition], self.now_ms() + 60_000)

    def close(self, operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT) -> None:
        self.group.close(operation, self.now_ms() + 30_000)
        self.group.closed()

    # RebalanceListener

    def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.told |= set(partitions)
        self._told("assigned", partitions)

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._told("revoked", partitions)
        self.told -= set(partitions)

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._told("lost", partitions)
        self.told -= set(partitions)

    def _told(self, what: str, partitions: Collection[TopicPartition]) -> None:
        self._fetching = {each: future for each, future in self._fetching.items() if each not in partitions}
        self.events.append((what, set(partitions)))
        self.on_told(self, what, partitions)


def play(
    broker: GroupBroker, players: Collection[Player], *, until: Callable[[], bool], limit_ms: float = 60_000
) -> None:
    """Let all play in turns until it is so. Fails the test if that takes longer."""
    end_ms = broker.now_ms + limit_ms
    while not until():
        assert broker.now_ms < end_ms, [(each.name, each.events, each.errors) for each in players]
        for player in players:
            player.own()
            player.poll()
            player.own()
        broker.advance(20)


def shuffled_round(broker: GroupBroker, players: Collection[Player], dice: Random) -> None:
    """Some of all that could happen now, in any order."""
    now_ms = broker.now_ms
    awake = [player for player in players if now_ms >= player.frozen_until_ms]
    moves: list[Callable[[], object]] = [*(player.own for player in awake), *(player.own for player in awake)]
    moves += [player.poll for player in awake if now_ms >= player.stuck_until_ms]
    dice.shuffle(moves)
    for move in moves[: dice.randint(0, len(moves))]:
        move()
    broker.advance(dice.choice([1, 5, 20, 100, 400]))
