"""Parts of a broker that only note which changes of its settings they were told of."""

from collections.abc import Sequence

from kavka.config.broker_config import BrokerConfig


class NotingParts:
    """`refuses`, if set, is what preparing any change fails with."""

    def __init__(self) -> None:
        self.told: list[tuple[BrokerConfig, BrokerConfig, frozenset[str]]] = []
        self.kept: list[list[BrokerConfig]] = []
        self.pending: list[list[BrokerConfig]] = []
        self.refuses: OSError | None = None

    def prepare(self, config: BrokerConfig) -> None:
        if self.refuses is not None:
            raise self.refuses

    def keep_only(self, configs: Sequence[BrokerConfig]) -> None:
        self.kept.append(list(configs))

    def changed(
        self, old: BrokerConfig, new: BrokerConfig, names: frozenset[str], pending: Sequence[BrokerConfig] = ()
    ) -> None:
        self.told.append((old, new, names))
        self.pending.append(list(pending))
