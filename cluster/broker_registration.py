"""A broker's place in the cluster: the tree's trunk, the cluster's id, the broker's own id, and its registration."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from kavka.cluster.registry.base import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    Registry,
    RegistryError,
    RegistryUnavailableError,
    Stat,
    create_path,
    create_paths,
)
from kavka.cluster.topic_ids import new_topic_id
from kavka.cluster.znodes import PERSISTENT_PATHS
from kavka.cluster.znodes.broker import BROKER_SEQUENCE_PATH, BrokerInfo
from kavka.cluster.znodes.cluster_id import ClusterId
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.protocol.schema import uuid_to_text

log = logging.getLogger(__name__)


class BrokerIdInUseError(RegistryError):
    """Another live broker has registered with the same id."""


def prepare_tree(registry: Registry) -> None:
    """Make the nodes that everything else hangs on; nothing happens where they exist."""
    if registry.get_many(PERSISTENT_PATHS).count(None):
        create_paths(registry, PERSISTENT_PATHS)


def known_cluster_id(registry: Registry) -> str | None:
    """The cluster's id, or None before its first broker. Raises ZnodeError when it cannot be read."""
    found = registry.get_many([ClusterId.PATH])[0]
    return None if found is None else ClusterId.decode(found[0])


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

    Threads: `register` and `unregister` by any one at a time: the broker's main thread at start and stop, the
    controller's after a session's end. `update` by any one, also beside them; `end` is called by the registry's. Any
    thread may read. `_changing` orders what is changed of `_broker`: of the epoch by who registers or ends, of the rest
    by who updates; nothing is waited for with it held.
    """

    def __init__(self, registry: Registry, broker: BrokerInfo, now_ms: Callable[[], int]) -> None:
        self._registry = registry
        self._now_ms = now_ms
        self._broker = broker
        self._changing = threading.Lock()
        self._path = BrokerInfo.path(broker.broker_id)
        self._session_id = 0
        self.latest_epoch = -1
        """That of the last registration, whether it stands or not; -1 before the first. It tells this run's apart."""

    @property
    def broker(self) -> BrokerInfo:
        """As registered; its epoch is -1 before, and while there is no session."""
        return self._broker

    def register(self, patience_s: float = 0.0) -> int:
        """Appear as a live broker, under an epoch of its own (KIP-380), which is returned.

        What an earlier session of this registry has left under the id is removed (KAFKA-7165). Somebody else's
        registration is waited for, `patience_s` long: a broker that was killed has one until its session expires.
        Raises BrokerIdInUseError.
        """
        give_up_at = time.monotonic() + patience_s
        while True:
            epoch = self._try_to_register()
            if epoch is not None:
                return epoch
            if not self._wait_until_free(give_up_at - time.monotonic()):
                raise BrokerIdInUseError(self._in_use())

    def _wait_until_free(self, timeout_s: float) -> bool:
        changed = threading.Event()
        if self._registry.exists(self._path, lambda _: changed.set()) is None:
            return True
        return timeout_s > 0 and changed.wait(timeout_s)

    def _try_to_register(self) -> int | None:
        """The epoch; None while another one's registration is in the way."""
        registry, path = self._registry, self._path
        broker = self._broker._replace(timestamp_ms=self._now_ms())
        while True:
            session_id = registry.session_id
            try:
                epoch = registry.create(path, broker.encode(), ephemeral=True).czxid
            except NodeExistsError:
                found = registry.get_many([path])[0]
                if found is None:
                    # It belonged to a session that ended just now.
                    continue
                stat = found[1]
                if stat.ephemeral_owner != registry.session_id:
                    if not registry.is_own_session(stat.ephemeral_owner):
                        return None
                    self._remove(stat)
                    continue
                registry.set(path, broker.encode())
                epoch = stat.czxid
            self._session_id = session_id
            with self._changing:
                # Other endpoints may have been announced meanwhile: who did finds that, and does so again.
                self._broker = self._broker._replace(timestamp_ms=broker.timestamp_ms, epoch=epoch)
            self.latest_epoch = epoch
            if not self.is_current:
                # Whoever heard of the session's end may have called `end` just before.
                self.end()
            return epoch

    @property
    def is_current(self) -> bool:
        """Whether the session stands in which the broker has registered."""
        return self._session_id == self._registry.session_id

    def end(self) -> None:
        """The session is lost: the broker has no epoch until it has registered again."""
        with self._changing:
            self._broker = self._broker._replace(epoch=-1)

    def _in_use(self) -> str:
        broker_id = self._broker.broker_id
        found = self._registry.get_many([self._path])[0]
        if found is None:
            return f"another broker had the id {broker_id} until just now; start again"
        try:
            other = BrokerInfo.decode(broker_id, found[0], found[1].czxid)
            where = ", ".join(map(str, other.endpoints))
        except ZnodeError:
            where = found[0][:300].decode(errors="replace")
        return f"a live broker has the id {broker_id}, at {where}; give this one another broker.id, or stop that one"

    def _remove(self, stat: Stat) -> None:
        with suppress(NoNodeError, BadVersionError):
            self._registry.delete(self._path, stat.version)

    def update(self, broker: BrokerInfo) -> None:
        """Announce other endpoints; the epoch stays. Raises NoNodeError where the registration has ended, or another
        one takes its place meanwhile, which may have been written with the former endpoints.
        """
        with self._changing:
            broker = self._broker = broker._replace(epoch=self._broker.epoch)
        found = self._registry.get_many([self._path])[0]
        if found is None or found[1].czxid != broker.epoch:
            raise NoNodeError(self._path)
        self._registry.set(self._path, broker.encode(), found[1].version)

    def unregister(self) -> None:
        """Leave in an orderly way, before the session ends.

        What another broker has registered since under the same id stays.
        """
        try:
            found = self._registry.get_many([self._path])[0]
            if found is not None and found[1].czxid == self._broker.epoch:
                self._remove(found[1])
        except RegistryUnavailableError as error:
            log.warning("the registration is left to end with its session: %s", error)
