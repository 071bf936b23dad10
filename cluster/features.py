"""Features that a cluster agrees on before anybody uses them (KIP-584): what this broker can, and what is agreed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kavka.cluster.registry.base import Registry, Watch
from kavka.cluster.znodes.broker import FeatureRange
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels
from kavka.protocol.errors import BrokerError, ErrorCode

GROUP_VERSION: Final = "group.version"
"""1: the consumer protocol (KIP-848)."""
TRANSACTION_VERSION: Final = "transaction.version"
"""1: flexible records in `__transaction_state`; 2: the protocol of KIP-890."""

SUPPORTED: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({GROUP_VERSION: (0, 1), TRANSACTION_VERSION: (0, 2)})
"""Lowest and highest level of each feature."""


class FinalizedFeatures(NamedTuple):
    """What the cluster has agreed on. `epoch` grows with each change."""

    levels: Mapping[str, int]
    epoch: int

    def level(self, name: str) -> int:
        """The agreed level; 0 for a feature that nobody may use."""
        return self.levels.get(name, 0)


NOTHING_AGREED: Final = FinalizedFeatures(MappingProxyType({}), -1)

ADVERTISED: Final = tuple(
    FeatureRange(name, max(1, lowest), highest) for name, (lowest, highest) in sorted(SUPPORTED.items())
)
"""For the broker's registration. Brokers before 3.9 cannot read one that begins at 0, which means not to be used."""


def read_features(registry: Registry, watch: Watch | None = None) -> FinalizedFeatures:
    """What is agreed on now; nothing, in epoch -1, while there is no node. Raises ZnodeError.

    The watch hears of the next change.
    """
    if registry.exists(FEATURE_PATH, watch) is not None and (found := registry.get_many([FEATURE_PATH])[0]) is not None:
        return FinalizedFeatures(FeatureLevels.decode(found[0]).levels, found[1].version)
    return NOTHING_AGREED


def check_supported(features: FinalizedFeatures) -> None:
    """Raise BrokerError(UNSUPPORTED_VERSION) when the cluster has agreed on what this broker lacks: it may not join."""
    for name, level in features.levels.items():
        lowest, highest = SUPPORTED.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster has agreed on level {level} of {name}, and this broker supports up to {highest}: "
                "lower it there before (UpdateFeatures), or use a newer version here",
            )
