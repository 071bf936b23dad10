"""Asking for a group's offsets: OffsetFetch, only what no open transaction may still change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, Final

from kavka.client.api_errors import (
    ClientClosedError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UnsupportedVersionError,
    error_of,
)
from kavka.client.backoff import ExponentialBackoff
from kavka.client.call import RequestBuilder
from kavka.client.consumer.group.coordinator import Coordinator
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.identity import Identity
from kavka.client.consumer.group.membership import Membership
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.kafka_error import KafkaError, RetriableError
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

INFINITY: Final = float("inf")
STABLE_SINCE: Final = 7
SEVERAL_GROUPS_SINCE: Final = 8
BY_NAME_UNTIL: Final = 9

_OF_ANOTHER_EPOCH: Final = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
"""Of the new protocol's members: its heartbeats tell what to do."""

Found = dict[TopicPartition, OffsetAndMetadata]


class _Question:
    """One that is to be answered by its deadline."""

    __slots__ = ("deadline_ms", "done", "failures", "is_out", "not_before_ms", "partitions")

    def __init__(self, partitions: Collection[TopicPartition], deadline_ms: float, done: Future[Found]) -> None:
        self.partitions: Final = partitions
        self.deadline_ms: Final = deadline_ms
        self.done: Final = done
        self.failures = 0
        self.is_out = False
        self.not_before_ms = 0.0


class StoredOffsets:
    """Asks, and asks again while that may help. Threads: the client's, futures are for any."""

    def __init__(
        self, settings: GroupSettings, coordinator: Coordinator, membership: Membership, *, now_ms: Callable[[], float]
    ) -> None:
        self._settings: Final = settings
        self._coordinator: Final = coordinator
        self._membership: Final = membership
        self._now_ms: Final = now_ms
        self._backoff: Final = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._questions: list[_Question] = []

    def ask(self, partitions: Collection[TopicPartition], deadline_ms: float, done: Future[Found]) -> None:
        """What is stored for these, without those for which nothing is."""
        if partitions:
            self._questions.append(_Question(partitions, deadline_ms, done))
        else:
            done.set_result({})

    def work(self, now_ms: float) -> float:
        """Send what can be sent; how long until there is something to do."""
        wait_ms = INFINITY
        for question in list(self._questions):
            if question.deadline_ms <= now_ms:
                self._end(question, KafkaTimeoutError("the committed offsets were not told in time"))
                continue
            wait_ms = min(wait_ms, question.deadline_ms - now_ms)
            if question.is_out:
                continue
            if question.not_before_ms > now_ms:
                wait_ms = min(wait_ms, question.not_before_ms - now_ms)
                continue
            failure = None if self._coordinator.is_known else self._coordinator.failure()
            if failure is not None:
                self._end(question, failure)
                continue
            node = self._coordinator.ready()
            if node is not None:
                self._send(question, node)
            else:
                # Of those behind it, one's time may be over all the same.
                wait_ms = min(wait_ms, self._coordinator.delay_ms())
        return wait_ms

    def closed(self) -> None:
        """The thread ends: what waits fails."""
        for question in list(self._questions):
            self._end(question, ClientClosedError("the consumer was closed"))

    def _send(self, question: _Question, node: Node) -> None:
        question.is_out = True
        identity = None
        if self._settings.uses_consumer_protocol and self._membership.is_subscribed:
            identity = self._membership.identity if self._membership.identity.generation > 0 else None

        def answered(answer: Any) -> None:
            question.is_out = False
            if not question.done.done():
                self._answered(question, answer, node)

        oldest = STABLE_SINCE if self._settings.needs_stable_offsets else 1
        build = _builder(self._settings.group_id, identity, question.partitions)
        self._coordinator.send(
            node, RequestBuilder(ApiKey.OFFSET_FETCH, build), answered, versions=(oldest, BY_NAME_UNTIL)
        )

    def _answered(self, question: _Question, answer: Any, node: Node) -> None:
        try:
            found = self._found(answer, node)
        except KafkaError as error:
            if isinstance(error, RetriableError) or error.code in _OF_ANOTHER_EPOCH:
                question.failures += 1
                question.not_before_ms = self._now_ms() + self._backoff.delay_ms(question.failures)
            elif isinstance(error, UnsupportedVersionError):
                self._end(question, UnsupportedVersionError(f"the broker cannot tell stable offsets only: {error}"))
            else:
                self._end(question, error)
            return
        self._questions.remove(question)
        question.done.set_result(found)

    def _found(self, answer: Any, node: Node) -> Found:
        """Raises KafkaError."""
        if isinstance(answer, KafkaError):
            raise answer
        group = answer.groups[0] if answer.groups else answer
        if group.error_code:
            self._coordinator.has_moved(group.error_code, node)
            raise error_of(group.error_code)
        found: Found = {}
        unauthorized: set[str] = set()
        for topic in group.topics:
            for row in topic.partitions:
                if row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name)
                elif row.error_code:
                    self._coordinator.has_moved(row.error_code, node)
                    raise error_of(row.error_code)
                elif row.committed_offset >= 0:
                    epoch = row.committed_leader_epoch if row.committed_leader_epoch >= 0 else None
                    partition = TopicPartition(topic.name, row.partition_index)
                    found[partition] = OffsetAndMetadata(row.committed_offset, epoch, row.metadata or "")
        if unauthorized:
            raise TopicAuthorizationError(f"not authorized for the topics {sorted(unauthorized)}")
        return found

    def _end(self, question: _Question, error: KafkaError) -> None:
        self._questions.remove(question)
        if not question.done.done():
            question.done.set_exception(error)


def _builder(
    group_id: str, identity: Identity | None, partitions: Collection[TopicPartition]
) -> Callable[[int], OffsetFetchRequest]:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)

    def build(version: int) -> OffsetFetchRequest:
        is_stable = version >= STABLE_SINCE
        if version < SEVERAL_GROUPS_SINCE:
            topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=each) for topic, each in numbers.items()]
            return OffsetFetchRequest(group_id=group_id, topics=topics, groups=[], require_stable=is_stable)
        group = OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=identity.member_id if identity is not None else None,
            member_epoch=identity.generation if identity is not None else -1,
            topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=each) for topic, each in numbers.items()],
        )
        return OffsetFetchRequest(group_id="", topics=[], groups=[group], require_stable=is_stable)

    return build
