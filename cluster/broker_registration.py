"""A broker's place in the cluster: the tree's trunk, the cluster's id, the broker's own id, and its registration."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from kavka.cluster.registry.base import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    Registry,
    RegistryError,
    create_path,
    create_paths,
)
from kavka.cluster.topic_ids import new_topic_id
from kavka.cluster.znodes import PERSISTENT_PATHS
from kavka.cluster.znodes.broker import BROKER_SEQUENCE_PATH, BrokerInfo
from kavka.cluster.znodes.cluster_id import ClusterId
from kavka.protocol.schema import uuid_to_text


class BrokerIdInUseError(RegistryError):
    """Another live broker has registered with the same id."""


def prepare_tree(registry: Registry) -> None:
    """Make the nodes that everything else hangs on; nothing happens where they exist."""
    if registry.get_many(PERSISTENT_PATHS).count(None):
        create_paths(registry, PERSISTENT_PATHS)


def cluster_id(registry: Registry, proposed: str | None = None) -> str:
    """The id of the cluster. The first broker ever to ask sets it: to `proposed` (adopted directories have one), or a
    random one. Raises ZnodeError when it cannot be read.
    """
    while True:
        try:
            return ClusterId.decode(registry.get(ClusterId.PATH)[0])
        except NoNodeError:
            new = proposed or uuid_to_text(new_topic_id())
        try:
            create_path(registry, ClusterId.PATH.rpartition("/")[0])
            registry.create(ClusterId.PATH, ClusterId.encode(new))
        except NodeExistsError:
            continue
        return new


def generate_broker_id(registry: Registry, reserved_max_id: int) -> int:
    """An id above `reserved.broker.max.id` that no broker was given before."""
    create_path(registry, BROKER_SEQUENCE_PATH)
    return reserved_max_id + registry.set(BROKER_SEQUENCE_PATH, b"").version


class BrokerRegistration:
    """The node `/brokers/ids/ID` of this broker, for as long as its session lives.

    Threads: any one at a time: the broker's main thread at start and stop, the controller's after a session's end.
    """

    def __init__(self, registry: Registry, broker: BrokerInfo, now_ms: Callable[[], int]) -> None:
        self._registry = registry
        self._now_ms = now_ms
        self._broker = broker

    @property
    def broker(self) -> BrokerInfo:
        """As registered; its epoch is -1 before."""
        return self._broker

    def register(self) -> int:
        """Appear as a live broker. Gives the broker's epoch (KIP-380); raises BrokerIdInUseError."""
        path = BrokerInfo.path(self._broker.broker_id)
        broker = self._broker._replace(timestamp_ms=self._now_ms())
        try:
            self._registry.create(path, broker.encode(), ephemeral=True)
        except NodeExistsError:
            found = self._registry.get_many([path])[0]
            if found is None:
                # It belonged to an earlier session that ended just now.
                return self.register()
            if found[1].ephemeral_owner != self._registry.session_id:
                raise BrokerIdInUseError(
                    f"a live broker has the id {broker.broker_id}: {found[0][:300].decode(errors='replace')}"
                ) from None
            self._registry.set(path, broker.encode())
        epoch = self._registry.get(path)[1].czxid
        self._broker = broker._replace(epoch=epoch)
        return epoch

    def update(self, broker: BrokerInfo) -> None:
        """Announce other endpoints; the epoch stays. Raises NoNodeError where the registration has ended."""
        self._broker = broker._replace(epoch=self._broker.epoch)
        path = BrokerInfo.path(broker.broker_id)
        found = self._registry.get_many([path])[0]
        if found is None or found[1].czxid != self._broker.epoch:
            raise NoNodeError(path)
        self._registry.set(path, self._broker.encode(), found[1].version)

    def unregister(self) -> None:
        """Leave in an orderly way, before the session ends.

        What another broker has registered since under the same id stays.
        """
        path = BrokerInfo.path(self._broker.broker_id)
        found = self._registry.get_many([path])[0]
        if found is None or found[1].czxid != self._broker.epoch:
            return
        with suppress(NoNodeError, BadVersionError):
            self._registry.delete(path, found[1].version)
