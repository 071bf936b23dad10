"""Rows in which brokers die, stop, come and catch up; each has a cluster of its own for all of its rounds."""

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks import librdkafka, topics
from benchmarks.acknowledgements import Acknowledgements, writing
from benchmarks.cluster_contestants import FACTOR, SESSION_TIMEOUT_MS, Cluster, ClusterContestant
from benchmarks.contestants import Contestant
from benchmarks.librdkafka import Produce
from benchmarks.row import P99, Better, Goal, Measurement, Metric, Row, Scale
from tests.support.processes import wait_until

TIMEOUT_S = 300.0
SETTLE_S = 2.0
ON_THE_WAY_S = 0.5
TOPICS, PARTITIONS = 20, 100
CATCH_UP_PARTITIONS = 6
CATCH_UP_MESSAGES = 2 << 20
CATCH_UP_BYTES = 1024
BACKOFF = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}

KILLED = Metric("killed_s", "kill -9 of the leader to the next acknowledged write, s", Better.LESS)
STOPPED = Metric("stopped_s", "SIGTERM of the leader: longest gap, s", Better.LESS, 3)
CREATION = Metric("creation_s", "creation of 2,000 partitions x 3, s", Better.LESS)
ELECTION = Metric("election_s", "kill -9 of a broker until all have leaders, s", Better.LESS)
CONTROLLER = Metric("controller_s", "kill -9 of the controller until another serves, s", Better.LESS)
CAUGHT_UP = Metric("caught_up_s", "start of an empty broker until in sync with 2 GiB, s", Better.LESS)


class OwnClusterRow(Row):
    """A row with a cluster of its own."""

    warms = False

    def __init__(self) -> None:
        self._clusters: dict[str, Cluster] = {}

    def cluster(self, contestant: Contestant) -> Cluster:
        return self._clusters[contestant.name]

    def prepare(self, contestant: Contestant, scale: Scale) -> None:
        assert isinstance(contestant, ClusterContestant)
        cluster = self._clusters[contestant.name] = contestant.fresh_cluster()
        cluster.start()

    def clean(self, contestant: Contestant) -> None:
        cluster = self._clusters.pop(contestant.name, None)
        if cluster is not None:
            contestant.remove(cluster)


class LeaderLossRow(OwnClusterRow):
    """One producer, and the leader of its partition dies, or is asked to stop."""

    name = "leader-loss"
    title = "a leader is lost under a producer"
    goals = (Goal(KILLED, 1.0, own=SESSION_TIMEOUT_MS / 1000 + 2), Goal(STOPPED, 1.0, own=0.5))

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        cluster = self.cluster(contestant)
        with topics.topic(cluster, 1, replication_factor=FACTOR) as topic, writing(cluster, topic) as seen:
            return {
                KILLED: self._lose(cluster, topic, seen, lambda broker_id: cluster.servers[broker_id].kill()),
                STOPPED: self._lose(cluster, topic, seen, lambda broker_id: cluster.servers[broker_id].stop()),
            }

    def _lose(self, cluster: Cluster, topic: str, seen: Acknowledgements, end: Callable[[int], object]) -> float:
        """The longest time without an acknowledgement; the broker is back afterwards, and in sync."""
        leader = _metadata(cluster).topics[topic].partitions[0].leader
        began = time.monotonic()
        end(leader)
        # What was on its way when it ended may still have come.
        seen.first_after(time.monotonic() + ON_THE_WAY_S)
        gap_s = seen.longest_gap(began)
        cluster.servers[leader].start()
        _wait_in_sync(cluster, [topic])
        time.sleep(SETTLE_S)
        return gap_s


