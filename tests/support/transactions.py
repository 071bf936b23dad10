"""Transactional producers one step at a time, and what readers of either isolation level see of them."""

from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.support.java_programs import JavaProgram
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.wire import FETCH_VERSION, Wire

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST = -1
OFFSET_FETCH_VERSION = 8
READ_TIMEOUT_S = 60.0
PATIENT_MS = 900_000
"""The longest that a transaction may last: no test that takes long, on whatever machine, is to see it aborted."""
NOT_YET = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class TransactionalProducers(JavaProgram):
    """tests/java/TransactionalClient: Java producers by name, each step given by the test."""

    def __init__(self, broker: RunningServer, log: Path, *, bundle: str = "kafka-4.3") -> None:
        super().__init__("TransactionalClient", log, broker.bootstrap, bundle=bundle)

    def do(self, *steps: str) -> None:
        """Steps that must succeed."""
        for step in steps:
            answer = self.ask(step)
            assert answer == "ok", f"{step}: {answer}"

    def fail(self, step: str) -> str:
        """A step that must fail: the exception's simple name."""
        answer = self.ask(step)
        assert answer.startswith("failed "), f"{step}: {answer}"
        return answer.split(" ")[1]

    def open(self, name: str, transactional_id: str, **settings: object) -> None:
        """A producer by a name, initialised; settings with underscores for dots."""
        patient = {"transaction_timeout_ms": PATIENT_MS, **settings}
        words = [f"{key.replace('_', '.')}={value}" for key, value in patient.items()]
        self.do(" ".join([name, "open", transactional_id, *words]), f"{name} init")


def read_committed(broker: RunningServer, topic: str, partition: int = 0) -> list[str]:
    """The values a read_committed consumer gets up to the last stable offset, as of now."""
    return _read(broker, topic, partition, READ_COMMITTED)


def read_uncommitted(broker: RunningServer, topic: str, partition: int = 0) -> list[str]:
    """The values a read_uncommitted consumer gets, aborted and open transactions' too."""
    return _read(broker, topic, partition, READ_UNCOMMITTED)


def end_offset(broker: RunningServer, topic: str, isolation: int, partition: int = 0) -> int:
    """Where a reader of this isolation level ends: the last stable offset, or the high watermark.

    A broker that has just come back is asked again until it leads the partition.
    """
    asked = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    topics = [ListOffsetsTopic(name=topic, partitions=[asked])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)

    def found() -> Any:
        with Wire(broker.host, broker.port) as wire:
            (answer,) = wire.ask(request, 5).topics[0].partitions
        assert answer.error_code in (0, *NOT_YET), answer
        return None if answer.error_code else answer

    offset: int = wait_until(found, READ_TIMEOUT_S, f"{topic}-{partition} is not led").offset
    return offset


def settle(broker: RunningServer, topic: str, partitions: int = 1) -> None:
    """Wait until no transaction is open: markers are written after a commit has been answered."""

    def is_settled() -> bool:
        return all(
            end_offset(broker, topic, READ_COMMITTED, part) == end_offset(broker, topic, READ_UNCOMMITTED, part)
            for part in range(partitions)
        )

    wait_until(is_settled, READ_TIMEOUT_S, f"a transaction on {topic} stays open")


def fetch_once(broker: RunningServer, topic: str, offset: int, isolation: int, *, max_bytes: int = 1 << 20) -> Any:
    """One answer to Fetch for partition 0."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=isolation,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    with Wire(broker.host, broker.port) as wire:
        return wire.ask(request, FETCH_VERSION).responses[0].partitions[0]


def committed_offset(
    broker: RunningServer, group: str, topic: str, partition: int = 0, *, require_stable: bool = False
) -> tuple[int, int]:
    """(error code, offset) of one partition of a group, asked again while its coordinator is not there yet."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=require_stable
    )

    def found() -> Any:
        with Wire(broker.host, broker.port) as wire:
            (answer,) = wire.ask(request, OFFSET_FETCH_VERSION).groups
        assert answer.error_code in (0, *NOT_YET), answer
        return None if answer.error_code else answer.topics[0].partitions[0]

    answer = wait_until(found, READ_TIMEOUT_S, f"no coordinator for {group}")
    return answer.error_code, answer.committed_offset


def stable_offset(broker: RunningServer, group: str, topic: str, partition: int = 0) -> int:
    """The committed offset of one partition as soon as no transaction may change it; -1 for none."""

    def found() -> tuple[int, int] | None:
        code, offset = committed_offset(broker, group, topic, partition, require_stable=True)
        assert code in (0, ErrorCode.UNSTABLE_OFFSET_COMMIT), code
        return None if code else (code, offset)

    return wait_until(found, READ_TIMEOUT_S, f"the offset of {group} stays unstable")[1]


def _read(broker: RunningServer, topic: str, partition: int, isolation: int) -> list[str]:
    end = end_offset(broker, topic, isolation, partition)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": ("read_uncommitted", "read_committed")[isolation],
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    values: list[str] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(READ_TIMEOUT_S)
            assert message is not None, f"nothing came after {len(values)} values, before offset {end}"
            error = message.error()
            if error is not None:
                position = consumer.position([TopicPartition(topic, partition)])[0].offset
                # The end of the partition may be told before, while the last stable offset moves on.
                assert error.name() == "_PARTITION_EOF", error
                if max(position, message.offset() or 0) >= end:
                    return values
                continue
            values.append((message.value() or b"").decode())
    finally:
        consumer.close()
