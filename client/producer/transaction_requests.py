"""What a transactional producer asks coordinators, and what their answers mean. No state but a request's own."""

import enum
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import (
    ClientError,
    KafkaError,
    ProducerFencedError,
    RetriableError,
    UnsupportedVersionError,
    error_of,
)
from kavka.client.call import VersionRange
from kavka.client.consumer.group.port import ConsumerGroupMetadata, OffsetAndMetadata
from kavka.client.coordinators import CoordinatorKind
from kavka.client.producer.producer_ids import INIT_VERSIONS
from kavka.client.producer.sequences import Identity
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kavka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kavka.protocol.schema import Request

ADD_PARTITIONS_VERSIONS: Final = (0, 3)
"""Later ones are for brokers among themselves."""
END_VERSIONS: Final = ((0, 4), (0, 5))
"""Without and with the second version of transactions (KIP-890)."""
COMMIT_OFFSETS_NEWEST: Final = (4, 5)
MEMBERS_SINCE: Final = 3
"""TxnOffsetCommit names the group's member from here on (KIP-447)."""
ADD_OFFSETS_VERSIONS: Final = (0, 4)


class Result:
    """What a call for a transaction waits for. Any thread."""

    def __init__(self) -> None:
        self._event: Final = threading.Event()
        self._error: KafkaError | None = None
        self.is_taken = False
        """Whether the caller has seen it: until then it is the answer to the call's repetition."""

    @property
    def is_done(self) -> bool:
        return self._event.is_set()

    def done(self, error: KafkaError | None = None) -> None:
        """It has worked, or failed with `error`. The first time counts."""
        if not self._event.is_set():
            self._error = error
            self._event.set()

    def wait(self, timeout_s: float) -> bool:
        """Whether it is done by then."""
        return self._event.wait(min(timeout_s, threading.TIMEOUT_MAX))

    def get(self) -> None:
        """Raise the error, if it has failed."""
        self.is_taken = True
        if self._error is not None:
            raise again(self._error)


class Meaning(enum.Enum):
    """What an answer means for the request."""

    DONE = "done"
    RETRY = "the same again, later"
    LOST = "the same again, to another coordinator"
    ABORT = "the transaction cannot be committed"
    BUMP = "the transaction cannot be committed, and another epoch is needed; fatal where brokers give none"
    FATAL = "the producer cannot go on"


class Verdict(NamedTuple):
    """An answer's meaning, and the error behind it."""

    meaning: Meaning
    error: KafkaError | None = None


DONE: Final = Verdict(Meaning.DONE)
_LOST: Final = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
_FENCED: Final = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
_BUMP: Final = {ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
_ABORT: Final = {
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
}


def judge(code: int, otherwise: Meaning = Meaning.FATAL) -> Verdict:
    """What an error code of a coordinator means; `otherwise` for one that is not to be expected."""
    if code == ErrorCode.NONE:
        return DONE
    error = error_of(code)
    if code in _LOST:
        return Verdict(Meaning.LOST, error)
    if code in _FENCED:
        fenced = "another producer has taken over the transactional.id, or its transaction took too long"
        return Verdict(Meaning.FATAL, ProducerFencedError(fenced))
    if code in _BUMP:
        return Verdict(Meaning.BUMP, error)
    if code in _ABORT:
        return Verdict(Meaning.ABORT, error)
    if isinstance(error, RetriableError):
        return Verdict(Meaning.RETRY, error)
    return Verdict(otherwise, error)


class TransactionRequest:
    """One request, until it has an outcome. The client's thread's, under its transactions' lock."""

    priority = 0
    kind = CoordinatorKind.TRANSACTION
    versions: VersionRange

    def __init__(self, key: str, result: Result) -> None:
        """`key` names the coordinator: the transactional id, or a group."""
        self.key: Final = key
        self.result: Final = result
        self.attempts = 0
        self.not_before_ms = 0.0
        self.number = -1
        """Its place among those of its priority; -1 until it has one."""

    def message(self, identity: Identity) -> Request:
        """What to send."""
        raise NotImplementedError

    def judge(self, answer: Any) -> Verdict:
        """What the answer means."""
        return judge(answer.error_code)


def verdict_of(request: TransactionRequest, answer: Any, *, is_coordinated: bool) -> Verdict:
    """What an answer means, or the KafkaError in its place; not `is_coordinated`: why there is no coordinator."""
    if not is_coordinated:
        return Verdict(Meaning.ABORT if request.kind is CoordinatorKind.GROUP else Meaning.FATAL, answer)
    if not isinstance(answer, KafkaError):
        return request.judge(answer)
    if isinstance(answer, UnsupportedVersionError) or not isinstance(answer, ClientError):
        return Verdict(Meaning.FATAL, answer)
    return Verdict(Meaning.LOST, answer)


class InitProducerId(TransactionRequest):
    """Ask for the id and epoch; with those that are known it is the next epoch (KIP-360)."""

    priority = 1
    versions = INIT_VERSIONS

    def __init__(self, key: str, result: Result, timeout_ms: int, known: Identity, *, is_bump: bool) -> None:
        super().__init__(key, result)
        self._timeout_ms: Final = timeout_ms
        self._known: Final = known
        if is_bump:
            # After the transaction's end.
            self.priority = 4

    def message(self, identity: Identity) -> Request:
        return InitProducerIdRequest(
            transactional_id=self.key,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._known.id,
            producer_epoch=self._known.epoch,
            enable2_pc=False,
            keep_prepared_txn=False,
        )


class AddPartitions(TransactionRequest):
    """Tell the coordinator of partitions before anything is sent to them; not in the second version."""

    priority = 2
    versions = ADD_PARTITIONS_VERSIONS

    def __init__(self, key: str, partitions: Iterable[TopicPartition]) -> None:
        super().__init__(key, Result())
        self.partitions: Final = frozenset(partitions)

    def message(self, identity: Identity) -> Request:
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            topics.setdefault(topic, []).append(partition)
        return AddPartitionsToTxnRequest(
            transactions=[],
            v3_and_below_transactional_id=self.key,
            v3_and_below_producer_id=identity.id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=each) for name, each in topics.items()],
        )

    def judge(self, answer: Any) -> Verdict:
        codes = [
            row.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
            # Said of those that are all right, because others are not.
            if row.partition_error_code != ErrorCode.OPERATION_NOT_ATTEMPTED
        ]
        verdicts = [judge(code, Meaning.ABORT) for code in codes]
        return max(verdicts, key=lambda verdict: _WEIGHT[verdict.meaning], default=DONE)


