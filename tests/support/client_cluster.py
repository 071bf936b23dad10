"""Three Kavka brokers as clients meet them: each in a rack of its own, and behind a link that can be cut."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kavka.client.admin import Admin, ElectionType, ItemErrors
from kavka.client.api_errors import ElectionNotNeededError, KafkaError
from kavka.client.topic_partition import TopicPartition
from kavka.config.promises import RACK_AWARE_SELECTOR
from tests.support.cutting_proxy import CuttingProxy
from tests.support.group_members import FAST_GROUPS
from tests.support.process_cluster import TIMEOUT_S, ProcessCluster
from tests.support.processes import free_port, let_pass, wait_until
from tests.support.zookeeper_process import ZooKeeperProcess

HOST: Final = "127.0.0.1"
IDS: Final = (1, 2, 3)
SETTINGS: Final = {
    **FAST_GROUPS,
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "replica.selector.class": RACK_AWARE_SELECTOR,
}
QUICK: Final = {
    "request.timeout.ms": 4_000,
    "socket.connection.setup.timeout.ms": 2_000,
    "reconnect.backoff.max.ms": 500,
}
"""Of clients: what a broker that stands still costs them is over soon."""
LONGER_THAN_A_REQUEST_S: Final = 4.5
PATIENT: Final = {"default.api.timeout.ms": 120_000}
"""Of administrators: what must not be done twice fails where the answer comes too late."""


class ClientCluster(ProcessCluster):
    """Clients come by `bootstrap`, and from then on by the links' addresses; brokers reach each other without links.

    `door` is an address that stays, whatever becomes of the links: it leads to whom `open_door` says.
    """

    def __init__(self, zookeeper: ZooKeeperProcess, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(zookeeper, directory, kavkas=IDS, settings={**SETTINGS, **(settings or {})})
        self.links: dict[int, CuttingProxy] = {}
        self.door = CuttingProxy(HOST, 0)
        self._inner = {broker_id: free_port() for broker_id in IDS}
        for broker_id in IDS:
            self.kavka(broker_id).overrides["broker.rack"] = rack_of(broker_id)
            self.readdress(broker_id)

    @property
    def bootstrap(self) -> str:
        """The links'."""
        return ",".join(link.bootstrap for link in self.links.values())

    def __enter__(self) -> Self:
        super().__enter__()
        self.open_door(IDS[0])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            for link in (*self.links.values(), self.door):
                link.close()

    def readdress(self, broker_id: int) -> None:
        """From its next start on clients find a broker elsewhere; nobody is at its former address any more."""
        former = self.links.pop(broker_id, None)
        if former is not None:
            former.close()
        port = free_port()
        link = self.links[broker_id] = CuttingProxy(HOST, port)
        inner = f"BROKERS://{HOST}:{self._inner[broker_id]}"
        self.kavka(broker_id).overrides |= {
            "listeners": f"CLIENTS://{HOST}:{port},{inner}",
            "advertised.listeners": f"CLIENTS://{link.bootstrap},{inner}",
        }

    def open_door(self, broker_id: int) -> None:
        """Who comes by the door comes to this one from now on."""
        self.door.lead_to(HOST, self.brokers[broker_id].port)

    def cut_off(self, broker_id: int) -> None:
        """Keep its answers from clients, then their connections, then all of it, for a moment each."""
        link = self.links[broker_id]
        link.swallows_answers = True
        let_pass(0.5)
        link.refuses = True
        link.cut()
        let_pass(1.0)
        link.mend()

    def roll(self, broker_id: int) -> None:
        """Stop a broker in order, and start it for clients at another address, to which the door leads then."""
        self.stop(broker_id)
        self.readdress(broker_id)
        self.start(broker_id)
        self.open_door(broker_id)

    def lead_as_preferred(self, admin: Admin, *topics: str) -> None:
        """Have all replicas in sync, and have each partition's first one lead it."""
        self.wait_in_sync(*topics)
        places = [TopicPartition(topic, number) for topic in topics for number in self.told(topic)]

        refusals: list[KafkaError] = []

        def are_led() -> bool:
            """A controller that was just elected, or has just seen a broker come, may refuse for a moment."""
            refusals.clear()
            try:
                admin.elect_leaders(ElectionType.PREFERRED, places)
            except KafkaError as error:
                refusals.extend(error.errors.values() if isinstance(error, ItemErrors) else [error])
            return all(isinstance(each, ElectionNotNeededError) for each in refusals)

        wait_until(are_led, TIMEOUT_S, lambda: f"the preferred replicas do not lead: {refusals}")
        self.wait_for(topics, lambda told: told.leader == told.replicas[0], "not all are led by the first replica")


def rack_of(broker_id: int) -> str:
    return f"rack-{broker_id}"
