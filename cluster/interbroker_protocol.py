"""`inter.broker.protocol.version`: in which versions the brokers of a cluster on ZooKeeper send each other requests.

The controller's requests are not negotiated: all brokers of a cluster have the same setting, the oldest broker's, while
it is upgraded (Kafka's ControllerChannelManager). Those to the controller are, but a broker from before 3.0 serves no
AllocateProducerIds.
"""

from __future__ import annotations

from typing import Final

from kavka.config.checks import Release
from kavka.protocol.api import ApiKey

_SINCE: Final = {
    ApiKey.LEADER_AND_ISR: (("3.4-IV0", 7), ("3.2-IV0", 6), ("2.8-IV1", 5)),
    ApiKey.STOP_REPLICA: (("3.4-IV0", 4), ("2.6-IV0", 3)),
    ApiKey.UPDATE_METADATA: (("3.4-IV0", 8), ("2.8-IV1", 7)),
    ApiKey.CONTROLLED_SHUTDOWN: (("2.4-IV1", 3),),
}
"""API -> (release, version that is sent from it on), the newest first."""


class InterBrokerProtocol:
    """What follows from one value of the setting, which `config.cross_checks` has found to be one that is spoken."""

    __slots__ = ("_step",)

    def __init__(self, release: str) -> None:
        self._step = Release.step(release)

    def version(self, api_key: int) -> int:
        """The version in which a request of that API is sent to a broker."""
        return next(version for since, version in _SINCE[ApiKey(api_key)] if self._is_at_least(since))

    def control_versions(self) -> dict[int, int]:
        """The versions of the controller's requests by their API's key."""
        return {
            int(key): self.version(key) for key in (ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA)
        }

    @property
    def allocates_producer_ids(self) -> bool:
        """Whether the controller hands out blocks of producer ids; before, brokers take them themselves (KIP-730)."""
        return self._is_at_least("3.0-IV0")

    def _is_at_least(self, release: str) -> bool:
        return self._step >= Release.step(release)
