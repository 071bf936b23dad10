"""Transaction markers on their way: from the coordinator to the partitions' leaders, and there into the logs.

MarkerDispatch   finds each partition's leader, asks each leader once, and gathers the answers
MarkerChannel    the way to a leader; `LocalMarkerChannel` is the one to this broker, and leads to the others
MarkerWriter     what a leader does: also the work behind WriteTxnMarkers
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakValueDictionary

from kavka.broker.coordination.coordinated_log import CoordinatedLog
from kavka.broker.coordination.deleted_partitions import DeletedPartitions
from kavka.broker.coordination.other_brokers import OtherBrokers, Withdrawn
from kavka.cluster.promise import Promise, gather
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.completion import MarkerAnswer
from kavka.coordinator.transaction.metadata import TopicPartition
from kavka.coordinator.transaction.ports import MarkersWanted
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kavka.protocol.records.builder import ControlType, build_control_batch
from kavka.storage.append_result import Origin

if TYPE_CHECKING:
    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.core_services import CoreServices
    from kavka.broker.partitions.partition import Partition

NO_LEADER: Final = -1
ACKS_ALL: Final = -1
PRODUCE_VERSION: Final = 12

log = logging.getLogger(__name__)


class MarkerChannel(Protocol):
    """The way to partitions' leaders. Any thread; no lock is held."""

    def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, is_withdrawn: Withdrawn
    ) -> Promise[WriteTxnMarkersResponse]:
        """Have that broker write markers. The promise is settled by any thread, with no lock held.

        Once `is_withdrawn()`, the coordinator may have sent others: this broker appends none of these any more. Another
        one knows them by their coordinator's epoch.
        """


class LocalMarkerChannel:
    """The way to this broker; what is for others goes to `others`, if there are any."""

    def __init__(self, broker_id: int, writer: "MarkerWriter", others: OtherBrokers | None = None) -> None:
        self._broker_id: Final = broker_id
        self._writer: Final = writer
        self._others: Final = others

    def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, is_withdrawn: Withdrawn
    ) -> Promise[WriteTxnMarkersResponse]:
        """See MarkerChannel. Raises BrokerError BROKER_NOT_AVAILABLE for another broker where there is none."""
        if broker_id == self._broker_id:
            return self._writer.write(request, is_withdrawn)
        if self._others is None:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no way to broker {broker_id}")
        return self._others.write_markers(broker_id, request, is_withdrawn)


