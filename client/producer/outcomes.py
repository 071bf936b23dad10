"""What becomes of batches that were sent: done, tried again, split, failed or given up."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import (
    InvalidMetadataError,
    InvalidRecordError,
    KafkaError,
    NetworkError,
    RetriableError,
    error_of,
)
from kavka.client.backoff import ExponentialBackoff
from kavka.client.metadata import Metadata
from kavka.client.metadata_update import LeaderAndEpoch
from kavka.client.node import Node
from kavka.client.producer.accumulator import RecordAccumulator
from kavka.client.producer.batch import ProducerBatch
from kavka.client.producer.delivery import NO_OFFSET
from kavka.client.producer.producer_ids import ProducerIds
from kavka.client.producer.producer_metrics import ProducerMetrics
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

log = logging.getLogger(__name__)


class RetrySettings(NamedTuple):
    """Of Kafka's settings those that say how often, and when, to try again. Immutable."""

    retries: int = 2**31 - 1
    backoff_ms: float = 100
    backoff_max_ms: float = 1_000


class Outcomes:
    """Sees to the end of batches: tells their futures, their sequences and their memory. The client's thread's."""

    def __init__(
        self,
        settings: RetrySettings,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        ids: ProducerIds | None,
        metrics: ProducerMetrics,
    ) -> None:
        self._retries: Final = settings.retries
        self._backoff: Final = ExponentialBackoff(settings.backoff_ms, settings.backoff_max_ms)
        self._accumulator: Final = accumulator
        self._metadata: Final = metadata
        self._ids: Final = ids
        self._metrics: Final = metrics
        self._in_flight: set[ProducerBatch] = set()

    def is_in_flight(self, batch: ProducerBatch) -> bool:
        """Whether a batch is in a request that has no answer."""
        return batch in self._in_flight

    def sent(self, batches: Sequence[ProducerBatch]) -> None:
        """These are in a request now; one of the calls below follows for each."""
        self._in_flight.update(batches)

    def withdrawn(self, batches: Sequence[ProducerBatch]) -> None:
        """They were not sent after all."""
        for batch in batches:
            self._returned(batch)

    def unacknowledged(self, batches: Sequence[ProducerBatch]) -> None:
        """They were written, and with acks=0 nobody says more."""
        for batch in batches:
            self._returned(batch)
            self._done(batch, NO_OFFSET, -1)

    def unanswered(self, batches: Sequence[ProducerBatch], error: KafkaError, now_ms: float) -> None:
        """The connection ended; whether they were appended is not known."""
        self._metadata.request_update()
        for batch in batches:
            self._returned(batch)
            self._refused(batch, error, None, now_ms)

    def unsendable(self, batches: Sequence[ProducerBatch], error: KafkaError, now_ms: float) -> None:
        """No request could be made of them, and none ever can."""
        for batch in batches:
            self._returned(batch)
            self._fail(batch, error, None, now_ms)

    def answered(
        self,
        batches: Mapping[TopicPartition, ProducerBatch],
        names: Mapping[bytes, str],
        answer: ProduceResponse,
        now_ms: float,
    ) -> None:
        """The broker's answer. What it says of partitions that were not in the request is not listened to."""
        if answer.throttle_time_ms:
            self._metrics.throttled(answer.throttle_time_ms, now_ms)
        left = dict(batches)
        leaders: dict[TopicPartition, LeaderAndEpoch] = {}
        verdicts: list[tuple[ProducerBatch, PartitionProduceResponse]] = []
        for topic in answer.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for partition in topic.partition_responses:
                batch = left.pop(TopicPartition(name, partition.index), None)
                if batch is None:
                    continue
                verdicts.append((batch, partition))
                leader = partition.current_leader
                if partition.error_code and leader.leader_id >= 0 and leader.leader_epoch >= 0:
                    leaders[batch.topic_partition] = LeaderAndEpoch(leader.leader_id, leader.leader_epoch)
        if leaders:
            nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints]
            self._metadata.learn_leaders(leaders, nodes)
        for batch, verdict in verdicts:
            self._returned(batch)
            if verdict.error_code == ErrorCode.NONE:
                self._done(batch, verdict.base_offset, verdict.log_append_time_ms)
            else:
                self._refused(batch, error_of(verdict.error_code, verdict.error_message), verdict, now_ms)
        if left:
            log.warning("an answer says nothing of batches that were sent partitions=%s", list(map(str, left)))
            self.unanswered(list(left.values()), NetworkError("the broker's answer leaves the batch out"), now_ms)

    def expired(self, batch: ProducerBatch, error: KafkaError, now_ms: float) -> None:
        """A batch's time is over."""
        log.warning("expired partition='%s' records=%d attempts=%d", batch.topic_partition, batch.count, batch.attempts)
        self._give_up(batch, error, now_ms)

    def _returned(self, batch: ProducerBatch) -> None:
        self._in_flight.discard(batch)
        self._accumulator.queue_of(batch).is_muted = False

    def _done(self, batch: ProducerBatch, base_offset: int, append_time_ms: int) -> None:
        if self._ids is not None:
            self._ids.sequences.acked(batch, base_offset)
        batch.complete(base_offset, append_time_ms)
        self._accumulator.ended(batch)

    def _refused(
        self, batch: ProducerBatch, error: KafkaError, verdict: PartitionProduceResponse | None, now_ms: float
    ) -> None:
        """`verdict` is the broker's; None when there was no answer."""
        if isinstance(error, InvalidMetadataError):
            self._metadata.request_update()
        if batch.is_decided:
            # It has expired on its way.
            return
        if verdict is not None:
            if error.code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
                self._split(batch, now_ms)
                return
            if error.code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                # An earlier try was appended, so long ago that the broker does not know where.
                self._done(batch, NO_OFFSET, -1)
                return
        if self._may_try_again(batch, error, verdict, now_ms):
            self._try_again(batch, now_ms)
        elif verdict is None or isinstance(error, RetriableError):
            self._give_up(batch, error, now_ms)
        else:
            self._fail(batch, error, verdict, now_ms)

    def _may_try_again(
        self, batch: ProducerBatch, error: KafkaError, verdict: PartitionProduceResponse | None, now_ms: float
    ) -> bool:
        if batch.attempts >= self._retries or self._accumulator.deadline_ms(batch) <= now_ms:
            return False
        ids = self._ids
        if ids is None:
            return isinstance(error, RetriableError)
        if ids.is_fatal:
            return False
        is_out_of_order = error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if verdict is not None and (is_out_of_order or error.code == ErrorCode.UNKNOWN_PRODUCER_ID):
            return ids.sequences.can_retry(
                batch, is_out_of_order=is_out_of_order, log_start_offset=verdict.log_start_offset
            )
        return isinstance(error, RetriableError)

    def _try_again(self, batch: ProducerBatch, now_ms: float) -> None:
        batch.attempts += 1
        batch.not_before_ms = now_ms + self._backoff.delay_ms(batch.attempts)
        self._metrics.retried(batch, now_ms)
        self._accumulator.put_back(batch)

    def _split(self, batch: ProducerBatch, now_ms: float) -> None:
        log.info("too large, split partition='%s' records=%d", batch.topic_partition, batch.count)
        self._metrics.split(now_ms)
        parts = self._accumulator.split(batch)
        if self._ids is not None:
            self._ids.sequences.split(batch, parts)

    def _give_up(self, batch: ProducerBatch, error: KafkaError, now_ms: float) -> None:
        """It failed, and yet may have been appended."""
        if self._ids is not None:
            self._ids.sequences.given_up(batch)
            self._ids.batch_failed(error)
        self._end(batch, error, None, now_ms)

    def _fail(
        self, batch: ProducerBatch, error: KafkaError, verdict: PartitionProduceResponse | None, now_ms: float
    ) -> None:
        """It was not appended, and never will be."""
        if self._ids is not None:
            is_producer_unknown = error.code == ErrorCode.UNKNOWN_PRODUCER_ID
            self._ids.sequences.failed(batch, is_producer_unknown=is_producer_unknown)
            self._ids.batch_failed(error)
        self._end(batch, error, _record_errors(verdict), now_ms)

    def _end(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        record_errors: tuple[KafkaError, dict[int, KafkaError]] | None,
        now_ms: float,
    ) -> None:
        self._metrics.failed(batch, now_ms)
        if record_errors is None:
            batch.fail(error)
        else:
            batch.fail(*record_errors)
        self._accumulator.ended(batch)


def _record_errors(verdict: PartitionProduceResponse | None) -> tuple[KafkaError, dict[int, KafkaError]] | None:
    """What is to be told of the records when the broker says which of them are at fault (KIP-467)."""
    if verdict is None or not verdict.record_errors:
        return None
    own = {
        each.batch_index: error_of(verdict.error_code, each.batch_index_error_message or verdict.error_message)
        for each in verdict.record_errors
    }
    rest: Any = InvalidRecordError("not appended, as another record of its batch was refused")
    return rest, own
