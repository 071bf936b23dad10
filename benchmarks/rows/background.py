"""In-flight 1 latency while the broker is busy with something else: the place where one interpreter lock would show.

The disturbance is the same for both brokers, but for /metrics, which Apache Kafka does not have: there an undisturbed
Kafka is compared. Recovery is not among them: both brokers recover before they serve (see restart-after-kill).
"""

import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from benchmarks import topics
from benchmarks.contestants import Contestant
from benchmarks.row import P99, Goal, Measurement, OwnServerRow, Row, Scale
from benchmarks.rows.latency import acknowledged_latency
from tests.support.kavka_process import KavkaProcess

ALL_TOPICS_V1 = struct.pack(">ihhihi", 14, 3, 1, 1, -1, -1)


class BackgroundRow(OwnServerRow):
    """One disturbance, begun anew every `period_s` while the measurement lasts: as often for either broker.

    One that takes longer than that goes on without a pause.
    """

    goals = (Goal(P99, 1.0),)
    period_s = 0.1

    def disturbance(self, contestant: Contestant) -> Callable[[], None]:
        """What the disturbing thread calls again and again; made on that thread."""
        raise NotImplementedError

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        with repeating(lambda: self.disturbance(contestant), self.period_s):
            return acknowledged_latency(self.server(contestant), scale)


class MetadataRow(BackgroundRow):
    """A client asks for all of 5,000 topics, again and again."""

    name = "busy-metadata"
    title = "in-flight 1 at 1,000/s beside Metadata of 5,000 topics"
    TOPICS = 5000

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        super().prepare(contestant, scale)
        names = [f"many-{number}" for number in range(scale.count(self.TOPICS))]
        topics.create(self.server(contestant), names, 1)

    def disturbance(self, contestant: Contestant) -> Callable[[], None]:
        server = self.server(contestant)
        connection = socket.create_connection((server.host, server.port), timeout=30.0)

        def ask() -> None:
            connection.sendall(ALL_TOPICS_V1)
            remaining = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
            while remaining:
                remaining -= len(connection.recv(min(remaining, 1 << 20)))

        return ask


class ScrapeRow(BackgroundRow):
    """A Prometheus server that scrapes far too often."""

    name = "busy-scrape"
    title = "in-flight 1 at 1,000/s beside /metrics scrapes (Kafka: undisturbed)"

    def settings(self, contestant: Contestant) -> Mapping[str, str]:
        return {"metrics.port": "0"} if contestant.name == "kavka" else {}

    def disturbance(self, contestant: Contestant) -> Callable[[], None]:
        server = self.server(contestant)
        if not isinstance(server, KavkaProcess):
            return lambda: None
        url = f"http://127.0.0.1:{server.metrics_port}/metrics"

        def scrape() -> None:
            with urllib.request.urlopen(url, timeout=30.0) as answer:
                answer.read()

        return scrape


class TopicChurnRow(BackgroundRow):
    """Topics of fifty partitions come and go: controller, disk and metadata are busy."""

    name = "busy-topics"
    title = "in-flight 1 at 1,000/s beside topics created and deleted"
    period_s = 0.5

    def disturbance(self, contestant: Contestant) -> Callable[[], None]:
        server = self.server(contestant)

        def churn() -> None:
            with topics.topic(server, 50):
                pass

        return churn


@contextmanager
def repeating(make: Callable[[], Callable[[], None]], period_s: float) -> Iterator[None]:
    """Run the made function every `period_s` on a thread until the block ends; an error there fails the block."""
    stop = threading.Event()
    errors: list[Exception] = []

    def loop() -> None:
        try:
            act = make()
            while not stop.is_set():
                started_at = time.monotonic()
                act()
                stop.wait(max(0.0, started_at + period_s - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - carried over to the thread that waits, whatever it is
            errors.append(error)

    thread = threading.Thread(target=loop, name="disturbance")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


OWN_ROWS: tuple[Row, ...] = (MetadataRow(), ScrapeRow(), TopicChurnRow())
