"""Produce v0-13.

Behaviour
- Appends one batch a partition to the leader's log and answers: at once for acks 1, when every in-sync replica has
  it for acks -1; for acks 0 there is no answer, and an error closes the connection, the only thing such a client can
  see.
- Partitions fail one by one; what was appended to the others stands.
- A transaction's first batch on a partition waits until its coordinator has verified that the partition takes part, or
  from v12 on has added it (KIP-890). The connection's next request waits with it.
- Not done: nothing.

Versions
- v0-2: message sets of magic 0 and 1, converted to batches; v3+: exactly one batch of magic 2 a partition.
- v7: zstd (KIP-110). v8: the records at fault (KIP-467). v10: the leader, where it is another (KIP-951). v13: topic
  ids.
- v11: TRANSACTION_ABORTABLE. v12: partitions join the transaction by themselves (KIP-890); CONCURRENT_TRANSACTIONS,
  which was NOT_ENOUGH_REPLICAS.
- Versions below 3 are served; ApiVersions shows 0 on (KAFKA-18659).
"""

import logging
from typing import Final, TypeAlias

from kavka.broker.partitions.hosted import code_of_absent, find_hosted
from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.transaction_verification import WORDS, ProduceVerification, UnverifiedBatch
from kavka.broker.requests.dispatcher import CloseConnection
from kavka.broker.requests.handling import Context, Services, handles
from kavka.broker.requests.leader_hints import name_leaders
from kavka.broker.requests.prepared_produce import OLDEST_VERSION, PRODUCE_KEY, Begun, begun_of, prepare_produce
from kavka.broker.security.acl import Operation, topic, transactional_id
from kavka.broker.waiting.delayed_produce import Awaited, DelayedProduce
from kavka.cluster.promise import Promise
from kavka.cluster.topic_names import is_internal
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kavka.protocol.records.header import is_transactional
from kavka.storage.append_result import AppendResult, MalformedRequestError, TooFarAheadError, UnflushedError
from kavka.storage.rewrite import records_ahead
from kavka.storage.verification_guards import NOT_VERIFIED

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client id that may write to internal topics, as in Kafka."""
TOPIC_IDS_SINCE: Final = 13
VALID_ACKS: Final = (-1, 0, 1)

Answer: TypeAlias = ProduceResponse | Promise[ProduceResponse | None] | None
"""None for acks=0, which has none."""

log = logging.getLogger(__name__)


def _answer_all(request: ProduceRequest, code: ErrorCode, message: str | None) -> ProduceResponse | None:
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=asked.name,
                topic_id=asked.topic_id,
                partition_responses=[_refused(data.index, code, message) for data in asked.partition_data],
            )
            for asked in request.topic_data
        ]
    )


@handles(ProduceRequest, versions="0-13", error_answer=_answer_all)
def produce(request: ProduceRequest, context: Context, services: Services) -> Answer:
    if any([is_transactional(data.records) for asked in request.topic_data for data in asked.partition_data]):
        # It is the batches that make a transaction; the id alone is not looked at, as in Kafka.
        if request.transactional_id is None:
            raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        context.require(Operation.WRITE, transactional_id(request.transactional_id))
    run = _Produce(context, services, request)
    response = ProduceResponse(responses=[run.append_topic(asked) for asked in request.topic_data])
    if run.verification is not None and run.verification.unverified:
        return run.answer_when_verified(request, response)
    return run.finish(response, request)


class _Produce:
    """One request's way through its partitions."""

    __slots__ = (
        "_acks",
        "_begun",
        "_cells",
        "_context",
        "_now_ms",
        "_services",
        "_timeout_ms",
        "_transactional_id",
        "_version",
        "appended",
        "awaited",
        "failure",
        "verification",
    )

    def __init__(self, context: Context, services: Services, request: ProduceRequest) -> None:
        self._context = context
        self._services = services
        self._acks = request.acks
        # Read once: a session that expires has nothing prepared any more.
        prepared = context.session.prepared
        self._begun: Begun = begun_of(prepared[PRODUCE_KEY], context) if PRODUCE_KEY in prepared else {}
        self._timeout_ms = request.timeout_ms
        self._version = context.api_version
        self._now_ms = services.now_ms()
        self._cells = services.metrics.mine()
        self.appended: list[Partition] = []
        self.awaited: list[Awaited] = []
        self.failure: BrokerError | None = None
        self.verification: ProduceVerification | None = None
        self._transactional_id = request.transactional_id or ""
        if request.transactional_id is not None:
            self.verification = ProduceVerification(services, request, self._version)

    def finish(self, response: ProduceResponse, request: ProduceRequest | None) -> Answer:
        """Everything is appended that will be: the answer, or a promise of it. `request`: to learn its shape."""
        for partition in self.appended:
            partition.appended()
        if self._acks == 0:
            if self.failure is not None:
                raise CloseConnection(f"a produce with acks=0 failed: {self.failure}")
            if request is not None:
                self._prepare(request)
            return None
        is_over = self._acks != -1 or all([awaited.look() for awaited in self.awaited])
        has_failed = self.failure is not None
        for awaited in self.awaited:
            has_failed = has_failed or awaited.answer.error_code != 0
        if has_failed:
            name_leaders(self._services, self._context.listener_name, response, self._version)
        if not is_over:
            connection = self._context.connection
            operation = DelayedProduce(self.awaited, response, connection, self._services, self._version)
            connection.parked[operation] = None
            watching = [awaited.partition.high_watermark_moved for awaited in self.awaited]
            if request is not None:
                self._prepare(request)
            self._services.purgatory.park(operation, watching, self._timeout_ms)
            return operation.promise
        if request is not None:
            self._prepare(request)
        return response

    def answer_when_verified(self, request: ProduceRequest, response: ProduceResponse) -> Answer:
        """Ask the coordinator, append what it lets pass, and answer: at once if the coordinator answers at once."""
        verification = self.verification
        assert verification is not None
        assert request.transactional_id is not None
        verified: Promise[None] = Promise()
        verification.ask(request.transactional_id, self._append_verified, lambda: verified.complete(None))
        if verified.done:
            return self.finish(response, request)
        # The connection's next request waits: the effects are still to come.
        return verified.then(lambda _: self.finish(response, None))

    def _prepare(self, request: ProduceRequest) -> None:
        """Have requests like this one take the short way from now on, where nothing was in its way."""
        if self.failure is not None or not self.appended or self._version < OLDEST_VERSION:
            return
        charge = self._context.charge
        if charge is None or not charge.is_for_produce:
            prepare_produce(request, self._context, self.appended[0], self._services)
            return
        try:
            # Not needed where there are no quotas.
            from kavka.broker.requests.charged_produce import charge_produces
        except (OSError, ImportError):
            # There may be no descriptor to import it with. The records are appended, and the answer says so.
            return
        prepare_produce(request, self._context, self.appended[0], self._services)
        charge_produces(self._context, charge)

    def append_topic(self, asked: TopicProduceData) -> TopicProduceResponse:
        """Append to the partitions of one topic."""
        name = asked.name
        if self._version >= TOPIC_IDS_SINCE:
            known = self._services.metadata.current.topic_by_id(asked.topic_id)
            if known is None:
                return self._refuse_topic(asked, ErrorCode.UNKNOWN_TOPIC_ID)
            name = known.name
        context = self._context
        if context.session.authorizer is not None and not context.allows(Operation.WRITE, topic(name)):
            return self._refuse_topic(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if self._acks not in VALID_ACKS:
            return self._refuse_acks(name, asked)
        is_closed = is_internal(name) and context.client_id != ADMIN_CLIENT_ID
        partitions = self._services.replicas.partitions
        answers: list[PartitionProduceResponse] = []
        for data in asked.partition_data:
            partition = partitions.get((name, data.index))
            if partition is None or partition.log is None:
                partition = find_hosted(self._services, name, data.index)
            if partition is None:
                answers.append(self._refuse_absent(name, data))
            elif is_closed:
                answers.append(self._refuse(data, BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)))
            elif self._version >= TOPIC_IDS_SINCE and partition.topic_id != asked.topic_id:
                # A topic that took the name of a deleted one is in the metadata before its partitions are here.
                answers.append(self._refuse(data, BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)))
            elif self.verification is not None:
                answers.append(self._append_in_transaction(partition, data, answers))
            else:
                answers.append(self._append(partition, data))
        return TopicProduceResponse(name=name, topic_id=asked.topic_id, partition_responses=answers)

    def _append_in_transaction(
        self, partition: Partition, data: PartitionProduceData, answers: list[PartitionProduceResponse]
    ) -> PartitionProduceResponse:
        """Append, unless the coordinator has to be asked first: then the answer is put into `answers` in its time."""
        verification = self.verification
        if verification is None or not is_transactional(data.records):
            return self._append(partition, data)
        try:
            guard = verification.guard_of(partition, data.records)
        except BrokerError as failure:
            return self._refuse_unverified(partition, data, failure.code)
        if guard <= NOT_VERIFIED:
            return self._append(partition, data, guard)
        verification.unverified.append(UnverifiedBatch(partition, data, answers, len(answers), guard))
        return _refused(data.index, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    def _append_verified(self, batch: UnverifiedBatch, code: ErrorCode) -> None:
        """The coordinator has spoken. By any thread. Raises nothing: nobody would hear of it, and the client waits."""
        with self._services.turns.new():
            batch.answers[batch.place] = self._answer_verified(batch, code)

    def _answer_verified(self, batch: UnverifiedBatch, code: ErrorCode) -> PartitionProduceResponse:
        partition, data = batch.partition, batch.data
        self._cells = self._services.metrics.mine()
        if code is ErrorCode.NONE:
            code = self._revoked(partition.topic)
            if code is not ErrorCode.NONE and self.verification is not None:
                self.verification.withdraw(batch)
        if code is not ErrorCode.NONE:
            answer = self._refuse_unverified(partition, data, code)
            answer.error_message = WORDS.get(code)
        else:
            try:
                answer = self._append(partition, data, batch.guard)
            except Exception:
                log.exception("a batch could not be appended topic=%s partition=%d", partition.topic, partition.index)
                self._cells.topic(partition.topic).failed_produce_requests += 1
                answer = self._refuse(data, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR))
        return answer

    def _revoked(self, topic_name: str) -> ErrorCode:
        """Which right to append the client has no more that it had before its coordinator was asked; NONE: it has both.

        What is revoked holds from the answer to who revoked it, and the coordinator may take seconds.
        """
        context = self._context
        if context.generation is self._services.generation:
            return ErrorCode.NONE
        if not context.allows(Operation.WRITE, transactional_id(self._transactional_id)):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        allowed = context.allows(Operation.WRITE, topic(topic_name))
        return ErrorCode.NONE if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _refuse_unverified(
        self, partition: Partition, data: PartitionProduceData, code: ErrorCode
    ) -> PartitionProduceResponse:
        cells = self._cells.topic(partition.topic)
        cells.produce_requests += 1
        cells.failed_produce_requests += 1
        return self._refuse(data, BrokerError(code))

    def _append(
        self, partition: Partition, data: PartitionProduceData, guard: int = NOT_VERIFIED
    ) -> PartitionProduceResponse:
        records = data.records if data.records is not None else memoryview(bytearray())
        cells = self._cells.topic(partition.topic)
        cells.produce_requests += 1
        leader_epoch = partition.role.leader_epoch
        try:
            if self._begun and data.index in self._begun:
                leader_epoch, outcome = self._begun.pop(data.index)
                result = _appended(outcome)
            else:
                result = partition.append(records, self._acks, self._version, self._now_ms, guard=guard)
        except BrokerError as failure:
            cells.failed_produce_requests += 1
            if failure.code in _REJECTED_BYTES:
                cells.bytes_rejected += len(records)
            if isinstance(failure, TooFarAheadError) and partition.log is not None:
                failure.record_errors = (
                    records_ahead(records, partition.log.rules, self._now_ms) or failure.record_errors
                )
            return self._refuse(data, failure, partition)
        cells.bytes_in += len(records)
        first_offset, last_offset, log_append_time_ms, log_start_offset, duplicate = result
        if not duplicate:
            cells.messages_in += last_offset - first_offset + (first_offset >= 0)
        # A repeated batch too: it may have been flushed, and so be seen, only now.
        self.appended.append(partition)
        answer = PartitionProduceResponse(
            index=data.index,
            error_code=0,
            base_offset=first_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=log_start_offset,
        )
        if self._acks == -1:
            self.awaited.append(Awaited(partition, leader_epoch, last_offset + 1, answer))
        return answer

    def _refuse_topic(self, asked: TopicProduceData, code: ErrorCode) -> TopicProduceResponse:
        self.failure = BrokerError(code)
        answers = [_refused(data.index, code, None) for data in asked.partition_data]
        return TopicProduceResponse(name=asked.name, topic_id=asked.topic_id, partition_responses=answers)

    def _refuse_acks(self, name: str, asked: TopicProduceData) -> TopicProduceResponse:
        refused = self._refuse_topic(asked, ErrorCode.INVALID_REQUIRED_ACKS)
        known = self._services.metadata.current
        for answer in refused.partition_responses:
            if known.partition(name, answer.index) is None:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused

    def _refuse(
        self, data: PartitionProduceData, failure: BrokerError, partition: Partition | None = None
    ) -> PartitionProduceResponse:
        # Not the one that was caught: its traceback leads to this frame and so back to itself, with all that the frames
        # hold, which may be what a bomb unpacked to. Cycles wait for the garbage collector, which counts no bytes.
        self.failure = BrokerError(failure.code, failure.message)
        answer = _refused(data.index, failure.code, None)
        record_errors = getattr(failure, "record_errors", ())
        if record_errors:
            # Words come with the records at fault only: without them clients have words of their own for the code.
            answer.error_message = failure.message
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in record_errors
            ]
        if (
            partition is not None
            and partition.log is not None
            and failure.code not in _WITHOUT_LOG_START
            and not isinstance(failure, MalformedRequestError)
        ):
            answer.log_start_offset = partition.log.log_start_offset
        return answer

    def _refuse_absent(self, topic_name: str, data: PartitionProduceData) -> PartitionProduceResponse:
        """Another broker has the partition, or nobody."""
        return self._refuse(data, BrokerError(code_of_absent(self._services, topic_name, data.index)))


_WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)
"""Errors whose answer leaves the log start offset out, as Kafka's does."""
_REJECTED_BYTES: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def _appended(outcome: AppendResult | UnflushedError) -> AppendResult:
    """What the short way has done already. Raises UnflushedError."""
    if isinstance(outcome, UnflushedError):
        raise outcome
    return outcome


def _refused(index: int, code: ErrorCode, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)
