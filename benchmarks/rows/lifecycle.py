"""Start, memory, many partitions, and coming back after kill -9."""

import shutil
import time
from dataclasses import replace

from benchmarks import librdkafka, topics
from benchmarks.contestants import Contestant
from benchmarks.librdkafka import Produce
from benchmarks.row import (
    CPU,
    IDLE_MEMORY,
    PEAK_MEMORY,
    RATE,
    RESTART,
    START,
    Goal,
    Measurement,
    OwnServerRow,
    Row,
    Scale,
)
from benchmarks.rows.produce import KINDS
from tests.support.server import RunningServer

MIB = 1 << 20
SETTLE_S = 5.0
RESTART_TIMEOUT_S = 300.0


class StartRow(Row):
    """From exec to the first answered request, with an empty (for Kafka: formatted) directory."""

    name = "start"
    title = "start-up, empty"
    goals = (Goal(START, 0.25, own=0.7),)
    warms = False

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.fresh()
        try:
            start_s = server.start()
            return {START: start_s, CPU: server.process.cpu_seconds()}
        finally:
            contestant.remove(server)


class MemoryRow(Row):
    """Resident memory five seconds after start, and its peak after the produce loads and a read of everything."""

    name = "memory"
    title = "memory"
    goals = (Goal(IDLE_MEMORY, own=60), Goal(PEAK_MEMORY, 0.2))
    warms = False

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        with contestant.running() as server:
            time.sleep(SETTLE_S)
            idle_bytes = server.process.rss_bytes()
            for kind in KINDS[:3]:
                load = replace(kind.load, messages=scale.count(kind.load.messages))
                with topics.topic(server, 6) as topic:
                    librdkafka.produce(server, topic, load)
                    librdkafka.consume(server, topic, 6, load.messages)
            return {IDLE_MEMORY: idle_bytes / MIB, PEAK_MEMORY: server.process.peak_rss_bytes() / MIB}


class ManyPartitionsProduceRow(OwnServerRow):
    """A thousand partitions, every message to a random one."""

    name = "partitions-produce"
    title = "produce 100 B over 1,000 partitions, linger 5 ms"
    goals = (Goal(RATE, 1.0),)
    PARTITIONS = 1000
    LOAD = Produce(3_000_000, 100, properties={"linger.ms": "5", "sticky.partitioning.linger.ms": "0"})

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        super().prepare(contestant, scale)
        topics.create(self.server(contestant), ["wide"], self.PARTITIONS)

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = self.server(contestant)
        before = server.process.cpu_seconds()
        done = librdkafka.produce(server, "wide", replace(self.LOAD, messages=scale.count(self.LOAD.messages)))
        return {RATE: done.rate, CPU: server.process.cpu_seconds() - before}


class ManyPartitionsStartRow(OwnServerRow):
    """Stop gracefully and start again with a thousand partitions on disk."""

    name = "partitions-start"
    title = "start-up with 1,000 partitions"
    goals = (Goal(START, 1.0),)
    warms = False
    PARTITIONS = 1000

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        super().prepare(contestant, scale)
        server = self.server(contestant)
        topics.create(server, ["wide"], self.PARTITIONS)
        librdkafka.produce(server, "wide", replace(ManyPartitionsProduceRow.LOAD, messages=scale.count(1_000_000)))

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = self.server(contestant)
        server.stop()
        return _timed_start(server, "wide", range(0, self.PARTITIONS, 50))


class RestartAfterKillRow(OwnServerRow):
    """kill -9 with 2 GiB of unflushed logs, and the time until all partitions serve. Each round gets the same bytes."""

    name = "restart-after-kill"
    title = "restart after kill -9 with 2 GiB of logs"
    goals = (Goal(RESTART, 1.0),)
    warms = False
    PARTITIONS = 6
    LOAD = Produce(2_150_000, 1000, properties={"linger.ms": "5"})

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        super().prepare(contestant, scale)
        server = self.server(contestant)
        topics.create(server, ["big"], self.PARTITIONS)
        librdkafka.produce(server, "big", replace(self.LOAD, messages=scale.count(self.LOAD.messages)))
        server.kill()
        shutil.copytree(server.directory / "data", server.directory / "killed")

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = self.server(contestant)
        server.kill()
        shutil.rmtree(server.directory / "data")
        shutil.copytree(server.directory / "killed", server.directory / "data")
        return _timed_start(server, "big", range(self.PARTITIONS))


def _timed_start(server: RunningServer, topic: str, sampled: range) -> Measurement:
    start_s = server.start()
    serving_s = topics.wait_until_serving(server, topic, list(sampled), RESTART_TIMEOUT_S)
    return {START: start_s, RESTART: start_s + serving_s, CPU: server.process.cpu_seconds()}


OWN_ROWS: tuple[Row, ...] = (
    StartRow(),
    MemoryRow(),
    ManyPartitionsProduceRow(),
    ManyPartitionsStartRow(),
    RestartAfterKillRow(),
)
