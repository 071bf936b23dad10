"""The protocol over a plain socket, with Kavka's own codec: any request in any version, and that request's answer."""

import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import iter_records
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.header import iter_batch_headers
from kavka.protocol.records.record import Record
from kavka.protocol.schema import Request, Struct, schema_of

SIZE = struct.Struct(">i")
TIMEOUT_S = 60.0
VISIBLE_TIMEOUT_S = 60.0
MISSING_WAIT_MS = 500
PRODUCE_VERSION = 9
FETCH_VERSION = 11
TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1
LATEST, EARLIEST = -1, -2
FRAMED_BY_HAND = 1
"""The correlation id in a frame that a test sends by itself (`frame`)."""


class ClosedError(ConnectionError):
    """The broker closed the connection instead of answering."""


class Wire:
    """One connection. An answer must carry the correlation id of the oldest request that has none yet.

    Connects at once, and again when it is used after the broker has closed it. Owned by one thread.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = TIMEOUT_S,
        receive_buffer_bytes: int = 0,
        client_id: str | None = "wire",
    ) -> None:
        self.address = (host, port)
        self.client_id = client_id
        self._timeout_s = timeout_s
        self._receive_buffer_bytes = receive_buffer_bytes
        self._correlation_id = 0
        self._awaited: deque[int] = deque()
        self._ranges: dict[int, tuple[int, int]] | None = None
        self._socket: socket.socket | None = None
        self._socket = self.socket

    @property
    def socket(self) -> socket.socket:
        """For bytes that are no requests. Connects when it has to."""
        if self._socket is None:
            connection = socket.socket()
            try:
                if self._receive_buffer_bytes:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
                connection.settimeout(self._timeout_s)
                connection.connect(self.address)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except BaseException:
                connection.close()
                raise
            self._socket = connection
        return self._socket

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The oldest and newest version of each API key that the broker advertises."""
        if self._ranges is None:
            answer = self.ask(ApiVersionsRequest(client_software_name="wire", client_software_version="1"), 3)
            self._ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        return self._ranges

    def ask(self, request: Request, version: int) -> Any:
        """The decoded answer. Raises ClosedError if there is none, TimeoutError if it does not come in time."""
        key = self.send(request, version)
        try:
            return self.receive(key, version)
        except TimeoutError:
            # Its answer may come later, and nobody waits for it then.
            self.close()
            raise

    def send(self, request: Request, version: int) -> int:
        """Send without waiting; the request's API key."""
        key = _key(request)
        self._correlation_id += 1
        header = encode_request_header(key, version, self._correlation_id, self.client_id)
        self.send_frame(header + encode(request, version))
        if not (isinstance(request, ProduceRequest) and request.acks == 0):
            self._awaited.append(self._correlation_id)
        return key

    def receive(self, key: int, version: int, *, correlation_id: int | None = None) -> Any:
        """The answer to the oldest request that has none, or to the one framed by hand with `correlation_id`."""
        data = self.receive_frame()
        expected = self._awaited.popleft() if correlation_id is None else correlation_id
        found, position = decode_response_header(key, version, data)
        assert found == expected, f"the answer to request {found} instead of that to {expected}"
        return decode(api.spec(key).response_class, version, memoryview(data)[position:])

    def answer(self, request: Request, version: int, *, correlation_id: int | None = None) -> Any:
        """As `receive`, for the request itself."""
        return self.receive(_key(request), version, correlation_id=correlation_id)

    def send_frame(self, frame: bytes, size: int | None = None) -> None:
        """Send bytes as a frame; `size` says something else than its length."""
        connection = self.socket
        try:
            connection.sendall(SIZE.pack(len(frame) if size is None else size) + frame)
        except ConnectionError as error:
            self.close()
            raise ClosedError("closed before the request was out") from error

    def receive_frame(self) -> bytes:
        """The next frame's bytes. Raises ClosedError at the end of the stream."""
        (size,) = SIZE.unpack(self._receive(SIZE.size))
        return self._receive(size)

    def closed_by_peer(self) -> bool:
        """Whether the broker hangs up within the timeout, whatever it sends before."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._awaited.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, count: int) -> bytes:
        connection = self.socket
        received = bytearray()
        while len(received) < count:
            try:
                piece = connection.recv(min(count - len(received), 1 << 20))
            except ConnectionError:
                piece = b""
            if not piece:
                self.close()
                raise ClosedError(f"closed after {len(received)} of {count} bytes")
            received += piece
        return bytes(received)


class RawClient(Wire):
    """What tests of settings and of compaction ask for, of partition 0."""

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic; settings with underscores for dots."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
        )
        (result,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7).topics
        assert result.error_code == 0, result.error_message

    def produce(
        self,
        topic: str,
        *values: bytes,
        key: bytes | None = b"k",
        acks: int = 1,
        timeout_ms: int = 30_000,
        timestamp_ms: int | None = None,
        **batch: Any,
    ) -> Any:
        """Append one batch to partition 0; the partition's response."""
        now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        records = build_batch([Record(0, now_ms, key, value, ()) for value in values], **batch)
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        (result,) = self.ask(ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data]), 9).responses
        return result.partition_responses[0]

    def fetch(self, topic: str, offset: int = 0) -> bytes:
        """What is in partition 0 from `offset` on, up to 1 MiB."""
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
            forgotten_topics_data=[],
        )
        (result,) = self.ask(request, 11).responses
        return bytes(result.partitions[0].records or b"")

    def offset(self, topic: str, timestamp: int) -> int:
        """The offset of partition 0 for LATEST, EARLIEST or a timestamp."""
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=0, topics=[ListOffsetsTopic(name=topic, partitions=[part])]
        )
        found: int = self.ask(request, 5).topics[0].partitions[0].offset
        return found

    def alter(self, kind: int, name: str, changes: Sequence[tuple[str, str | None]]) -> Any:
        """Set settings, or with None take them away; the resource's response."""
        settings = [
            AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
            for key, value in changes
        ]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=settings)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        return self.ask(request, 1).responses[0]

    def describe(self, kind: int, name: str) -> dict[str, str | None]:
        """A resource's settings."""
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        (result,) = self.ask(DescribeConfigsRequest(resources=[resource]), 4).results
        assert result.error_code == 0, result.error_message
        return {entry.name: entry.value for entry in result.configs}


