"""The stage on which a scenario plays: the same requests to two brokers, and what they answered made comparable.

A scenario is a function that asks; `scenario` names it and says for which API and versions it plays. Every answer is
recorded under a label, with what legitimately differs (ids, ports, times, throttling) replaced by what it stands for.
"""

import struct
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_configs import AlterConfigsRequest
from kavka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import Record, build_batch, iter_batch_headers
from kavka.protocol.records.header import write_crc
from kavka.protocol.records.legacy import iter_records_of
from kavka.protocol.schema import ZERO_UUID, Message, Request
from tests.support.processes import wait_until
from tests.support.wire import ClosedError, Wire

KAFKA_39: Final = "kafka-3.9"
KAFKA_43: Final = "kafka-4.3"
TIME_MS: Final = int(time.time()) * 1000 - 60_000
"""Records' timestamps: the same for both brokers, and young enough for retention."""
NOWHERE: Final = b"\x11" * 16
DROPPED: Final = frozenset({"throttle_time_ms", "unknown_tagged_fields"})
GIVEN_BY_THE_BROKER: Final = frozenset(
    {"port", "cluster_id", "session_id", "log_append_time_ms", "producer_id", "total_bytes", "usable_bytes", "log_dir"}
)
ERROR_NAMES: Final = {int(code): code.name for code in ErrorCode}
WORDED: Final = frozenset({"error_message", "batch_index_error_message", "documentation"})
"""Kavka says it in words of its own; whether there are words must agree."""
TIME_TO_SETTLE_S: Final = 90.0


class Scenario(NamedTuple):
    """One script, for the versions `oldest` to `newest` of an API, against the oracles named."""

    name: str
    key: ApiKey
    play: Callable[["Stage"], None]
    oldest: int
    newest: int
    oracles: tuple[str, ...]


SCENARIOS: list[Scenario] = []


def scenario(
    key: ApiKey, versions: str = "0-99", oracles: Iterable[str] = (KAFKA_39, KAFKA_43)
) -> Callable[[Callable[["Stage"], None]], Callable[["Stage"], None]]:
    """Register a function as a scenario."""
    low, _, high = versions.partition("-")

    def register(play: Callable[["Stage"], None]) -> Callable[["Stage"], None]:
        SCENARIOS.append(Scenario(play.__name__, key, play, int(low), int(high or low), tuple(oracles)))
        return play

    return register


