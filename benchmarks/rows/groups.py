"""Rows about consumer groups: commits, rebalances, and a coordinator that loads a million offsets."""

import time
from itertools import count

from confluent_kafka import Consumer, TopicPartition

from benchmarks import topics
from benchmarks.commits import commit_offsets
from benchmarks.contestants import Contestant
from benchmarks.members import ClassicGroupOfMembers, ConsumerGroupOfMembers, GroupOfMembers
from benchmarks.row import CPU, Better, Goal, Measurement, Metric, Row, Scale
from benchmarks.wire_load import run

COMMITS = Metric("commits", "rate, commits/s", Better.MORE, 0)
REBALANCE = Metric("rebalance_ms", "a rebalance, ms", Better.LESS, 1)
MEMBERS = 50
PARTITIONS = 100
_groups = count(1)


class CommitRow(Row):
    """Members of classic groups that commit one offset after the other, each waiting for the answer."""

    def __init__(self, groups: int, commits: int) -> None:
        self.name = f"commits-{groups}"
        self.title = f"offset commits, {groups} group{'s' if groups > 1 else ''}, one in flight each"
        self.goals = (Goal(COMMITS, 1.0), Goal(CPU, 1.0))
        self._groups = groups
        self._commits = commits

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        commits = scale.count(self._commits)
        with topics.topic(server, 1) as topic:
            before = server.process.cpu_seconds()
            seconds = commit_offsets(server, topic, self._groups, commits)
            return {COMMITS: commits / seconds, CPU: server.process.cpu_seconds() - before}


class ConfluentCommitRow(Row):
    """`Consumer.commit(asynchronous=False)`, again and again: the client costs more than the broker."""

    name = "commits-confluent"
    title = "offset commits by confluent-kafka, synchronous"
    goals = (Goal(COMMITS, 1.0),)
    COMMITS = 10_000

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        commits = scale.count(self.COMMITS)
        with topics.topic(server, 1) as topic:
            config = {"bootstrap.servers": server.bootstrap, "group.id": f"confluent-{next(_groups)}", "log_level": 3}
            consumer = Consumer({**config, "enable.auto.commit": False})
            try:
                consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
                before, started_at = server.process.cpu_seconds(), time.perf_counter()
                for offset in range(commits):
                    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
                seconds = time.perf_counter() - started_at
                return {COMMITS: commits / seconds, CPU: server.process.cpu_seconds() - before}
            finally:
                consumer.close()


class RebalanceRow(Row):
    """A stable group is disturbed, and again: the time from the disturbance until all members have their partitions."""

    goals = (Goal(REBALANCE, 1.0), Goal(CPU, 1.0))
    REBALANCES = 30

    def __init__(self, name: str, title: str, kind: type[GroupOfMembers]) -> None:
        self.name = name
        self.title = title
        self._kind = kind

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        server = contestant.shared
        with topics.topic(server, PARTITIONS) as topic:
            before = server.process.cpu_seconds()
            group = self._kind(server, f"{self.name}-{next(_groups)}", topic, MEMBERS, PARTITIONS)
            seconds = run(group.rebalance(max(3, scale.count(self.REBALANCES))))
            spent = server.process.cpu_seconds() - before
            return {REBALANCE: sum(seconds) / len(seconds) * 1000, CPU: spent}


SHARED_ROWS: tuple[Row, ...] = (
    CommitRow(1, 20_000),
    CommitRow(50, 100_000),
    ConfluentCommitRow(),
    RebalanceRow(
        "rebalance-classic",
        f"classic group of {MEMBERS}: the leader joins again, {PARTITIONS} partitions",
        ClassicGroupOfMembers,
    ),
    RebalanceRow(
        "rebalance-consumer",
        f"KIP-848 group of {MEMBERS}: one leaves, one joins, {PARTITIONS} partitions",
        ConsumerGroupOfMembers,
    ),
)