def frame(request: Request, version: int, correlation_id: int = FRAMED_BY_HAND) -> bytes:
    """A whole request as it goes over the wire."""
    body = encode_request_header(_key(request), version, correlation_id, "wire") + encode(request, version)
    return SIZE.pack(len(body)) + body


def produce_request(topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def fetch_request(
    topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0, max_bytes: int = 64 * 1024 * 1024
) -> FetchRequest:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )


def batch_of(values: Iterable[bytes], *, timestamp_ms: int, key: bytes | None = None, codec: int = 0) -> bytes:
    """One v2 batch, a record for each value."""
    return build_batch([Record(0, timestamp_ms, key, value, ()) for value in values], codec=codec)


def codes_of(answer: object) -> set[int]:
    """All error codes in an answer: its own, those of its topics, and of their partitions."""
    found: set[int] = set()
    parts = [answer]
    while parts:
        for name, value in vars(parts.pop()).items():
            if name == "error_code":
                found.add(value)
            elif isinstance(value, list):
                parts += [each for each in value if isinstance(each, Struct)]
    return found


def create_topic(wire: Wire, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    """Create a topic of one replica; fails the test if the broker refuses."""
    rows = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=rows)
    answer = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5)
    assert [each.error_code for each in answer.topics] == [0], answer.topics


def produce(wire: Wire, topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> Any:
    """Produce one batch: its partition's part of the response."""
    answer = wire.ask(produce_request(topic, batch, partition=partition, acks=acks), PRODUCE_VERSION)
    return answer.responses[0].partition_responses[0]


def read_values(
    wire: Wire, topic: str, *, partition: int = 0, offset: int = 0, end: int = 0, timeout_s: float = VISIBLE_TIMEOUT_S
) -> list[bytes | None]:
    """The values of all records from `offset` on, which must follow each other without a gap.

    `end`: up to where there must be some. Who has begun to lead shows what was acknowledged only when followers have
    fetched from it, so that this is waited for. Raises TimeoutError.
    """
    values: list[bytes | None] = []
    deadline = time.monotonic() + timeout_s
    while True:
        wait_ms = MISSING_WAIT_MS if offset < end else 0
        answer = wire.ask(fetch_request(topic, offset, partition=partition, max_wait_ms=wait_ms), FETCH_VERSION)
        (data,) = answer.responses[0].partitions
        assert data.error_code == 0, data
        found = [record for record in _records(bytes(data.records or b"")) if record.offset >= offset]
        if not found and offset < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}-{partition} ends at {data.high_watermark} instead of {end}")
            continue
        if not found:
            assert offset == data.high_watermark
            return values
        assert [record.offset for record in found] == list(range(offset, offset + len(found)))
        values += [record.value for record in found]
        offset += len(found)


def _records(data: bytes) -> Iterable[Record]:
    for position, _ in iter_batch_headers(data, allow_truncated_tail=True):
        yield from iter_records(data, position)


def _key(request: Request) -> int:
    key = schema_of(type(request)).key
    assert key is not None
    return key
