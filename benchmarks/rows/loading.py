"""A restart with a million committed offsets in one coordinator partition, and what other clients feel."""

import asyncio
import time
from collections.abc import Mapping

from benchmarks import topics
from benchmarks.contestants import Contestant
from benchmarks.keyed import is_refused
from benchmarks.librdkafka import LoadFailedError
from benchmarks.row import CPU, P99, START, Better, Goal, Measurement, Metric, OwnServerRow, Row, Scale
from benchmarks.wire_load import NOT_YET, Connection, check, connect, frame_of, run, wait_for_coordinator
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.support.server import RunningServer
from tests.support.wire import PRODUCE_VERSION, batch_of, produce_request

LOADED = Metric("loaded_s", "start until the group's offsets are served, s", Better.LESS, 3)
PARTITIONS = 100
GROUPS = 10_000
CONNECTIONS = 8
COMMIT_VERSION = 8
FETCH_VERSION = 8
TIMEOUT_S = 120.0
PAUSE_S = 0.001


class LoadingRow(OwnServerRow):
    """Each round stops the broker and starts it again on the same offsets."""

    name = "offsets-loading"
    title = "restart with 1,000,000 offsets in one partition; in-flight 1 on another topic meanwhile"
    goals = (Goal(LOADED, own=10.0), Goal(P99, own=5.0))
    warms = False

    def settings(self, contestant: Contestant) -> Mapping[str, str]:
        return {"offsets.topic.num.partitions": "1"}

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        super().prepare(contestant, scale)
        server = self.server(contestant)
        topics.create(server, ["committed"], PARTITIONS)
        topics.create(server, ["other"], 1)
        run(_commit_all(server, scale.count(GROUPS)))

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = self.server(contestant)
        server.stop()
        start_s = server.start()
        serving_s, latencies_ms = run(_until_loaded(server, _group(scale.count(GROUPS) - 1)))
        latencies_ms.sort()
        return {
            LOADED: start_s + serving_s,
            START: start_s,
            P99: latencies_ms[len(latencies_ms) * 99 // 100],
            CPU: server.process.cpu_seconds(),
        }


async def _commit_all(server: RunningServer, groups: int) -> None:
    connections = [await connect(server) for _ in range(CONNECTIONS)]
    await wait_for_coordinator(connections[0], _group(0))
    await asyncio.gather(
        *(_commit(connection, range(start, groups, CONNECTIONS)) for start, connection in enumerate(connections))
    )
    for connection in connections:
        connection.close()


async def _commit(connection: Connection, groups: range) -> None:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=index, committed_leader_epoch=0, committed_metadata=""
        )
        for index in range(PARTITIONS)
    ]
    topic = OffsetCommitRequestTopic(name="committed", partitions=partitions)
    for group in groups:
        request = OffsetCommitRequest(group_id=_group(group), topics=[topic])
        code = ErrorCode.NOT_COORDINATOR
        while code in NOT_YET:
            answer = await connection.ask(request, COMMIT_VERSION)
            code = next((each.error_code for each in answer.topics[0].partitions if each.error_code), ErrorCode.NONE)
        check(code, "OffsetCommit")


async def _until_loaded(server: RunningServer, group: str) -> tuple[float, list[float]]:
    """The seconds until the group's offset is there, and latencies of produce requests one after the other."""
    started_at = time.perf_counter()
    loaded = asyncio.Event()
    latencies_ms: list[float] = []
    producer = asyncio.create_task(_produce(server, loaded, latencies_ms))
    connection = await connect(server)
    asked = OffsetFetchRequestTopics(name="committed", partition_indexes=[PARTITIONS - 1])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])])
    while (answer := (await connection.ask(request, FETCH_VERSION)).groups[0]).error_code in NOT_YET:
        if time.perf_counter() - started_at > TIMEOUT_S:
            raise LoadFailedError("the offsets are not loaded")
        await asyncio.sleep(PAUSE_S * 5)
    check(answer.error_code, "OffsetFetch")
    seconds = time.perf_counter() - started_at
    if answer.topics[0].partitions[0].committed_offset != PARTITIONS - 1:
        raise LoadFailedError(f"the offset is {answer.topics[0].partitions[0].committed_offset}")
    loaded.set()
    await producer
    connection.close()
    return seconds, latencies_ms


async def _produce(server: RunningServer, loaded: asyncio.Event, latencies_ms: list[float]) -> None:
    """A record of 100 bytes a millisecond, one in flight."""
    connection = await connect(server)
    batch = batch_of([bytes(100)], timestamp_ms=time.time_ns() // 1_000_000)
    frame = frame_of(produce_request("other", batch), PRODUCE_VERSION)
    while not loaded.is_set() or not latencies_ms:
        asked_at = time.perf_counter()
        if not is_refused(await connection.answer_to(frame)):
            latencies_ms.append((time.perf_counter() - asked_at) * 1000)
        await asyncio.sleep(PAUSE_S)
    connection.close()


def _group(number: int) -> str:
    return f"group-{number:05}"


OWN_ROWS: tuple[Row, ...] = (LoadingRow(),)
