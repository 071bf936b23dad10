"""Features that a cluster agrees on before anybody uses them (KIP-584): what this broker can, and what is agreed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kavka.cluster.registry.base import BadVersionError, NodeExistsError, NoNodeError, Registry
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels

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


def finalize(registry: Registry) -> FinalizedFeatures:
    """Agree on the highest level of each feature that the cluster has not agreed on before. Raises ZnodeError."""
    while True:
        try:
            data, stat = registry.get(FEATURE_PATH)
        except NoNodeError:
            levels = {name: highest for name, (_, highest) in SUPPORTED.items()}
            try:
                registry.create(FEATURE_PATH, FeatureLevels(levels).encode())
            except NodeExistsError:
                continue
            return FinalizedFeatures(levels, 0)
        known = FeatureLevels.decode(data).levels
        missing = {name: highest for name, (_, highest) in SUPPORTED.items() if name not in known}
        if not missing:
            return FinalizedFeatures(known, stat.version)
        try:
            changed = registry.set(FEATURE_PATH, FeatureLevels(known | missing).encode(), stat.version)
        except (BadVersionError, NoNodeError):
            continue
        return FinalizedFeatures(known | missing, changed.version)
