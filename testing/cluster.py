"""A cluster for a test: brokers in this process's threads, on a registry in its memory."""

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from kavka.broker.faults.control import FaultControl
from kavka.cluster.registry.memory import MemoryEnsemble
from kavka.config.errors import ConfigError
from kavka.config.sources import refuse_unknown
from kavka.testing.clock import TravelClock
from kavka.testing.entering import entered
from kavka.testing.hosted import HostedBroker
from kavka.testing.served import Served
from kavka.testing.waiting import DEFAULT_TIMEOUT_S, wait_until

if TYPE_CHECKING:
    from kavka.broker.server import Broker as Server

IN_MEMORY: Final = "in-memory"
"""`zookeeper.connect`, which says that there are others: their registry is the process's."""
MOST_INTERNAL_REPLICAS: Final = 3


class Cluster(Served):
    """`with Cluster(3) as cluster:` has brokers 1, 2 and 3 that know another; also `async with`.

    As on ZooKeeper, without one: a session for each broker, an elected controller, internal topics with three replicas
    where there are as many brokers. The names of a broker's threads, and so its log lines, begin with `broker-ID:`.

    Threads: one at a time starts, stops, kills and closes brokers; the rest is for any.
    """

    def __init__(
        self,
        size: int = 3,
        settings: Mapping[str, str] | None = None,
        *,
        clock: TravelClock | None = None,
        on_fatal: Callable[[], None] | None = None,
    ) -> None:
        """`settings`: of each broker, by Kafka's names. `on_fatal` is called, by any thread, if one dies by itself.

        Raises ValueError, ConfigError for a name that no setting has, and for an authorizer that keeps brokers apart.
        """
        if size < 1:
            raise ValueError(f"a cluster has one broker at least, not {size}")
        super().__init__()
        self._settings: Final = dict(settings or {})
        refuse_unknown(self._settings)
        if size > 1:
            _refuse_strangers(self._settings)
        self._faults: Final = FaultControl(bounce=lambda broker_id: self.hosted[broker_id].bounce())
        self.clock = clock if clock is not None else TravelClock()
        self._directory: Final = tempfile.TemporaryDirectory(prefix="kavka-testing-", ignore_cleanup_errors=True)
        self._ensemble: Final = MemoryEnsemble(self.clock.now_ms)
        replicas = str(min(size, MOST_INTERNAL_REPLICAS))
        common = {
            "zookeeper.connect": IN_MEMORY,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(size, 2)),
            "default.replication.factor": replicas,
            **self._settings,
        }
        self.hosted: Final = {
            broker_id: HostedBroker(
                broker_id,
                Path(self._directory.name) / str(broker_id),
                common,
                self.clock,
                self._ensemble,
                self._faults,
                is_marked=True,
                on_fatal=on_fatal,
            )
            for broker_id in range(1, size + 1)
        }
        """What is behind each broker, by its id."""

    def __enter__(self) -> Self:
        try:
            self._open_door(self._settings)
            with ThreadPoolExecutor(len(self.hosted), "kavka-testing") as starting:
                list(starting.map(HostedBroker.start, self.hosted.values()))
            self.wait_until_known()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await entered(self.__enter__, self.close)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers' host:port, also of those that do not run now."""
        return ",".join(each.address for each in self.hosted.values())

    def bootstrap_at(self, listener: str) -> str:
        return ",".join(each.address_at(listener) for each in self.hosted.values())

    @property
    def listeners(self) -> Sequence[str]:
        return list(next(iter(self.hosted.values())).addresses)

    @property
    def plain_servers(self) -> str:
        return ",".join(each.plain_address for each in self.hosted.values())

    @property
    def running(self) -> list[int]:
        """Ids of the brokers that run."""
        return [broker_id for broker_id, _ in self._running()]

    @property
    def controller_id(self) -> int:
        """The broker that is the controller; -1 while none is."""
        return next(
            (broker_id for broker_id, server in self._running() if server.services.controller.is_active),
            -1,
        )

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The partition's leader, as the cluster has it; -1 while there is none, or no such partition."""
        for _, server in self._running():
            known = server.services.metadata.current.partition(topic, partition)
            if known is not None:
                return known.leader
        return -1

    @property
    def faults(self) -> FaultControl:
        """Of all its brokers; each method takes `broker`, to have one of them alone."""
        return self._faults

    def check(self) -> None:
        for each in self.hosted.values():
            each.check()

    def start(self, broker_id: int) -> None:
        """Start one that was stopped or killed, at its address, and wait until all know it. Raises StartError."""
        self.hosted[broker_id].start()
        self.wait_until_known()

    def stop(self, broker_id: int) -> None:
        """Stop one in order: it hands its leaderships over first."""
        self.hosted[broker_id].stop()

    def kill(self, broker_id: int) -> None:
        """End one as by kill -9: its session is lost at once, nobody is answered, nothing handed over or flushed."""
        self.hosted[broker_id].kill()

    def expire_session(self, broker_id: int) -> None:
        """End one's session with the registry: it loses what it had there, and comes back under another epoch."""
        self.hosted[broker_id].expire_session()

    def wait_until_known(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Until there is a controller, and every broker that runs knows it and all the others."""

        def is_known() -> bool:
            self.check()
            running = set(self.running)
            views = [server.services.metadata.current for _, server in self._running()]
            return self.controller_id in running and all(
                view.brokers.keys() == running and view.controller_id == self.controller_id for view in views
            )

        wait_until(is_known, timeout_s, lambda: f"brokers {self.running} do not know each other")

    def close(self) -> None:
        """Stop all for good, and remove their directories. May be called twice."""
        with ExitStack() as stack:
            stack.callback(self._directory.cleanup)
            for each in self.hosted.values():
                # There will be nobody to hand anything over to.
                stack.callback(each.drop)
            stack.callback(self._ensemble.fall_silent)
            stack.callback(self._end_faults)
            stack.callback(self._close_clients)

    def _wait_for_topics(self, topics: Iterable[str]) -> None:
        def are_known() -> bool:
            self.check()
            views = [server.services.metadata.current for _, server in self._running()]
            rows = [view.topics.get(topic) for view in views for topic in topics]
            return all(row is not None and all(each.leader >= 0 for each in row) for row in rows)

        wait_until(are_known, message=lambda: f"not every broker knows the topics {topics}")

    def _running(self) -> Iterator["tuple[int, Server]"]:
        """Those that run, by their ids. Another thread may stop one meanwhile: a fault bounces it."""
        return ((each.broker_id, server) for each in self.hosted.values() if (server := each.server) is not None)


def _refuse_strangers(settings: Mapping[str, str]) -> None:
    """A new cluster has no ACLs yet: without super users no broker may tell another anything, and none comes up."""
    open_to_all = settings.get("allow.everyone.if.no.acl.found", "").strip().lower() == "true"
    if (
        settings.get("authorizer.class.name", "").strip()
        and not settings.get("super.users", "").strip()
        and not open_to_all
    ):
        raise ConfigError(
            "super.users",
            None,
            "with an authorizer it names whom the brokers are to one another, User:ANONYMOUS if without login",
        )
