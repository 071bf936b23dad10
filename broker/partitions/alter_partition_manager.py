"""Asking the controller for other ISRs (AlterPartition, KIP-497): one request at a time, the rest waits."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kavka.broker.partitions.role import RECOVERED, RECOVERING, GrantedIsr, PendingIsr, Proposer
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from kavka.protocol.schema import ZERO_UUID

RETRY_MS: Final = 50
"""Kafka's wait after an answer that says nothing of the partitions; here also after one that asks for another try."""

EPOCHS_SINCE: Final = 3

Answer = AlterPartitionResponse | BrokerError
Key = tuple[str, int]

log = logging.getLogger(__name__)


class _Asked(NamedTuple):
    partition: Proposer
    pending: PendingIsr


class AlterPartitionManager:
    """What this broker's leaders ask of the controller.

    `send(request, on_answer)` takes the request to whoever is the controller, however often that changes; `on_answer`
    comes once, on any thread, maybe before `send` returns. The request is v3's, `downgraded` makes an older one of it;
    v1 is the last where a topic's id is zero. `run_later(delay_ms, job)` runs a job on another thread. `own_epoch`
    gives this broker's epoch.

    Threads: any. `_lock` guards the rest, and nothing is called with it held.
    """

    __slots__ = ("_asked", "_broker_id", "_closed", "_in_flight", "_lock", "_own_epoch", "_run_later", "_send")

    def __init__(
        self,
        broker_id: int,
        own_epoch: Callable[[], int],
        send: Callable[[AlterPartitionRequest, Callable[[Answer], None]], None],
        run_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._broker_id = broker_id
        self._own_epoch = own_epoch
        self._send = send
        self._run_later = run_later
        self._lock = threading.Lock()
        self._asked: dict[Key, _Asked] = {}
        """Not answered yet, one of a partition: bounded by how many are led."""
        self._in_flight = False
        self._closed = False

    def propose(self, partition: Proposer, pending: PendingIsr) -> None:
        """Have the controller asked; its answer goes to `partition.isr_answered`.

        OPERATION_NOT_ATTEMPTED at once while something else is asked for the partition, for an epoch that is over.
        """
        key = (partition.topic, partition.index)
        with self._lock:
            if self._closed:
                return
            is_free = key not in self._asked
            if is_free:
                self._asked[key] = _Asked(partition, pending)
        if is_free:
            self._send_next()
        else:
            partition.isr_answered(pending, ErrorCode.OPERATION_NOT_ATTEMPTED)

    def close(self) -> None:
        """Ask nothing any more, and forget what was asked."""
        with self._lock:
            self._closed = True
            self._asked.clear()

    def _send_next(self) -> None:
        with self._lock:
            if self._in_flight or self._closed or not self._asked:
                return
            self._in_flight = True
            asked = list(self._asked.values())
        request = _request_of(asked, self._broker_id, self._own_epoch())
        try:
            self._send(request, lambda answer: self._answered(asked, answer))
        except BrokerError as failure:
            self._answered(asked, failure)

    def _answered(self, asked: list[_Asked], answer: Answer) -> None:
        code = answer.code if isinstance(answer, BrokerError) else _code_of(answer.error_code)
        told: list[tuple[_Asked, GrantedIsr | ErrorCode]] = []
        if isinstance(answer, BrokerError) or code is not ErrorCode.NONE:
            is_settled = False
            log.warning("AlterPartition was not answered, and is sent again code=%s", code.name)
        else:
            results = _results_of(asked, answer)
            is_settled = len(results) == len(asked)
            told = [(each, results[key]) for each in asked if (key := _key_of(each)) in results]
            if not is_settled:
                log.warning("AlterPartition is answered for %d of %d partitions", len(told), len(asked))
        with self._lock:
            # Before they are told: what they ask for next is in nobody's way.
            for each, _ in told:
                if self._asked.get(_key_of(each)) is each:
                    del self._asked[_key_of(each)]
            self._in_flight = False
        for each, result in told:
            if each.partition.isr_answered(each.pending, result):
                log.warning("AlterPartition is tried again partition=%s-%d code=%s", *_key_of(each), result)
                is_settled = False
                with self._lock:
                    if not self._closed:
                        self._asked.setdefault(_key_of(each), each)
        if is_settled:
            self._send_next()
        else:
            self._run_later(RETRY_MS, self._send_next)


def downgraded(request: AlterPartitionRequest, version: int) -> AlterPartitionRequest:
    """The request as `version` has it: before v3 members of an ISR have no epochs. It is not changed itself."""
    if version >= EPOCHS_SINCE:
        return request
    topics = [
        AlterPartitionRequestTopicData(
            topic_name=topic.topic_name,
            topic_id=topic.topic_id,
            partitions=[
                AlterPartitionRequestPartitionData(
                    partition_index=part.partition_index,
                    leader_epoch=part.leader_epoch,
                    new_isr=[member.broker_id for member in part.new_isr_with_epochs],
                    new_isr_with_epochs=[],
                    leader_recovery_state=part.leader_recovery_state,
                    partition_epoch=part.partition_epoch,
                )
                for part in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionRequest(broker_id=request.broker_id, broker_epoch=request.broker_epoch, topics=topics)


def _key_of(asked: _Asked) -> Key:
    return asked.partition.topic, asked.partition.index


def _request_of(asked: Iterable[_Asked], broker_id: int, own_epoch: int) -> AlterPartitionRequest:
    topics: dict[tuple[str, bytes], AlterPartitionRequestTopicData] = {}
    for partition, pending in asked:
        topic = topics.get((partition.topic, partition.topic_id))
        if topic is None:
            topic = topics[partition.topic, partition.topic_id] = AlterPartitionRequestTopicData(
                topic_name=partition.topic, topic_id=partition.topic_id, partitions=[]
            )
        members = [
            BrokerState(broker_id=member, broker_epoch=own_epoch if member == broker_id else epoch)
            for member, epoch in zip(pending.isr, pending.broker_epochs, strict=True)
        ]
        topic.partitions.append(
            AlterPartitionRequestPartitionData(
                partition_index=partition.index,
                leader_epoch=pending.leader_epoch,
                new_isr_with_epochs=members,
                # A leader that was elected uncleanly has recovered by leading: there is nothing else to come.
                leader_recovery_state=RECOVERED,
                partition_epoch=pending.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=own_epoch, topics=list(topics.values()))


def _results_of(asked: Iterable[_Asked], answer: AlterPartitionResponse) -> dict[Key, GrantedIsr | ErrorCode]:
    """What the controller says of each partition that was asked for; it may have left some out, or put others in."""
    by_id = {each.partition.topic_id: each.partition.topic for each in asked}
    keys = {_key_of(each) for each in asked}
    results: dict[Key, GrantedIsr | ErrorCode] = {}
    for topic in answer.topics:
        name = by_id.get(topic.topic_id) if topic.topic_id != ZERO_UUID else topic.topic_name
        for part in topic.partitions:
            if name is not None and (name, part.partition_index) in keys:
                results[name, part.partition_index] = _result_of(part)
    return results


def _result_of(part: AlterPartitionResponsePartitionData) -> GrantedIsr | ErrorCode:
    if part.error_code != ErrorCode.NONE:
        return _code_of(part.error_code)
    if part.leader_recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return GrantedIsr(part.leader_epoch, tuple(part.isr), part.partition_epoch, part.leader_recovery_state)


def _code_of(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