class Stage:
    """One broker's side of one scenario in one version. `transcript` holds (label, answer) in the order asked."""

    def __init__(self, client: Wire, version: int, name: str) -> None:
        self.client = client
        self.version = version
        self.name = name
        self.transcript: list[tuple[str, Any]] = []
        self._ids: dict[bytes, str] = {ZERO_UUID: "zero", NOWHERE: "nowhere"}
        self._alterations = 0
        self._settled = 0

    def ask(self, label: str, request: Request, version: int | None = None) -> Any:
        """Ask, and record the answer; a connection closed instead is recorded as such, and None comes back."""
        if isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest):
            self._alterations += 1
        try:
            answer = self.client.ask(request, self.version if version is None else version)
        except ClosedError:
            self.note(label, "closed")
            return None
        self.note(label, self.plain(answer))
        return answer

    def note(self, label: str, answer: Any) -> None:
        self.transcript.append((label, answer))

    def topic(self, suffix: str = "", partitions: int = 1, **configs: str) -> str:
        """A fresh topic that has its leaders, named alike on both brokers. `retention_ms="1"` sets retention.ms."""
        name = f"{self.name}.{suffix}" if suffix else self.name
        request = CreateTopicsRequest(
            topics=[
                creatable(name, partitions, configs={key.replace("_", "."): value for key, value in configs.items()})
            ]
        )
        answer = self.client.ask(request, 7)
        assert answer.topics[0].error_code == 0, answer
        wait_until(lambda: self._has_leaders(name, partitions), TIME_TO_SETTLE_S, f"{name} gets no leaders")
        return name

    def settle(self) -> None:
        """Wait until altered configurations show: KRaft brokers hear of them, as of topics, in order."""
        if self._settled < self._alterations:
            self._settled = self._alterations
            self.topic(f"settled-{self._settled}")

    def id_of(self, topic: str) -> bytes:
        """The topic's id; its answers show the name instead."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        topic_id: bytes = self.client.ask(request, 12).topics[0].topic_id
        self._ids[topic_id] = f"id of {topic}"
        return topic_id

    def append(self, topic: str, records: bytes, partition: int = 0, version: int | None = None, acks: int = -1) -> int:
        """Produce without recording the answer; the base offset given."""
        newest = min(12, self.client.ranges[ApiKey.PRODUCE][1])
        answer = self.client.ask(
            produce_request(topic, records, partition, acks=acks), newest if version is None else version
        )
        given = answer.responses[0].partition_responses[0]
        assert given.error_code == 0, ErrorCode(given.error_code)
        base_offset: int = given.base_offset
        return base_offset

    def plain(self, value: Any, field: str = "") -> Any:
        """An answer as dictionaries and sorted lists, without what may differ."""
        if isinstance(value, Message):
            names = [name for name in vars(value) if name not in DROPPED]
            return {name: self.plain(getattr(value, name), name) for name in names}
        if field == "records":
            return readable(value, shows_cut=self.version >= 4)
        if field == "topic_id":
            return self._ids.get(value, "some id")
        if field == "configs" and isinstance(value, list):
            return {each.name: self.plain(each) for each in value}
        if isinstance(value, list):
            return sorted((self.plain(item) for item in value), key=repr)
        if field in WORDED and value is not None:
            return "worded"
        if field in GIVEN_BY_THE_BROKER and value not in (None, -1, "") and (value or field == "producer_id"):
            return "given"
        if field == "error_code":
            return ERROR_NAMES.get(value, value)
        return value

    def _has_leaders(self, name: str, partitions: int) -> bool:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        found = self.client.ask(request, 12).topics[0]
        return len(found.partitions) == partitions and self._leads(name, partitions)

    def _leads(self, name: str, partitions: int) -> bool:
        """Whether the broker leads them all: KRaft's brokers see a topic a moment before they lead it."""
        asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)])
        return all(row.error_code == 0 for row in self.client.ask(request, 7).topics[0].partitions)


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two plain answers differ, one line each: the path, ours, theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = [*theirs, *(key for key in ours if key not in theirs)]
        return [line for key in keys for line in differences(ours.get(key), theirs.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            line
            for index, pair in enumerate(zip(ours, theirs, strict=True))
            for line in differences(*pair, f"{path}[{index}]")
        ]
    return [] if ours == theirs else [f"{path}: kavka {ours!r}, kafka {theirs!r}"]


def readable(records: Any, *, shows_cut: bool) -> Any:
    """Record bytes as what they hold; how well they were compressed is not compared."""
    if records is None:
        return None
    found: list[Any] = []
    end = 0
    for position, header in iter_batch_headers(records, allow_truncated_tail=True):
        end = position + header.size_bytes
        shown = header._replace(batch_length=0, crc=0)
        found.append((tuple(shown), [tuple(record) for record in iter_records_of(records, position, header)]))
    if end < len(records) and shows_cut:
        found.append("the beginning of a batch")
    return found


def creatable(
    name: str, partitions: int = 1, replication: int = 1, configs: Mapping[str, str | None] | None = None
) -> CreatableTopic:
    """A topic to create; configs by their names."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def assigned(
    name: str, *replicas: tuple[int, list[int]], partitions: int = -1, replication: int = -1
) -> CreatableTopic:
    """A topic to create with replicas assigned by hand."""
    topic = creatable(name, partitions, replication)
    topic.assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in replicas]
    return topic


def batch(count: int = 1, *, value: bytes = b"value", timestamp_ms: int = TIME_MS, **parameters: Any) -> bytes:
    """A v2 batch of `count` records."""
    records = [
        Record(timestamp_ms=timestamp_ms + number, key=b"k%d" % number, value=value, headers=(("h", b"1"),))
        for number in range(count)
    ]
    return build_batch(records, **parameters)


def patched(data: bytes, position: int, form: str, value: int, *, fix_crc: bool = True) -> bytes:
    """The batch with one header field overwritten, and its CRC made right again."""
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    if fix_crc:
        write_crc(changed, 0)
    return bytes(changed)


def produce_request(
    topic: str,
    records: bytes | None,
    partition: int = 0,
    *,
    acks: int = -1,
    topic_id: bytes = ZERO_UUID,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A produce of one partition."""
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=60_000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )
