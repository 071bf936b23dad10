"""The protocol over a plain socket: what clients would never send, and answers without a client's own retries."""

import socket
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import iter_records
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.header import iter_batch_headers
from kavka.protocol.records.record import Record
from kavka.protocol.schema import Request, schema_of

SIZE = struct.Struct(">i")
TIMEOUT_S = 20.0
PRODUCE_VERSION = 9
FETCH_VERSION = 11


class Wire:
    """One connection. `closed_by_peer` waits for the broker to hang up. Owned by one thread."""

    def __init__(self, host: str, port: int, *, timeout_s: float = TIMEOUT_S, receive_buffer_bytes: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(timeout_s)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def ask(self, request: Request, version: int) -> Any:
        """Send a request and return its decoded response."""
        self.send(request, version)
        return self.answer(request, version)

    def send(self, request: Request, version: int) -> None:
        self._correlation_id += 1
        self.socket.sendall(frame(request, version, self._correlation_id))

    def answer(self, request: Request, version: int) -> Any:
        """The next response, which is taken to be this request's."""
        key = _key(request)
        data = self.receive_frame()
        _, position = decode_response_header(key, version, data)
        return decode(api.spec(key).response_class, version, data, position)

    def receive_frame(self) -> bytes:
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
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            piece = self.socket.recv(min(count - len(received), 1 << 20))
            if not piece:
                raise ConnectionError(f"closed after {len(received)} of {count} bytes")
            received += piece
        return bytes(received)


def frame(request: Request, version: int, correlation_id: int = 1) -> bytes:
    """A whole request as it goes over the wire."""
    body = encode_request_header(_key(request), version, correlation_id, "wire") + encode(request, version)
    return SIZE.pack(len(body)) + body


def produce_request(topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
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


def create_topic(wire: Wire, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    """Create a topic of one replica; fails the test if the broker refuses."""
    rows = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=rows)
    answer = wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
    assert [each.error_code for each in answer.topics] == [0], answer.topics


def produce(wire: Wire, topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> Any:
    """Produce one batch: its partition's part of the response."""
    answer = wire.ask(produce_request(topic, batch, partition=partition, acks=acks), PRODUCE_VERSION)
    return answer.responses[0].partition_responses[0]


def read_values(wire: Wire, topic: str, *, partition: int = 0, offset: int = 0) -> list[bytes | None]:
    """The values of all records from `offset` on, which must follow each other without a gap."""
    values: list[bytes | None] = []
    while True:
        answer = wire.ask(fetch_request(topic, offset, partition=partition), FETCH_VERSION)
        (data,) = answer.responses[0].partitions
        assert data.error_code == 0, data
        found = [record for record in _records(bytes(data.records or b"")) if record.offset >= offset]
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
