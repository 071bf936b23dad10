"""`/feature`: the levels of the features that the whole cluster has agreed on (KIP-584).

Version 2 is written: `{"group.version":{"max_version_level":1}}`. Version 1, which has a lowest level, too, is read,
and so is what Kavka wrote at first, `{"group.version":1}`, which no Kafka can read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kavka.cluster.znodes.json_data import Fields, encode_json

FEATURE_PATH: Final = "/feature"
ENABLED: Final = 1
_LEVEL: Final = "max_version_level"


class FeatureLevels(NamedTuple):
    """Feature -> level."""

    levels: dict[str, int]

    def encode(self) -> bytes:
        features = {name: {_LEVEL: level} for name, level in self.levels.items()}
        return encode_json({"features": features, "version": 2, "status": ENABLED})

    @staticmethod
    def is_enabled(data: bytes) -> bool:
        """Whether features count at all: brokers with an inter.broker.protocol.version below 2.7 say that not."""
        return Fields.parse(FEATURE_PATH, data).integer("status") == ENABLED

    @staticmethod
    def is_for_kavka_alone(data: bytes) -> bool:
        """Whether it is in the form that no Kafka can read."""
        features = Fields.parse(FEATURE_PATH, data).object("features")
        return any(not features.is_object(name) for name in features.names())

    @staticmethod
    def decode(data: bytes) -> FeatureLevels:
        fields = Fields.parse(FEATURE_PATH, data)
        if fields.integer("status") != ENABLED:
            return FeatureLevels({})
        features = fields.object("features")
        return FeatureLevels(
            {
                name: features.object(name).integer(_LEVEL) if features.is_object(name) else features.integer(name)
                for name in features.names()
            }
        )
