"""A follower's fetch on its short way: its place among the answers, and its wait for data, are one object."""

import logging
import struct
from functools import cache, partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Final, cast

from kavka.broker.network.file_part import FilePart
from kavka.broker.partitions.fetch_answers import LEADER_ERRORS, LEADERS_SINCE, REPLICATED_BYTES, by_topic, name_leader
from kavka.broker.partitions.fetch_sessions import Key
from kavka.broker.partitions.hosted import code_of_absent, find_hosted
from kavka.broker.partitions.log_reading import SENDFILE_FROM_BYTES, Reading, ReadLimits, is_available, read_all
from kavka.broker.partitions.partition_waits import committed
from kavka.broker.waiting.delayed_fetch import FEW_PARTITIONS
from kavka.broker.waiting.purgatory import DelayedOperation
from kavka.protocol.codec import encode_parts
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.headers import ResponseHead
from kavka.protocol.messages.fetch import FetchResponse, NodeEndpoint, PartitionData
from kavka.protocol.varint import varint_bytes

if TYPE_CHECKING:
    from kavka.broker.network.answers import Part
    from kavka.broker.network.connection import Connection
    from kavka.broker.partitions.follower_fetch_session import FollowerFetchSession
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.partitions.session_news import WatchedPartition
    from kavka.broker.services import Services

FETCH_KEY: Final = 1
JOINED_BYTES: Final = 64 * 1024
"""An answer that is shorter is joined, and leaves by one buffer."""
_HEAD: Final = struct.Struct(">ihi").pack
_PARTITION: Final = struct.Struct(">ihqqqBi").pack
"""Up to the size of the records: no aborted transactions, no other replica preferred."""

log = logging.getLogger(__name__)

Read = list[tuple["WatchedPartition", Reading]]


