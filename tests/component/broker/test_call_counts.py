"""How many function calls a request costs: noise cannot move them, so that growth shows at once.

A change for the better lowers the bound with it; a bound that has to rise is worth a look in a profile.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import pytest

import kavka
from kavka.broker.quotas.quotas import Quotas
from kavka.broker.requests.prepared_produce import OLDEST_VERSION
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.broker_core import NOW_MS, BrokerCore, produce_frame
from tests.support.function_calls import calls_of
from tests.support.group_core import GroupCore, commit_frame
from tests.support.network_stage import SIZE
from tests.support.partition_logs import batch_of

ROOMS = Path(kavka.__file__).parent
VERSION = 9
FETCH_VERSION = 12
JOIN_VERSION = 3
RUNS = 50
WINDOW_S = 10
"""Over which the rate of a quota is taken: eleven samples, without the one that begins."""

INLINE_PRODUCE = 75
CHARGED_PRODUCE = 76
"""With quotas that are far off."""
SHORT_PRODUCE = 81
TWO_PARTITIONS_PRODUCE = 118
INLINE_TWO_PARTITIONS_PRODUCE = 112
ORDINARY_PRODUCE = 191
FETCH = 185
EMPTY_FETCH = 168
SIX_PARTITIONS_FETCH = 688
INLINE_COMMIT = 102
FIRST_PRODUCE_FILES = 25
REPEATED_PRODUCE_FILES = 12
"""Who wants to know what becomes of a request reads that many files."""
INLINE_HEARTBEAT = 76
INLINE_JOIN_AND_SYNC = 304


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path)
    core.create("visits", 2)
    yield core
    core.close()


@pytest.fixture
def inline_core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path, inline=True)
    core.create("visits", 2)
    yield core
    core.close()


def calls_per_request(core: BrokerCore, frames: list[bytes]) -> float:
    """Of reading, running and answering; the first half of the frames warms up. Each comes alone, as a wake-up does."""
    stage = core.stage
    counts = []
    for number, frame in enumerate(frames):
        counts.append(calls_of_one(core, frame))
        counted = sum(cells.count for cells in stage.cells.requests.values())
        assert len(stage.answered) + counted >= number + 1
    # Not the mean: a busy machine has some of them do a second's work, or wait and look again.
    return median(counts[len(counts) // 2 :])


def calls_of_one(core: BrokerCore, frame: bytes) -> int:
    core.socket.input += SIZE.pack(len(frame)) + frame
    return sum(calls_of(step) for step in steps_of_one(core))


def steps_of_one(core: BrokerCore) -> Iterator[Callable[[], object]]:
    """What the network thread does with the request that has come, and the I/O thread where it is left to that."""
    stage, connection = core.stage, core.connection

    def run_turn() -> None:
        queued = stage.queue.get()
        assert queued is connection
        stage.io_threads[0].run_turn(queued, stage.cells, 0)

    yield lambda: stage.thread._on_readable(connection)
    if stage.queue.qsize():
        yield run_turn


def files_of_one(core: BrokerCore, frame: bytes) -> set[str]:
    """The files of ours whose functions are called; generated code is in none."""
    found: set[str] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    core.socket.input += SIZE.pack(len(frame)) + frame
    for step in steps_of_one(core):
        sys.setprofile(watch)
        try:
            step()
        finally:
            sys.setprofile(None)
    return {name for name in found if Path(name).is_relative_to(ROOMS)}


def produces() -> list[bytes]:
    return [produce_frame(VERSION, n, {("visits", 0): bytes(batch_of(b"x" * 100))}) for n in range(2 * RUNS)]


def fetch_frame(number: int, offset: int, **fields: Any) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="visits", partitions=[partition])]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        **{"session_id": 0, "session_epoch": -1, "topics": topics, **fields},
        forgotten_topics_data=[],
    )
    return encode_request_header(1, FETCH_VERSION, number, "consumer") + encode(request, FETCH_VERSION)


def test_a_produce_request_that_the_network_thread_runs(inline_core: BrokerCore) -> None:
    assert calls_per_request(inline_core, produces()) <= INLINE_PRODUCE


def test_a_produce_request_crosses_few_files(inline_core: BrokerCore) -> None:
    warm, first, repeated, *_ = produces()
    files_of_one(inline_core, warm)  # compiles what reads and writes requests of that version
    inline_core.connect()
    files = files_of_one(inline_core, first)
    assert len(files) <= FIRST_PRODUCE_FILES, sorted(files)
    files = files_of_one(inline_core, repeated)
    assert len(files) <= REPEATED_PRODUCE_FILES, sorted(files)


def test_a_produce_request_of_a_client_whose_quotas_are_far_off(inline_core: BrokerCore) -> None:
    services = inline_core.services
    services.quotas = Quotas(services.config.current, lambda: NOW_MS * 1_000_000, services.changed)
    services.quotas.apply("users/<default>", {"producer_byte_rate": str(10**12), "request_percentage": str(10**6)})

    assert calls_per_request(inline_core, produces()) <= CHARGED_PRODUCE
    (meter,) = services.quotas.produce.all()
    assert meter.measure(NOW_MS) * WINDOW_S == sum(len(frame) for frame in produces())


def test_a_produce_request_of_a_known_shape(core: BrokerCore) -> None:
    assert calls_per_request(core, produces()) <= SHORT_PRODUCE


def two_partitions(version: int) -> list[bytes]:
    records = {("visits", 0): bytes(batch_of(b"x")), ("visits", 1): bytes(batch_of(b"x"))}
    return [produce_frame(version, n, records) for n in range(2 * RUNS)]


def test_a_produce_request_to_two_partitions_of_a_known_shape(core: BrokerCore) -> None:
    assert calls_per_request(core, two_partitions(VERSION)) <= TWO_PARTITIONS_PRODUCE


def test_a_produce_request_to_two_partitions_that_the_network_thread_runs(inline_core: BrokerCore) -> None:
    assert calls_per_request(inline_core, two_partitions(VERSION)) <= INLINE_TWO_PARTITIONS_PRODUCE


def test_a_produce_request_by_the_ordinary_way(core: BrokerCore) -> None:
    assert calls_per_request(core, two_partitions(OLDEST_VERSION - 1)) <= ORDINARY_PRODUCE


def test_a_fetch_of_one_batch(core: BrokerCore) -> None:
    core.ask(produce_frame(VERSION, 0, {("visits", 0): bytes(batch_of(b"x" * 100))}))

    assert calls_per_request(core, [fetch_frame(n, 0) for n in range(2 * RUNS)]) <= FETCH


def test_a_fetch_of_six_partitions_that_leaves_by_sendfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sendfile", lambda out, source, position, size: size)
    core = BrokerCore(tmp_path)
    try:
        core.create("visits", 6)
        batch = bytes(batch_of(b"x" * 70_000))
        # So many that the first ones' positions have to be searched.
        for number in range(34):
            core.ask(produce_frame(VERSION, number, {("visits", index): batch for index in range(6)}))
        asked = [FetchPartition(partition=index, fetch_offset=3, partition_max_bytes=100_000) for index in range(6)]
        frames = [fetch_frame(n, 3, topics=[FetchTopic(topic="visits", partitions=asked)]) for n in range(2 * RUNS)]

        assert calls_per_request(core, frames) <= SIX_PARTITIONS_FETCH
    finally:
        core.close()


def test_an_offset_commit_that_the_network_thread_runs(tmp_path: Path) -> None:
    core = GroupCore(tmp_path, inline=True)
    try:
        frames = [commit_frame(8, n, [("visits", 0, n)]) for n in range(2 * RUNS)]
        assert calls_per_request(core, frames) <= INLINE_COMMIT
    finally:
        core.close()


@pytest.fixture
def member(tmp_path: Path) -> Iterator[GroupCore]:
    core = GroupCore(tmp_path, "group.initial.rebalance.delay.ms=0", inline=True)
    yield core
    core.close()


def joined(core: GroupCore) -> str:
    """A group's only member, before the version with which it is told its id first."""
    answer = core.ask(join_frame(0, ""))
    _, start = decode_response_header(11, JOIN_VERSION, answer[SIZE.size :])
    response = decode(JoinGroupResponse, JOIN_VERSION, answer[SIZE.size :], start)
    assert response.error_code == 0
    return response.member_id


