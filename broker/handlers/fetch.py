"""Fetch v0-18.

Behaviour
- Reads the partitions asked for, in order, up to the limits; the first batch of the first non-empty partition comes
  whole even beyond them (KIP-74). With less than `min_bytes` it waits, `max_wait_ms` at most; not at a segment's end,
  which a read does not go beyond.
- Consumers see what is below the high watermark, or below the last stable offset with read_committed, together with the
  aborted transactions in between.
- Large slices leave by sendfile; nothing is decompressed or looked into, unless an old version needs older formats.
- Followers: their fetches count as progress; in their sessions only what has news is read. Throttled by KIP-73.
- Consumers may read from followers (KIP-392); `replica.selector.class` has them told which replica is in their rack.
- Not done: tiered storage.

Versions
- v0-3: batches are converted down to magic 0 or 1. v4: read_committed. v5: log start offsets. v7: sessions (KIP-227).
- v9: leader epochs (KIP-320). v10: zstd (KIP-110). v12: diverging epochs. v13: topic ids (KIP-516). v15: replica state.
- v16: the new leader and its endpoint (KIP-951). v17: replica directory. v18: the follower's high watermark; not used.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from kavka.broker.network.file_part import FilePart
from kavka.broker.partitions.down_conversion import convert_down
from kavka.broker.partitions.fetch_answers import LEADER_ERRORS, LEADERS_SINCE, REPLICATED_BYTES, by_topic, name_leader
from kavka.broker.partitions.fetch_sessions import INITIAL_EPOCH, Changes, FetchSession, Key, epoch_after
from kavka.broker.partitions.hosted import code_of_absent, find_hosted
from kavka.broker.partitions.log_reading import (
    CONSUMER,
    MAGIC_2_SINCE,
    SENDFILE_FROM_BYTES,
    Reading,
    ReadLimits,
    read_all,
)
from kavka.broker.partitions.partition_waits import committed
from kavka.broker.requests.handling import Context, Services, handles
from kavka.broker.requests.prepared import TAILING
from kavka.broker.security.acl import CLUSTER, Operation, topic
from kavka.broker.waiting.delayed_fetch import FEW_PARTITIONS, DelayedFetch
from kavka.broker.waiting.purgatory import WatchList
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from kavka.protocol.schema import ZERO_UUID
from kavka.storage.log_validator import unpacked_limit_bytes

if TYPE_CHECKING:
    from kavka.broker.partitions.follower_fetch_session import FollowerFetchSession
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.waiting.delayed_follower_fetch import DelayedFollowerFetch

FETCH_KEY: Final = 1
TOPIC_IDS_SINCE: Final = 13
ZSTD_SINCE: Final = 10
RACKS_SINCE: Final = 11
UNLIMITED: Final = 2**31 - 1


@handles(FetchRequest, versions="0-18")
def fetch(request: FetchRequest, context: Context, services: Services) -> FetchResponse | Promise[FetchResponse]:
    connection = context.connection
    if context.is_inline and _partition_count(request, services) > FEW_PARTITIONS:
        # Only the connection's last fetch was a small one.
        context.is_inline = False
        context.session.prepare(FETCH_KEY, None)
        begun: Promise[None] = Promise()
        answer = begun.then(lambda _: fetch(request, context, services))
        connection.thread.defer(connection, partial(begun.settle_by, context.resumed))
        return answer
    run = _Fetch(request, context, services)
    found = read_all(run.readings, run.limits)
    if run.limits.is_follower and not run.is_denied:
        run.note_progress(request.replica_state.replica_epoch if context.api_version >= 15 else -1)
    # More than it may get it need not wait for.
    min_bytes = min(request.min_bytes, run.limits.max_bytes)
    watched = run.watched
    if watched is not None and not run.is_denied:
        _prepare(request, context, services, watched, run.limits)
    if (
        found >= min_bytes
        or request.max_wait_ms <= 0
        or (watched is None and not run.readings)
        or any([reading.failed for reading in run.readings])
    ):
        if found >= SENDFILE_FROM_BYTES:
            if watched is None and FETCH_KEY in context.session.prepared:
                context.session.prepare(FETCH_KEY, None)
            if context.is_inline:
                # It reads what was written long ago, maybe from a disk.
                resumed: Promise[None] = Promise()
                promise = resumed.then(lambda _: run.answer())
                connection.thread.defer(connection, partial(resumed.settle_by, context.resumed))
                return promise
        return run.answer()
    operation: DelayedFetch | DelayedFollowerFetch
    watching: list[WatchList] = []
    if watched is None:
        is_tailing = len(run.readings) <= FEW_PARTITIONS
        if is_tailing is not (FETCH_KEY in context.session.prepared):
            context.session.prepare(FETCH_KEY, TAILING if is_tailing else None)
        operation = DelayedFetch(run.readings, run.limits, min_bytes, connection, run.answer, context.resumed)
        connection.parked[operation] = None
        watching = [reading.partition.data_arrived for reading in run.readings if reading.partition is not None]
    else:
        run.put_back(watched)
        operation = watched.wait(run.limits, min_bytes, connection, run.read_and_answer)
    if context.is_inline:
        # What came with it, behind it, waits as long: for minutes, maybe.
        connection.keep_pending_apart()
    services.purgatory.park(operation, watching, request.max_wait_ms)
    if connection.closed:
        operation.cancel()
    elif connection.half_closed:
        operation.expire_soon()
    return operation.promise


def _prepare(
    request: FetchRequest, context: Context, services: Services, session: "FollowerFetchSession", limits: ReadLimits
) -> None:
    """Have a follower's fetches like this one take the short way from now on."""
    # Not needed by a broker that stands alone.
    from kavka.broker.requests.prepared_fetch import prepare_fetch

    prepared = prepare_fetch(request, context, services, session, limits)
    if prepared is not None:
        context.session.prepare(FETCH_KEY, prepared)


