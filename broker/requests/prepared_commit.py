"""The way of an offset commit that looks like the one before it.

A member commits for the same partitions again and again; but for the correlation id and the offsets its requests are
the same bytes. A connection remembers the last one that repeated itself: the bytes between the offsets, the records
that were written, the encoded answer. The next such request sets the offsets in the records and goes to the group's
shard, which decides as ever; where there are other replicas, the answer waits in the log's queue for them
(`waiting/offset_queue.py`). Whatever does not fit or is refused takes the ordinary way, which does it again: to commit
the same offset twice is to commit it.

    request   head (key, version, correlation id: 8 bytes) | piece | offset i64 | piece | offset i64 | ... | piece
    answer    head | rest
"""

import struct
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.prepared import HEAD_SIZE_BYTES, Prepared, read_head
from kavka.coordinator.runtime.append_errors import told_to_clients
from kavka.protocol.codec import encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.headers import ResponseHead, decode_request_header
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kavka.protocol.records.batch import Codec

if TYPE_CHECKING:
    from kavka.broker.metadata.metadata_cache import MetadataSnapshot
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services
    from kavka.broker.waiting.awaited_answer import AwaitedAnswer
    from kavka.coordinator.group.offsets.repeated import RepeatedCommit
    from kavka.coordinator.group.shard import GroupShard
    from kavka.coordinator.runtime.result import Result

OFFSET_COMMIT_KEY: Final = 8
OLDEST_VERSION: Final = 5
"""Before it, a request may say how long its offsets are kept."""
OFFSET_SIZE_BYTES: Final = 8
MAX_PARTITIONS: Final = 32
MAX_SIZE_BYTES: Final = 4096
"""What a connection may have remembered is bounded by this."""
WORTH_USES: Final = 4
"""To remember a commit costs more than so many that are remembered save."""
MOST_UNUSED: Final = 6
MARK: Final = 0x4B61766B61204A00

_OFFSET: Final = struct.Struct(">q").unpack_from
_MARK: Final = struct.Struct(">q").pack


class PreparedCommits(Prepared):
    """What one connection remembers of its commits."""

    __slots__ = ("_last_size_bytes", "_rest", "_services", "_shape", "_unused")

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._shape: CommitShape | None = None
        self._last_size_bytes = 0
        self._unused = 0
        self._rest = 0

    def learn(
        self,
        request: OffsetCommitRequest,
        response: OffsetCommitResponse,
        context: "Context",
        snapshot: "MetadataSnapshot",
    ) -> None:
        """A commit was answered well: remember it, if the one before was as long.

        More and more seldom while nothing that was remembered comes again, as of who commits for partitions in turn.
        """
        frame = context.frame
        if not frame or len(frame) > MAX_SIZE_BYTES or context.api_version < OLDEST_VERSION:
            return
        if len(frame) != self._last_size_bytes:
            self._last_size_bytes = len(frame)
        elif self._rest:
            self._rest -= 1
        else:
            shape = self._shape
            self._unused = 0 if shape is None or shape.uses >= WORTH_USES else min(self._unused + 1, MOST_UNUSED)
            self._rest = (1 << self._unused) - 1
            self._shape = _shape_of(request, response, context, frame, self._services, snapshot)

    def is_small(self, frame: memoryview) -> bool:
        return not self._services.logs.moves.moving

    def forget(self) -> None:
        self._shape = None

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> "bytes | AwaitedAnswer | None":
        shape = self._shape
        if shape is None or frame.nbytes != shape.size_bytes or (not may_wait and self._services.logs.moves.moving):
            return None
        snapshot = self._services.metadata.current
        if shape.generation is not self._services.generation:
            self._shape = None
            return None
        if shape.snapshot_token is not snapshot.token and not shape.still_holds(snapshot):
            self._shape = None
            return None
        answer = shape.commit(frame)
        if answer is not None:
            shape.uses += 1
            cells.event(shape.counter, shape.offset_count)
        return answer


