"""Requests leave nothing to the garbage collector: its full passes would stop every thread for tens of milliseconds."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.network_stage import SIZE
from tests.support.partition_logs import batch_of

PRODUCE_VERSION = 9
FETCH_VERSION = 12
ROUNDS = 30


@pytest.fixture(params=[False, True], ids=["io thread", "network thread"])
def core(tmp_path: Path, request: Any) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path, inline=request.param)
    core.create("visits", 2)
    yield core
    core.close()


def feed(core: BrokerCore, client: tuple[Any, Any], frame: bytes) -> None:
    """Have one client's frame read and run, as far as it can be run now."""
    connection, socket = client
    socket.input += SIZE.pack(len(frame)) + frame
    core.stage.thread._on_readable(connection)
    while core.stage.queue.qsize():
        readable = core.stage.queue.get()
        assert readable is not None
        core.stage.io_threads[0].run_turn(readable, core.stage.cells, 0)


def cycles_left_by(work: Callable[[int], None]) -> Counter[str]:
    """What only the collector could free after ROUNDS of work, by type, as far as each round left it.

    Fewer were left by others: a thread of an earlier test's that ends now, say, with a class of that test's.
    """
    work(0)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for number in range(1, ROUNDS + 1):
            work(number)
        gc.collect()
        found = Counter(type(each).__name__ for each in gc.garbage)
        return Counter({name: count for name, count in found.items() if count >= ROUNDS})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def produced(number: int) -> bytes:
    return produce_frame(PRODUCE_VERSION, number, {("visits", 0): bytes(batch_of(b"x" * 100))})


def long_poll(number: int, offset: int) -> bytes:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=10_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic="visits", partitions=[asked])],
        forgotten_topics_data=[],
    )
    return encode_request_header(1, FETCH_VERSION, number, "consumer") + encode(request, FETCH_VERSION)


def test_produce_requests(core: BrokerCore) -> None:
    client = (core.connection, core.socket)

    assert cycles_left_by(lambda number: feed(core, client, produced(number))) == Counter()


def test_long_polls_that_are_ended_by_data(core: BrokerCore) -> None:
    producer = (core.connection, core.socket)
    core.connect()
    consumer = (core.connection, core.socket)
    answered = core.stage.answered

    def poll(number: int) -> None:
        before = len(answered)
        feed(core, consumer, long_poll(number, number))
        assert len(answered) == before
        feed(core, producer, produced(number))
        assert consumer[1].taken
        answered.clear()

    assert cycles_left_by(poll) == Counter()


def test_long_polls_whose_time_is_up(core: BrokerCore) -> None:
    client = (core.connection, core.socket)

    def poll(number: int) -> None:
        feed(core, client, long_poll(number, 0))
        core.purgatory.expire_all()
        core.stage.answered.clear()

    assert cycles_left_by(poll) == Counter()


def test_refused_alterations_of_configurations(core: BrokerCore) -> None:
    client = (core.connection, core.socket)
    unknown = AlterConfigsResource(
        resource_type=2, resource_name="nowhere", configs=[AlterableConfig(name="a", config_operation=0, value="b")]
    )
    request = encode(IncrementalAlterConfigsRequest(resources=[unknown], validate_only=False), 1)

    def alter(number: int) -> None:
        feed(core, client, encode_request_header(44, 1, number, "admin") + request)
        core.stage.answered.clear()

    assert cycles_left_by(alter) == Counter()
