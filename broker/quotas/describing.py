"""The quotas that are stored, by what a client asks for (KIP-546)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kavka.broker.quotas.keys import CLIENT_KEYS, IP_KEYS
from kavka.cluster.entity_configs import read_named_configs
from kavka.cluster.registry.base import Registry
from kavka.cluster.znodes.config import DEFAULT_ENTITY, node_name, text_of_node
from kavka.protocol.errors import BrokerError, ErrorCode

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2
"""What a component of a filter wants: the numbers are the wire's."""

Entity = dict[str, str | None]
"""Names by type; None: the type's default."""


class Component(NamedTuple):
    """Of a filter: the names of one type that are wanted. `name` counts for EXACT alone."""

    match_type: int
    name: str | None

    @property
    def node(self) -> str | None:
        """The name of the node that is wanted; None: any."""
        if self.match_type == ANY:
            return None
        return DEFAULT_ENTITY if self.match_type == DEFAULT else node_name(self.name or "")


def describe(
    registry: Registry, components: Mapping[str, Component], *, strict: bool
) -> Iterator[tuple[Entity, dict[str, float]]]:
    """The entities that a filter wants, with their quotas; none without any.

    `strict`: of just these types. Raises BrokerError for a filter that cannot be, RegistryError.
    """
    if IP in components and len(components) > 1:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used with user or "
            "clientId filter component.",
        )
    kinds: Sequence[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = (
        ((USER,), ("users",), CLIENT_KEYS),
        ((CLIENT_ID,), ("clients",), CLIENT_KEYS),
        ((USER, CLIENT_ID), ("users", "clients"), CLIENT_KEYS),
        ((IP,), ("ips",), IP_KEYS),
    )
    for types, folders, keys in kinds:
        if not components.keys() <= set(types) or (strict and components.keys() != set(types)):
            continue
        wanted = [components[each].node if each in components else None for each in types]
        if "" in wanted:
            # No entity has no name.
            continue
        for path, stored in read_named_configs(registry, folders, wanted):
            values = {key: _number(key, stored[key]) for key in keys if key in stored}
            if values:
                yield dict(zip(types, [_name(node) for node in path], strict=True)), values


def _name(node: str) -> str | None:
    return None if node == DEFAULT_ENTITY else text_of_node(node)


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        reason = f"Unexpected client quota configuration value: {key} -> {text}"
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, reason) from None
