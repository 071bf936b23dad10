"""From `partition.assignment.strategy` to assignors, and to the rebalance protocol that all of them have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

from kavka.client.consumer.group.assignors.assignor import Assignor, RebalanceProtocol
from kavka.client.consumer.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from kavka.client.consumer.group.assignors.range import RangeAssignor
from kavka.client.consumer.group.assignors.round_robin import RoundRobinAssignor
from kavka.client.consumer.group.assignors.sticky import StickyAssignor
from kavka.config.errors import ConfigError

SETTING: Final = "partition.assignment.strategy"
_JAVA_PACKAGE: Final = "org.apache.kafka.clients.consumer."
_KNOWN: Final[tuple[type[Assignor], ...]] = (
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    CooperativeStickyAssignor,
)
BY_NAME: Final[dict[str, type[Assignor]]] = {
    **{known.name: known for known in _KNOWN},
    **{_JAVA_PACKAGE + known.__name__: known for known in _KNOWN},
}


def load_assignors(strategies: Iterable[Any]) -> list[Assignor]:
    """Assignors by their names, Java's class names, `module.Class`, as classes or as they are.

    Raises ConfigError for what is none of these, and for two of one name.
    """
    assignors = [_load(strategy) for strategy in strategies]
    names = [assignor.name for assignor in assignors]
    if not assignors or len(set(names)) < len(names):
        problem = "names two assignors alike" if assignors else "names no assignor"
        raise ConfigError(SETTING, names, problem)
    return assignors


def protocol_of(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The highest that all of them have: with an eager one beside, a cooperative one is used eagerly.

    Raises ConfigError when they have none in common.
    """
    common = set(RebalanceProtocol).intersection(*(assignor.protocols for assignor in assignors))
    if not common:
        raise ConfigError(SETTING, [assignor.name for assignor in assignors], "have no rebalance protocol in common")
    return max(common)


def _load(strategy: Any) -> Assignor:
    if isinstance(strategy, str):
        name = strategy.strip().removeprefix("class ")
        strategy = BY_NAME.get(name) or _imported(name)
    if isinstance(strategy, type) and issubclass(strategy, Assignor):
        return strategy()
    if isinstance(strategy, Assignor):
        return strategy
    raise ConfigError(SETTING, strategy, "is no assignor")


def _imported(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(SETTING, name, f"cannot be loaded: {error}") from None
