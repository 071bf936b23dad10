"""The producer's machine: takes batches out of the accumulator, sends them, and sees to what becomes of them."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from kavka.client.api_errors import ClientClosedError, ClientError, KafkaError, KafkaTimeoutError
from kavka.client.cluster import Cluster
from kavka.client.metadata import Metadata
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.client.producer.accumulator import FOREVER_MS, RecordAccumulator
from kavka.client.producer.batch import ProducerBatch
from kavka.client.producer.outcomes import Outcomes
from kavka.client.producer.partition_queue import PartitionQueue
from kavka.client.producer.produce_requests import produce_request, produce_versions
from kavka.client.producer.producer_ids import ProducerIds
from kavka.client.producer.producer_metrics import ProducerMetrics
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import EncodeError

WANT_INTERVAL_MS: Final = 2_000.0

log = logging.getLogger(__name__)


class SenderSettings(NamedTuple):
    """Of Kafka's settings those that say how batches are sent. Immutable."""

    acks: int = -1
    max_in_flight: int = 5
    max_request_size_bytes: int = 1_048_576
    request_timeout_ms: float = 30_000
    availability_timeout_ms: float = 0
    """partitioner.availability.timeout.ms: a broker that takes nothing for so long is not stuck to; 0 for never."""
    transactional_id: str | None = None


class ProducersNetwork(NetworkPort, Protocol):
    """What a sender needs besides, to work on other threads than the client's."""

    def is_ready(self, node: Node) -> bool:
        """Whether a request may be sent to `node` now; begins nothing."""

    @property
    def has_news(self) -> bool:
        """Whether somebody is to be called back, for which the client's thread has to be woken."""