class AwaitedFetch(DelayedOperation):
    """A follower's fetch that its session has taken in.

    Its connection's next request does not run before it is answered. Threads: `park` by who runs the request; any ends
    the wait, and answers what is short; the rest is left to an I/O thread.
    """

    waits_for_client = True

    __slots__ = (
        "_broker_epoch",
        "_correlation_id",
        "_epoch",
        "_limits",
        "_max_wait_ms",
        "_services",
        "_session",
        "answer",
        "api_key",
        "api_version",
        "client_id",
        "completed_ns",
        "connection",
        "local_done_ns",
        "received_ns",
        "started_ns",
    )

    connection: "Connection"

    def __init__(
        self,
        services: "Services",
        session: "FollowerFetchSession",
        limits: ReadLimits,
        correlation_id: int,
        max_wait_ms: int,
        broker_epoch: int,
        session_epoch: int,
    ) -> None:
        """`session_epoch`: that of the session's next fetch, as long as nobody else sends it."""
        super().__init__()
        self._services = services
        self._session = session
        self._limits = limits
        self._correlation_id = correlation_id
        self._max_wait_ms = max_wait_ms
        self._broker_epoch = broker_epoch
        self._epoch = session_epoch
        self.api_key: Final = FETCH_KEY
        self.api_version: Final = limits.version
        self.client_id: Final = None
        self.answer: Any = None
        self.completed_ns = 0

    def park(self, connection: "Connection", received_ns: int, started_ns: int, done_ns: int, is_inline: bool) -> bool:
        """Note how far the follower is, and answer or wait. See `prepared.Later`."""
        self.connection = connection
        self.received_ns = received_ns
        self.started_ns = started_ns
        self.local_done_ns = done_ns
        connection.answers.slots.append(self)
        found = self._look()
        if found is not None:
            if is_inline and self._may_lie_on_the_disk(found):
                connection.thread.defer(connection, partial(self._finish, found))
                return False
            self._put(found)
            return True
        connection.parked[self] = None
        if is_inline:
            # What is behind it waits as long. Before anybody can end the wait, and give the connection away.
            connection.keep_pending_apart()
        self._session.fresh_news.waiting[self] = None
        self._services.purgatory.park(self, (), self._max_wait_ms)
        if connection.closed:
            self.cancel()
        elif connection.half_closed:
            self.expire_soon()
        return False

    def heard_of(self, entry: "WatchedPartition") -> None:
        """See `session_news.Waiting`."""
        if self._is_available(entry):
            self.try_complete()

    def is_satisfied(self) -> bool:
        return any([self._is_available(entry) for entry in list(self._session.fresh_news.fresh)])

    def respond(self) -> None:
        connection = self.connection
        connection.parked.pop(self, None)
        if len(self._session.fresh_news.fresh) > FEW_PARTITIONS:
            connection.thread.defer(connection, self._finish)
        else:
            self._finish()

    def _finish(self, found: Read | None = None) -> None:
        """Answer, and have the connection go on."""
        connection = self.connection
        self.completed_ns = monotonic_ns()
        try:
            self._put(self._read() if found is None else found)
        except Exception:
            # By whoever brought the data, or the timer: the connection is not to wait for ever, nor they to fail.
            log.exception("a follower's fetch could not be answered")
            connection.close("the answer could not be made")
        connection.thread.go_on(connection)
        if not connection.reading:
            connection.thread.call(connection.thread.resume, connection)

    def _leave(self) -> None:
        self._session.fresh_news.waiting.pop(self, None)
        super()._leave()

    def _may_lie_on_the_disk(self, found: Read) -> bool:
        """Whether much is to be sent that was not written just now: in sync is who reads that."""
        size = sum([reading.size_bytes for _, reading in found])
        return size >= SENDFILE_FROM_BYTES and not all(
            [entry.partition is None or entry.replica_id in entry.partition.role.isr for entry, _ in found]
        )

    def _is_available(self, entry: "WatchedPartition") -> bool:
        partition = entry.partition
        return partition is None or is_available(partition, entry.asked, self._limits)

    def _look(self) -> Read | None:
        """Note how far the follower is; what there is to answer with, or None: it has all there is."""
        session = self._session
        replicas = self._services.replicas
        replication = replicas.replication
        session.look_around(replication.monotonic_ms(), replication.lag_time_max_ms, self._broker_epoch)
        hosted = replicas.partitions
        taken = session.take_entries()
        if not all([entry.has_all(hosted) for entry in taken]):
            return self._look_closer(taken)
        moved: list[Partition] = []
        refused: Read = []
        for entry in taken:
            partition, asked = entry.partition, entry.asked
            if partition is None:
                continue
            # What was looked at: that epoch, and that end.
            try:
                if partition.follower_fetched(
                    entry.replica_id,
                    asked.fetch_offset,
                    leader_epoch=asked.current_leader_epoch,
                    leader_end_offset=asked.fetch_offset,
                    log_start_offset=asked.log_start_offset,
                    broker_epoch=self._broker_epoch,
                ):
                    moved.append(partition)
            except BrokerError as failure:
                refused.append((entry, Reading(partition, asked)))
                refused[-1][1].refuse(failure.code)
        if moved:
            committed(moved)
        for entry in taken:
            if not entry.was_told():
                session.fresh_news.fresh[entry] = None
        return refused or None

    def _look_closer(self, taken: "list[WatchedPartition]") -> Read | None:
        """The same, where there is something to read, or something is wrong."""
        found = self._read_entries(taken)
        moved: list[Partition] = []
        for entry, reading in found:
            partition = reading.partition
            if reading.note_progress(entry.replica_id, self._broker_epoch) and partition is not None:
                moved.append(partition)
        if moved:
            committed(moved)
        if any([reading.size_bytes or reading.failed for _, reading in found]):
            return found
        self._session.put_back((entry.key, reading.answer, reading.has_all) for entry, reading in found)
        return None

    def _read(self) -> Read:
        return self._read_entries(self._session.take_entries())

    def _read_entries(self, entries: "list[WatchedPartition]") -> Read:
        found = [(entry, self._reading(entry)) for entry in entries]
        read_all([reading for _, reading in found], self._limits)
        return found

    def _reading(self, entry: "WatchedPartition") -> Reading:
        name, topic_id, index = entry.key
        services = self._services
        partition = services.replicas.partitions.get((name, index))
        if partition is None or partition.log is None:
            partition = find_hosted(services, name, index)
        self._session.watch(entry.key, partition)
        if partition is None:
            return Reading(None, entry.asked, code_of_absent(services, name, index))
        if partition.topic_id != topic_id:
            another = Reading(None, entry.asked)
            another.refuse(ErrorCode.INCONSISTENT_TOPIC_ID)
            return another
        return Reading(partition, entry.asked)

    def _put(self, found: Read) -> None:
        """Fill the place among the answers, and write it."""
        connection = self.connection
        try:
            parts = self._answer(found)
        except Exception:
            # As where any answer can't be encoded: the place stays empty, so that no later answer takes it.
            log.exception("a follower's fetch could not be answered")
            connection.close("the answer could not be made")
            return
        if len(parts) == 1 and parts[0].__class__ is bytes:
            self.answer = parts[0]
        else:
            connection.put_parts(self, parts)
        connection.flush()
        if connection.answers.slots:
            connection.hold_up_large(self)

    def _answer(self, found: Read) -> "list[Part]":
        cells = self._services.metrics.mine()
        session, throttle = self._session, self._limits.throttle
        answers: list[tuple[Key, PartitionData, int]] = []
        replicated_bytes = 0
        for entry, reading in found:
            size = reading.attach()
            answer = reading.answer
            if reading.partition is not None:
                topic_cells = cells.topic(entry.key[0])
                topic_cells.fetch_requests += 1
                replicated_bytes += size
                topic_cells.failed_fetch_requests += answer.error_code != 0
                if size and throttle is not None and reading.partition.log is not None:
                    throttle.record(reading.partition.log, size)
            answers.append((entry.key, answer, size))
        if replicated_bytes:
            cells.event(REPLICATED_BYTES, replicated_bytes)
        try:
            shown = session.news(answers, self._epoch)
        except BrokerError as failure:
            for _, answer, _ in answers:
                if isinstance(answer.records, FilePart):
                    answer.records.release()
            return self._encoded(FetchResponse(error_code=failure.code, session_id=session.id, responses=[]))
        finally:
            session.put_back((entry.key, reading.answer, reading.has_all) for entry, reading in found)
        if any([reading.failed for _, reading in found]):
            return self._encoded(self._refusal(shown))
        return self._packed(shown)

    def _refusal(self, shown: list[tuple[Key, PartitionData]]) -> FetchResponse:
        """As by the ordinary way: who leads now is told, too."""
        endpoints: dict[int, NodeEndpoint] = {}
        for key, answer in shown:
            if answer.error_code in LEADER_ERRORS and self.api_version >= LEADERS_SINCE:
                name_leader(self._services, self.connection.listener_name, answer, key[0], endpoints)
        response = FetchResponse(error_code=0, session_id=self._session.id, responses=by_topic(shown))
        if endpoints:
            response.node_endpoints = list(endpoints.values())
        return response

    def _encoded(self, response: FetchResponse) -> "list[Part]":
        # Those that are not in memory are pieces of files that were put in here.
        parts = cast("list[Part]", encode_parts(response, self.api_version))
        return self._framed(parts)

    def _packed(self, shown: list[tuple[Key, PartitionData]]) -> "list[Part]":
        """An answer that tells of no error, written by hand."""
        parts: list[Part] = []
        ahead = _HEAD(0, 0, self._session.id) + varint_bytes(_topic_count(shown) + 1)
        last = None
        for place, (key, answer) in enumerate(shown):
            if key[1] != last:
                last = key[1]
                count = 1
                while place + count < len(shown) and shown[place + count][0][1] == last:
                    count += 1
                ahead += (b"" if not place else b"\0") + last + varint_bytes(count + 1)
            records = answer.records or b""
            size = records.size_bytes if isinstance(records, FilePart) else len(records)
            ahead += _PARTITION(
                key[2], 0, answer.high_watermark, answer.last_stable_offset, answer.log_start_offset, 0, -1
            ) + varint_bytes(size + 1)
            if size:
                parts += [ahead, records]
                ahead = b"\0"
            else:
                ahead += b"\0"
        return self._framed([*parts, ahead + (b"\0\0" if shown else b"\0")])

    def _framed(self, parts: "list[Part]") -> "list[Part]":
        head = _head(self.api_version)
        size = head.counted_size_bytes
        for part in parts:
            size += part.size_bytes if isinstance(part, FilePart) else len(part)  # type: ignore[arg-type]  # else they are bytes
        packed = head.pack(size, self._correlation_id)
        if all([isinstance(part, bytes) for part in parts]) and size < JOINED_BYTES:
            return [b"".join([packed, *cast("list[bytes]", parts)])]
        return [packed, *parts]


@cache
def _head(version: int) -> ResponseHead:
    return ResponseHead(FETCH_KEY, version)


def _topic_count(shown: list[tuple[Key, PartitionData]]) -> int:
    """How many runs of neighbours there are that are of one topic."""
    return sum([not place or shown[place - 1][0][1] != key[1] for place, (key, _) in enumerate(shown)])