class AddOffsets(TransactionRequest):
    """Tell the coordinator of a group whose offsets are to be committed; not in the second version."""

    priority = 2
    versions = ADD_OFFSETS_VERSIONS

    def __init__(self, key: str, commit: "CommitOffsets") -> None:
        super().__init__(key, commit.result)
        self.commit: Final = commit

    def message(self, identity: Identity) -> Request:
        return AddOffsetsToTxnRequest(
            transactional_id=self.key,
            producer_id=identity.id,
            producer_epoch=identity.epoch,
            group_id=self.commit.key,
        )


class CommitOffsets(TransactionRequest):
    """Commit a group's offsets, which count when the transaction does. To the group's coordinator."""

    priority = 2
    kind = CoordinatorKind.GROUP

    def __init__(
        self,
        transactional_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        result: Result,
        *,
        is_v2: bool,
    ) -> None:
        super().__init__(group.group_id, result)
        self._transactional_id: Final = transactional_id
        self._left: dict[TopicPartition, OffsetAndMetadata] = dict(offsets)
        self._group: Final = group
        names_member = group.generation_id >= 0 or group.member_id or group.group_instance_id is not None
        self.versions = MEMBERS_SINCE if names_member else 0, COMMIT_OFFSETS_NEWEST[is_v2]

    def message(self, identity: Identity) -> Request:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in self._left.items():
            row = TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
            topics.setdefault(topic, []).append(row)
        group = self._group
        return TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=group.group_id,
            producer_id=identity.id,
            producer_epoch=identity.epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()],
        )

    def judge(self, answer: Any) -> Verdict:
        """Partitions that are committed are not asked for again."""
        verdicts = []
        for topic in answer.topics:
            for row in topic.partitions:
                verdict = judge(row.error_code)
                verdicts.append(verdict)
                if verdict.meaning is Meaning.DONE:
                    self._left.pop(TopicPartition(topic.name, row.partition_index), None)
        worst = max(verdicts, key=lambda verdict: _WEIGHT[verdict.meaning], default=DONE)
        if worst.meaning is Meaning.DONE and self._left:
            return Verdict(Meaning.RETRY, KafkaError("the coordinator's answer leaves partitions out"))
        return worst


class EndTransaction(TransactionRequest):
    """Commit or abort, once all records have an outcome."""

    priority = 3

    def __init__(self, key: str, result: Result, *, commits: bool, is_v2: bool) -> None:
        super().__init__(key, result)
        self.commits: Final = commits
        self.versions = END_VERSIONS[is_v2]

    def message(self, identity: Identity) -> Request:
        return EndTxnRequest(
            transactional_id=self.key,
            producer_id=identity.id,
            producer_epoch=identity.epoch,
            committed=self.commits,
        )


def again(error: KafkaError) -> KafkaError:
    """The same error to be raised once more: one exception for many would gather the tracebacks of all."""
    copied: KafkaError = type(error).__new__(type(error), *error.args)
    copied.args = error.args
    copied.__dict__.update(error.__dict__)
    copied.__cause__ = error.__cause__
    return copied


_WEIGHT: Final = {meaning: weight for weight, meaning in enumerate(Meaning)}