class _Fetch:
    """One request: the partitions it reads, in its session if it has one, and the answer built of them."""

    __slots__ = (
        "_context",
        "_keys",
        "_opens_session",
        "_services",
        "_session_epoch",
        "_version",
        "is_denied",
        "limits",
        "readings",
        "session",
        "watched",
    )

    def __init__(self, request: FetchRequest, context: Context, services: Services) -> None:
        self._context = context
        self._services = services
        self._version = version = context.api_version
        replica_id = request.replica_id if version < 15 else request.replica_state.replica_id
        charge = context.charge
        self.limits = ReadLimits(
            # Before v3 a request can't say how much it wants altogether: the broker's own limit counts alone.
            min(
                request.max_bytes,
                services.config.current.fetch_max_bytes,
                UNLIMITED if charge is None or replica_id >= 0 else charge.most_fetched_bytes(),
            ),
            version=version,
            replica_id=replica_id,
            isolation_level=request.isolation_level,
        )
        self.is_denied = False
        """Whether it is a follower's, of a client that must not fetch as one: every partition is refused then."""
        if self.limits.is_follower:
            self.is_denied = not context.allows(Operation.CLUSTER_ACTION, CLUSTER)
            self.limits.throttle = services.replicas.leader_throttle
        elif replica_id == CONSUMER and version >= RACKS_SINCE:
            self.limits.reads_followers = True
            if request.rack_id and services.config.current.replica_selector_class:
                self._prefer_near(request.rack_id)
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
        self.watched: FollowerFetchSession | None = None
        if self.session is not None and self.session.is_watched:
            self.watched = cast("FollowerFetchSession", self.session)
            if self.is_denied:
                asked = self.watched.all_partitions()
        self._keys = [key for key, _ in asked]
        self.readings = [self._reading(key, partition) for key, partition in asked]
        if self.watched is not None:
            self._watch(self.watched)

    def read_and_answer(self) -> FetchResponse:
        """The answer of a follower's fetch that has waited, of what is fresh in its session by now."""
        assert self.watched is not None
        self._context.resumed()
        asked = self.watched.take()
        self._keys = [key for key, _ in asked]
        self.readings = [self._reading(key, partition) for key, partition in asked]
        self._watch(self.watched)
        read_all(self.readings, self.limits)
        return self.answer()

    def put_back(self, session: "FollowerFetchSession") -> None:
        """Keep fresh in the follower's session what it does not know all of."""
        session.put_back(
            (key, reading.answer, reading.has_all) for key, reading in zip(self._keys, self.readings, strict=True)
        )

    def note_progress(self, broker_epoch: int) -> None:
        """A follower has all below the offsets that it asks for: of those that were read, and so found to be right."""
        if self.watched is not None:
            replication = self._services.replicas.replication
            self.watched.look_around(replication.monotonic_ms(), replication.lag_time_max_ms, broker_epoch)
        moved: list[Partition] = []
        for reading in self.readings:
            partition = reading.partition
            if reading.note_progress(self.limits.replica_id, broker_epoch) and partition is not None:
                moved.append(partition)
        if moved:
            committed(moved)

    def answer(self) -> FetchResponse:
        """The answer from what has been read."""
        throttled = None if self._context.charge is None else self._throttled()
        if throttled is not None:
            return throttled
        endpoints: dict[int, NodeEndpoint] = {}
        cells = self._services.metrics.mine()
        answers: list[tuple[Key, PartitionData, int]] = []
        session = self._open() if self._opens_session else self.session
        needs_conversion = self.limits.needs_conversion
        from_follower = self.limits.is_follower
        replicated_bytes = 0
        for key, reading in zip(self._keys, self.readings, strict=True):
            # What has to be converted has to be read.
            size = reading.attach(by_descriptor=not needs_conversion)
            answer = reading.answer
            if reading.partition is not None:
                topic_cells = cells.topic(key[0])
                topic_cells.fetch_requests += 1
                if from_follower:
                    replicated_bytes += size
                else:
                    topic_cells.bytes_out += size
                topic_cells.failed_fetch_requests += answer.error_code != 0
                if needs_conversion:
                    self._adapt(reading)
                if size and self.limits.throttle is not None and reading.partition.log is not None:
                    self.limits.throttle.record(reading.partition.log, size)
            if answer.error_code in LEADER_ERRORS and self._version >= LEADERS_SINCE:
                name_leader(self._services, self._context.listener_name, answer, key[0], endpoints)
            answers.append((key, answer, size))
        if replicated_bytes:
            cells.event(REPLICATED_BYTES, replicated_bytes)
        shown = [(key, answer) for key, answer, _ in answers]
        if session is not None:
            try:
                news = session.news(answers, self._session_epoch)
            except BrokerError as failure:
                if self.watched is not None:
                    self.put_back(self.watched)
                for _, answer in shown:
                    if isinstance(answer.records, FilePart):
                        answer.records.release()
                return FetchResponse(error_code=failure.code, session_id=session.id, responses=[])
            if self.session is not None:
                shown = news
            if self.watched is not None:
                self.put_back(self.watched)
        response = FetchResponse(
            error_code=0, session_id=session.id if session is not None else 0, responses=by_topic(shown)
        )
        if endpoints:
            response.node_endpoints = list(endpoints.values())
        return response

    def _throttled(self) -> FetchResponse | None:
        """The empty answer of a client that has used its quota."""
        charge = self._context.charge
        assert charge is not None
        from kavka.broker.quotas.fetch_sizes import throttled_answer

        found = zip(self._keys, self.readings, strict=True)
        return throttled_answer(charge, self.limits, found, self.session, self._session_epoch)

    def _open(self) -> FetchSession | None:
        """A session with what was read, if there is room for one."""
        return self._services.fetch_sessions.open(
            [(key, reading.asked) for key, reading in zip(self._keys, self.readings, strict=True)],
            from_follower=self.limits.is_follower,
            uses_topic_ids=self._version >= TOPIC_IDS_SINCE,
            new=self._new_session,
        )

    def _prefer_near(self, rack: str) -> None:
        """The consumer is told which replica is near (KIP-392)."""
        from kavka.broker.partitions.replica_selection import preferred_replica

        snapshot, listener_name = self._services.metadata.current, self._context.listener_name
        self.limits.prefers = lambda partition, fetch_offset: preferred_replica(
            partition, fetch_offset, rack, snapshot, listener_name
        )

    @property
    def _new_session(self) -> Callable[..., FetchSession]:
        if not self.limits.is_follower:
            return FetchSession
        from kavka.broker.partitions.follower_fetch_session import FollowerFetchSession

        return partial(FollowerFetchSession, replica_id=self.limits.replica_id)

    def _watch(self, session: "FollowerFetchSession") -> None:
        for key, reading in zip(self._keys, self.readings, strict=True):
            session.watch(key, reading.partition)

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
        by_id = self._version >= TOPIC_IDS_SINCE
        for each in request.forgotten_topics_data:
            for index in each.partitions:
                yield ("", each.topic_id, index) if by_id else (each.topic, ZERO_UUID, index)

    def _reading(self, key: Key, asked: FetchPartition) -> Reading:
        name, topic_id, index = key
        context = self._context
        if self.is_denied:
            return Reading(None, asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if not name:
            return Reading(None, asked, ErrorCode.UNKNOWN_TOPIC_ID)
        if (
            context.session.authorizer is not None
            and not self.limits.is_follower
            and not context.allows(Operation.READ, topic(name))
        ):
            return Reading(None, asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = self._services.replicas.partitions.get((name, index))
        if partition is None or partition.log is None:
            partition = find_hosted(self._services, name, index)
        if partition is None:
            return Reading(None, asked, code_of_absent(self._services, name, index))
        if topic_id != ZERO_UUID and partition.topic_id != topic_id:
            another = Reading(None, asked)
            another.refuse(ErrorCode.INCONSISTENT_TOPIC_ID)
            return another
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


def _partition_count(request: FetchRequest, services: Services) -> int:
    """How many partitions a request changes, or has to read: known without looking at each."""
    return (
        sum([len(each.partitions) for each in request.topics])
        + sum([len(each.partitions) for each in request.forgotten_topics_data])
        + services.fetch_sessions.partition_count_of(request)
    )
