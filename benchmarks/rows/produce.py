"""Produce rows: six partitions, load from librdkafka; rates and the broker's CPU seconds for the same messages."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from benchmarks import librdkafka, topics
from benchmarks.contestants import Contestant
from benchmarks.librdkafka import Produce
from benchmarks.row import CPU, CPU_PER_MILLION, RATE, Goal, Measurement, OwnServerRow, Row, Scale
from tests.support.probe import API_VERSIONS_V0
from tests.support.server import RunningServer

PARTITIONS = 6
ONE_A_REQUEST = {"linger.ms": "0", "batch.num.messages": "1"}
FIRST_SECONDS = 10.0


@dataclass(frozen=True)
class Kind:
    """A produce load with its goals; `first` is how much of it fits into ten seconds."""

    name: str
    title: str
    load: Produce
    rate_goal: float
    cpu_goal: float
    first: int


KINDS = (
    Kind(
        "produce-100b",
        "produce 100 B, linger 5 ms",
        Produce(6_000_000, 100, properties={"linger.ms": "5"}),
        1.0,
        0.8,
        20_000_000,
    ),
    Kind(
        "produce-1000b",
        "produce 1000 B, linger 0",
        Produce(1_000_000, 1000, properties={"linger.ms": "0"}),
        1.5,
        0.7,
        2_000_000,
    ),
    Kind(
        "produce-lz4",
        "produce 1000 B, lz4",
        Produce(2_000_000, 1000, codec="lz4", properties={"linger.ms": "5"}),
        1.0,
        0.8,
        8_000_000,
    ),
    Kind(
        "produce-single",
        "produce 100 B, one message a request",
        Produce(100_000, 100, properties=ONE_A_REQUEST),
        4.0,
        0.33,
        1_000_000,
    ),
    Kind(
        "produce-inflight1",
        "produce 100 B, one message a request, in-flight 1",
        Produce(30_000, 100, properties={**ONE_A_REQUEST, "max.in.flight": "1"}),
        1.0,
        1.1,
        200_000,
    ),
    Kind(
        "produce-acks-all",
        "produce 100 B, linger 5 ms, acks=all",
        Produce(6_000_000, 100, acks="-1", properties={"linger.ms": "5"}),
        1.0,
        0.8,
        20_000_000,
    ),
)


class ProduceRow(Row):
    """One load against the warm broker."""

    def __init__(self, kind: Kind) -> None:
        self.name = kind.name
        self.title = kind.title
        self.goals = (Goal(RATE, kind.rate_goal), Goal(CPU, kind.cpu_goal))
        self.load = kind.load

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        return produce_once(contestant.shared, replace(self.load, messages=scale.count(self.load.messages)))


class ValidatingRow(OwnServerRow):
    """The first load against a Kavka that walks all records, as Kafka always does."""

    name = "produce-100b-validated"
    title = "produce 100 B, linger 5 ms, kavka.validate.records=all"
    warms = True

    def settings(self, contestant: Contestant) -> Mapping[str, str]:
        return {"kavka.validate.records": "all"} if contestant.name == "kavka" else {}

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        load = KINDS[0].load
        return produce_once(self.server(contestant), replace(load, messages=scale.count(load.messages)))


class FirstSecondsRow(Row):
    """The load in the first ten seconds of a broker's life; each round starts a fresh one."""

    warms = False

    def __init__(self, kind: Kind) -> None:
        self.name = f"first-{kind.name.removeprefix('produce-')}"
        self.title = f"first ten seconds after start: {kind.title.removeprefix('produce ')}"
        self.goals = (Goal(RATE, 1.5),)
        self.load = replace(kind.load, messages=kind.first)

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        with contestant.running() as server, topics.topic(server, PARTITIONS) as topic:
            before = server.process.cpu_seconds()
            done = librdkafka.produce_for(server, topic, self.load, max(5.0, FIRST_SECONDS * scale.share))
            spent = server.process.cpu_seconds() - before
            return {RATE: done.rate, CPU_PER_MILLION: spent / done.messages * 1e6}


class IdleConnectionsRow(Row):
    """The first load while a thousand other connections are open and silent, and what they cost in memory."""

    name = "idle-connections"
    title = "1,000 idle connections beside: produce 100 B, linger 5 ms"
    goals = (Goal(RATE, 1.0), Goal(CPU, 0.8))
    CONNECTIONS = 1000

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        load = replace(KINDS[0].load, messages=scale.count(KINDS[0].load.messages))
        with idle_connections(contestant.shared, self.CONNECTIONS):
            return produce_once(contestant.shared, load)


def produce_once(server: RunningServer, load: Produce, partitions: int = PARTITIONS) -> Measurement:
    with topics.topic(server, partitions) as topic:
        before = server.process.cpu_seconds()
        done = librdkafka.produce(server, topic, load)
        return {RATE: done.rate, CPU: server.process.cpu_seconds() - before}


@contextmanager
def idle_connections(server: RunningServer, count: int) -> Iterator[None]:
    """Connections that have each sent one request and then nothing."""
    connections: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection((server.host, server.port), timeout=10.0)
            connections.append(connection)
            connection.sendall(API_VERSIONS_V0)
            connection.recv(65536)
        yield
    finally:
        for connection in connections:
            connection.close()


SHARED_ROWS: tuple[Row, ...] = (*(ProduceRow(kind) for kind in KINDS), IdleConnectionsRow())
OWN_ROWS: tuple[Row, ...] = (ValidatingRow(), *(FirstSecondsRow(kind) for kind in KINDS))
