"""Faults that Apache Kafka had, or has: what keeps each out of the product is taken out, for the simulation alone.

Each is a context manager. With it the simulator has to find what the fault does; without it, nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple
from unittest import mock

from kavka.broker.partitions import log_reading, replica_manager, replication
from kavka.broker.partitions import partition as partition_module
from kavka.broker.partitions.controller_epoch import ControllerEpoch
from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.refused_orders import WantedLog
from kavka.broker.replication import fetch_state, followed_partitions
from kavka.broker.replication.fetch_state import FetchState, Phase, Position
from kavka.broker.replication.followed_partitions import Followed, FollowedPartitions, Key
from kavka.broker.replication.proving import Proofs
from kavka.cluster.controller.context import ClusterContext
from kavka.cluster.controller.reassignments import Reassignments
from kavka.cluster.controller.replica_states import ReplicaStateMachine
from kavka.cluster.controller.request_batch import RequestBatch
from kavka.cluster.controller.store import ControllerStore
from kavka.cluster.controller.term import Term
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData
from tests.simulation.cluster import Shape
from tests.simulation.invariants import Invariants
from tests.simulation.model_log import ModelLog, ModelLogs
from tests.simulation.schedules import ONE_IS_ENOUGH, THREE, UNCLEAN, USUAL, Profile


def truncates_to_high_watermark() -> AbstractContextManager[Any]:
    """KAFKA-1211: who begins to follow cuts all above its own high watermark, which is behind the leader's."""

    def beginning(topic_id: bytes, leader_epoch: int, log: Position) -> FetchState:
        state = fetch_state.beginning(topic_id, leader_epoch, log)
        return state._replace(phase=Phase.TRUNCATING) if log.end_offset > log.high_watermark else state

    return mock.patch.object(followed_partitions, "beginning", beginning)


def compares_ends_alone() -> AbstractContextManager[Any]:
    """KAFKA-6361: the leader says where an epoch ends that it may not have, and not which one it means (KIP-279)."""

    def diverges(log: ModelLog, asked: FetchPartition, answer: PartitionData) -> bool:
        _, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
        if end_offset < 0 or end_offset >= asked.fetch_offset:
            return False
        answer.diverging_epoch = EpochEndOffset(epoch=asked.last_fetched_epoch, end_offset=end_offset)
        return True

    return mock.patch.object(log_reading, "_diverges", diverges)


@contextmanager
def serves_zombies() -> Iterator[None]:
    """KAFKA-6880: the leader takes fetches as they come, whichever leader their follower believes in (KIP-320)."""
    diverges = log_reading._diverges

    def of_its_own(log: ModelLog, asked: FetchPartition, answer: PartitionData) -> bool:
        real: Any = log
        return asked.current_leader_epoch == log.leading_epoch and diverges(real, asked, answer)

    with (
        mock.patch.object(Partition, "check_leader_epoch", return_value=None),
        mock.patch.object(log_reading, "_diverges", of_its_own),
    ):
        yield


def forgets_what_was_asked() -> AbstractContextManager[Any]:
    """KAFKA-7786: an answer to a fetch in one epoch counts for the partition as it is followed in the next one."""

    def asked_for(self: FollowedPartitions, key: Key) -> tuple[Followed, FetchState] | None:
        followed = self._entries.get(key)
        return None if followed is None else (followed, followed.state)

    return mock.patch.object(FollowedPartitions, "asked_for", asked_for)


@contextmanager
def keeps_the_dead_in_sync() -> Iterator[None]:
    """KAFKA-9672: the leader does not look after those of its ISR who are no replicas, and so they stay in it."""
    lagging: Callable[..., tuple[int, ...]] = replication.lagging

    def among_known(role: Any, own_id: int, end_offset: int, followers: Any, *more: Any) -> tuple[int, ...]:
        known = role._replace(isr=tuple(each for each in role.isr if each in followers or each == own_id))
        return lagging(known, own_id, end_offset, followers, *more)

    with mock.patch.object(partition_module, "lagging", among_known):
        yield


