"""One term of an elected controller: its memory, its store, its machines, wired together.

A decision moves partitions and replicas, which gather requests; `settle` sends them and digests the answers until there
is nothing left to say.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Final

from kavka.cluster.controller.context import ClusterContext, Replica, TopicPartition
from kavka.cluster.controller.partition_states import PartitionStateMachine
from kavka.cluster.controller.reassignments import Reassignments
from kavka.cluster.controller.replica_states import ReplicaStateMachine
from kavka.cluster.controller.request_batch import Answer, RequestBatch
from kavka.cluster.controller.store import ControllerStore
from kavka.cluster.controller.topic_deletion import ConfigsChanged, TopicDeletions
from kavka.cluster.ports import BrokerChannels, ConfigHolder
from kavka.cluster.topic_ids import new_topic_id
from kavka.cluster.znodes.topic import TopicAssignment
from kavka.config.checks import Release
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

log = logging.getLogger(__name__)

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
RECOVERY_SINCE: Final = "3.2-IV0"
"""The inter.broker.protocol.version from which LeaderAndIsr and AlterPartition tell of recovering leaders (KIP-704)."""
NOT_HOSTED: Final = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.INCONSISTENT_TOPIC_ID})
"""Of LeaderAndIsr: the replica's directory failed; or the broker still has a replica of an earlier topic of the name,
which nobody told it to stop (it was out of touch when that went elsewhere). Kafka goes on to count on the latter."""


class Term:
    """From an election to the resignation.

    Threads: owned by the controller's thread, but for `_answers`, which any thread appends to (a deque's append is
    atomic); `wake` is called after such an append.
    """

    __slots__ = (
        "_answers",
        "_settings",
        "_wake",
        "batch",
        "channels",
        "configs_changed",
        "context",
        "deletions",
        "partitions",
        "reassignments",
        "replicas",
        "store",
    )

    def __init__(
        self,
        store: ControllerStore,
        channels: BrokerChannels,
        broker_id: int,
        settings: ConfigHolder,
        wake: Callable[[], None],
        configs_changed: ConfigsChanged,
    ) -> None:
        """`wake` is called when answers came; `configs_changed` when topics got or lost theirs, before they are led."""
        self._settings = settings
        self._wake = wake
        self.configs_changed = configs_changed
        self._answers: deque[Answer] = deque()
        self.store = store
        self.channels = channels
        self.context = ClusterContext()
        listener_name = settings.current.inter_broker_listener_name
        self.batch = RequestBatch(self.context, channels, broker_id, listener_name, self._on_answer)
        self.partitions = PartitionStateMachine(
            self.context,
            store,
            self.batch,
            self._unclean_topics,
            marks_recovery=Release.step(settings.current.inter_broker_protocol_version) >= Release.step(RECOVERY_SINCE),
        )
        self.replicas = ReplicaStateMachine(self.context, store, self.batch)
        self.reassignments = Reassignments(self.context, store, self.batch, self.partitions, self.replicas)
        self.deletions = TopicDeletions(
            self.context, store, self.batch, self.partitions, self.replicas, self.reassignments, configs_changed
        )

    @property
    def settings(self) -> ConfigHolder:
        return self._settings

    def settle(self) -> None:
        """Send what was gathered; digest answers and send again, until all is quiet."""
        self.batch.flush(self.store.epoch)
        while True:
            while self._answers:
                self._digest(self._answers.popleft())
            # Also without an answer: the last replica that held a deletion back may not be the topic's any more.
            self.deletions.resume()
            self.batch.flush(self.store.epoch)
            if not self._answers:
                return

    def load_topics(self, assignments: Mapping[str, TopicAssignment]) -> list[TopicPartition]:
        """Take topics with their leaders into memory; those from before topic ids get one (KIP-516)."""
        without_id = [topic for topic, assignment in assignments.items() if assignment.topic_id is None]
        outcomes = self.store.amend_assignments(dict.fromkeys(without_id, _with_id))
        loaded = {
            **assignments,
            **{topic: each for topic, each in outcomes.items() if isinstance(each, TopicAssignment)},
        }
        for topic, assignment in list(loaded.items()):
            other = self.context.topic_of(assignment.topic_id) if assignment.topic_id is not None else None
            if other not in (None, topic):
                log.error("topic %s is left out: it has the id of %s", topic, other)
                del loaded[topic]
                continue
            self.context.put_topic(topic, assignment)
        partitions = [each for topic in loaded for each in self.context.partitions_of(topic)]
        self.context.leaders.update(self.store.states(partitions))
        return partitions

    def start(self) -> None:
        """Find out where all stand that were loaded: lead those that nobody leads, tell live brokers what they hold.

        Leaders first: when who is gone leaves the ISRs, states are written under the leaders that there are.
        """
        returned = self.partitions.returned_followers()
        self.partitions.start()
        self.replicas.start()
        self.replicas.leave(returned)
        self.context.is_beginning = False

    def publish_all(self, brokers: Collection[int]) -> None:
        """Tell brokers of all there is, now; nothing may have been gathered for others.

        They forget what else they know: topics whose deletion they missed, be it that its controller fell, or that they
        had no session. But not where anything of the tree could not be read, or has no state yet: with a topic its
        committed offsets and its settings are forgotten.
        """
        if not brokers:
            return
        context = self.context
        is_whole = all(each in context.leaders for each in context.all_partitions()) and (
            context.assignments.keys() == set(self.store.topic_names(None))
        )
        self.batch.publish_all(brokers, self.store.epoch, is_whole=is_whole)

    def found(self, partitions: list[TopicPartition]) -> None:
        """Bring partitions to life that were just made: choose leaders, tell brokers."""
        replicas = self.context.replicas_in(partitions)
        self.partitions.to_new(partitions)
        self.replicas.to_new(replicas)
        self.partitions.to_online(partitions, self.partitions.after_failure)
        self.replicas.to_online(replicas)

    def lose_replicas(self, replicas: list[Replica]) -> None:
        """Brokers or directories died: others lead, and what was to be deleted there has to wait."""
        context = self.context
        leaderless = {
            replica.topic_partition
            for replica in replicas
            if (state := context.leaders.get(replica.topic_partition)) is not None
            and state.leader == replica.broker_id
            and replica.topic not in context.deleting
        }
        self.partitions.to_offline(leaderless)
        self.partitions.retry_leaderless()
        self.replicas.to_offline([each for each in replicas if each.topic not in context.deleting])
        self.deletions.fail([each for each in replicas if each.topic in context.deleting])

    def _unclean_topics(self, topics: Collection[str]) -> set[str]:
        default = "true" if self._settings.current.unclean_leader_election_enable else "false"
        # Without those whose settings nobody knows. Kafka takes it in any case, and writes it as it was given.
        configs = self.store.topic_configs(topics).items()
        return {topic for topic, own in configs if own.get(UNCLEAN_ELECTION, default).strip().lower() == "true"}

    def _on_answer(self, answer: Answer) -> None:
        self._answers.append(answer)
        self._wake()

    def _digest(self, answer: Answer) -> None:
        request, response = answer.request, answer.response
        info = self.context.brokers.get(answer.broker_id)
        if info is None or request.broker_epoch != info.epoch:
            # Of a former incarnation: its end has been dealt with, and what the present one was told it answers itself.
            return
        if isinstance(response, BrokerError):
            log.warning("broker %d refused %s: %s", answer.broker_id, type(request).__name__, response)
        elif response.error_code != ErrorCode.NONE:
            # Which one is the broker's business: it may be one that nobody knows here.
            log.warning("broker %d refused %s: error %d", answer.broker_id, type(request).__name__, response.error_code)
        if isinstance(request, LeaderAndIsrRequest) and isinstance(response, LeaderAndIsrResponse):
            self._digest_leader_and_isr(answer.broker_id, response)
        elif isinstance(request, StopReplicaRequest):
            self._digest_stop_replica(answer.broker_id, request, response)

    def _digest_leader_and_isr(self, broker: int, response: LeaderAndIsrResponse) -> None:
        """A replica that its broker cannot host is offline, one that is served is not any more."""
        if response.error_code != ErrorCode.NONE:
            return
        failed: set[Replica] = set()
        served: set[Replica] = set()
        for topic in response.topics:
            name = self.context.topic_of(topic.topic_id)
            if name is None:
                continue
            for partition in topic.partition_errors:
                replica = Replica(name, partition.partition_index, broker)
                if broker not in self.context.replicas_of(replica.topic_partition):
                    # It went elsewhere meanwhile. Nobody would forget what was noted of it, be it for a later namesake.
                    continue
                if partition.error_code in NOT_HOSTED:
                    failed.add(replica)
                elif partition.error_code == ErrorCode.NONE:
                    served.add(replica)
        offline = self.context.offline_replicas
        recovered = sorted(offline & served)
        if recovered:
            log.info("broker %d serves %d replicas again, %s first", broker, len(recovered), recovered[0])
            offline.difference_update(recovered)
            self.replicas.to_online(each for each in recovered if each.topic not in self.context.deleting)
            self.partitions.retry_leaderless()
        lost = sorted(failed - offline)
        if lost:
            log.error("broker %d cannot host %d replicas, %s first", broker, len(lost), lost[0])
            offline.update(lost)
            self.lose_replicas(lost)

    def _digest_stop_replica(self, broker: int, request: StopReplicaRequest, response: object) -> None:
        deleted = [
            Replica(topic.topic_name, partition.partition_index, broker)
            for topic in request.topic_states
            for partition in topic.partition_states
            if partition.delete_partition
        ]
        failed = set(deleted)
        if isinstance(response, StopReplicaResponse) and response.error_code == ErrorCode.NONE:
            failed = {
                Replica(each.topic_name, each.partition_index, broker)
                for each in response.partition_errors
                if each.error_code != ErrorCode.NONE
            }.intersection(deleted)
        self.deletions.succeed([each for each in deleted if each not in failed])
        self.deletions.fail(sorted(failed))


def _with_id(stored: TopicAssignment) -> TopicAssignment:
    return stored if stored.topic_id is not None else stored._replace(topic_id=new_topic_id())
