"""Storing a group's offsets: in the order in which it was asked for, so that commits never go back.

What may be tried again is alone on its way. Else an older commit could arrive after a newer one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import islice
from typing import Any, Final, TypeAlias

from kavka.client.api_errors import (
    ClientClosedError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    error_of,
)
from kavka.client.backoff import ExponentialBackoff
from kavka.client.call import RequestBuilder
from kavka.client.cluster import Cluster
from kavka.client.consumer.group.coordinator import Coordinator
from kavka.client.consumer.group.errors import CommitFailedError, RetriableCommitFailedError
from kavka.client.consumer.group.group_metrics import GroupMetrics
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.identity import NOBODY, Identity
from kavka.client.consumer.group.membership import Membership
from kavka.client.consumer.group.port import OffsetAndMetadata, Offsets
from kavka.client.consumer.positions import LAST_EPOCH, LAST_OFFSET
from kavka.client.kafka_error import InvalidMetadataError, KafkaError, RetriableError
from kavka.client.metadata import Metadata
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.schema import ZERO_UUID, Uuid

INFINITY: Final = float("inf")
MOST_WAITING: Final = 10_000
"""Commits that are not answered yet; one more fails."""
MOST_OUT: Final = 16
OwnedSince: TypeAlias = Mapping[TopicPartition, int | None]
"""By which change of the assignment a partition came; None, or nothing, for one that is not assigned."""
OLDEST: Final = 2
"""Before it each commit had its own time."""
BY_NAME_UNTIL: Final = 9
BY_ID: Final = 10

log = logging.getLogger(__name__)

_NOT_BESIDE_A_GROUP: Final = (
    "The offsets were not committed: the group has members, and these partitions were assigned by hand."
)
_MEMBERSHIP: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


class Commit:
    """Offsets on their way. `deadline_ms` is None for one that is tried once."""

    __slots__ = (
        "deadline_ms",
        "done",
        "failures",
        "ids",
        "is_out",
        "not_before_ms",
        "offsets",
        "owned_since",
        "sent_ms",
    )

    def __init__(
        self,
        offsets: Offsets,
        deadline_ms: float | None,
        owned_since: OwnedSince | None,
        ids: Mapping[str, Uuid] | None = None,
    ) -> None:
        """`owned_since` is None outside of a group, else since when each was owned when this commit was made.

        What was given up since then may be another's, even if it came back: an old position is not sent any more.
        `ids` are the topics' then, None unless all were known.
        """
        self.offsets: Final = offsets
        self.ids: Final = ids
        self.owned_since: Final = owned_since
        self.deadline_ms: Final = deadline_ms
        self.done: Final[Future[None]] = uncancellable()
        self.failures = 0
        self.is_out = False
        self.not_before_ms = 0.0
        self.sent_ms = 0.0


class Commits:
    """Sends commits one after the other. Threads: the client's, `done` is for any."""

    def __init__(
        self,
        settings: GroupSettings,
        coordinator: Coordinator,
        membership: Membership,
        metrics: GroupMetrics,
        metadata: Metadata,
        *,
        owned_since: Callable[[], OwnedSince],
        now_ms: Callable[[], float],
    ) -> None:
        self._settings: Final = settings
        self._coordinator: Final = coordinator
        self._membership: Final = membership
        self._metrics: Final = metrics
        self._metadata: Final = metadata
        self._owned_since: Final = owned_since
        self._now_ms: Final = now_ms
        self._backoff: Final = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._waiting: Final[deque[Commit]] = deque()

    def add(self, commit: Commit) -> None:
        """Send it when its turn has come."""
        if not commit.offsets:
            commit.done.set_result(None)
        elif len(self._waiting) >= MOST_WAITING:
            commit.done.set_exception(RetriableCommitFailedError(f"{MOST_WAITING} commits wait already"))
        else:
            self._waiting.append(commit)

    def work(self, now_ms: float) -> float:
        """Send what can be sent; how long until there is something to do."""
        self._drop_done(now_ms)
        wait_ms = INFINITY
        for position, commit in enumerate(list(islice(self._waiting, MOST_OUT))):
            if commit.deadline_ms is not None:
                wait_ms = min(wait_ms, commit.deadline_ms - now_ms)
                if position > 0:
                    break
            if not commit.is_out:
                if commit.not_before_ms > now_ms:
                    return min(wait_ms, commit.not_before_ms - now_ms)
                failure = None if self._coordinator.is_known else self._coordinator.failure()
                if failure is not None:
                    return self._fail_all(failure)
                node = self._coordinator.ready()
                if node is None:
                    return min(wait_ms, self._not_ready(commit, now_ms))
                self._send(commit, node, now_ms)
            if commit.deadline_ms is not None:
                break
        return wait_ms

    def closed(self) -> None:
        """The thread ends: what waits fails."""
        for commit in self._waiting:
            _fail(commit, ClientClosedError("the consumer was closed before the commit was answered"))
        self._waiting.clear()

    def _fail_all(self, failure: KafkaError) -> float:
        """Of all that are not on their way, as none of them would fare better; how long until there is work."""
        for commit in self._waiting:
            if not commit.is_out:
                _fail(commit, failure)
        return 0.0

    def _drop_done(self, now_ms: float) -> None:
        waiting = self._waiting
        for commit in waiting:
            if commit.deadline_ms is not None and commit.deadline_ms <= now_ms and not commit.done.done():
                _fail(commit, KafkaTimeoutError("the offsets were not committed in time"))
        # Also behind one that is still on its way: there is nothing more to send of them, nor to wait for.
        left = [commit for commit in waiting if not commit.done.done()]
        if len(left) < len(waiting):
            waiting.clear()
            waiting.extend(left)

    def _not_ready(self, commit: Commit, now_ms: float) -> float:
        """One that is tried once waits for a coordinator that is there, not longer than a request may take."""
        if commit.deadline_ms is None:
            if commit.sent_ms == 0.0:
                commit.sent_ms = now_ms
            elif now_ms - commit.sent_ms >= self._settings.request_timeout_ms:
                _fail(commit, RetriableCommitFailedError("the group's coordinator cannot be reached"))
                return 0.0
        return min(self._coordinator.delay_ms(), self._settings.request_timeout_ms)

    def _send(self, commit: Commit, node: Node, now_ms: float) -> None:
        membership = self._membership
        identity: Identity | KafkaError = NOBODY
        if commit.owned_since is not None:
            identity = membership.commit_identity() if membership.is_subscribed else CommitFailedError()
            owned = self._owned_since()
            if any(owned.get(partition) != since for partition, since in commit.owned_since.items()):
                identity = CommitFailedError("The partitions were given up before the offsets could be committed.")
        if isinstance(identity, KafkaError):
            _fail(commit, identity)
            return
        commit.is_out = True
        commit.sent_ms = now_ms

        def answered(answer: Any) -> None:
            commit.is_out = False
            if not commit.done.done():
                self._answered(commit, answer, node, identity)

        build = _builder(self._settings.group_id, identity, commit.offsets, commit.ids or {})
        versions = (OLDEST, BY_NAME_UNTIL if commit.ids is None else BY_ID)
        self._coordinator.send(node, RequestBuilder(ApiKey.OFFSET_COMMIT, build), answered, versions=versions)

    def _answered(self, commit: Commit, answer: Any, node: Node, identity: Identity) -> None:
        failure: KafkaError | None
        if isinstance(answer, KafkaError):
            failure, may_retry = answer, isinstance(answer, RetriableError)
        else:
            failure, may_retry = self._failure_in(commit, answer, node, identity)
        now_ms = self._now_ms()
        if failure is None:
            self._metrics.committed(now_ms - commit.sent_ms)
            commit.done.set_result(None)
        elif not may_retry:
            _fail(commit, failure)
        elif commit.deadline_ms is None:
            again = RetriableCommitFailedError(f"the offsets were not committed: {failure}")
            again.__cause__ = failure
            _fail(commit, again)
        else:
            commit.failures += 1
            commit.not_before_ms = now_ms + self._backoff.delay_ms(commit.failures)

    def _failure_in(
        self, commit: Commit, answer: Any, node: Node, identity: Identity
    ) -> tuple[KafkaError | None, bool]:
        """The worst of the partitions' errors, and whether trying again may help."""
        unauthorized: set[str] = set()
        passing: KafkaError | None = None
        for topic in answer.topics:
            for partition in topic.partitions:
                code = partition.error_code
                if not code:
                    continue
                if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name or self._metadata.cluster.names.get(topic.topic_id, "?"))
                    continue
                if code in _MEMBERSHIP and identity is NOBODY:
                    return CommitFailedError(_NOT_BESIDE_A_GROUP), False
                if code in _MEMBERSHIP:
                    failure = self._membership.commit_failed(code, identity)
                    return (failure, False) if failure is not None else (error_of(code), True)
                error = error_of(code, None)
                if code == ErrorCode.UNKNOWN_TOPIC_ID and self._is_of_former_topics(commit):
                    return error, False
                if isinstance(error, InvalidMetadataError):
                    self._metadata.request_update()
                if self._coordinator.has_moved(code, node) or isinstance(error, RetriableError):
                    if code == ErrorCode.REQUEST_TIMED_OUT:
                        self._coordinator.lost(node)
                    passing = error
                    continue
                return error, False
        if unauthorized:
            return TopicAuthorizationError(f"not authorized to commit offsets of {sorted(unauthorized)}"), False
        return passing, True

    def _is_of_former_topics(self, commit: Commit) -> bool:
        """Whether a topic was made anew meanwhile: it is to have no offset of the former one."""
        ids = topic_ids(self._metadata.cluster, commit.offsets)
        return ids is not None and ids != commit.ids


