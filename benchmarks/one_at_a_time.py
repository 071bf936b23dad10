"""A producer with one request in flight, acks=all: what a write costs from its sending to its acknowledgement."""

import asyncio
import struct
import time
from typing import Final

from benchmarks.librdkafka import LoadFailedError
from benchmarks.wire_load import Connection, check, connect_to, frame_of, run
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import Record, build_batch
from tests.support.server import RunningServer

PRODUCE_VERSION: Final = 9
METADATA_VERSION: Final = 9
TIMEOUT_MS: Final = 30_000
ERROR_CODE: Final = struct.Struct(">h")
# Behind correlation id and tags: one topic with its name's length, one partition with its index.
ERROR_PLACE: Final = 4 + 1 + 1
SKIPPED: Final = 0.1
LEADER_TIMEOUT_S: Final = 60.0
RETRY_S: Final = 0.05
NOT_YET: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def percentiles_ms(
    server: RunningServer, topic: str, writes: int, *shares: float, size_bytes: int = 100
) -> list[float]:
    """Writes one after the other to the topic's partition 0: rate a second, then percentiles; the first tenth aside."""
    latencies = run(_write(server, topic, writes, size_bytes))
    counted = sorted(latencies[int(len(latencies) * SKIPPED) :])
    rate = len(counted) / sum(counted)
    return [rate, *(counted[min(len(counted) - 1, int(len(counted) * share))] * 1000 for share in shares)]


async def _write(server: RunningServer, topic: str, writes: int, size_bytes: int) -> list[float]:
    connection = await _connect_to_leader(server, topic)
    records = bytes(build_batch([Record(value=bytes(size_bytes))]))
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=memoryview(records))])
        ],
    )
    frame = frame_of(request, PRODUCE_VERSION)
    place = ERROR_PLACE + 1 + len(topic.encode()) + 1 + 4
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    began = sent_at = time.perf_counter()

    def answered(answer: bytes) -> None:
        nonlocal sent_at
        now = time.perf_counter()
        latencies.append(now - sent_at)
        (code,) = ERROR_CODE.unpack_from(answer, place)
        if code in NOT_YET and len(latencies) == 1 and now < began + LEADER_TIMEOUT_S:
            # The leader has not heard of it yet, who others know is to lead.
            latencies.clear()
            loop.call_later(RETRY_S, connection.send, frame, answered)
        elif code:
            done.set_exception(LoadFailedError(f"Produce was answered with error {code}"))
        elif len(latencies) == writes:
            done.set_result(None)
        else:
            sent_at = time.perf_counter()
            connection.send(frame, answered)

    connection.send(frame, answered)
    await done
    connection.close()
    return latencies


async def _connect_to_leader(server: RunningServer, topic: str) -> Connection:
    host, _, port = server.bootstrap.partition(",")[0].rpartition(":")
    asked = await connect_to(host, int(port))
    found = await asked.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), METADATA_VERSION)
    asked.close()
    check(found.topics[0].error_code, "Metadata")
    leader_id = found.topics[0].partitions[0].leader_id
    leader = next(broker for broker in found.brokers if broker.node_id == leader_id)
    return await connect_to(leader.host, leader.port)