class CommitShape:
    """One request's shape. Changed by the thread that runs its connection only."""

    __slots__ = (
        "_answer",
        "_answer_size_bytes",
        "_head",
        "_key",
        "_key_version",
        "_pieces",
        "_positions",
        "_repeated",
        "_run_at_once",
        "_services",
        "_topic_ids",
        "counter",
        "generation",
        "offset_count",
        "size_bytes",
        "snapshot_token",
        "uses",
    )

    def __init__(
        self,
        repeated: "RepeatedCommit",
        frame: memoryview,
        positions: list[int],
        head: ResponseHead,
        answer: bytes,
        counter: str,
        services: "Services",
        snapshot: "MetadataSnapshot",
        generation: object,
    ) -> None:
        """`generation`: of the rights by which it was admitted."""
        self.generation = generation
        self.size_bytes = len(frame)
        self.snapshot_token = snapshot.token
        self.uses = 0
        groups = services.groups
        self._services = services
        self._key = (groups.topic.name, groups.partition_of(repeated.request.group_id))
        self._topic_ids = {topic.name: snapshot.topic_id(topic.name) for topic in repeated.request.topics}
        (self._key_version, _) = read_head(frame)
        starts = [HEAD_SIZE_BYTES, *(position + OFFSET_SIZE_BYTES for position in positions)]
        ends = [*positions, len(frame)]
        self._pieces = [
            (start, end, frame[start:end].tobytes()) for start, end in zip(starts, ends, strict=True) if start < end
        ]
        self._positions = list(zip(repeated.values, positions, strict=True))
        self.counter = counter
        self.offset_count = len(positions)
        self._run_at_once = groups.runtime.run_at_once
        self._repeated = repeated
        self._answer = answer
        self._answer_size_bytes = head.counted_size_bytes + len(answer)
        self._head = head

    def still_holds(self, snapshot: "MetadataSnapshot") -> bool:
        """Whether another snapshot of the cluster has the topics of this commit as they were: then it is known too.

        Metadata that concern others, or these topics' leaders, change nothing here.
        """
        for topic in self._repeated.request.topics:
            known = snapshot.topic(topic.name)
            if known is None or known.topic_id != self._topic_ids[topic.name]:
                return False
            if any([known.partition(partition.partition_index) is None for partition in topic.partitions]):
                return False
        self.snapshot_token = snapshot.token
        return True

    def commit(self, frame: memoryview) -> "bytes | AwaitedAnswer | None":
        """As `PreparedCommits.run`, for a frame of the same size."""
        # A view is compared, and read, at twice the cost of copying these few bytes first.
        data = frame.tobytes()
        key_version, correlation_id = read_head(data)
        if key_version != self._key_version:
            return None
        for start, end, piece in self._pieces:
            if data[start:end] != piece:
                return None
        key, hosted = self._key, self._services.replicas.partitions
        if key not in hosted:
            # Coordinated elsewhere.
            return None
        coordinated = hosted[key]
        source, leader_epoch = coordinated.log, coordinated.role.leader_epoch
        if source is None or source.flushes_by_count:
            # The answer waits for the disk, and this way only knows answers that are there at once.
            return None
        for value, position in self._positions:
            (value.offset,) = _OFFSET(data, position)
        try:
            end_offset = self._run_at_once(coordinated.index, self._decide)
        except Exception:  # noqa: BLE001 - the ordinary way meets it again, and answers and logs it
            return None
        if end_offset is None:
            return None
        if source.high_watermark >= end_offset and coordinated.role.is_sole:
            return self._head.pack(self._answer_size_bytes, correlation_id) + self._answer
        # Not needed by a broker that stands alone.
        from kavka.broker.waiting.awaited_answer import AwaitedAnswer

        return AwaitedAnswer(
            OFFSET_COMMIT_KEY,
            self._repeated.api_version,
            [(coordinated, leader_epoch, end_offset)],
            partial(self._awaited_answer, correlation_id),
            self._services.config.current.offsets_commit_timeout_ms,
            self._services.purgatory,
        )

    def _awaited_answer(self, correlation_id: int, codes: Sequence[ErrorCode]) -> bytes:
        if not codes[0]:
            return self._head.pack(self._answer_size_bytes, correlation_id) + self._answer
        # The request's names stay; its offsets may be those of a later one.
        refused = refusal_of(self._repeated.request, told_to_clients(BrokerError(codes[0])).code)
        return self._head.framed(correlation_id, encode(refused, self._repeated.api_version))

    def _decide(self, shard: "GroupShard") -> "Result":
        return shard.repeat_commit(self._repeated)


