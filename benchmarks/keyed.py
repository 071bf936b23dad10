"""Keyed records in great numbers: batches stamped out of one template, sent on one connection."""

import asyncio
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.librdkafka import LoadFailedError
from benchmarks.wire_load import Connection, connect, frame_of, run
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.header import write_crc
from kavka.protocol.records.record import Record
from tests.support.server import RunningServer
from tests.support.wire import PRODUCE_VERSION, produce_request

RECORDS_A_BATCH = 145
KEY_PREFIX = b"customer"
KEY_BYTES = 8
VALUE = bytes(range(84))
IN_FLIGHT = 10
BATCHES_AT_ONCE = 64
SEED = 4


def produce_keyed(server: RunningServer, topic: str, size_bytes: int, live_share: float) -> int:
    """Fill partition 0 with records of 100 bytes whose keys repeat, in random order; how many records there are."""
    return run(_produce_keyed(server, topic, size_bytes, live_share))


async def _produce_keyed(server: RunningServer, topic: str, size_bytes: int, live_share: float) -> int:
    connection = await connect(server)
    batches = size_bytes // len(template()[0])
    keys = max(1, int(batches * RECORDS_A_BATCH * live_share))
    window = Window(connection, IN_FLIGHT)
    for batch in keyed_batches(batches, keys):
        await window.send(frame_of(produce_request(topic, batch), PRODUCE_VERSION))
    await window.drain()
    connection.close()
    return batches * RECORDS_A_BATCH


class Window:
    """Produce requests on a connection, so many in flight at most; the first refusal fails the next call."""

    def __init__(self, connection: Connection, size: int) -> None:
        self._connection = connection
        self._free = asyncio.Semaphore(size)
        self._size = size
        self._refusal: bytes | None = None

    async def send(self, frame: bytes) -> None:
        await self._free.acquire()
        if self._refusal is not None:
            raise LoadFailedError(f"Produce was answered with {self._refusal.hex()}")
        self._connection.send(frame, self._answered)

    async def drain(self) -> None:
        for _ in range(self._size):
            await self._free.acquire()

    def _answered(self, answer: bytes) -> None:
        if is_refused(answer):
            self._refusal = answer
        self._free.release()


def is_refused(answer: bytes) -> bool:
    """Whether a Produce v9 answer of one partition carries an error: its code stands before the base offset."""
    # Base offset, append time, log start, record errors, message, tags of partition and topic, throttle, tags.
    behind = 8 + 8 + 8 + 1 + 1 + 1 + 1 + 4 + 1
    return answer[-behind - 2 : -behind] != b"\0\0"


def keyed_batches(batches: int, keys: int) -> Iterator[bytes]:
    """Batches whose keys are drawn at random, the same ones in each run."""
    blank, places = template()
    dice = np.random.default_rng(SEED)
    columns = (places[:, None] + np.arange(KEY_BYTES)).reshape(-1)
    for start in range(0, batches, BATCHES_AT_ONCE):
        rows = min(BATCHES_AT_ONCE, batches - start)
        page = np.tile(np.frombuffer(blank, np.uint8), (rows, 1))
        drawn = dice.integers(0, keys, (rows, RECORDS_A_BATCH), np.int64).astype(">i8")
        page[:, columns] = drawn.view(np.uint8).reshape(rows, -1)
        for row in page:
            batch = bytearray(row.tobytes())
            write_crc(batch, 0)
            yield bytes(batch)


def template() -> tuple[bytes, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """A batch, and where in it the keys' last eight bytes stand."""
    now_ms = time.time_ns() // 1_000_000
    records = [Record(0, now_ms, KEY_PREFIX + bytes(KEY_BYTES), VALUE, ()) for _ in range(RECORDS_A_BATCH)]
    blank = build_batch(records)
    places, position = [], 0
    while (position := blank.find(KEY_PREFIX, position)) >= 0:
        position += len(KEY_PREFIX)
        places.append(position)
    return blank, np.array(places, np.int64)
