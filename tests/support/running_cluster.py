"""Brokers as objects of one process that share a ZooKeeper: a cluster whose inside a test can look at."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from kavka.broker.server import Broker
from kavka.config.broker_config import BrokerConfig
from tests.support.logged_errors import LoggedErrors
from tests.support.processes import free_port, wait_until
from tests.support.registries import new_root
from tests.support.server import KEPT

HOST = "127.0.0.1"
TIMEOUT_S = 120.0
SESSION_TIMEOUT_MS = 30_000
"""Nothing here ends a session but by wish: on a starved machine none is to end by itself."""


class RunningCluster:
    """`with RunningCluster(zookeeper.bootstrap, tmp_path, (1, 2, 3)) as cluster:` has three brokers that know another.

    What they log as errors must be announced: `cluster.errors.expect(pattern)`. Owned by one thread.
    """

    def __init__(
        self,
        zookeeper: str,
        directory: Path,
        broker_ids: Iterable[int],
        settings: Mapping[str, str] | None = None,
        *,
        others: Iterable[int] = (),
    ) -> None:
        """`zookeeper` is host:port; the cluster has a root path of its own there. `others` are in it from elsewhere."""
        root = new_root()
        self.settings = {
            broker_id: {
                "broker.id": str(broker_id),
                "listeners": f"PLAINTEXT://{HOST}:{free_port()}",
                "log.dirs": str(directory / str(broker_id)),
                "zookeeper.connect": zookeeper + root,
                "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
                "offsets.topic.num.partitions": "4",
                "transaction.state.log.num.partitions": "4",
                **KEPT,
                **(settings or {}),
            }
            for broker_id in broker_ids
        }
        self._others = frozenset(others)
        self.brokers: dict[int, Broker] = {}
        """Those that run, by id."""
        self.errors = LoggedErrors()

    def __enter__(self) -> Self:
        self.errors.__enter__()
        try:
            for broker_id in self.settings:
                self.start(broker_id)
            self.wait_for_brokers()
        except BaseException:
            try:
                self._stop_all()
            finally:
                self.errors.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_all()
        self.errors.__exit__(kind, error, trace)

    @property
    def controller(self) -> Broker:
        """The broker that is the controller now."""
        return next(broker for broker in self.brokers.values() if broker.services.controller.is_active)

    def start(self, broker_id: int) -> Broker:
        """Raises StartError as the broker does, which then is none of those that run."""
        broker = Broker(BrokerConfig(self.settings[broker_id]))
        broker.start()
        self.brokers[broker_id] = broker
        return broker

    def stop(self, broker_id: int) -> None:
        """In order, as by SIGTERM."""
        self.brokers.pop(broker_id).stop()

    def wait_for_brokers(self) -> None:
        """Until every broker knows all that run."""

        def all_known() -> bool:
            return all(
                broker.services.metadata.current.brokers.keys() == self.brokers.keys() | self._others
                for broker in self.brokers.values()
            )

        wait_until(all_known, TIMEOUT_S, lambda: "brokers do not know each other")

    def wait_for_controller(self, *, other_than: int) -> None:
        """Until all brokers that run know a controller, and it is another one."""

        def is_known() -> bool:
            known = {broker.services.metadata.current.controller_id for broker in self.brokers.values()}
            return known <= self.brokers.keys() - {other_than} and len(known) == 1

        wait_until(is_known, TIMEOUT_S, lambda: "no other controller")

    def wait_for_one_controller(self) -> None:
        """Until one broker is the controller, and all know that one."""

        def is_known() -> bool:
            active = [broker_id for broker_id, each in self.brokers.items() if each.services.controller.is_active]
            known = {broker.services.metadata.current.controller_id for broker in self.brokers.values()}
            return len(active) == 1 and known == set(active)

        wait_until(is_known, TIMEOUT_S, lambda: "there is not one controller")

    def wait_for_topic(self, name: str, factor: int) -> None:
        """Until every broker knows the topic, and each of its partitions has a leader and is hosted `factor` times."""

        def is_there() -> bool:
            for broker in self.brokers.values():
                topic = broker.services.metadata.current.topics.get(name)
                if topic is None:
                    return False
                for each in topic:
                    hosts = [
                        replica
                        for replica in each.replicas
                        if replica in self.brokers
                        and (name, each.partition_index) in self.brokers[replica].services.replicas.partitions
                    ]
                    if each.leader not in self.brokers or len(hosts) < factor:
                        return False
            return True

        wait_until(is_there, TIMEOUT_S, lambda: f"topic {name} is not everywhere")

    def _stop_all(self) -> None:
        """All, whatever one of them raises."""
        with ExitStack() as stack:
            # The controller last, and so entered first: whoever stops before it hands over.
            for broker_id in sorted(
                self.brokers, key=lambda each: not self.brokers[each].services.controller.is_active
            ):
                stack.callback(self.stop, broker_id)