def join_frame(number: int, member_id: str) -> bytes:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"topics")],
    )
    return encode_request_header(11, JOIN_VERSION, number, "consumer") + encode(request, JOIN_VERSION)


def sync_frame(number: int, member_id: str, generation: int) -> bytes:
    assigned = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
    request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, assignments=[assigned])
    return encode_request_header(14, JOIN_VERSION, number, "consumer") + encode(request, JOIN_VERSION)


def test_a_heartbeat_that_the_network_thread_runs(member: GroupCore) -> None:
    member_id = joined(member)
    member.ask(sync_frame(0, member_id, 1))
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    frames = [
        encode_request_header(12, JOIN_VERSION, number, "consumer") + encode(beat, JOIN_VERSION)
        for number in range(2 * RUNS)
    ]
    assert calls_per_request(member, frames) <= INLINE_HEARTBEAT


def test_a_rebalance_of_one_member_that_the_network_thread_runs(member: GroupCore) -> None:
    member_id = joined(member)
    counts = []
    for number in range(RUNS):
        counts.append(calls_of_one(member, join_frame(number, member_id)))
        counts[-1] += calls_of_one(member, sync_frame(number, member_id, number + 2))
    assert median(counts[RUNS // 2 :]) <= INLINE_JOIN_AND_SYNC


def test_a_fetch_at_the_end_of_the_log(core: BrokerCore) -> None:
    assert calls_per_request(core, [fetch_frame(n, 0) for n in range(2 * RUNS)]) <= EMPTY_FETCH
