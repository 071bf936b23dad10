"""Parts of a broker that only note which changes of its settings they were told of."""

from kavka.config.broker_config import BrokerConfig


class NotingParts:
    """`refuses`, if set, is what preparing any change fails with."""

    def __init__(self) -> None:
        self.told: list[tuple[BrokerConfig, BrokerConfig, frozenset[str]]] = []
        self.abandoned: list[BrokerConfig] = []
        self.refuses: OSError | None = None

    def prepare(self, config: BrokerConfig) -> None:
        if self.refuses is not None:
            raise self.refuses

    def abandon(self, config: BrokerConfig) -> None:
        self.abandoned.append(config)

    def changed(self, old: BrokerConfig, new: BrokerConfig, names: frozenset[str]) -> None:
        self.told.append((old, new, names))
