"""A connection to the tour's broker: bytes in frames, or messages that Kavka's own codec writes and reads."""

import os
import socket
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import iter_batch_headers, iter_records
from kavka.protocol.records.record import Record
from kavka.protocol.schema import Request, schema_of

BROKER: Final = os.environ.get("TOUR_BROKER", "localhost:9092")
NEW_YEAR_MS: Final = 1_767_225_600_000
"""2026-01-01T00:00:00Z: the tour's records have fixed times, so that their bytes are the same in every run."""
TIMEOUT_S: Final = 30.0
PATIENCE_S: Final = 300.0
"""Compaction goes on at a low priority: on a busy machine it takes its time."""


class Connection:
    """One TCP connection. Answers come in the order of the requests. Owned by one thread."""

    def __init__(self) -> None:
        host, _, port = BROKER.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._correlation_id = 0

    def ask(self, request: Request, version: int) -> Any:
        """Send a request and wait for its response."""
        self.send(request, version)
        return self.receive(request, version)

    def send(self, request: Request, version: int) -> None:
        self._correlation_id += 1
        header = encode_request_header(_key(request), version, self._correlation_id, "tour")
        self.send_frame(header + encode(request, version))

    def receive(self, request: Request, version: int) -> Any:
        """The response to `request`, the oldest one that has none yet."""
        data = self.receive_frame()
        _, position = decode_response_header(_key(request), version, data)
        return decode(api.spec(_key(request)).response_class, version, memoryview(data)[position:])

    def send_frame(self, body: bytes) -> None:
        """A frame is four bytes that say how long the rest is, and the rest."""
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def make_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic; settings with underscores for dots. Ends the program if the broker refuses."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
        )
        (result,) = self.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        if result.error_code != ErrorCode.NONE:
            raise SystemExit(f"topic {name}: {result.error_message} (begin the tour anew: an empty /tmp/kavka-tour)")

    def produce(self, topic: str, batch: bytes, transactional_id: str | None = None) -> int:
        """Append a batch to partition 0 with acks=all; the offset that its first record was given."""
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=[data])
        (partition,) = self.ask(request, 8).responses[0].partition_responses
        require(partition.error_code)
        offset: int = partition.base_offset
        return offset

    def fetch(self, topic: str, offset: int = 0, *, read_committed: bool = False) -> PartitionData:
        """What the broker says of partition 0, and batches from `offset` on, as many as one segment has."""
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=int(read_committed),
            topics=[FetchTopic(topic=topic, partitions=[partition])],
            forgotten_topics_data=[],
        )
        (found,) = self.ask(request, 11).responses[0].partitions
        require(found.error_code)
        assert isinstance(found, PartitionData)
        return found

    def read_all(self, topic: str) -> list[Record]:
        """All records of partition 0, fetched as a consumer does: on from behind the last one, up to the end."""
        records: list[Record] = []
        while data := records_in(self.fetch(topic, records[-1].offset + 1 if records else 0)):
            records += data
        return records

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            piece = self._socket.recv(count - len(received))
            if not piece:
                raise SystemExit("the broker closed the connection")
            received += piece
        return bytes(received)


def records_in(data: PartitionData) -> list[Record]:
    """The records of fetched batches, without the control records that no consumer hands to its application."""
    batches = bytes(data.records or b"")
    return [
        record
        for position, header in iter_batch_headers(batches)
        if not header.is_control
        for record in iter_records(batches, position)
    ]


def require(error_code: int) -> None:
    """End the program unless the code is NONE."""
    if error_code != ErrorCode.NONE:
        raise SystemExit(f"the broker answers {ErrorCode(error_code).name}")


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask again and again. Ends the program after PATIENCE_S."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline_s:
            raise SystemExit("it has not come about")
        time.sleep(0.02)


def _key(request: Request) -> int:
    key = schema_of(type(request)).key
    assert key is not None
    return key