class Sender:
    """Decides which batches go out next.

    Rules: a broker is asked when one of its batches is full, has lingered, or is waited for; with it goes one batch of
    each partition that it leads, as many as `max.request.size` has room for, and the next request begins where this
    one ended. Threads: the client's alone.
    """

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        network: ProducersNetwork,
        metadata: Metadata,
        outcomes: Outcomes,
        ids: ProducerIds | None,
        metrics: ProducerMetrics,
        now_ms: Callable[[], float],
    ) -> None:
        """`ids` sees to the producer's id, and to its transactions; None without idempotence."""
        self._settings: Final = settings
        self._accumulator: Final = accumulator
        self._network: Final = network
        self._metadata: Final = metadata
        self._outcomes: Final = outcomes
        self._ids: Final = ids
        self._metrics: Final = metrics
        self._now_ms: Final = now_ms
        self._turns: dict[int, PartitionQueue] = {}
        """By node: where its next request begins."""
        self._next_expiry_ms = 0.0
        self._refusing_since_ms: dict[int, float] = {}
        self._used: Final[set[str]] = set()
        """Topics sent to since they were last wanted: those that are not would be forgotten (metadata.max.idle.ms)."""
        self._next_want_ms = 0.0

    # The machine -----------------------------------------------------------------------------------------------------

    def work(self, now_ms: float) -> float:
        """Send what can be sent; how long until there is more to do by itself."""
        self._accumulator.sleeps_until_ms = FOREVER_MS
        wait_ms = FOREVER_MS
        if now_ms >= self._next_expiry_ms:
            # First: what was given up is resolved by the ids.
            self._expire(now_ms)
        if self._ids is not None:
            refusal = self._metadata.refusal
            if refusal is not None:
                self._ids.refused(refusal)
            wait_ms = self._ids.work(now_ms)
        if now_ms >= self._next_want_ms:
            self._next_want_ms = now_ms + WANT_INTERVAL_MS
            self._metadata.want(self._used)
            self._used.clear()
        if self._accumulator.incomplete:
            wait_ms = min(wait_ms, self._next_expiry_ms - now_ms)
        if self._ids is None or self._ids.may_send_any:
            while self._accumulator.active or self._refusing_since_ms:
                has_sent, round_wait_ms = self._round(now_ms)
                if not has_sent:
                    wait_ms = min(wait_ms, round_wait_ms)
                    break
        self._accumulator.sleeps_until_ms = now_ms + wait_ms
        return max(wait_ms, 0.0)

    def closing(self, now_ms: float) -> None:
        """Take no more records; those that are there go out without lingering."""
        self._accumulator.close()
        if self._ids is not None:
            self._ids.closing()

    def is_idle(self) -> bool:
        """Whether all records have come to an end."""
        return not self._accumulator.incomplete and (self._ids is None or self._ids.is_idle)

    def closed(self) -> None:
        """Fail what is left."""
        error = ClientClosedError("the producer was closed before the record was acknowledged")
        self._accumulator.close()
        self._accumulator.abort(error)
        for batch in list(self._accumulator.incomplete):
            if not batch.is_decided:
                batch.fail(error)
                self._accumulator.ended(batch)
        if self._ids is not None:
            self._ids.closed(error)

    # Sending ---------------------------------------------------------------------------------------------------------

    def send_at_once(self, queue: PartitionQueue, now_ms: float) -> bool:
        """Send the only batch that waits, if nothing is in its way: `work`, done by a thread that sends.

        By `ClientThread.step_in`. Nobody is called back here: what cannot be sent is left to `work`.
        """
        ids, settings = self._ids, self._settings
        if settings.acks == 0 or queue.is_muted or not (ids is None or ids.is_settled):
            return False
        cluster = self._metadata.cluster
        leader = cluster.leader(queue.topic_partition)
        batch = self._accumulator.first(queue)
        if leader is None or batch is None or batch.attempts or not self._network.is_ready(leader):
            return False
        batches = self._drain(leader, [(queue, batch)], now_ms)
        if not batches:
            return False
        try:
            self._post(cluster, leader, batches, now_ms)
        except (ClientError, EncodeError) as failure:
            log.debug("not sent at once node='%s' error=%r", leader, str(failure))
            self._metrics.answered()
            self._outcomes.withdrawn(batches)
            for each in batches:
                self._accumulator.put_back(each)
            return False
        if self._network.has_news:
            self._network.wakeup()
        return True

    def _round(self, now_ms: float) -> tuple[bool, float]:
        """At most one request to each node; whether there was one, and when something is ready that was not."""
        cluster = self._metadata.cluster
        by_node: dict[Node, list[tuple[PartitionQueue, ProducerBatch]]] = {}
        ready: set[Node] = set()
        unknown: set[str] = set()
        wait_ms = FOREVER_MS
        for queue, batch in self._accumulator.waiting().items():
            if queue.is_muted:
                continue
            leader = cluster.leader(queue.topic_partition)
            if leader is None:
                unknown.add(queue.topic_partition.topic)
                continue
            left_ms = self._accumulator.ready_at_ms(queue, batch) - now_ms
            if left_ms <= 0 or self._has_moved(cluster, batch):
                ready.add(leader)
            else:
                wait_ms = min(wait_ms, left_ms)
                if batch.attempts:
                    continue
            by_node.setdefault(leader, []).append((queue, batch))
        if unknown:
            self._metadata.want(unknown)
            self._metadata.request_update()
        has_sent = False
        for node in ready:
            if self._network.ready(node):
                batches = self._drain(node, by_node[node], now_ms)
                if batches:
                    self._produce(cluster, node, batches, now_ms)
                    has_sent = True
            else:
                wait_ms = min(wait_ms, self._network.delay_ms(node))
        if self._settings.availability_timeout_ms:
            self._note_availability(cluster, ready, now_ms)
        return has_sent, wait_ms

    def _has_moved(self, cluster: Cluster, batch: ProducerBatch) -> bool:
        """Whether a batch that waits for another try has another leader by now: no reason to wait (KIP-951)."""
        if not batch.attempts:
            return False
        info = cluster.partition(batch.topic_partition)
        return info is not None and info.leader_epoch > batch.leader_epoch

    def _drain(
        self, node: Node, waiting: list[tuple[PartitionQueue, ProducerBatch]], now_ms: float
    ) -> list[ProducerBatch]:
        """Take one batch of each partition, beginning where the node's last request had no more room."""
        turn = self._turns.pop(node.id, None)
        if turn is not None:
            queues = [queue for queue, _ in waiting]
            start = queues.index(turn) if turn in queues else 0
            waiting = waiting[start:] + waiting[:start]
        taken: list[ProducerBatch] = []
        size_bytes = 0
        ids = self._ids
        for queue, batch in waiting:
            if ids is not None and not ids.may_send(queue.topic_partition, batch):
                continue
            if taken and size_bytes + batch.size_bytes > self._settings.max_request_size_bytes:
                self._turns[node.id] = queue
                break
            batch = self._accumulator.take(queue)
            if ids is not None:
                ids.sequences.number(batch)
            if self._settings.max_in_flight == 1:
                queue.is_muted = True
            size_bytes += batch.size_bytes
            taken.append(batch)
        return taken

    def _produce(self, cluster: Cluster, node: Node, batches: list[ProducerBatch], now_ms: float) -> None:
        try:
            self._post(cluster, node, batches, now_ms)
        except (ClientError, EncodeError) as failure:
            log.error("batches cannot be sent node='%s' error=%r", node, str(failure))
            error = failure if isinstance(failure, KafkaError) else KafkaError(str(failure))
            self._metrics.answered()
            self._outcomes.unsendable(batches, error, now_ms)

    def _post(self, cluster: Cluster, node: Node, batches: list[ProducerBatch], now_ms: float) -> None:
        """Raises ClientError or EncodeError, and nothing was sent."""
        settings = self._settings
        for batch in batches:
            self._used.add(batch.topic_partition.topic)
            info = cluster.partition(batch.topic_partition)
            if info is not None:
                batch.leader_epoch = info.leader_epoch
        by_partition = {batch.topic_partition: batch for batch in batches}
        request = produce_request(
            settings.acks, settings.request_timeout_ms, settings.transactional_id, batches, cluster
        )
        uses_v2 = self._ids is None or self._ids.is_transaction_v2
        versions = produce_versions(batches, cluster, adds_to_transaction=uses_v2)
        self._outcomes.sent(batches)
        self._metrics.sent(batches, now_ms)
        self._network.send(
            node,
            request,
            partial(self._answered, by_partition, cluster),
            versions=versions,
            timeout_ms=settings.request_timeout_ms,
            is_answered=settings.acks != 0,
        )

    def _answered(self, batches: Mapping[TopicPartition, ProducerBatch], cluster: Cluster, answer: Any) -> None:
        now_ms = self._now_ms()
        self._metrics.answered()
        if answer is None:
            self._outcomes.unacknowledged(list(batches.values()))
        elif isinstance(answer, ClientError):
            self._outcomes.unanswered(list(batches.values()), answer, now_ms)
        else:
            self._outcomes.answered(batches, cluster.names, answer, now_ms)

    # Time ------------------------------------------------------------------------------------------------------------

    def _expire(self, now_ms: float) -> None:
        """Give up what is older than `delivery.timeout.ms`, waiting or under way."""
        accumulator = self._accumulator
        for batch in accumulator.expired(now_ms):
            self._outcomes.expired(batch, self._expiry(batch, now_ms), now_ms)
        rest = list(accumulator.incomplete)
        for batch in rest:
            if accumulator.deadline_ms(batch) <= now_ms and self._outcomes.is_in_flight(batch):
                self._outcomes.expired(batch, self._expiry(batch, now_ms), now_ms)
        deadlines = [accumulator.deadline_ms(batch) for batch in rest if not batch.is_decided]
        self._next_expiry_ms = min(deadlines, default=now_ms + accumulator.delivery_timeout_ms)

    def _expiry(self, batch: ProducerBatch, now_ms: float) -> KafkaError:
        age_ms = now_ms - batch.created_ms
        return KafkaTimeoutError(
            f"{batch.count} records for {batch.topic_partition} expired: {age_ms:.0f} ms since their batch was begun"
        )

    def _note_availability(self, cluster: Cluster, ready: set[Node], now_ms: float) -> None:
        """Who has had something to take for long, and takes nothing."""
        refusing = {node.id for node in ready if not self._network.ready(node)}
        self._refusing_since_ms = {node: self._refusing_since_ms.get(node, now_ms) for node in refusing}
        timeout_ms = self._settings.availability_timeout_ms
        avoided = [node for node, since_ms in self._refusing_since_ms.items() if now_ms - since_ms > timeout_ms]
        self._accumulator.avoid(avoided, cluster)
