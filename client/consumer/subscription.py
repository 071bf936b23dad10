"""What is assigned to a consumer and how far each partition is read: shared by the polling and the client's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from kavka.client.cluster import Cluster, PartitionInfo
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.consumer.positions import PartitionState, Phase, Position, ResetPolicy
from kavka.client.consumer.records import ConsumerRecord
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.schema import ZERO_UUID


class NotAssignedError(ValueError):
    """The partition is not assigned to this consumer."""


class Subscription:
    """The assignment; implements the group's `Assignments`.

    Threads: the polling thread assigns, seeks and gives out; the client's thread looks positions up and fetches. `lock`
    guards all of it, the states too; it is held for moments, and nothing is taken under it but the metadata's lock.
    """

    def __init__(
        self,
        policy: ResetPolicy,
        wake: Callable[[], None],
        on_assigned: Callable[[Collection[TopicPartition]], object] = len,
    ) -> None:
        """`wake` has the client's thread look again; any thread calls it. `on_assigned` hears what is assigned."""
        self.lock: Final = threading.RLock()
        self.policy: Final = policy
        self._wake: Final = wake
        self._on_assigned: Final = on_assigned
        self.left: Callable[[], Mapping[TopicPartition, ConsumerRecord]] = dict
        """The first record of each partition that a loop over the consumer was not given yet: none counts as read."""
        self._states: dict[TopicPartition, PartitionState] = {}
        self._last_generation = 0
        """Of those that have gone: who comes again begins there, as what was asked for then means nothing any more."""
        self._topics: Collection[str] | None = None
        """Records of other topics are not given out; None: of all."""
        self._checked: Cluster | None = None

    # Assignment: the polling thread ------------------------------------------------------------------------------

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is assigned. Any thread."""
        return frozenset(self._states)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """By hand: these, from where was committed or the policy says. Who stays keeps all it has."""
        self.replace(partitions)
        self.release(partitions)

    def withhold(self, partitions: Collection[TopicPartition]) -> None:
        with self.lock:
            for partition in partitions:
                state = self._states.get(partition)
                if state is not None:
                    state.is_withheld = True

    def replace(self, partitions: Collection[TopicPartition]) -> None:
        with self.lock:
            former = self._states
            generation = self._last_generation
            self._states = {
                partition: former.get(partition) or PartitionState(partition, Phase.HELD, generation)
                for partition in partitions
            }
            for partition, state in former.items():
                if partition not in self._states:
                    # What was fetched of it is nobody's, nor what is about to be: a request may be being made of it.
                    state.generation += 1
                    state.phase = Phase.HELD
                    self._last_generation = max(self._last_generation, state.generation)
                state.is_withheld = False
            self._mark_unwanted()
        self._on_assigned(partitions)
        self._wake()

    def restrict(self, topics: Collection[str] | None) -> None:
        with self.lock:
            self._topics = topics
            self._mark_unwanted()
        self._wake()

    def _mark_unwanted(self) -> None:
        for partition, state in self._states.items():
            state.is_unwanted = self._topics is not None and partition.topic not in self._topics

    def release(self, partitions: Collection[TopicPartition]) -> None:
        with self.lock:
            for partition in partitions:
                state = self._states.get(partition)
                if state is not None and state.phase is Phase.HELD:
                    state.begin(Phase.UNKNOWN)
        self._wake()

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        with self.lock:
            found = {
                partition: OffsetAndMetadata(state.position.offset, state.position.epoch)
                for partition, state in self._states.items()
                if state.has_position
            }
            for partition, record in self.left().items():
                if partition in found:
                    found[partition] = OffsetAndMetadata(record.offset, record.leader_epoch)
            return found

    # Positions: the polling thread -------------------------------------------------------------------------------

    def state(self, partition: TopicPartition) -> PartitionState:
        """Raises NotAssignedError. What it says is to be read under the lock."""
        state = self._states.get(partition)
        if state is None:
            raise NotAssignedError(f"{partition} is not assigned to this consumer")
        return state

    def seek(self, partition: TopicPartition, position: Position) -> None:
        """Go on there, whichever topic has that name by now. Raises NotAssignedError."""
        with self.lock:
            self.go_back(partition, position)
            self.state(partition).topic_id = ZERO_UUID

    def go_back(self, partition: TopicPartition, position: Position) -> None:
        """Go on there, in the topic that was read. Raises NotAssignedError."""
        with self.lock:
            state = self.state(partition)
            state.move(position, Phase.READING if position.epoch is None else Phase.CHECKING)
            state.checked_epoch = -1
        self._wake()

    def reset(self, partitions: Iterable[TopicPartition], to: ResetPolicy | None) -> None:
        """Look up where to go on, in whichever topic has that name. Raises NotAssignedError, and does nothing."""
        with self.lock:
            for state in [self.state(partition) for partition in partitions]:
                state.begin(Phase.RESETTING, to)
                state.topic_id = ZERO_UUID
        self._wake()

    def pause(self, partitions: Iterable[TopicPartition], *, is_paused: bool) -> None:
        """Raises NotAssignedError, and does nothing."""
        with self.lock:
            for state in [self.state(partition) for partition in partitions]:
                state.is_paused = is_paused
        self._wake()

    def paused(self) -> frozenset[TopicPartition]:
        with self.lock:
            return frozenset(partition for partition, state in self._states.items() if state.is_paused)

    # Lookups: the client's thread, under the lock for as long as it uses the states -------------------------------

    def states(self) -> list[PartitionState]:
        return list(self._states.values())

    def known(self, partition: TopicPartition, generation: int) -> PartitionState | None:
        """The state, if the answer to a request that was made in that generation still means something."""
        state = self._states.get(partition)
        return state if state is not None and state.generation == generation else None

    def waiting(self, phase: Phase, now_ms: float) -> tuple[list[PartitionState], float]:
        """Those in a phase that nobody looks after yet; and how long until the next one's back-off is over.

        Where an error waits to be raised, nothing goes on before.
        """
        found: list[PartitionState] = []
        wait_ms = float("inf")
        for state in self._states.values():
            if state.phase is phase and not state.is_asked and not state.buffered_errors:
                if state.not_before_ms <= now_ms:
                    found.append(state)
                else:
                    wait_ms = min(wait_ms, state.not_before_ms - now_ms)
        return found, wait_ms

    def leaders_changed(self, cluster: Cluster) -> list[PartitionState]:
        """New leaders may lack what was read from former ones: have that checked (KIP-320).

        Those whose topic is not the one that was read: it was deleted, and another made under its name.
        """
        others: list[PartitionState] = []
        former_cluster = self._checked
        if cluster is former_cluster:
            return others
        self._checked = cluster
        for state in self._states.values():
            topic = cluster.topics.get(state.partition.topic)
            info = topic.partitions.get(state.partition.partition) if topic is not None else None
            if topic is None or info is None:
                continue
            former = state.topic_id
            if topic.id != ZERO_UUID:
                # Who answers without ids, as brokers do while a cluster is upgraded, says nothing of another topic.
                state.topic_id = topic.id
            if former not in (state.topic_id, ZERO_UUID):
                others.append(state)
            elif state.phase is Phase.READING and info.leader_epoch > state.checked_epoch:
                if state.fetched.epoch is None:
                    # Nothing was read yet that could be cut.
                    state.checked_epoch = info.leader_epoch
                else:
                    state.phase = Phase.CHECKING
                    state.is_asked = False
            elif state.phase is Phase.CHECKING and _has_newer_leader(former_cluster, state.partition, info):
                # Whoever was asked may never answer.
                state.is_asked = False
        return others

    def go_on_without(self, state: PartitionState) -> bool:
        """A position is of no use: reset it by the policy. False: there is none, so somebody has to raise."""
        if self.policy.is_none:
            return False
        state.begin(Phase.RESETTING)
        return True


def _has_newer_leader(former: Cluster | None, partition: TopicPartition, info: PartitionInfo) -> bool:
    before = former.partition(partition) if former is not None else None
    return before is not None and info.leader_epoch > before.leader_epoch
