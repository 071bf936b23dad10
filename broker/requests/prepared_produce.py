"""The way of a produce request that looks like the one before it.

Producers send the same request again and again: client id, acks, timeout, topic and partition stay, only the
correlation id and the records differ. A connection remembers the bytes in front of the records (the shape) and what
they mean, so that the next such request costs a dictionary look-up instead of a decode, a look-up of the partition
and an encode. With acks=all and other replicas it appends like that, too, and waits in the partition's queue
(`waiting/offset_queue.py`). What does not fit exactly, or fails, takes the ordinary way through the dispatcher, which
does the same again and says what is wrong: an append that raised has written nothing and left the bytes as they came.
Only where the flush failed that was due is the batch in the log, and the answer is made here. A batch of a transaction
goes the short way where the partition has that transaction open; its first batch, which has to be verified, is refused
and goes round.

Requests for several partitions have a shape by topic (`topic_shape.py`). One that fails midway takes the ordinary way,
too, which is told what has become of the batches before (`take_begun`).

    request   head (key, version, correlation id: 8 bytes) | shape | size of records | records | tagged fields, all
    empty
    answer    head | prefix | base_offset i64, log_append_time_ms i64, log_start_offset i64 | suffix
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.partitions.role import NO_EPOCH
from kavka.broker.requests.leader_hints import name_leaders
from kavka.broker.requests.prepared import CLOSES, HEAD_SIZE_BYTES, Later, Prepared, read_head
from kavka.broker.requests.produce_shape import ProduceShape, records_at, shape_end
from kavka.broker.requests.topic_shape import NO_RECORDS, Batches, TopicShape, encoded_answer, topic_shape_of
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.produce import PartitionProduceResponse, ProduceRequest
from kavka.protocol.records.header import PRODUCER_POSITION, is_transactional, unpack_producer
from kavka.storage.append_result import AppendResult, UnflushedError

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.partitions.partition_waits import PartitionWaits
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services
    from kavka.broker.waiting.awaited_answer import AwaitedAnswer

OLDEST_VERSION: Final = 5
"""From here on answers have the three numbers side by side."""
MAX_SHAPES: Final = 256
"""So many partitions some clients (librdkafka's) write to by requests for one each."""
MAX_FRONT_BYTES: Final = 1024
"""Of a request without its records: client id, transactional id and topic have 250 characters each, mostly fewer.

A shape is as long at the most, and each connection keeps its own: those of longer requests are not remembered.
"""
MAX_LENGTHS: Final = 4
PRODUCE_KEY: Final = 0
LONG_BYTES: Final = 16 * 1024
"""Others should not wait while the records of a longer request are walked, at microseconds each.

Nor while those of a compressed batch are, however short it is: it may unpack to a thousand times its size.
"""

Begun = dict[int, tuple[int, AppendResult | UnflushedError]]
"""What has become of the leading batches of a request, by partition, and the leader epoch from before: all appended."""


class PreparedProduces(Prepared):
    """The shapes of one connection's produce requests."""

    __slots__ = (
        "_begun",
        "_generation",
        "_lengths",
        "_name_leaders",
        "_services",
        "_shapes",
        "_topic_lengths",
        "_topic_shapes",
    )

    closing_reason = "a produce with acks=0 failed, and no answer can say so"

    def __init__(self, services: "Services", listener_name: str) -> None:
        self._services = services
        self._generation: object = None
        """Of the rights by which all that is remembered was admitted."""
        self._name_leaders = partial(name_leaders, services, listener_name)
        self._lengths: tuple[int, ...] = ()
        self._shapes: dict[bytes, ProduceShape] = {}
        self._topic_lengths: tuple[int, ...] = ()
        self._topic_shapes: dict[bytes, TopicShape] = {}
        self._begun: tuple[memoryview, Begun] | None = None

    def learn(self, request: ProduceRequest, context: "Context", partition: "Partition") -> None:
        """Remember the shape of a request, v5 or later, that was appended, if it is one that can be remembered."""
        frame = context.frame
        version = context.api_version
        if frame is None or len(request.topic_data) != 1:
            return
        if context.generation is not self._generation:
            self.forget()
            self._generation = context.generation
        partitions = request.topic_data[0].partition_data
        if frame.nbytes - sum([len(data.records or b"") for data in partitions]) > MAX_FRONT_BYTES:
            return
        if len(partitions) == 1:
            end = shape_end(request, frame, version)
            if end:
                self._make_room()
                shape = ProduceShape(request, version, partition, self._name_leaders)
                self._shapes[frame[HEAD_SIZE_BYTES:end].tobytes()] = shape
                if end not in self._lengths:
                    self._lengths = (end, *self._lengths)[:MAX_LENGTHS]
            return
        found = topic_shape_of(request, frame, version, partition, self._name_leaders)
        if found is not None:
            end, topic_shape = found
            self._make_room()
            self._topic_shapes[frame[HEAD_SIZE_BYTES:end].tobytes()] = topic_shape
            if end not in self._topic_lengths:
                self._topic_lengths = (end, *self._topic_lengths)[:MAX_LENGTHS]

    def forget(self) -> None:
        self._shapes.clear()
        self._topic_shapes.clear()

    def take_begun(self, frame: memoryview | None) -> Begun:
        """What has become of the leading batches of the request, which `run` has left: those are not appended again."""
        begun, self._begun = self._begun, None
        return begun[1] if begun is not None and begun[0] is frame else {}

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> bytes | Later | None:
        """Append; where nothing may wait, what has to be flushed, or be long and looked into, is left. See Prepared."""
        if self._generation is not self._services.generation:
            return None
        for end in self._lengths:
            shape = self._shapes.get(frame[HEAD_SIZE_BYTES:end].tobytes())
            if shape is not None:
                break
        else:
            return self._run_topic(frame, cells, may_wait)
        key_version, correlation_id = read_head(frame)
        if key_version != shape.key_version:
            return None
        records = records_at(frame, end, shape.is_flexible)
        partition = shape.partition
        log, role = partition.log, partition.role
        if log is None or not role.is_leader:
            # It has gone, is another's, or is another by that name now.
            self._shapes = {front: each for front, each in self._shapes.items() if each.partition is not partition}
            return None
        if records is None:
            return None
        if not may_wait and (
            log.flushes_by_count
            or log.is_moving
            or (log.rules.looks_closer and (frame.nbytes > LONG_BYTES or log.rules.unpacks(records)))
        ):
            return None
        if is_transactional(records) and not (
            shape.is_transactional and log.producers.has_open_transaction(*unpack_producer(records, PRODUCER_POSITION))
        ):
            return None
        try:
            first_offset, last_offset, log_append_time_ms, log_start_offset, duplicate = partition.append(
                records, shape.acks, shape.version, self._services.now_ms()
            )
        except UnflushedError as failure:
            return self._unflushed(shape, correlation_id, failure, cells)
        except Exception:  # noqa: BLE001 - the ordinary way meets it again, and answers or logs it
            return None
        cells.produced(partition.topic, 1, records.nbytes, 0 if duplicate else last_offset - first_offset + 1)
        # A repeated batch may have been flushed, and so be seen, only now.
        if not role.is_sole or partition.data_arrived.operations or partition.high_watermark_moved.operations:
            partition.appended()
        if shape.acks == 0:
            return b""
        # By now: if there is no other, what was appended is committed.
        if shape.acks == -1 and not partition.role.is_sole:
            make = partial(shape.awaited_answer, correlation_id, first_offset, log_append_time_ms, log_start_offset)
            return self._awaited(shape, [(partition, role.leader_epoch, last_offset + 1)], make)
        return shape.pack(
            shape.answer_size_bytes,
            correlation_id,
            shape.prefix,
            first_offset,
            log_append_time_ms,
            log_start_offset,
            shape.suffix,
        )

    def _awaited(
        self,
        shape: ProduceShape | TopicShape,
        waits: "Sequence[tuple[PartitionWaits, int, int]]",
        make: Callable[[Sequence[ErrorCode]], bytes],
    ) -> "AwaitedAnswer":
        # Not needed by a broker that stands alone.
        from kavka.broker.waiting.awaited_answer import AwaitedAnswer

        return AwaitedAnswer(PRODUCE_KEY, shape.version, waits, make, shape.timeout_ms, self._services.purgatory)

    def _run_topic(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> "bytes | AwaitedAnswer | None":
        """As `run`, for several partitions of one topic."""
        if self._begun is not None and self._begun[0] is frame:
            return None
        for end in self._topic_lengths:
            shape = self._topic_shapes.get(frame[HEAD_SIZE_BYTES:end].tobytes())
            if shape is not None:
                break
        else:
            return None
        key_version, correlation_id = read_head(frame)
        if key_version != shape.version:
            return None
        hosted = self._services.replicas.partitions
        batches = shape.batches(frame, end, hosted, may_wait, frame.nbytes > LONG_BYTES)
        # From before the append.
        epochs = [partition.role.leader_epoch for partition, _ in batches or ()] if shape.acks == -1 else []
        results = None if batches is None else self._append(shape, batches, frame, epochs)
        if batches is None or results is None:
            return None
        count = size_bytes = messages = 0
        for (partition, records), (first_offset, last_offset, _, _, duplicate) in zip(batches, results, strict=True):
            count += 1
            size_bytes += records.nbytes
            messages += 0 if duplicate else last_offset - first_offset + 1
            if (
                not partition.role.is_sole
                or partition.data_arrived.operations
                or partition.high_watermark_moved.operations
            ):
                partition.appended()
        cells.produced(shape.topic, count, size_bytes, messages)
        if shape.acks == 0:
            return b""
        if shape.acks == -1 and not all([partition.role.is_sole for partition, _ in batches]):
            kept = [(partition, NO_RECORDS) for partition, _ in batches]
            waits = [
                (partition, leader_epoch, result.last_offset + 1)
                for (partition, _), leader_epoch, result in zip(batches, epochs, results, strict=True)
            ]
            return self._awaited(shape, waits, partial(shape.answer, correlation_id, kept, results))
        return shape.answer(correlation_id, batches, results)

    def _append(
        self, shape: TopicShape, batches: Batches, frame: memoryview, epochs: Sequence[int]
    ) -> list[AppendResult] | None:
        """None if one fails: the ordinary way goes on there, and has no traceback of ours."""
        results: list[AppendResult] = []
        now_ms = self._services.now_ms()
        outcomes: list[AppendResult | UnflushedError]
        try:
            for partition, records in batches:
                results += [partition.append(records, shape.acks, shape.version, now_ms)]
            return results
        except UnflushedError as failure:
            outcomes = [*results, UnflushedError(failure.code, failure.message)]
        except Exception:  # noqa: BLE001 - the ordinary way meets it again, and answers or logs it
            outcomes = [*results]
        indexes = [partition.index for partition, _ in batches]
        known = zip(epochs or [NO_EPOCH] * len(batches), outcomes, strict=False)
        self._begun = (frame, dict(zip(indexes, known, strict=False)))
        return None

    def _make_room(self) -> None:
        """Forget the shapes if there are too many."""
        if len(self._shapes) + len(self._topic_shapes) >= MAX_SHAPES:
            self.forget()

    def _unflushed(
        self, shape: ProduceShape, correlation_id: int, failure: UnflushedError, cells: "ThreadCells"
    ) -> bytes:
        """The ordinary way's answer; that would append the batch again, which is in the log."""
        partition = shape.partition
        topic_cells = cells.topic(partition.topic)
        topic_cells.produce_requests += 1
        topic_cells.failed_produce_requests += 1
        if shape.acks == 0:
            return CLOSES
        refused = PartitionProduceResponse(index=partition.index, error_code=failure.code, base_offset=-1)
        return shape.head.framed(correlation_id, encoded_answer(partition, [refused], shape.version))


def prepare_produce(request: ProduceRequest, context: "Context", partition: "Partition", services: "Services") -> None:
    """Have requests like this one, which was appended, take the short way, unless each has to be audited."""
    session = context.session
    if session.authorizer is not None and session.authorizer.audits_everything:
        return
    prepared = session.prepared.get(PRODUCE_KEY)
    if not isinstance(prepared, PreparedProduces):
        prepared = PreparedProduces(services, context.listener_name)
        session.prepare(PRODUCE_KEY, prepared)
    prepared.learn(request, context, partition)


def begun_of(prepared: Prepared, context: "Context") -> Begun:
    """What has become of batches of this request, as its session's `prepared` knows: mostly there is nothing."""
    return prepared.take_begun(context.frame) if isinstance(prepared, PreparedProduces) else {}
