"""When the writes of one producer were acknowledged, while something happens to the cluster."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from tests.support.processes import wait_until
from tests.support.server import RunningServer

DELIVERY_S = 120.0
FIRST_S = 60.0
WRITER = {
    "acks": "all",
    "linger.ms": "0",
    "max.in.flight": "1",
    "retry.backoff.ms": "50",
    "retry.backoff.max.ms": "100",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "100",
    "topic.metadata.refresh.fast.interval.ms": "50",
    "topic.metadata.refresh.sparse": "true",
    "message.timeout.ms": str(int(DELIVERY_S * 1000)),
    "log_level": "0",
}


class Acknowledgements:
    """Times (`time.monotonic`) of acknowledged writes, oldest first; grows while the writer writes."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.failures: list[str] = []

    def first_after(self, moment: float) -> float:
        """The seconds from then to the next acknowledgement, waited for."""
        wait_until(lambda: self.times and self.times[-1] > moment, DELIVERY_S, "nothing is acknowledged any more")
        return next(each for each in self.times if each > moment) - moment

    def longest_gap(self, since: float) -> float:
        """Between two acknowledgements, the later of which came after that moment."""
        times = self.times.copy()
        return max(later - earlier for earlier, later in itertools.pairwise(times) if later > since)

    def latencies(self, since: float) -> list[float]:
        """How long each write took that was acknowledged after that moment: one is sent when the last one was."""
        times = self.times.copy()
        return [later - earlier for earlier, later in itertools.pairwise(times) if later > since]


@contextmanager
def writing(server: RunningServer, topic: str, partition: int = 0) -> Iterator[Acknowledgements]:
    """Write one record after the other to a partition, from the first acknowledgement to the end of the block."""
    producer = Producer({"bootstrap.servers": server.bootstrap, **WRITER})
    seen = Acknowledgements()
    ended = threading.Event()

    def delivered(error: object, _message: object) -> None:
        if error is None:
            seen.times.append(time.monotonic())
        else:
            seen.failures.append(str(error))

    def write() -> None:
        while not ended.is_set():
            producer.produce(topic, bytes(100), partition=partition, on_delivery=delivered)
            producer.flush(DELIVERY_S)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        wait_until(lambda: seen.times, FIRST_S, "the first write is not acknowledged")
        yield seen
    finally:
        ended.set()
        writer.join(DELIVERY_S)