class MarkerDispatch:
    """Sends markers to the leaders. Any thread."""

    def __init__(
        self, services: "CoreServices", channel: MarkerChannel, deleted: DeletedPartitions | None = None
    ) -> None:
        """Without `deleted` what this broker does not know is deleted: there is no other broker that could."""
        self._services: Final = services
        self._channel: Final = channel
        self._deleted: Final = deleted

    def send(self, wanted: MarkersWanted, done: Callable[[list[MarkerAnswer]], None]) -> None:
        """Try each marker once. `done` gets an answer for each partition, by any thread, with no lock held."""

        def failed(error: BaseException | None) -> list[MarkerAnswer]:
            # The transaction's end waits for the answer; a second one is not listened to.
            log.error("markers could not be sent transactional_id=%r", wanted.transactional_id, exc_info=error)
            return [MarkerAnswer(*partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in wanted.partitions]

        try:
            self._send(wanted).watch(
                lambda answers, error: done(failed(error)) if answers is None else self._check(answers, done)
            )
        except Exception as failure:  # noqa: BLE001 - logged there
            done(failed(failure))

    def _send(self, wanted: MarkersWanted) -> Promise[list[MarkerAnswer]]:
        answers: list[MarkerAnswer] = []
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic, index in wanted.partitions:
            leader = self._leader_of(topic, index)
            if isinstance(leader, ErrorCode):
                answers.append(MarkerAnswer(topic, index, leader))
            else:
                by_leader.setdefault(leader, []).append((topic, index))

        asked = [self._ask(wanted, leader, partitions) for leader, partitions in by_leader.items()]
        return gather(asked, lambda of_leaders: answers + [answer for of_leader in of_leaders for answer in of_leader])

    def _check(self, answers: list[MarkerAnswer], done: Callable[[list[MarkerAnswer]], None]) -> None:
        """Have the markers of partitions that exist, though they are not known here, tried again."""
        unknown = [each[:2] for each in answers if each.code is ErrorCode.UNKNOWN_TOPIC_ID]
        if self._deleted is None or not unknown:
            done(answers)
            return

        def found(deleted: Collection[TopicPartition]) -> None:
            again = set(unknown).difference(deleted)
            done(
                [each._replace(code=ErrorCode.LEADER_NOT_AVAILABLE) if each[:2] in again else each for each in answers]
            )

        self._deleted.find(unknown, found)

    def _leader_of(self, topic: str, index: int) -> int | ErrorCode:
        """The leader's id. UNKNOWN_TOPIC_ID: the partition is gone; other codes: to be tried again."""
        snapshot = self._services.metadata.current
        if TRANSACTION_STATE_TOPIC not in snapshot.topics:
            # The broker has just started, and doesn't know the cluster yet.
            return ErrorCode.LEADER_NOT_AVAILABLE
        partition = snapshot.partition(topic, index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        leader = partition.leader
        return ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else leader

    def _ask(self, wanted: MarkersWanted, leader: int, partitions: list[TopicPartition]) -> Promise[list[MarkerAnswer]]:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        marker = WritableTxnMarker(
            producer_id=wanted.producer_id,
            producer_epoch=wanted.producer_epoch,
            transaction_result=wanted.committed,
            topics=[WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
            coordinator_epoch=wanted.coordinator_epoch,
            transaction_version=wanted.transaction_version,
        )

        def answered(response: WriteTxnMarkersResponse) -> list[MarkerAnswer]:
            codes = _codes(response)
            return [MarkerAnswer(*each, codes.get(each, ErrorCode.UNKNOWN_SERVER_ERROR)) for each in partitions]

        def refused(error: BaseException) -> list[MarkerAnswer]:
            # The transaction's end waits for the answer.
            if isinstance(error, BrokerError):
                code = error.code
            else:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
                log.error("markers could not be sent transactional_id=%r", wanted.transactional_id, exc_info=error)
            return [MarkerAnswer(*each, code) for each in partitions]

        try:
            request = WriteTxnMarkersRequest(markers=[marker])
            written = self._channel.write_markers(leader, request, wanted.dispatch.is_withdrawn)
        except Exception as failure:  # noqa: BLE001 - logged there
            written = Promise()
            written.fail(failure)
        return written.then(answered, refused)


class MarkerWriter:
    """Writes markers into the partitions that this broker leads. Any thread; no lock may be held.

    `_lock` guards `_logs`: those of partitions whose fsync is awaited, so that one thread at most is at each.
    """

    def __init__(
        self, services: "CoreServices", groups: "GroupCoordination", execute: Callable[[Callable[[], None]], None]
    ) -> None:
        """`execute` runs a piece of work soon, on a thread that may wait for the disk."""
        self._services: Final = services
        self._groups: Final = groups
        self._execute: Final = execute
        self._lock = threading.Lock()
        self._logs: WeakValueDictionary[Partition, CoordinatedLog] = WeakValueDictionary()

    def write(
        self, request: WriteTxnMarkersRequest, is_withdrawn: Withdrawn = lambda: False
    ) -> Promise[WriteTxnMarkersResponse]:
        """Write each marker where it can be written; the answer comes when all are committed or have failed.

        Those that are to be appended when they are withdrawn get NOT_COORDINATOR. Waits for no fsync: where a topic's
        `flush.messages` asks for one, another thread does it.
        """
        places = [
            (marker, topic.name, index)
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        codes: list[Promise[ErrorCode]] = []
        for marker, name, index in places:
            code: Promise[ErrorCode] = Promise()
            codes.append(code)
            try:
                self._write_one(marker, name, index, code.complete, is_withdrawn)
            except Exception:
                # Nor may it keep the others from their places.
                log.exception("a marker could not be written topic=%s partition=%d", name, index)
                code.complete(ErrorCode.UNKNOWN_SERVER_ERROR)
        # All is in the logs: whoever asks next need not wait for these markers' replicas.
        return gather(codes, partial(marker_response, request), effects_complete=True)

    def _write_one(
        self,
        marker: WritableTxnMarker,
        topic: str,
        index: int,
        done: Callable[[ErrorCode], object],
        is_withdrawn: Withdrawn,
    ) -> None:
        services = self._services
        partition = services.replicas.partitions.get((topic, index))
        if partition is None:
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif topic == GROUP_METADATA_TOPIC:
            # Through the group coordinator, whose pending offsets the marker decides.
            self._groups.runtime.end_transaction(
                index,
                Producer(marker.producer_id, marker.producer_epoch),
                marker.coordinator_epoch,
                marker.transaction_result,
                lambda error: done(ErrorCode.NONE if error is None else _of_coordinator(error)),
                marker.transaction_version,
                is_withdrawn,
            )
        else:
            self._append(partition, marker, done, is_withdrawn)

    def _append(
        self,
        partition: "Partition",
        marker: WritableTxnMarker,
        done: Callable[[ErrorCode], object],
        is_withdrawn: Withdrawn,
    ) -> None:
        services = self._services
        now_ms = services.now_ms()
        batch = build_control_batch(
            ControlType.COMMIT if marker.transaction_result else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )
        leader_epoch = partition.role.leader_epoch
        try:
            result = partition.append(
                memoryview(bytearray(batch)),
                ACKS_ALL,
                PRODUCE_VERSION,
                now_ms,
                Origin.COORDINATOR,
                transaction_version=marker.transaction_version,
                withdrawn=is_withdrawn,
                leader_epoch=leader_epoch,
            )
            end_offset = result.last_offset + 1
        except BrokerError as failure:
            done(failure.code)
            return
        partition.appended()
        committed = self._log_of(partition)
        if committed.high_watermark >= end_offset and partition.role.leader_epoch == leader_epoch:
            done(ErrorCode.NONE)
        else:
            committed.when_committed(
                end_offset, lambda error: done(ErrorCode.NONE if error is None else error.code), leader_epoch
            )

    def _log_of(self, partition: "Partition") -> CoordinatedLog:
        services = self._services
        with self._lock:
            known = self._logs.get(partition)
            if known is None:
                known = self._logs[partition] = CoordinatedLog(
                    partition,
                    services.purgatory,
                    services.now_ms,
                    lambda: services.config.current.request_timeout_ms,
                    self._execute,
                )
            return known


_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


def _of_coordinator(error: BrokerError) -> ErrorCode:
    """What the group coordinator's refusal is called between brokers: come again, maybe elsewhere."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _MOVED else error.code


def _codes(response: WriteTxnMarkersResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        (topic.name, partition.partition_index): _known(partition.error_code)
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }


def _known(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def marker_response(request: WriteTxnMarkersRequest, codes: Iterable[ErrorCode]) -> WriteTxnMarkersResponse:
    """The answer to WriteTxnMarkers; `codes` in the order of the request's partitions."""
    rest = iter(codes)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(rest))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
