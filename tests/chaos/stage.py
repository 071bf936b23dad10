"""Three brokers on three ZooKeepers, with a link that can be cut between each broker and everybody else."""

import contextlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from kavka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.schema import Request
from tests.chaos.brokers import ChaosBroker
from tests.chaos.history import Place
from tests.chaos.network import Network, owner_of
from tests.support.processes import wait_until
from tests.support.wire import Wire
from tests.support.zookeeper_process import EnsembleMember, ZooKeeperEnsemble

IDS: Final = (1, 2, 3)
SESSION_S: Final = 4.0
ASK_S: Final = 15.0
START_S: Final = 300.0
METADATA_VERSION: Final = 12
DESCRIBE_VERSION: Final = 4
SETTINGS: Final = {
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "zookeeper.session.timeout.ms": str(int(SESSION_S * 1000)),
    "zookeeper.connection.timeout.ms": "20000",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "20",
    "replica.lag.time.max.ms": "5000",
    "replica.socket.timeout.ms": "5000",
    "controller.socket.timeout.ms": "5000",
    "request.timeout.ms": "5000",
    "replica.fetch.backoff.ms": "200",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.segment.bytes": "200000",
    "log.cleaner.enable": "false",
    # Clocks are moved by hours: nothing is old because of that.
    "log.retention.ms": "-1",
    "log.message.timestamp.after.max.ms": str(2**62),
    "offsets.retention.minutes": "1000000",
    "transactional.id.expiration.ms": str(2**30),
    "producer.id.expiration.ms": str(2**30),
    "log.segment.delete.delay.ms": "1000",
    # Moves between log directories are to last as long as faults do.
    "replica.alter.log.dirs.io.max.bytes.per.second": "50000",
    "num.io.threads": "3",
    "num.network.threads": "2",
}


class PartitionState(NamedTuple):
    """As a broker tells clients."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Stage:
    """`with Stage(tmp_path) as stage:`. What it tells of the cluster is what one broker does. Owned by one thread."""

    def __init__(self, directory: Path, zookeepers: int = 3) -> None:
        self.directory = directory
        self.brokers = {broker_id: ChaosBroker(directory, broker_id) for broker_id in IDS}
        self.zookeepers = ZooKeeperEnsemble(directory, zookeepers)
        self.network = Network()
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.zookeepers)
            stack.enter_context(self.network)
            stack.callback(self._kill_brokers)
            for broker in self.brokers.values():
                self._configure(broker)
                broker.spawn()
            self.wait_until_well(START_S)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def ask(self, broker_id: int, request: Request, version: int, timeout_s: float = ASK_S) -> Any:
        """One broker's answer. Raises OSError if it has none in time."""
        broker = self.brokers[broker_id]
        with Wire(broker.host, broker.port, timeout_s=timeout_s, client_id="chaos") as wire:
            return wire.ask(request, version)

    def told(self) -> Any:
        """The metadata of the first broker that answers; None if nobody does."""
        for broker_id, broker in self.brokers.items():
            if broker.can_answer:
                with contextlib.suppress(OSError):
                    return self.ask(broker_id, MetadataRequest(topics=None), METADATA_VERSION)
        return None

    def controller(self) -> int:
        """-1 where nobody knows one."""
        told = self.told()
        return -1 if told is None else int(told.controller_id)

    def partitions(self, told: Any = None) -> dict[Place, PartitionState]:
        """All of all topics."""
        told = self.told() if told is None else told
        return {
            (topic.name, each.partition_index): PartitionState(
                each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes)
            )
            for topic in (told.topics if told is not None else ())
            for each in topic.partitions
        }

    def wait_until_well(self, timeout_s: float) -> list[str]:
        """Until all run, know one another and one controller, and all replicas are in sync.

        Returns what was not so for the longest, as it was last. Raises TimeoutError saying what is not.
        """
        last: list[str] = []

        def is_well() -> bool:
            if ills := self.ills():
                last[:] = ills
            return not ills

        for member in self.zookeepers.members:
            member.spawn()
        wait_until(is_well, timeout_s, lambda: f"not well: {last}")
        return last

    def ills(self) -> list[str]:
        """What is not as it should be."""
        found: list[str] = []
        controllers: set[int] = set()
        for broker_id, broker in self.brokers.items():
            broker.spawn()
            try:
                told = self.ask(broker_id, MetadataRequest(topics=None), METADATA_VERSION)
            except OSError as error:
                found.append(f"{broker.name} does not answer: {error!r}")
                continue
            controllers.add(told.controller_id)
            known = sorted(each.node_id for each in told.brokers)
            if known != list(IDS):
                found.append(f"{broker.name} knows {known} only")
            found += self._restart_without_disk(broker)
            for place, state in self.partitions(told).items():
                if state.leader not in state.isr or set(state.isr) != set(state.replicas):
                    found.append(f"{broker.name} has {place} as {state}")
        if len(controllers) != 1 or controllers == {-1}:
            found.append(f"controllers: {controllers}")
        return found

    def _restart_without_disk(self, broker: ChaosBroker) -> list[str]:
        """What an operator does where a log directory has gone offline, when its disk is whole again."""
        try:
            told = self.ask(broker.broker_id, DescribeLogDirsRequest(topics=[]), DESCRIBE_VERSION).results
        except OSError as error:
            return [f"{broker.name} does not describe its directories: {error!r}"]
        offline = [each.log_dir for each in told if each.error_code]
        if not offline:
            return []
        broker.kill()
        return [f"{broker.name} is restarted, for {offline} went offline"]

    def _configure(self, broker: ChaosBroker) -> None:
        def always(_port: int, name: str = broker.name) -> str:
            return name

        links = [self._zookeeper_link(member, always) for member in self.zookeepers.members]
        inner = self.network.link(broker.name, broker.inner_port, self._who_connects)
        broker.configure(
            {
                **SETTINGS,
                "zookeeper.connect": ",".join(links),
                "listeners": f"CLIENTS://{broker.bootstrap},BROKERS://{broker.host}:{broker.inner_port}",
                "advertised.listeners": f"CLIENTS://{broker.bootstrap},BROKERS://{broker.host}:{inner}",
            }
        )

    def _zookeeper_link(self, member: EnsembleMember, source: Callable[[int], str]) -> str:
        return f"{member.host}:{self.network.link(zookeeper_name(member), member.port, source)}"

    def _who_connects(self, port: int) -> str | None:
        """Called by the network's thread."""
        running = [(broker.name, pid) for broker in self.brokers.values() if (pid := broker.pid) is not None]
        return owner_of(port, running)

    def _kill_brokers(self) -> None:
        for broker in self.brokers.values():
            broker.kill()


def zookeeper_name(member: EnsembleMember) -> str:
    """As a node of the network."""
    return f"zookeeper-{member.number}"
