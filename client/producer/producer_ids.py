"""Where a producer's id comes from: what the sender asks of it, and the way without transactions."""

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from kavka.client.api_errors import ClientError, KafkaError, RetriableError, error_of
from kavka.client.backoff import ExponentialBackoff
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.client.producer.accumulator import FOREVER_MS, RecordAccumulator
from kavka.client.producer.batch import ProducerBatch
from kavka.client.producer.sequences import NOBODY, Identity, Sequences
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.records.header import NO_PRODUCER_ID

INIT_VERSIONS: Final = (0, 5)
"""Version 6 is for two-phase commits, which Kafka holds to be unstable."""
_NO_TIMEOUT: Final = 2**31 - 1

log = logging.getLogger(__name__)


class ProducerIds(Protocol):
    """The id, epoch and sequences of a producer, and what is to be done for them. The client's thread's."""

    @property
    def sequences(self) -> Sequences:
        """The client's thread's."""

    def work(self, now_ms: float) -> float:
        """Ask for what is needed; how long until there is something to do by itself."""

    @property
    def may_send_any(self) -> bool:
        """Whether batches may go out at all."""

    def may_send(self, partition: TopicPartition, batch: ProducerBatch) -> bool:
        """Whether this batch, the first of its queue, may go out now."""

    @property
    def is_settled(self) -> bool:
        """Whether `work` has nothing to do before the next batch goes out."""

    @property
    def is_transaction_v2(self) -> bool:
        """Whether produce requests may add their partitions to a transaction."""

    @property
    def is_fatal(self) -> bool:
        """Whether the producer is of no use any more."""

    def batch_failed(self, error: KafkaError) -> None:
        """A batch was not delivered, or perhaps not."""

    def refused(self, error: KafkaError) -> None:
        """A broker does not let the client in."""

    def closing(self) -> None:
        """End what was begun, begin nothing."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing has begun that has no end."""

    def closed(self, error: KafkaError) -> None:
        """Fail who waits."""


class IdempotentIds:
    """Asks any broker for an id when there is none, and goes on to the next epoch by itself (KIP-360)."""

    is_transaction_v2: Final = True
    is_fatal: Final = False
    is_idle: Final = True
    may_send_any: Final = True

    def __init__(
        self,
        accumulator: RecordAccumulator,
        network: NetworkPort,
        nodes: Callable[[], tuple[Node, ...]],
        backoff: ExponentialBackoff,
        now_ms: Callable[[], float],
    ) -> None:
        """`nodes` are those that may be asked."""
        self.sequences: Final = Sequences(transactional=False)
        self._accumulator: Final = accumulator
        self._network: Final = network
        self._nodes: Final = nodes
        self._backoff: Final = backoff
        self._now_ms: Final = now_ms
        self._is_asking = False
        self._failures = 0
        self._not_before_ms = 0.0

    def work(self, now_ms: float) -> float:
        """See to an id, and to the next epoch where it is wanted."""
        if self.is_settled:
            return FOREVER_MS
        sequences = self.sequences
        for partition in sequences.resolve():
            sequences.require_bump(partition)
        if sequences.bump() and sequences.identity.is_known:
            return FOREVER_MS
        if self._is_asking:
            return FOREVER_MS
        if now_ms < self._not_before_ms:
            return self._not_before_ms - now_ms
        nodes = self._nodes()
        node = self._network.least_loaded(nodes)
        if node is None:
            return min(map(self._network.delay_ms, nodes), default=FOREVER_MS)
        if not self._network.ready(node):
            return self._network.delay_ms(node)
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT, enable2_pc=False, keep_prepared_txn=False
        )
        self._is_asking = True
        try:
            self._network.send(node, request, self._answered, versions=INIT_VERSIONS)
        except ClientError as failure:
            self._answered(failure)
        return FOREVER_MS

    @property
    def is_settled(self) -> bool:
        """Whether there is an id, and no other epoch is needed."""
        sequences = self.sequences
        return sequences.identity.id != NO_PRODUCER_ID and not sequences.is_bump_required and not sequences.is_in_doubt

    def may_send(self, partition: TopicPartition, batch: ProducerBatch) -> bool:
        """Whether its sequence, or the one it would get, is next."""
        return self.sequences.may_send(partition, batch)

    def batch_failed(self, error: KafkaError) -> None:
        """The sequences know already."""

    def refused(self, error: KafkaError) -> None:
        """Whoever waits for metadata hears of it."""

    def closing(self) -> None:
        """Nothing is begun here that would have to be ended."""

    def closed(self, error: KafkaError) -> None:
        """Nobody waits here."""

    def _answered(self, answer: Any) -> None:
        self._is_asking = False
        if isinstance(answer, KafkaError):
            error: KafkaError = answer
        elif answer.error_code:
            error = error_of(answer.error_code)
        else:
            self._failures = 0
            self.sequences.identified(Identity(answer.producer_id, answer.producer_epoch))
            log.debug("producer id=%d epoch=%d", answer.producer_id, answer.producer_epoch)
            return
        self._failures += 1
        self._not_before_ms = self._now_ms() + self._backoff.delay_ms(self._failures)
        self.sequences.identity = NOBODY
        if not isinstance(error, RetriableError):
            log.error("no producer id error=%r", str(error))
            self._accumulator.abort(error, unsent_only=True)