def leads_from_a_new_disk() -> AbstractContextManager[Any]:
    """KAFKA-14139: a broker leads with the empty log that it has made in place of the one that it lost."""
    return mock.patch.object(replica_manager, "needs_records", return_value=False)


def takes_a_log_for_a_whole_one() -> AbstractContextManager[Any]:
    """The log that was made in place of a lost one bears no mark, so that the next start takes it for what was."""
    create = ModelLogs.create

    def unmarked(self: ModelLogs, partitions: Any, *, new: Any = (), lost: Any = ()) -> Any:
        return create(self, partitions, new=new)

    return mock.patch.object(ModelLogs, "create", unmarked)


def takes_any_answer_for_all() -> AbstractContextManager[Any]:
    """Who has taken an answer of its leader is believed to have all that the leader has."""

    def agreed(self: Proofs, followed: Followed) -> None:
        followed.partition.note_caught_up(followed.state.leader_epoch)

    return mock.patch.object(Proofs, "agreed", agreed)


def hears_what_is_late() -> AbstractContextManager[Any]:
    """As Kafka's brokers: a request of a connection that was given up counts when it arrives, however late."""
    admits = ControllerEpoch.admits

    def whenever(self: ControllerEpoch, epoch: int, broker_epoch: int = -1, number: int = -1) -> bool:
        return admits(self, epoch)

    return mock.patch.object(ControllerEpoch, "admits", whenever)


def leaves_returned_leaders_their_epoch() -> AbstractContextManager[Any]:
    """As Kafka's on ZooKeeper: who lost power and came back under another controller goes on in its leader epoch."""
    return mock.patch.object(ClusterContext, "may_be_of_former_run", return_value=False)


@contextmanager
def judges_leaders_by_the_last_write() -> Iterator[None]:
    """Who registered before the state was written last passes for its leader's present run, whoever asked for that."""
    states = ControllerStore.states
    written: dict[Any, int] = {}

    def noted(self: ControllerStore, partitions: Any, *more: Any) -> Any:
        client: Any = self._registry
        nodes = client._tree.nodes
        for partition in partitions:
            node = nodes.get(PartitionState.path(*partition))
            written[partition] = 0 if node is None else node.mzxid
        return states(self, partitions, *more)

    def has_returned(self: ClusterContext, partition: Any) -> bool:
        state = self.leaders.get(partition)
        leader = self.brokers.get(state.leader) if state is not None else None
        return leader is not None and leader.epoch > written[partition]

    with (
        mock.patch.object(ControllerStore, "states", noted),
        mock.patch.object(ClusterContext, "may_be_of_former_run", has_returned),
    ):
        yield


def lets_go_of_the_dead_first() -> AbstractContextManager[Any]:
    """Who is gone leaves the ISR before leaders are looked at: that names the present run of one that was away."""

    def start(self: Term) -> None:
        self.replicas.start()
        self.partitions.start()

    return mock.patch.object(Term, "start", start)


def trusts_returned_followers() -> AbstractContextManager[Any]:
    """As Kafka's on ZooKeeper: who lost power and came back under another controller counts as in sync."""
    return mock.patch.object(ReplicaStateMachine, "leave", return_value=None)


@contextmanager
def trusts_whoever_is_in_sync() -> Iterator[None]:
    """The controller does, and nobody looks whether he should: who was away is as good as who was not."""
    with trusts_returned_followers(), mock.patch.object(Invariants, "_has_stayed", return_value=False):
        yield


@contextmanager
def calls_all_new_that_are_added() -> Iterator[None]:
    """As long as a replica is being added it is called new, also when it has come into sync."""
    lead_and_follow = RequestBatch.lead_and_follow

    def as_new(
        self: RequestBatch, brokers: Iterable[int], partition: Any, *, is_new: bool = False, is_published: bool = False
    ) -> None:
        assignment = self._context.assignment_of(partition)
        for broker in brokers:
            is_added = assignment is not None and broker in assignment.adding
            lead_and_follow(self, [broker], partition, is_new=is_new or is_added, is_published=is_published)

    def believed(topic_id: bytes, state: Any, broker_id: int, *, is_lost: bool) -> WantedLog:
        return WantedLog(topic_id, state.is_new, is_lost)

    with (
        mock.patch.object(RequestBatch, "lead_and_follow", as_new),
        mock.patch.object(replica_manager, "wanted_log", believed),
    ):
        yield


