"""The registration of the broker that stands for election: without one in the session that stands now it may not."""

from __future__ import annotations

import logging

from kavka.cluster.broker_registration import BrokerRegistration
from kavka.cluster.registry.base import Registry, SessionEvent

log = logging.getLogger(__name__)


class OwnRegistration:
    """Ends with its session, and is renewed in the next one.

    Threads: `heard` is called by the registry's, the rest by the controller's.
    """

    __slots__ = ("_registration", "_registry")

    def __init__(self, registry: Registry, registration: BrokerRegistration | None) -> None:
        """None: who registers the broker sees to all of this."""
        self._registry = registry
        self._registration = registration

    def is_current(self) -> bool:
        return self._registration is None or self._registration.is_current

    def heard(self, event: SessionEvent) -> None:
        """A lost session ends the broker's epoch at once, whatever the controller's thread is waiting for."""
        if event is SessionEvent.EXPIRED and self._registration is not None:
            self._registration.end()

    def end(self) -> bool:
        """End the epoch; True if there is a session to register in again."""
        if self._registration is not None:
            self._registration.end()
        return self._registry.session_id != 0

    def renew(self) -> None:
        """Register again, under another epoch. Raises RegistryError."""
        if self._registration is not None:
            log.info("registered again epoch=%d", self._registration.register())