def checked(offsets: Offsets) -> Offsets:
    """The same, whole: a plain number stands for an offset alone. So that the client's thread meets no surprise.

    Raises TypeError for what are no partitions or offsets, ValueError for offsets and epochs that there cannot be.
    """
    whole: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, given in offsets.items():
        place = OffsetAndMetadata(given) if isinstance(given, int) else OffsetAndMetadata(*given)
        if not isinstance(place.offset, int) or not isinstance(place.leader_epoch, int | None):
            raise TypeError(f"no offset, or no leader epoch: {given!r}")
        if not isinstance(place.metadata, str):
            raise TypeError(f"metadata are text: {given!r}")
        if not 0 <= place.offset <= LAST_OFFSET or not 0 <= (place.leader_epoch or 0) <= LAST_EPOCH:
            raise ValueError(f"there is no such offset, or leader epoch: {given!r}")
        whole[checked_partition(partition)] = place
    return whole


def checked_partition(partition: TopicPartition | tuple[str, int]) -> TopicPartition:
    """Raises TypeError for what is none."""
    if not isinstance(partition, tuple) or len(partition) != 2 or not isinstance(partition[1], int):
        raise TypeError(f"no partition: {partition!r}")
    return TopicPartition(*partition)


def uncancellable() -> Future[Any]:
    """A future that only the client's thread ends."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def topic_ids(cluster: Cluster, offsets: Offsets) -> dict[str, Uuid] | None:
    """The topics' ids; None unless all are known."""
    found = {topic: info.id if (info := cluster.topics.get(topic)) is not None else ZERO_UUID for topic, _ in offsets}
    return found if ZERO_UUID not in found.values() else None


def _builder(
    group_id: str, identity: Identity, offsets: Offsets, ids: Mapping[str, Uuid]
) -> Callable[[int], OffsetCommitRequest]:
    def build(_version: int) -> OffsetCommitRequest:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, number), (offset, epoch, metadata) in offsets.items():
            topic = topics.get(name)
            if topic is None:
                topic_id = ids.get(name, ZERO_UUID)
                topic = topics[name] = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[])
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset,
                    committed_leader_epoch=-1 if epoch is None else epoch,
                    committed_metadata=metadata,
                )
            )
        return OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            topics=list(topics.values()),
        )

    return build


def _fail(commit: Commit, error: KafkaError) -> None:
    if not commit.done.done():
        commit.done.set_exception(error)
