"""Becoming the controller: `/controller` taken and `/controller_epoch` counted up in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kavka.cluster.controller.store import ControllerMovedError, ControllerStore
from kavka.cluster.registry.base import (
    BadVersionError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Registry,
    RegistryError,
    SetData,
    Stat,
    Watch,
)
from kavka.cluster.topic_names import is_topic_name
from kavka.cluster.znodes.controller import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    ControllerEpoch,
    ControllerLease,
)
from kavka.cluster.znodes.json_data import INT32_MAX, ZnodeError
from kavka.protocol.errors import BrokerError, ErrorCode

EPOCHS_BETWEEN_WRITES: Final = 1000
"""More controllers than ever follow each other with no partition's state written."""

log = logging.getLogger(__name__)


class ControllerElection:
    """This broker's candidacy.

    Threads: owned by the controller's thread.
    """

    __slots__ = ("_broker_id", "_is_registered", "_now_ms", "_registry", "_won", "controller_id")

    def __init__(
        self,
        registry: Registry,
        broker_id: int,
        now_ms: Callable[[], int],
        is_registered: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_registered()` tells whether the broker is, in the session that stands now: else it does not stand."""
        self._is_registered = is_registered
        self._registry = registry
        self._broker_id = broker_id
        self._now_ms = now_ms
        self._won: ControllerStore | None = None
        self.controller_id = -1

    def take_part(self, watch: Watch, *, has_term: bool, may_stand: bool = True) -> ControllerStore | None:
        """The store of a new term if this broker won; None if another one is the controller, or this one stays it.

        Who may not stand only learns who is the controller. The watch hears of the next one in any case. Raises
        BrokerError while the broker is not registered. A `/controller` of its own without a term is left from a term
        that failed, or from a lost session: it is replaced.
        """
        while True:
            lease, stat = self._current(watch)
            # One of a session that was lost may outlive it for a while (KAFKA-7165).
            is_own = (
                lease is not None
                and stat is not None
                and lease.broker_id == self._broker_id
                and self._registry.is_own_session(stat.ephemeral_owner)
            )
            # This broker's before its process was started again: nobody's, until that session has expired.
            is_former = lease is not None and lease.broker_id == self._broker_id and not is_own
            self.controller_id = -1 if lease is None or is_former else lease.broker_id
            if stat is not None and not _is_nobodys(lease, stat) and (has_term or not is_own):
                return None
            if not may_stand:
                self.controller_id = -1
                return None
            self._check_registered()
            try:
                store = self._claim(stat)
            except (NodeExistsError, BadVersionError, NoNodeError):
                continue
            # The claim may have waited for a connection, and got one of another session.
            self._check_registered()
            self.controller_id = self._broker_id
            self._won = store
            return store

    def _check_registered(self) -> None:
        if not self._is_registered():
            self.controller_id = -1
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "The broker has lost its session, and is not registered yet.")

    def resign(self) -> None:
        """Give `/controller` back, so that the next election need not wait for the session's end."""
        self.controller_id = -1
        store, self._won = self._won, None
        if store is None:
            return
        try:
            # Fenced: whoever was elected since stays.
            store.write_all([Delete(CONTROLLER_PATH)])
        except (ControllerMovedError, NoNodeError):
            return
        except RegistryError as error:
            log.warning("resigned without giving /controller back: %s", error)

    def _current(self, watch: Watch | None) -> tuple[ControllerLease | None, Stat | None]:
        if self._registry.exists(CONTROLLER_PATH, watch) is None:
            return None, None
        try:
            data, stat = self._registry.get(CONTROLLER_PATH)
        except NoNodeError:
            return None, None
        try:
            return ControllerLease.decode(data), stat
        except ZnodeError as error:
            log.error("the controller is unknown: %s", error)
            return None, stat

    def _claim(self, replaced: Stat | None) -> ControllerStore:
        """Raises BadVersionError when another one was elected since `replaced` was read, and its like."""
        try:
            data, epoch_stat = self._registry.get(CONTROLLER_EPOCH_PATH)
        except NoNodeError:
            self._registry.create(CONTROLLER_EPOCH_PATH, ControllerEpoch.encode(self._epoch_in_use()))
            data, epoch_stat = self._registry.get(CONTROLLER_EPOCH_PATH)
        operations: list[Operation] = []
        if replaced is not None:
            # Whoever took its place before the epoch was read is seen now, and later ones change the epoch.
            now = self._registry.exists(CONTROLLER_PATH)
            if now is None or now.czxid != replaced.czxid:
                raise BadVersionError(CONTROLLER_PATH)
            operations.append(Delete(CONTROLLER_PATH))
        try:
            epoch = ControllerEpoch.decode(data) + 1
        except ZnodeError as error:
            epoch = self._epoch_in_use() + 1
            log.error("the controller epoch goes on from %d: %s", epoch, error)
        lease = ControllerLease(self._broker_id, self._now_ms())
        operations.append(Create(CONTROLLER_PATH, lease.encode(), ephemeral=True))
        operations.append(SetData(CONTROLLER_EPOCH_PATH, ControllerEpoch.encode(epoch), epoch_stat.version))
        self._registry.multi(operations)
        return ControllerStore(self._registry, epoch, epoch_stat.version + 1)

    def _epoch_in_use(self) -> int:
        """What brokers may have heard, where the node that says it is gone or spoilt: they take no orders of a lower
        one. The states of partitions have the epochs of those who wrote them; some later ones may have written none.
        """
        store = ControllerStore(self._registry, -1, -1)
        topics = [name for name in store.topic_names(None) if is_topic_name(name)]
        partitions = [(topic, each) for topic, found in store.assignments(topics).items() for each in found.replicas]
        epochs = [state.controller_epoch for state in store.states(partitions).values()]
        return min(max(epochs) + EPOCHS_BETWEEN_WRITES, INT32_MAX - 2) if epochs else 0


def _is_nobodys(lease: ControllerLease | None, stat: Stat) -> bool:
    """Whether a `/controller` was put there by hand: it has no session that could end, and is not a quorum's."""
    return stat.ephemeral_owner == 0 and (lease is None or lease.kraft_epoch < 0)
