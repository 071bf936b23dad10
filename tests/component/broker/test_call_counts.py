"""How many function calls a request costs: noise cannot move them, so that growth shows at once.

A change for the better lowers the bound with it; a bound that has to rise is worth a look in a profile.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from kavka.broker.requests.prepared_produce import OLDEST_VERSION
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.group_core import GroupCore, commit_frame
from tests.support.network_stage import SIZE
from tests.support.partition_logs import batch_of

VERSION = 9
FETCH_VERSION = 12
RUNS = 50

INLINE_PRODUCE = 75
SHORT_PRODUCE = 81
TWO_PARTITIONS_PRODUCE = 118
INLINE_TWO_PARTITIONS_PRODUCE = 112
ORDINARY_PRODUCE = 191
FETCH = 185
EMPTY_FETCH = 168
SIX_PARTITIONS_FETCH = 688
INLINE_COMMIT = 102


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


def calls_of(function: Callable[[], object]) -> int:
    """Python and C functions called while it runs."""
    count = 0

    def watch(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def calls_per_request(core: BrokerCore, frames: list[bytes]) -> float:
    """Of reading, running and answering; the first half of the frames warms up. Each comes alone, as a wake-up does."""
    stage, connection = core.stage, core.connection
    counts = []

    def run_turn() -> None:
        queued = stage.queue.get()
        assert queued is connection
        stage.io_threads[0].run_turn(queued, stage.cells, 0)

    for number, frame in enumerate(frames):
        core.socket.input += SIZE.pack(len(frame)) + frame
        counts.append(calls_of(lambda: stage.thread._on_readable(connection)))
        if stage.queue.qsize():
            counts[-1] += calls_of(run_turn)
        counted = sum(cells.count for cells in stage.cells.requests.values())
        assert len(stage.answered) + counted >= number + 1
    # Not the mean: a busy machine has some of them do a second's work, or wait and look again.
    return median(counts[len(counts) // 2 :])


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


def test_a_fetch_at_the_end_of_the_log(core: BrokerCore) -> None:
    assert calls_per_request(core, [fetch_frame(n, 0) for n in range(2 * RUNS)]) <= EMPTY_FETCH
