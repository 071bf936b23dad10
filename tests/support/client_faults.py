"""What befalls a cluster under its clients' load: each fault is struck, got through by every load, and mended."""

from collections.abc import Callable, Sequence
from typing import Final

from kavka.client import Admin
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from tests.support.client_cluster import IDS, LONGER_THAN_A_REQUEST_S, ClientCluster
from tests.support.client_loads import Load, wait_for_progress
from tests.support.process_cluster import INTERNAL
from tests.support.processes import let_pass


class Faults:
    """Owned by one thread. `topics` are those of the loads, with a replica on each broker."""

    def __init__(self, cluster: ClientCluster, admin: Admin, loads: Sequence[Load], topics: Sequence[str]) -> None:
        self._cluster = cluster
        self._admin = admin
        self._loads = loads
        self._topics = topics

    def leader(self, topic: str) -> int:
        """Of its first partition."""
        return self._cluster.told(topic)[0].leader

    def kill(self, broker_id: int) -> None:
        """kill -9; the others go on without it, and it comes back."""
        self._cluster.kill(broker_id)
        wait_for_progress(self._loads)
        self._cluster.start(broker_id)
        self._mend()

    def pause(self, broker_id: int) -> None:
        """It stands still for longer than a request may take, and goes on as what it was."""
        with self._cluster.frozen(broker_id):
            let_pass(LONGER_THAN_A_REQUEST_S)
        wait_for_progress(self._loads)

    def freeze(self, broker_id: int) -> None:
        """It stands still until others have taken over, and goes on without knowing."""
        with self._cluster.without(broker_id):
            wait_for_progress(self._loads)
        self._mend()

    def cut_off(self, broker_id: int) -> None:
        """Clients do not reach it, brokers do."""
        self._cluster.cut_off(broker_id)
        wait_for_progress(self._loads)

    def roll(self) -> None:
        """All stop in order and come back, one after the other, each at another address for clients."""
        for broker_id in IDS:
            self._cluster.roll(broker_id)
            self._cluster.wait_in_sync(*self._topics, *INTERNAL)
        wait_for_progress(self._loads)

    def _mend(self) -> None:
        self._cluster.wait_in_sync(*INTERNAL)
        self._cluster.lead_as_preferred(self._admin, *self._topics)


OF_ONE_BROKER: Final[Sequence[Callable[[Faults, int], None]]] = (
    Faults.kill,
    Faults.pause,
    Faults.freeze,
    Faults.cut_off,
)
COORDINATORS: Final = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
