"""Becoming the controller: `/controller` taken and `/controller_epoch` counted up in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kavka.cluster.controller.store import ControllerStore
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
from kavka.cluster.znodes.controller import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    ControllerEpoch,
    ControllerLease,
)

log = logging.getLogger(__name__)


class Candidacy:
    """This broker, as one that may become the controller.

    Threads: owned by the controller's thread.
    """

    __slots__ = ("_broker_id", "_now_ms", "_registry", "controller_id")

    def __init__(self, registry: Registry, broker_id: int, now_ms: Callable[[], int]) -> None:
        self._registry = registry
        self._broker_id = broker_id
        self._now_ms = now_ms
        self.controller_id = -1

    def take_part(self, watch: Watch, *, has_term: bool) -> ControllerStore | None:
        """The store of a new term if this broker won; None if another one is the controller, or this one stays it.

        A `/controller` of this session without a term is left from a term that failed: it is replaced.
        """
        while True:
            lease, stat = self._current(watch)
            if lease is not None and stat is not None:
                self.controller_id = lease.broker_id
                is_own = stat.ephemeral_owner == self._registry.session_id and lease.broker_id == self._broker_id
                if has_term or not is_own:
                    return None
            try:
                store = self._claim(replace=stat is not None)
            except (NodeExistsError, BadVersionError, NoNodeError):
                continue
            self.controller_id = self._broker_id
            return store

    def resign(self) -> None:
        """Give `/controller` back, so that the next election need not wait for the session's end."""
        self.controller_id = -1
        try:
            lease, stat = self._current(None)
            if lease is not None and stat is not None and lease.broker_id == self._broker_id:
                self._registry.delete(CONTROLLER_PATH, stat.version)
        except RegistryError as error:
            log.warning("resigned without giving /controller back: %s", error)

    def _current(self, watch: Watch | None) -> tuple[ControllerLease | None, Stat | None]:
        if self._registry.exists(CONTROLLER_PATH, watch) is None:
            return None, None
        try:
            data, stat = self._registry.get(CONTROLLER_PATH)
        except NoNodeError:
            return None, None
        return ControllerLease.decode(data), stat

    def _claim(self, *, replace: bool) -> ControllerStore:
        try:
            data, epoch_stat = self._registry.get(CONTROLLER_EPOCH_PATH)
        except NoNodeError:
            self._registry.create(CONTROLLER_EPOCH_PATH, ControllerEpoch.encode(0))
            data, epoch_stat = self._registry.get(CONTROLLER_EPOCH_PATH)
        epoch = ControllerEpoch.decode(data) + 1
        lease = ControllerLease(self._broker_id, self._now_ms())
        operations: list[Operation] = [Delete(CONTROLLER_PATH)] if replace else []
        operations.append(Create(CONTROLLER_PATH, lease.encode(), ephemeral=True))
        operations.append(SetData(CONTROLLER_EPOCH_PATH, ControllerEpoch.encode(epoch), epoch_stat.version))
        self._registry.multi(operations)
        return ControllerStore(self._registry, epoch, epoch_stat.version + 1)
