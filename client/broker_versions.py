"""What a broker says of itself when a connection opens (ApiVersions)."""

from collections.abc import Mapping
from typing import NamedTuple

from kavka.client.call import VersionRange


class BrokerVersions(NamedTuple):
    """The versions a broker serves of each API, and the cluster's finalized features (KIP-584). Immutable."""

    ranges: Mapping[int, VersionRange]
    features: Mapping[str, int]
    """The level of each, `transaction.version` among them."""
    features_epoch: int
    """Of two brokers' features those with the higher epoch count; -1: the broker tells none."""

    def newest(self, api_key: int, known: VersionRange) -> int | None:
        """The newest version that the broker and `known` have in common; None where there is none."""
        served = self.ranges.get(api_key)
        if served is None:
            return None
        version = min(served[1], known[1])
        return version if version >= max(served[0], known[0]) else None
