"""Rows of a cluster under load: acks=all to partitions of three replicas; CPU is all brokers' sum."""

import time
from dataclasses import dataclass, replace

from benchmarks import librdkafka, one_at_a_time, topics
from benchmarks.cluster_contestants import FACTOR, Cluster, ClusterContestant
from benchmarks.contestants import Contestant
from benchmarks.librdkafka import Produce
from benchmarks.row import CPU, P50, P99, RATE, Better, Goal, Measurement, Metric, Row, Scale

PARTITIONS = 6
MIB = 1 << 20
WRITES = 10_000
IDLE_TOPICS, IDLE_PARTITIONS = 20, 100
IDLE_S = 20.0
SETTLE_S = 5.0

SLOWER = Metric("slower", "p50 beside 2,000 idle partitions by p50 without", Better.LESS)
IDLE_CPU = Metric("idle_cpu_s", "idle brokers' CPU in 20 s, s", Better.LESS)
MEMORY = Metric("memory_mib", "all brokers' peak memory, MiB", Better.LESS, 0)


def cluster_of(contestant: Contestant) -> Cluster:
    assert isinstance(contestant, ClusterContestant)
    return contestant.cluster


@dataclass(frozen=True)
class Kind:
    name: str
    title: str
    load: Produce


KINDS = (
    Kind(
        "acks-all-100b",
        "acks=all, 3 replicas, 100 B, linger 5 ms",
        Produce(3_000_000, 100, acks="-1", properties={"linger.ms": "5"}),
    ),
    Kind(
        "acks-all-1000b",
        "acks=all, 3 replicas, 1000 B, linger 0",
        Produce(500_000, 1000, acks="-1", properties={"linger.ms": "0"}),
    ),
)


class ProduceRow(Row):
    """The same messages into a new topic of six partitions, each replicated everywhere."""

    goals = (Goal(RATE, 1.0), Goal(CPU, 1.0))

    def __init__(self, kind: Kind) -> None:
        self.name = kind.name
        self.title = kind.title
        self._load = kind.load

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        cluster = cluster_of(contestant)
        load = replace(self._load, messages=scale.count(self._load.messages))
        with topics.topic(cluster, PARTITIONS, replication_factor=FACTOR) as topic:
            before = cluster.cpu_seconds()
            done = librdkafka.produce(cluster, topic, load)
            return {RATE: done.rate, CPU: cluster.cpu_seconds() - before}


class OneAtATimeRow(Row):
    """Each write is sent when the one before is acknowledged by all replicas in sync."""

    name = "in-flight-1"
    title = "acks=all, 3 replicas, 100 B, in-flight 1"
    goals = (Goal(RATE, 1.0), Goal(P99, 1.0))

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        cluster = cluster_of(contestant)
        with topics.topic(cluster, 1, replication_factor=FACTOR) as topic:
            before = cluster.cpu_seconds()
            rate, p50, p99 = one_at_a_time.percentiles_ms(cluster, topic, scale.count(WRITES), 0.5, 0.99)
            return {RATE: rate, P50: p50, P99: p99, CPU: cluster.cpu_seconds() - before}


class IdlePartitionsRow(Row):
    """2,000 partitions of three replicas that nobody uses: what they cost who uses another, and the idle brokers."""

    name = "idle-partitions"
    title = "2,000 idle partitions x 3 beside: in-flight 1"
    goals = (Goal(SLOWER, own=1.2), Goal(IDLE_CPU, 1.0))
    warms = False

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        cluster = cluster_of(contestant)
        names = [f"idle-{number}" for number in range(scale.count(IDLE_TOPICS))]
        with topics.topic(cluster, 1, replication_factor=FACTOR) as topic:
            (_, without) = one_at_a_time.percentiles_ms(cluster, topic, scale.count(WRITES), 0.5)
            topics.create(cluster, names, IDLE_PARTITIONS, replication_factor=FACTOR)
            try:
                time.sleep(SETTLE_S)
                before = cluster.cpu_seconds()
                time.sleep(IDLE_S)
                idle_s = cluster.cpu_seconds() - before
                (_, beside) = one_at_a_time.percentiles_ms(cluster, topic, scale.count(WRITES), 0.5)
            finally:
                topics.delete(cluster, names)
        return {SLOWER: beside / without, P50: beside, IDLE_CPU: idle_s}


class MemoryRow(Row):
    """After all that ran on the shared brokers before, and a produce of either kind."""

    name = "memory"
    title = "memory of three brokers"
    goals = (Goal(MEMORY, 0.25),)
    warms = False

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        cluster = cluster_of(contestant)
        for kind in KINDS:
            with topics.topic(cluster, PARTITIONS, replication_factor=FACTOR) as topic:
                librdkafka.produce(cluster, topic, replace(kind.load, messages=scale.count(kind.load.messages)))
        return {MEMORY: cluster.peak_rss_bytes() / MIB}


ROWS: tuple[Row, ...] = (*map(ProduceRow, KINDS), OneAtATimeRow(), IdlePartitionsRow(), MemoryRow())
