"""A producer at a given pace: a batch is due at its time whatever the answers take, so that stalls show."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.keyed import Window, is_refused
from benchmarks.librdkafka import LoadFailedError
from benchmarks.wire_load import connect, frame_of, run
from tests.support.server import RunningServer
from tests.support.wire import PRODUCE_VERSION, batch_of, produce_request

RECORDS_A_BATCH = 100
RECORD = bytes(100)
IN_FLIGHT = 5
TICK_S = 0.001


@dataclass
class Pace:
    """What a paced producer did. Written by its thread, read after it ended."""

    batches: int = 0
    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.batches / self.seconds

    def percentile_ms(self, share: float) -> float:
        if not self.latencies_ms:
            raise LoadFailedError("nothing was produced")
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def most_batches_a_second(server: RunningServer, topic: str, seconds: float) -> float:
    """What a producer with five requests in flight gets through."""
    return run(_most_batches(server, topic, seconds))


@contextmanager
def producing(server: RunningServer, topic: str, batches_a_second: float) -> Iterator[Pace]:
    """A producer on a thread of its own while the block runs; the pace is whole when it has ended."""
    pace = Pace()
    stopping = threading.Event()
    errors: list[Exception] = []

    def work() -> None:
        try:
            run(_produce(server, topic, batches_a_second, stopping, pace))
        except Exception as error:  # noqa: BLE001 - carried over to the thread that waits, whatever it is
            errors.append(error)

    thread = threading.Thread(target=work, name="paced producer")
    thread.start()
    try:
        yield pace
    finally:
        stopping.set()
        thread.join()
    if errors:
        raise errors[0]


async def _most_batches(server: RunningServer, topic: str, seconds: float) -> float:
    connection = await connect(server)
    window = Window(connection, IN_FLIGHT)
    frame = _frame(topic)
    batches, started_at = 0, time.perf_counter()
    while time.perf_counter() - started_at < seconds:
        await window.send(frame)
        batches += 1
    await window.drain()
    connection.close()
    return batches / (time.perf_counter() - started_at)


async def _produce(
    server: RunningServer, topic: str, batches_a_second: float, stopping: threading.Event, pace: Pace
) -> None:
    connection = await connect(server)
    frame = _frame(topic)
    refused: list[bytes] = []
    answered = 0
    started_at = time.perf_counter()

    def take(answer: bytes) -> None:
        nonlocal answered
        pace.latencies_ms.append((time.perf_counter() - started_at - answered / batches_a_second) * 1000)
        answered += 1
        if is_refused(answer):
            refused.append(answer)
        # Not only at ticks: those alone would be a limit of five requests each.
        send_what_is_due()

    def send_what_is_due() -> None:
        if stopping.is_set():
            return
        due = int((time.perf_counter() - started_at) * batches_a_second)
        while pace.batches < due and pace.batches - answered < IN_FLIGHT:
            pace.batches += 1
            connection.send(frame, take)

    while not stopping.is_set() and not refused:
        send_what_is_due()
        await asyncio.sleep(TICK_S)
    pace.seconds = time.perf_counter() - started_at
    while answered < pace.batches and not refused:
        await asyncio.sleep(TICK_S)
    connection.close()
    if refused:
        raise LoadFailedError(f"Produce was answered with {refused[0].hex()}")


def _frame(topic: str) -> bytes:
    batch = batch_of([RECORD] * RECORDS_A_BATCH, timestamp_ms=time.time_ns() // 1_000_000)
    return frame_of(produce_request(topic, batch), PRODUCE_VERSION)
