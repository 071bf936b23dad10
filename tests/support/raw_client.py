"""A client without cleverness: one request, one answer, over a plain socket, in the version asked for."""

import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Self

from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_response_header, encode_request_header
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
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.record import Record
from kavka.protocol.schema import schema_of

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
LATEST, EARLIEST = -1, -2


class RawClient:
    """One connection. Owned by the thread that made it; `with` closes it."""

    def __init__(self, host: str, port: int, timeout_s: float = 10.0) -> None:
        self._socket = socket.create_connection((host, port), timeout_s)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any, version: int) -> Any:
        """The answer. Raises ConnectionError when the broker closes, TimeoutError when it is silent."""
        key = schema_of(type(request)).key
        assert key is not None
        self._correlation_id += 1
        frame = encode_request_header(key, version, self._correlation_id, "raw") + encode(request, version)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        answer = self._receive(struct.unpack(">i", self._receive(4))[0])
        correlation_id, position = decode_response_header(key, version, answer)
        assert correlation_id == self._correlation_id
        return decode(api.spec(key).response_class, version, answer[position:])

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic; settings with underscores for dots."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings
        )
        (result,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics
        assert result.error_code == 0, result.error_message

    def produce(
        self,
        topic: str,
        *values: bytes,
        key: bytes | None = b"k",
        acks: int = 1,
        timestamp_ms: int | None = None,
        **batch: Any,
    ) -> Any:
        """Append one batch to partition 0; the partition's response."""
        now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        records = build_batch([Record(0, now_ms, key, value, ()) for value in values], **batch)
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        (result,) = self.ask(ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[data]), 9).responses
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

    def _receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            data = self._socket.recv(count - len(received))
            if not data:
                raise ConnectionError("the broker closed the connection")
            received += data
        return received
