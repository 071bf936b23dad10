"""`/feature`: the levels of the features that the whole cluster has agreed on (KIP-584).

Version 2 is written: a level a feature. Version 1 (lowest and highest level of each) is read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kavka.cluster.znodes.json_data import Fields, encode_json

FEATURE_PATH: Final = "/feature"
ENABLED: Final = 1


class FeatureLevels(NamedTuple):
    """Feature -> level."""

    levels: dict[str, int]

    def encode(self) -> bytes:
        return encode_json({"features": self.levels, "version": 2, "status": ENABLED})

    @staticmethod
    def is_enabled(data: bytes) -> bool:
        """Whether features count at all: brokers with an inter.broker.protocol.version below 2.7 say that not."""
        return Fields.parse(FEATURE_PATH, data).integer("status") == ENABLED

    @staticmethod
    def decode(data: bytes) -> FeatureLevels:
        fields = Fields.parse(FEATURE_PATH, data)
        if fields.integer("status") != ENABLED:
            return FeatureLevels({})
        features = fields.object("features")
        return FeatureLevels(
            {
                name: features.object(name).integer("max_version_level")
                if fields.integer("version") == 1
                else features.integer(name)
                for name in features.names()
            }
        )