class ManyPartitionsRow(OwnClusterRow):
    """2,000 partitions of three replicas come, and lose a third of their leaders, and their controller."""

    name = "many-partitions"
    title = "2,000 partitions x 3"
    goals = (Goal(CREATION, 1.0), Goal(ELECTION, 1.0), Goal(CONTROLLER, 1.0), Goal(P99, 1.0))

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        cluster = self.cluster(contestant)
        names = [f"many-{number}" for number in range(scale.count(TOPICS))]
        with topics.topic(cluster, 1, replication_factor=FACTOR) as topic:
            with writing(cluster, topic) as seen:
                began = time.monotonic()
                topics.create(cluster, names, PARTITIONS, replication_factor=FACTOR)
                creation_s = time.monotonic() - began
                latencies = sorted(seen.latencies(began))
            try:
                _wait_in_sync(cluster, names)
                with _killed(cluster, lambda controller: _another(cluster, controller)) as dead:
                    began = time.monotonic()
                    _wait_until_led(cluster, names, dead)
                    election_s = time.monotonic() - began
                _wait_in_sync(cluster, names)
                with _killed(cluster, lambda controller: controller) as former:
                    began = time.monotonic()
                    _wait_for_controller(cluster, former)
                    controller_s = time.monotonic() - began
                _wait_in_sync(cluster, names)
            finally:
                topics.delete(cluster, names)
        return {
            CREATION: creation_s,
            ELECTION: election_s,
            CONTROLLER: controller_s,
            P99: latencies[int(len(latencies) * 0.99)] * 1000,
        }


class CatchUpRow(OwnClusterRow):
    """A broker comes back with nothing, and copies all from the others."""

    name = "catch-up"
    title = "an empty broker catches up on 2 GiB"
    goals = (Goal(CAUGHT_UP, 1.0),)

    def run(self, contestant: Contestant, scale: Scale) -> Measurement:
        cluster = self.cluster(contestant)
        load = Produce(scale.count(CATCH_UP_MESSAGES), CATCH_UP_BYTES, acks="-1", properties={"linger.ms": "20"})
        with topics.topic(cluster, CATCH_UP_PARTITIONS, replication_factor=FACTOR) as topic:
            librdkafka.produce(cluster, topic, load)
            server = cluster.servers[3]
            server.stop()
            shutil.rmtree(server.directory / "data")
            began = time.monotonic()
            server.start()
            _wait_in_sync(cluster, [topic])
            return {CAUGHT_UP: time.monotonic() - began}


@contextmanager
def _killed(cluster: Cluster, choose: Callable[[int], int]) -> Iterator[int]:
    """Kill a broker, chosen by who the controller is, and start it again after the block."""
    broker_id = choose(_controller(cluster))
    server = cluster.servers[broker_id]
    server.kill()
    try:
        yield broker_id
    finally:
        server.start()


def _metadata(cluster: Cluster) -> Any:
    """What the brokers tell clients of the cluster."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0, **BACKOFF})
    return admin.list_topics(timeout=TIMEOUT_S)


def _controller(cluster: Cluster) -> int:
    controller_id: int = _metadata(cluster).controller_id
    return controller_id


def _wait_until(cluster: Cluster, names: Collection[str], holds: Callable[[Any], bool], complaint: str) -> None:
    """Until all partitions of these topics are so."""

    def is_so() -> bool:
        known = _metadata(cluster).topics
        return all(
            name in known and all(holds(partition) for partition in known[name].partitions.values()) for name in names
        )

    wait_until(is_so, TIMEOUT_S, complaint)


def _wait_for_controller(cluster: Cluster, former: int) -> None:
    """Until the brokers that are left know another one, which creates a topic."""
    wait_until(lambda: _controller(cluster) not in (former, -1), TIMEOUT_S, "no other controller")

    def creates() -> bool:
        name = f"proof-{time.monotonic_ns()}"
        try:
            topics.create(cluster, [name], 1, replication_factor=2)
        except KafkaException:
            return False
        topics.delete(cluster, [name])
        return True

    wait_until(creates, TIMEOUT_S, "the new controller creates no topic")


def _another(cluster: Cluster, broker_id: int) -> int:
    return next(each for each in cluster.servers if each != broker_id)


def _wait_until_led(cluster: Cluster, names: Collection[str], dead: int) -> None:
    _wait_until(cluster, names, lambda each: each.leader not in (-1, dead), "partitions have no leader")


def _wait_in_sync(cluster: Cluster, names: Collection[str]) -> None:
    _wait_until(cluster, names, lambda each: len(each.isrs) == FACTOR, "replicas do not get in sync")


ROWS: tuple[Row, ...] = (LeaderLossRow(), ManyPartitionsRow(), CatchUpRow())
