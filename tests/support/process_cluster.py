"""Brokers as processes of one cluster, Kavka's and Apache Kafka 3.9's, and what an administrator does with them."""

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kavka.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.schema import Request
from tests.support.kafka_process import JoiningKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.registries import end_session_behind, new_root
from tests.support.wire import RawClient, codes_of, read_values
from tests.support.zookeeper_process import ZooKeeperProcess

NOBODY: Final = -1
TIMEOUT_S: Final = 120.0
SESSION_MS: Final = 30_000
"""No session is to end by itself on a starved machine; those that must are ended (`ProcessCluster.end_session`)."""
INTERNAL: Final = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "100",
    "auto.leader.rebalance.enable": "false",
    # So that replicas' files can be compared.
    "log.cleaner.enable": "false",
}
Broker: TypeAlias = JoiningKafka | KavkaProcess
TopicPartition: TypeAlias = tuple[str, int]
NOT_YET: Final = frozenset(
    {
        # Another one is being elected, or was.
        ErrorCode.NOT_CONTROLLER,
        # A broker that has just come is not known to the controller.
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""What a controller answers while it cannot do yet what it is asked for."""


class Told(NamedTuple):
    """What a broker tells clients of a partition."""

    leader: int
    replicas: tuple[int, ...]
    isr: frozenset[int]


class ProcessCluster:
    """`with ProcessCluster(zookeeper, tmp_path, kafkas=[1], kavkas=[2, 3]) as cluster:` has brokers that all run.

    Those of Apache Kafka start first, so that they make the cluster. `settings` are everybody's. Owned by one thread.
    """

    def __init__(
        self,
        zookeeper: ZooKeeperProcess,
        directory: Path,
        *,
        kavkas: Sequence[int],
        kafkas: Sequence[int] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        root = new_root()
        self._zookeeper, self._root = zookeeper, root
        common = {**SETTINGS, **(settings or {})}
        joined = {"zookeeper.connect": zookeeper.bootstrap + root}
        self.brokers: dict[int, Broker] = {
            broker_id: JoiningKafka(directory / str(broker_id), broker_id, zookeeper, root, common)
            for broker_id in kafkas
        }
        self.brokers |= {
            broker_id: KavkaProcess(directory / str(broker_id), {"broker.id": str(broker_id), **joined, **common})
            for broker_id in kavkas
        }
        self.running: set[int] = set()
        self._tree = KazooClient(zookeeper.bootstrap + root)
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for broker_id, broker in self.brokers.items():
                stack.enter_context(broker)
                self.running.add(broker_id)
            self._tree.start(TIMEOUT_S)
            stack.callback(self._tree.close)
            stack.callback(self._tree.stop)
            self.wait_for_brokers()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    # Brokers that come and go

    def kill(self, broker_id: int, *, lingers: bool = False) -> None:
        """kill -9; its session ends at once, unless it `lingers` for its time."""
        self.running.remove(broker_id)
        self.brokers[broker_id].kill()
        if not lingers:
            self.end_session(broker_id)

    def end_session(self, broker_id: int) -> None:
        """Let its session with ZooKeeper have run out; it may be dead, stand still, or be well."""
        end_session_behind(f"{self._root}/brokers/ids/{broker_id}", self._zookeeper.bootstrap)

    def stop(self, broker_id: int) -> None:
        """In order, by SIGTERM."""
        self.running.remove(broker_id)
        self.brokers[broker_id].stop()

    def start(self, broker_id: int) -> None:
        """Start one that was killed or stopped, and wait until all know each other."""
        self.brokers[broker_id].start()
        self.running.add(broker_id)
        self.wait_for_brokers()

    @contextmanager
    def frozen(self, *broker_ids: int) -> Iterator[None]:
        """Let these stand still meanwhile."""
        try:
            for broker_id in broker_ids:
                os.kill(self.brokers[broker_id].process.pid, signal.SIGSTOP)
            yield
        finally:
            for broker_id in broker_ids:
                os.kill(self.brokers[broker_id].process.pid, signal.SIGCONT)

    @contextmanager
    def without(self, broker_id: int, *, lingers: bool = False) -> Iterator[None]:
        """Let one stand still until its session is over, and the others have seen it go.

        The session is ended at once, unless it `lingers` for its time.
        """
        with self.frozen(broker_id):
            self.running.remove(broker_id)
            if not lingers:
                self.end_session(broker_id)
            self.wait_for_brokers()
            yield
        self.running.add(broker_id)
        self.wait_for_brokers()

    def make_controller(self, broker_id: int) -> None:
        """Depose the controller while nobody else can stand for election; it hears of that afterwards."""
        if self.controller_id != broker_id:
            with self.frozen(*self.running - {broker_id}):
                self._tree.retry(self._tree.delete, "/controller")
                self._wait_for_controller(broker_id)
        wait_until(
            lambda: (
                {self.ask(each, MetadataRequest(topics=[]), 8).controller_id for each in self.running} == {broker_id}
            ),
            TIMEOUT_S,
            lambda: f"not all know that {broker_id} is the controller",
        )

    @property
    def controller_id(self) -> int:
        """As ZooKeeper has it; -1 while there is none."""
        try:
            return int(json.loads(self._tree.retry(self._tree.get, "/controller")[0])["brokerid"])
        except NoNodeError:
            return NOBODY

    def wait_for_brokers(self) -> None:
        """Until those that run, and nobody else, are known to each of them."""

        def all_known() -> bool:
            told = [self.ask(each, MetadataRequest(topics=[]), 8) for each in self.running]
            return all({each.node_id for each in answer.brokers} == self.running for answer in told)

        wait_until(all_known, TIMEOUT_S, lambda: f"{self.running} do not know each other")

    def kavka(self, broker_id: int) -> KavkaProcess:
        broker = self.brokers[broker_id]
        assert isinstance(broker, KavkaProcess)
        return broker

    # Requests

    def ask(self, broker_id: int, request: Any, version: int) -> Any:
        broker = self.brokers[broker_id]
        with RawClient(broker.host, broker.port, timeout_s=TIMEOUT_S) as client:
            return client.ask(request, version)

    def client(self, broker_id: int) -> RawClient:
        """A connection, to be closed."""
        broker = self.brokers[broker_id]
        return RawClient(broker.host, broker.port, timeout_s=TIMEOUT_S)

    def ask_controller(self, request: Any, version: int) -> Any:
        """Asks again while it says NOT_CONTROLLER, and cannot have done anything."""

        def asked() -> tuple[Any] | None:
            controller_id = self.controller_id
            answer = self.ask(controller_id, request, version) if controller_id in self.running else None
            return None if answer is None or ErrorCode.NOT_CONTROLLER in codes_of(answer) else (answer,)

        return wait_until(asked, TIMEOUT_S, lambda: f"nobody controls; in ZooKeeper it is {self.controller_id}")[0]

    def _have_done(self, request: Request, version: int, *done: ErrorCode) -> None:
        """Have the controller do it, again while it cannot yet: until it says NONE of all, or that it is `done`."""
        wanted = {ErrorCode.NONE, *done}
        answers: list[Any] = []

        def is_done() -> bool:
            answers[:] = [self.ask_controller(request, version)]
            found = codes_of(answers[0])
            assert found <= wanted | NOT_YET, answers[0]
            return found <= wanted

        wait_until(is_done, TIMEOUT_S, lambda: f"not done: {answers}")

    # Records

    def values(self, topic: str, broker_id: int, count: int) -> list[bytes | None]:
        """All that its leader shows of partition 0, once it shows so many.

        Whoever has just begun to lead shows what is acknowledged when its followers have fetched: not at once.
        """
        with self.client(broker_id) as client:
            return read_values(client, topic, end=count)

    def told(self, topic: str, broker_id: int | None = None) -> dict[int, Told]:
        """By partition; empty if the topic is not known there."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (answer,) = self.ask(min(self.running) if broker_id is None else broker_id, asked, 8).topics
        return {
            each.partition_index: Told(each.leader_id, tuple(each.replica_nodes), frozenset(each.isr_nodes))
            for each in answer.partitions
        }

    def wait_for(self, topics: Iterable[str], is_so: Callable[[Told], bool], what: str) -> None:
        """Until all brokers that run tell so of each partition of these topics."""
        seen: dict[tuple[str, int], dict[int, Told]] = {}

        def all_tell() -> bool:
            seen.clear()
            seen.update({(topic, each): self.told(topic, each) for topic in topics for each in self.running})
            return all(told and all(map(is_so, told.values())) for told in seen.values())

        wait_until(all_tell, TIMEOUT_S, lambda: f"{what}: {seen}")

    def wait_for_leader(self, topic: str, *, other_than: int) -> int:
        """Until all that run tell of another leader of partition 0, which is the result."""
        self.wait_for([topic], lambda told: told.leader not in (NOBODY, other_than), f"still led by {other_than}")
        return self.told(topic)[0].leader

    def wait_in_sync(self, *topics: str) -> None:
        """Until each of their partitions has a leader, and all replicas in sync."""
        self.wait_for(
            topics, lambda told: told.leader in told.isr and told.isr == frozenset(told.replicas), "not in sync"
        )

    # Administration

    def create(self, topic: str, partitions: int, *, first: int) -> None:
        """A topic with a replica on every broker, led by that one."""
        self.create_on(topic, partitions, self._ordered(first))

    def create_on(self, topic: str, partitions: int, replicas: list[int]) -> None:
        """A topic on these brokers, led by the first."""
        placed = [CreatableReplicaAssignment(partition_index=index, broker_ids=replicas) for index in range(partitions)]
        new = CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1, assignments=placed, configs=[])
        assert topic not in self._tree.retry(self._tree.get_children, "/brokers/topics")
        # It is there already if it was made later than it was waited for.
        self._have_done(CreateTopicsRequest(topics=[new], timeout_ms=60_000), 5, ErrorCode.TOPIC_ALREADY_EXISTS)
        self.wait_in_sync(topic)

    def place(self, topics: Sequence[str], replicas: Sequence[int]) -> None:
        """Move all partitions of these topics to these brokers, and have the first of them lead."""
        self.begin_to_place(topics, replicas)
        self.wait_until_placed(topics, replicas)

    def begin_to_place(self, topics: Sequence[str], replicas: Sequence[int] | None) -> None:
        """Without replicas: take back what was begun and is not done."""
        wanted = None if replicas is None else list(replicas)
        moved = [
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=each, replicas=wanted) for each in self._partitions(name)
                ],
            )
            for name in topics
        ]
        done = [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS] if wanted is None else []
        self._have_done(AlterPartitionReassignmentsRequest(topics=moved), 0, *done)

    def wait_until_placed(self, topics: Sequence[str], replicas: Sequence[int]) -> None:
        """Until they are there, and in sync; then the first one leads."""
        self.wait_until_settled()
        self.wait_for(topics, lambda told: told.replicas == tuple(replicas), f"not all is on {replicas}")
        self.wait_in_sync(*topics)
        elected = [TopicPartitions(topic=name, partitions=self._partitions(name)) for name in topics]
        request = ElectLeadersRequest(topic_partitions=elected, timeout_ms=60_000)
        self._have_done(request, 2, ErrorCode.ELECTION_NOT_NEEDED)
        self.wait_for(topics, lambda told: told.leader == replicas[0], f"not all is led by {replicas[0]}")

    def wait_until_settled(self) -> None:
        """Until nothing is on the move."""
        asked = ListPartitionReassignmentsRequest()
        wait_until(
            lambda: self.ask_controller(asked, 0).topics == [],
            TIMEOUT_S,
            lambda: f"still on the move: {self.ask_controller(asked, 0)}",
        )

    def lead(self, topics: Sequence[str], broker_id: int) -> None:
        """Have a broker prefer to lead, and lead, all partitions of these topics, which have replicas everywhere."""
        self.place(topics, self._ordered(broker_id))

    def wait_until_identical(self, *topics: str) -> None:
        """Until all replicas of each partition have the same bytes, which must not be written to any more."""

        def differing() -> list[str]:
            return [
                f"{topic}-{index}: {sizes}"
                for topic in topics
                for index, told in self.told(topic).items()
                if (sizes := self._sizes_if_differing(f"{topic}-{index}", told.replicas))
            ]

        wait_until(lambda: not differing(), TIMEOUT_S, lambda: f"replicas differ: {differing()}")

    def _sizes_if_differing(self, folder: str, replicas: Iterable[int]) -> dict[int, int]:
        copies = {broker_id: self._bytes_of(broker_id, folder) for broker_id in replicas}
        return {} if len(set(copies.values())) == 1 else {each: len(copy) for each, copy in copies.items()}

    def _bytes_of(self, broker_id: int, folder: str) -> bytes:
        files = sorted((self.brokers[broker_id].log_dir / folder).glob("*.log"))
        return b"".join(file.read_bytes() for file in files)

    def _partitions(self, topic: str) -> list[int]:
        """Of a topic that is there, which a broker may not have heard of that has just come."""
        return sorted(wait_until(lambda: self.told(topic), TIMEOUT_S, f"{topic} is not known"))

    def _ordered(self, first: int) -> list[int]:
        return [first, *sorted(self.brokers.keys() - {first})]

    def _wait_for_controller(self, broker_id: int) -> None:
        wait_until(lambda: self.controller_id == broker_id, TIMEOUT_S, f"{broker_id} is not elected")