def controller_expels_nobody() -> AbstractContextManager[Any]:
    """As Kafka's, which Kavka's brokers may have: who is in sync but not assigned is left to the leader.

    Kavka's lets go of them when its term begins, so that with it alone no leader ever has any to look after.
    """
    return mock.patch.object(Reassignments, "_expel_strangers", return_value=None)


class KnownFault(NamedTuple):
    """A fault, where it shows, and which rules it breaks."""

    issue: str
    inject: Callable[[], AbstractContextManager[Any]]
    rules: tuple[str, ...]
    profile: Profile
    surroundings: Callable[[], AbstractContextManager[Any]] = nullcontext
    """In which the guard alone keeps the fault out: they are there with the guard as well as without."""


def _usual(*shapes: Shape, rest_every: int = 4, steps: int = 70, **weights: int) -> Profile:
    return Profile(shapes, {**USUAL, **weights}, steps=steps, rest_every=rest_every)


LOST = ("committed lost", "committed changed", "ISR differs", "acknowledged lost")
NO_REPLACEMENT = {"replace_disk": 0, "replace_and_restart": 0}
NO_LOSS = {"power_cut": 0, **NO_REPLACEMENT}
REPLACED = _usual(THREE, power_cut=0, replace_disk=2, replace_and_restart=2)
SLOW_ORDERS = {"converse": 3, "control": 10, "order": 10, "watch": 6, "prefer": 4, "boot": 9, "produce": 20, "agree": 8}
RETURNING = _usual(THREE, **NO_REPLACEMENT, power_cut=4, boot=12, converse=14, prefer=4)
GHOST_IN_SYNC = Shape(first_isr=(1, 2, 4))
"""As Kafka's controller leaves it in the middle of a reassignment: in sync, but not assigned any more, and dead."""

KNOWN_FAULTS = [
    KnownFault("KAFKA-1211", truncates_to_high_watermark, LOST, _usual(THREE, **NO_LOSS)),
    KnownFault("KAFKA-6361", compares_ends_alone, LOST, _usual(THREE, ONE_IS_ENOUGH, **NO_LOSS, **SLOW_ORDERS)),
    KnownFault("KAFKA-6880", serves_zombies, LOST, _usual(THREE, ONE_IS_ENOUGH, **NO_LOSS, **SLOW_ORDERS)),
    KnownFault("KAFKA-7786", forgets_what_was_asked, ("no rest",), _usual(THREE, rest_every=1, **NO_LOSS)),
    KnownFault(
        "KAFKA-9672",
        keeps_the_dead_in_sync,
        ("no rest",),
        _usual(GHOST_IN_SYNC, rest_every=1, **NO_LOSS),
        surroundings=controller_expels_nobody,
    ),
    KnownFault("KAFKA-14139", leads_from_a_new_disk, LOST, REPLACED),
    KnownFault("replaced-and-restarted", takes_a_log_for_a_whole_one, LOST, REPLACED),
    KnownFault("full-answer", takes_any_answer_for_all, LOST, REPLACED, surroundings=trusts_whoever_is_in_sync),
    KnownFault("late-metadata", hears_what_is_late, ("metadata back",), _usual(THREE, **NO_LOSS)),
    KnownFault(
        "returned-leader",
        leaves_returned_leaders_their_epoch,
        LOST,
        _usual(THREE, UNCLEAN, **NO_REPLACEMENT, power_cut=4, flush=0, converse=12, boot=9),
        surroundings=trusts_whoever_is_in_sync,
    ),
    KnownFault("dead-leave-first", lets_go_of_the_dead_first, ("was away",), RETURNING),
    KnownFault("returned-follower", trusts_returned_followers, ("was away",), RETURNING),
]
