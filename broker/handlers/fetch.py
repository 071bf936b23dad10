"""Fetch v0-18.

Behaviour
- Reads the partitions asked for, in order, up to the limits; the first batch of the first non-empty partition comes
  whole even beyond them (KIP-74). With less than `min_bytes` it waits, `max_wait_ms` at most; not at a segment's end,
  which a read does not go beyond.
- Consumers see what is below the high watermark, or below the last stable offset with read_committed, together with the
  aborted transactions in between.
- Large slices leave by sendfile; nothing is decompressed or looked into, unless an old version needs older formats.
- Not done: reading from followers (KIP-392), tiered storage.

Versions
- v0-3: batches are converted down to magic 0 or 1. v4: read_committed. v5: log start offsets. v7: sessions (KIP-227).
- v9: leader epochs (KIP-320). v10: zstd (KIP-110). v12: diverging epochs. v13: topic ids (KIP-516). v15: replica state.
- v16: the new leader and its endpoint (KIP-951). v17: replica directory. v18: the follower's high watermark; not used.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from kavka.broker.network.file_part import FilePart
from kavka.broker.partitions.down_conversion import convert_down
from kavka.broker.partitions.fetch_sessions import INITIAL_EPOCH, Changes, FetchSession, Key, epoch_after
from kavka.broker.partitions.hosted import code_of_absent, current_leader, find_hosted
from kavka.broker.partitions.log_reading import MAGIC_2_SINCE, SENDFILE_FROM_BYTES, Reading, ReadLimits, read_all
from kavka.broker.requests.handling import Context, Services, handles
from kavka.broker.requests.prepared import TAILING
from kavka.broker.security.acl import CLUSTER, Operation, topic
from kavka.broker.waiting.delayed_fetch import FEW_PARTITIONS, DelayedFetch
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kavka.protocol.schema import ZERO_UUID
from kavka.storage.log_validator import unpacked_limit_bytes

FETCH_KEY: Final = 1
TOPIC_IDS_SINCE: Final = 13
ZSTD_SINCE: Final = 10
LEADERS_SINCE: Final = 16
"""The first version told of the new leader: the field is older, but Kafka fills it with the address (KIP-951)."""
LEADER_ERRORS: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


@handles(FetchRequest, versions="0-18")
def fetch(request: FetchRequest, context: Context, services: Services) -> FetchResponse | Promise[FetchResponse]:
    connection = context.connection
    if context.is_inline and _partition_count(request, services) > FEW_PARTITIONS:
        # Only the connection's last fetch was a small one.
        context.is_inline = False
        context.session.prepare(FETCH_KEY, None)
        begun: Promise[None] = Promise()
        answer = begun.then(lambda _: fetch(request, context, services))
        connection.thread.defer(connection, partial(begun.settle_by, lambda: None))
        return answer
    run = _Fetch(request, context, services)
    found = read_all(run.readings, run.limits)
    # More than it may get it need not wait for.
    min_bytes = min(request.min_bytes, run.limits.max_bytes)
    if (
        found >= min_bytes
        or request.max_wait_ms <= 0
        or not run.readings
        or any([reading.failed for reading in run.readings])
    ):
        if found >= SENDFILE_FROM_BYTES:
            if FETCH_KEY in context.session.prepared:
                context.session.prepare(FETCH_KEY, None)
            if context.is_inline:
                # It reads what was written long ago, maybe from a disk.
                promise: Promise[FetchResponse] = Promise()
                connection.thread.defer(connection, partial(promise.settle_by, run.answer))
                return promise
        return run.answer()
    is_tailing = len(run.readings) <= FEW_PARTITIONS
    if is_tailing is not (FETCH_KEY in context.session.prepared):
        context.session.prepare(FETCH_KEY, TAILING if is_tailing else None)
    operation = DelayedFetch(run.readings, run.limits, min_bytes, connection, run.answer)
    connection.parked[operation] = None
    if context.is_inline:
        # What came with it, behind it, waits as long: for minutes, maybe.
        connection.keep_pending_apart()
    watching = [reading.partition.data_arrived for reading in run.readings if reading.partition is not None]
    services.purgatory.park(operation, watching, request.max_wait_ms)
    if connection.closed:
        operation.cancel()
    elif connection.half_closed:
        operation.expire_soon()
    return operation.promise


class _Fetch:
    """One request: the partitions it reads, in its session if it has one, and the answer built of them."""

    __slots__ = (
        "_context",
        "_keys",
        "_opens_session",
        "_services",
        "_session_epoch",
        "_version",
        "limits",
        "readings",
        "session",
    )

    def __init__(self, request: FetchRequest, context: Context, services: Services) -> None:
        self._context = context
        self._services = services
        self._version = version = context.api_version
        replica_id = request.replica_id if version < 15 else request.replica_state.replica_id
        self.limits = ReadLimits(
            # Before v3 a request can't say how much it wants altogether: the broker's own limit counts alone.
            min(request.max_bytes, services.config.current.fetch_max_bytes),
            version=version,
            replica_id=replica_id,
            isolation_level=request.isolation_level,
        )
        if self.limits.is_follower:
            context.require(Operation.CLUSTER_ACTION, CLUSTER)
        uses_topic_ids = version >= TOPIC_IDS_SINCE
        # Kafka keeps partitions in a map: the last entry counts, in the first one's place.
        asked = list(dict(self._asked(request)).items())
        names = services.metadata.current.names_by_id if uses_topic_ids else None
        changes = Changes(asked, self._forgotten(request), names)
        # Before v7 the epoch is always that of a fetch that wants no session.
        self.session: FetchSession | None
        self.session, asked = services.fetch_sessions.resume(request, uses_topic_ids, changes)
        self._opens_session = request.session_epoch == INITIAL_EPOCH
        self._session_epoch = epoch_after(request.session_epoch)
        self._keys = [key for key, _ in asked]
        self.readings = [self._reading(key, partition) for key, partition in asked]
        if self.limits.is_follower:
            self._follower_fetched(replica_id)

    def answer(self) -> FetchResponse:
        """The answer from what has been read."""
        endpoints: dict[int, NodeEndpoint] = {}
        cells = self._services.metrics.mine()
        answers: list[tuple[Key, PartitionData, int]] = []
        session = self.session
        needs_conversion = self.limits.needs_conversion
        if self._opens_session:
            session = self._services.fetch_sessions.open(
                [(key, reading.asked) for key, reading in zip(self._keys, self.readings, strict=True)],
                from_follower=self.limits.is_follower,
                uses_topic_ids=self._version >= TOPIC_IDS_SINCE,
            )
        for key, reading in zip(self._keys, self.readings, strict=True):
            # What has to be converted has to be read.
            size = reading.attach(by_descriptor=not needs_conversion)
            answer = reading.answer
            if reading.partition is not None:
                topic_cells = cells.topic(key[0])
                topic_cells.fetch_requests += 1
                topic_cells.bytes_out += size
                topic_cells.failed_fetch_requests += answer.error_code != 0
                if needs_conversion:
                    self._adapt(reading)
            if answer.error_code in LEADER_ERRORS and self._version >= LEADERS_SINCE:
                self._name_leader(answer, key, endpoints)
            answers.append((key, answer, size))
        shown = [(key, answer) for key, answer, _ in answers]
        if session is not None:
            try:
                news = session.news(answers, self._session_epoch)
            except BrokerError as failure:
                for _, answer in shown:
                    if isinstance(answer.records, FilePart):
                        answer.records.release()
                return FetchResponse(error_code=failure.code, session_id=session.id, responses=[])
            if self.session is not None:
                shown = news
        response = FetchResponse(
            error_code=0, session_id=session.id if session is not None else 0, responses=_by_topic(shown)
        )
        if endpoints:
            response.node_endpoints = list(endpoints.values())
        return response

    def _asked(self, request: FetchRequest) -> list[tuple[Key, FetchPartition]]:
        if self._version < TOPIC_IDS_SINCE:
            return [
                ((each.topic, ZERO_UUID, part.partition), part) for each in request.topics for part in each.partitions
            ]
        names = self._services.metadata.current.names_by_id
        return [
            ((names.get(each.topic_id, ""), each.topic_id, part.partition), part)
            for each in request.topics
            for part in each.partitions
        ]

    def _forgotten(self, request: FetchRequest) -> Iterable[Key]:
        names = self._services.metadata.current.names_by_id
        for each in request.forgotten_topics_data:
            for index in each.partitions:
                if self._version < TOPIC_IDS_SINCE:
                    yield each.topic, ZERO_UUID, index
                else:
                    # A topic that has been deleted lost its name, or the session still has it under the old one.
                    yield names.get(each.topic_id, ""), each.topic_id, index
                    yield "", each.topic_id, index

    def _reading(self, key: Key, asked: FetchPartition) -> Reading:
        name, topic_id, index = key
        context = self._context
        if not name:
            return Reading(None, asked, ErrorCode.UNKNOWN_TOPIC_ID)
        if context.session.authorizer is not None and not context.allows(Operation.READ, topic(name)):
            return Reading(None, asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = self._services.replicas.partitions.get((name, index))
        if partition is None or partition.log is None:
            partition = find_hosted(self._services, name, index)
        if partition is None:
            return Reading(None, asked, code_of_absent(self._services, name, index))
        if topic_id != ZERO_UUID and partition.topic_id != topic_id:
            return Reading(None, asked, ErrorCode.INCONSISTENT_TOPIC_ID)
        log = partition.log
        if self._version < ZSTD_SINCE and log is not None and log.config.compression_type == "zstd":
            refused = Reading(None, asked, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            refused.answer.records = None
            return refused
        if self._version < MAGIC_2_SINCE and log is not None and not log.config.message_downconversion_enable:
            return Reading(None, asked, ErrorCode.UNSUPPORTED_VERSION)
        return Reading(partition, asked)

    def _adapt(self, reading: Reading) -> None:
        """Convert down what the version cannot carry."""
        answer = reading.answer
        records = answer.records
        if not records:
            return
        assert isinstance(records, bytes)
        log = None if reading.partition is None else reading.partition.log
        limit_bytes = unpacked_limit_bytes(0) if log is None else log.rules.unpacked_limit_bytes
        answer.records, answer.error_code = convert_down(
            records, 0 if self._version < 2 else 1, reading.asked.fetch_offset, limit_bytes
        )
        if answer.error_code:
            answer.records = None
            answer.high_watermark = -1

    def _name_leader(self, answer: PartitionData, key: Key, endpoints: dict[int, NodeEndpoint]) -> None:
        """Say who leads now, so that the client need not ask (KIP-951)."""
        leader_id, leader_epoch = current_leader(self._services, key[0], key[2])
        answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        snapshot = self._services.metadata.current
        endpoint = snapshot.endpoint(leader_id, self._context.listener_name)
        if endpoint is not None:
            rack = snapshot.brokers[leader_id].rack
            endpoints[leader_id] = NodeEndpoint(node_id=leader_id, host=endpoint.host, port=endpoint.port, rack=rack)

    def _follower_fetched(self, replica_id: int) -> None:
        now_ms = self._services.now_ms()
        for reading in self.readings:
            partition = reading.partition
            if partition is None or not partition.is_leader:
                continue
            try:
                partition.follower_fetched(replica_id, reading.asked.fetch_offset, now_ms)
            except BrokerError as failure:
                # A broker that knows our epoch may be of an assignment that we have not heard of yet.
                knows_epoch = reading.asked.current_leader_epoch >= 0
                is_stranger = failure.code is ErrorCode.UNKNOWN_LEADER_EPOCH and not knows_epoch
                reading.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_stranger else failure.code)


def _partition_count(request: FetchRequest, services: Services) -> int:
    """How many partitions a request changes, or has to read: known without looking at each."""
    return (
        sum([len(each.partitions) for each in request.topics])
        + sum([len(each.partitions) for each in request.forgotten_topics_data])
        + services.fetch_sessions.partition_count_of(request)
    )


def _by_topic(shown: list[tuple[Key, PartitionData]]) -> list[FetchableTopicResponse]:
    """Entries grouped where neighbours have the same topic, so that the order of reading is kept."""
    topics: list[FetchableTopicResponse] = []
    last: tuple[str, bytes] | None = None
    for (name, topic_id, _), answer in shown:
        if last != (name, topic_id):
            last = (name, topic_id)
            topics.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(answer)
    return topics