def prepare_commit(
    request: OffsetCommitRequest,
    response: OffsetCommitResponse,
    context: "Context",
    services: "Services",
    snapshot: "MetadataSnapshot",
) -> None:
    """Have commits like this one, which stands, take the short way, unless each has to be audited, or its time counted.

    `snapshot`: that in which its topics were found.
    """
    session, charge = context.session, context.charge
    if session.authorizer is not None and session.authorizer.audits_everything:
        return
    if charge is not None and charge.account.request is not None:
        return
    prepared = session.prepared.get(OFFSET_COMMIT_KEY)
    if not isinstance(prepared, PreparedCommits):
        prepared = PreparedCommits(services)
        session.prepare(OFFSET_COMMIT_KEY, prepared)
    prepared.learn(request, response, context, snapshot)


def refusal_of(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The same answer for each of the request's partitions; NONE: all of them are committed."""
    return OffsetCommitResponse(
        topics=[
            topic_answer(each, [partition.partition_index for partition in each.partitions], code)
            for each in request.topics
        ]
    )


def topic_answer(asked: OffsetCommitRequestTopic, indexes: Sequence[int], code: ErrorCode) -> OffsetCommitResponseTopic:
    """The same answer for each of these partitions of a topic."""
    partitions = [OffsetCommitResponsePartition(partition_index=index, error_code=code) for index in indexes]
    return OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=partitions)


def is_faultless(response: OffsetCommitResponse) -> bool:
    """Whether every offset was committed."""
    return not any([partition.error_code for topic in response.topics for partition in topic.partitions])


def _shape_of(
    request: OffsetCommitRequest,
    response: OffsetCommitResponse,
    context: "Context",
    frame: memoryview,
    services: "Services",
    snapshot: "MetadataSnapshot",
) -> CommitShape | None:
    """None for a request that was not written the plain way, or has too many partitions.

    The offsets' places are found by writing the request anew with marks in them: whatever a client wrote differently
    would be read differently the short way.
    """
    from kavka.coordinator.group.offsets.commit import COMMITS
    from kavka.coordinator.group.offsets.repeated import RepeatedCommit

    version = context.api_version
    partitions = [partition for topic in request.topics for partition in topic.partitions]
    if (
        len(partitions) > MAX_PARTITIONS
        or any(partition.committed_metadata for partition in partitions)
        or services.config.current.offsets_topic_compression_codec != Codec.NONE
    ):
        return None
    start = decode_request_header(frame).body_offset
    if bytes(frame[start:]) != encode(request, version):
        return None
    offsets = [partition.committed_offset for partition in partitions]
    for number, partition in enumerate(partitions):
        partition.committed_offset = MARK + number
    marked = encode(request, version)
    positions = []
    for number, (partition, offset) in enumerate(zip(partitions, offsets, strict=True)):
        partition.committed_offset = offset
        mark = _MARK(MARK + number)
        if marked.count(mark) != 1:
            return None
        positions.append(start + marked.index(mark))
    try:
        repeated = RepeatedCommit(request, version)
    except ValueError:
        return None
    head = ResponseHead(OFFSET_COMMIT_KEY, version)
    answer = encode(response, version)
    return CommitShape(repeated, frame, positions, head, answer, COMMITS, services, snapshot, context.generation)
