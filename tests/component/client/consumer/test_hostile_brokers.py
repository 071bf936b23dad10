"""Answers that lie to a consumer: lengths, ids, and contents that make no sense. Once they are true, it reads on."""

import contextlib
import threading
import tracemalloc
from typing import Any

import pytest

from kavka.client import Consumer
from kavka.client.api_errors import KafkaError
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.protocol.api import ApiKey
from tests.component.client.consumer.serving_consumers import (
    BIRDS,
    QUICK,
    TOPIC,
    TOPIC_ID,
    ConsumersBroker,
    batch_of,
)
from tests.support.lying_answers import LIES, nonsense
from tests.support.processes import wait_until
from tests.support.scripted_broker import Asked

TIMEOUT_S = 120.0
MIB = 1 << 20
CLASSIC = [
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.LIST_OFFSETS,
    ApiKey.FETCH,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
]
WAYS = [*(("classic", api) for api in CLASSIC), ("consumer", ApiKey.CONSUMER_GROUP_HEARTBEAT)]
BY_API = pytest.mark.parametrize(
    ("protocol", "api"), WAYS, ids=lambda each: getattr(each, "title", each) if isinstance(each, ApiKey) else str(each)
)
RECORDS = 6
NONSENSE = 10
SPOKEN_OF: dict[str, Any] = {
    "topic": TOPIC,
    "topic_id": TOPIC_ID,
    "partition_index": 0,
    "key": "g",
    "group_id": "g",
    # Epochs only go up: one that is made up cannot be told from a new leader's, and none below it counts.
    "leader_epoch": 0,
    # A broker may ask to be left alone for weeks, and to hear nothing for as long.
    "throttle_time_ms": 0,
    "heartbeat_interval_ms": 10,
}


def group_of_one(bootstrap: str, protocol: str, **settings: Any) -> Consumer:
    keywords = {**QUICK, "metadata_max_age_ms": 50, **settings}
    if protocol == "consumer":
        del keywords["heartbeat_interval_ms"]
    consumer = Consumer(bootstrap_servers=bootstrap, group_id="g", group_protocol=protocol, **keywords)
    consumer.subscribe([TOPIC])
    return consumer


@BY_API
def test_a_lying_length_costs_its_connection_and_nothing_else(protocol: str, api: ApiKey) -> None:
    lies, lock = iter(LIES), threading.Lock()
    told = 0

    def mangle(asked: Asked, frame: bytes) -> bytes | None:
        nonlocal told
        with lock:
            lie = next(lies, None) if asked.header.api_key == api else None
            told += lie is not None
        return frame if lie is None else lie(frame)

    serving = ConsumersBroker([batch_of(RECORDS)])
    tracemalloc.start()
    try:
        with serving.serves(mangle) as broker, group_of_one(broker.bootstrap, protocol) as consumer:
            found: set[int] = set()

            def is_read() -> bool:
                found.update(record.offset for record in consumer.poll(20))
                if found:
                    with contextlib.suppress(KafkaError):
                        consumer.commit_sync({BIRDS: OffsetAndMetadata(0)}, timeout_ms=TIMEOUT_S * 1000)
                return len(found) == RECORDS and told == len(LIES)

            wait_until(is_read, TIMEOUT_S, lambda: f"read: {found}, told {told} lies")
            assert consumer.metrics["connection-close-total"] >= len(LIES)
        assert tracemalloc.get_traced_memory()[1] < 32 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", range(2))
@BY_API
def test_answers_that_make_no_sense_are_got_over(protocol: str, api: ApiKey, seed: int) -> None:
    lock, told = threading.Lock(), 0

    def mangle(asked: Asked, frame: bytes) -> bytes:
        nonlocal told
        if asked.header.api_key != api or told >= NONSENSE:
            return frame
        with lock:
            told += 1
        names = {**SPOKEN_OF, "name": TOPIC} if api != ApiKey.METADATA else SPOKEN_OF
        return nonsense(asked, 1_000 * seed + told, names)

    serving = ConsumersBroker([batch_of(RECORDS)])
    quick: dict[str, Any] = {"request_timeout_ms": 500, "session_timeout_ms": 6_000, "default_api_timeout_ms": 500}
    if protocol == "consumer":
        del quick["session_timeout_ms"]
    with serving.serves(mangle) as broker, group_of_one(broker.bootstrap, protocol, **quick) as consumer:

        def polled() -> dict[int, bytes]:
            # An assignment that is none is a ValueError.
            with contextlib.suppress(KafkaError, ValueError):
                return {record.offset: record.value for record in consumer.poll(20)}
            return {}

        def is_told() -> bool:
            polled()
            if BIRDS in consumer.assignment():
                with contextlib.suppress(KafkaError):
                    consumer.seek_to_beginning()
                    consumer.committed([BIRDS], timeout_ms=100)
                with contextlib.suppress(KafkaError):
                    consumer.commit_sync({BIRDS: OffsetAndMetadata(0)}, timeout_ms=100)
            return told >= NONSENSE

        wait_until(is_told, TIMEOUT_S, lambda: f"told {told}")
        found: dict[int, bytes] = {}

        def is_read() -> bool:
            found.update(polled())
            if BIRDS in consumer.assignment() and len(found) < RECORDS:
                with contextlib.suppress(KafkaError):
                    if consumer.position(BIRDS, timeout_ms=100) >= RECORDS:
                        consumer.seek(BIRDS, 0)
            return len(found) == RECORDS

        wait_until(is_read, TIMEOUT_S, lambda: f"read: {found}, of {consumer.assignment()}")
        assert found == {offset: b"%d" % offset for offset in range(RECORDS)}
        consumer.commit_sync({BIRDS: OffsetAndMetadata(4)}, timeout_ms=TIMEOUT_S * 1000)
        assert 4 in serving.commits
        assert consumer._core.thread.failure is None
