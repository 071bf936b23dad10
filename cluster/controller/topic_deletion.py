"""Deleting topics: a wish in the tree, then every replica stopped and deleted, then the nodes removed.

A replica that cannot be deleted now (dead broker, failed directory, a disk that refuses) holds its topic back until the
broker returns, or says that its disk does; to clients the topic is gone at once. No topic has the name meanwhile: the
wish must not meet a namesake.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from kavka.cluster.controller.context import ClusterContext, Replica, ReplicaPhase
from kavka.cluster.controller.partition_states import PartitionStateMachine
from kavka.cluster.controller.reassignments import Reassignments
from kavka.cluster.controller.replica_states import ReplicaStateMachine
from kavka.cluster.controller.request_batch import RequestBatch
from kavka.cluster.controller.store import ControllerStore

log = logging.getLogger(__name__)

ConfigsChanged = Callable[[Sequence[str]], None]

_PASSING: frozenset[ReplicaPhase] = frozenset({ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_SUCCESSFUL})


class TopicDeletions:
    """Topics on their way out.

    Threads: owned by the controller's thread.
    """

    __slots__ = (
        "_batch",
        "_configs_changed",
        "_context",
        "_foreseen",
        "_partitions",
        "_reassignments",
        "_replicas",
        "_store",
    )

    def __init__(
        self,
        context: ClusterContext,
        store: ControllerStore,
        batch: RequestBatch,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        reassignments: Reassignments,
        configs_changed: ConfigsChanged,
    ) -> None:
        """`configs_changed` hears of topics whose configurations went with them."""
        self._context = context
        self._store = store
        self._batch = batch
        self._partitions = partitions
        self._replicas = replicas
        self._reassignments = reassignments
        self._configs_changed = configs_changed
        self._foreseen: list[str] = []

    def foresee(self, *, is_enabled: bool) -> None:
        """A term begins: nobody is to hear again of topics whose deletion waits, nor are they led anew. It goes on with
        the first `begin`.
        """
        known = self._context.assignments
        self._foreseen = [topic for topic in self._store.topics_to_delete(None) if is_enabled and topic in known]
        self._context.deleting.update(dict.fromkeys(self._foreseen))

    def begin(self, topics: Sequence[str]) -> None:
        """Take topics out of everyone's metadata and start deleting their replicas. The wish is in the tree already.

        Unlike in Kafka a deletion waits for no reassignment: it ends it, and the replicas on the move go with the rest.
        """
        context = self._context
        foreseen, self._foreseen = self._foreseen, []
        for topic in foreseen:
            context.deleting.pop(topic, None)
        new = [topic for topic in topics if topic in context.assignments and topic not in context.deleting]
        self._reassignments.abandon(new)
        context.deleting.update(dict.fromkeys(new))
        for topic in new:
            self._batch.publish(context.partitions_of(topic))
        self._delete(new)

    def retry(self, topics: Iterable[str]) -> None:
        """Circumstances changed: try again those that are held back."""
        waiting = [topic for topic in topics if topic in self._context.failed_deletions]
        self._context.failed_deletions.difference_update(waiting)
        self._delete(waiting)

    def resume(self) -> None:
        """Finish topics whose replicas are all deleted."""
        context = self._context
        done = [
            topic
            for topic in context.deleting
            if topic not in context.failed_deletions
            and all(
                context.replica_phase(each) is ReplicaPhase.DELETION_SUCCESSFUL
                for each in context.replicas_in(context.partitions_of(topic))
            )
        ]
        if done:
            self._finish(done)

    def succeed(self, replicas: Sequence[Replica]) -> None:
        """These are deleted, be it by an order before the last one, which has been given up."""
        context = self._context
        asked = (ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_INELIGIBLE)
        deleted = [each for each in replicas if each.topic in context.deleting and context.replica_phase(each) in asked]
        self._replicas.to_deletion_successful(deleted)
        for topic in context.failed_deletions.intersection(each.topic for each in deleted):
            if not any(
                context.replica_phase(each) is ReplicaPhase.DELETION_INELIGIBLE
                for each in context.replicas_in(context.partitions_of(topic))
            ):
                context.failed_deletions.discard(topic)

    def fail(self, replicas: Sequence[Replica]) -> None:
        """These cannot be deleted now. One that is not the topic's any more holds nothing back."""
        context = self._context
        offline = [each for each in replicas if context.replica_phase(each) is ReplicaPhase.ONLINE]
        started = [each for each in replicas if context.replica_phase(each) is ReplicaPhase.DELETION_STARTED]
        self._replicas.to_offline(offline)
        self._replicas.to_deletion_ineligible([*offline, *started])
        held_back = {each.topic for each in (*offline, *started) if each.topic in context.deleting}
        if held_back - context.failed_deletions:
            log.warning("the deletion of %s waits for replicas out of reach", ", ".join(sorted(held_back)))
        context.failed_deletions |= held_back

    def _delete(self, topics: Sequence[str]) -> None:
        context = self._context
        replicas = [
            each
            for topic in topics
            for each in context.replicas_in(context.partitions_of(topic))
            if context.replica_phase(each) not in _PASSING
        ]
        # Also those that a broker could not host: it alone knows whether anything of them lies in a failed directory.
        reachable = [each for each in replicas if each.broker_id in context.brokers]
        self._replicas.to_offline(
            [each for each in replicas if context.replica_phase(each) is not ReplicaPhase.OFFLINE]
        )
        self._replicas.to_deletion_started(reachable)
        is_reachable = set(reachable)
        self.fail_offline([each for each in replicas if each not in is_reachable])

    def fail_offline(self, replicas: Sequence[Replica]) -> None:
        self._replicas.to_deletion_ineligible(replicas)
        self._context.failed_deletions.update(each.topic for each in replicas)

    def _finish(self, topics: Sequence[str]) -> None:
        context = self._context
        refused = self._store.remove_topics(topics)
        for topic, error in refused.items():
            log.error("the deletion of %s waits: its replicas are gone, and its nodes are not: %s", topic, error)
        context.failed_deletions.update(refused)
        gone = [topic for topic in topics if topic not in refused]
        partitions = [each for topic in gone for each in context.partitions_of(topic)]
        self._replicas.to_non_existent(context.replicas_in(partitions))
        self._partitions.to_offline(partitions)
        self._partitions.to_non_existent(partitions)
        for topic in gone:
            context.remove_topic(topic)
        self._configs_changed(gone)
        if gone:
            log.info("%d topics are deleted: %s", len(gone), ", ".join(gone[:10]))
