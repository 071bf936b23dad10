"""Who has which quota: the eight levels of KIP-55, and whose use counts together.

Most specific first, as in Kafka:

    /config/users/USER/clients/CLIENT         /config/users/<default>/clients/CLIENT
    /config/users/USER/clients/<default>      /config/users/<default>/clients/<default>
    /config/users/USER                        /config/users/<default>
                                              /config/clients/CLIENT, /config/clients/<default>

Names are those of nodes (`node_name`), so that `<default>` is nobody's name. Very long ones stand in short
(`counted_name`): client ids are any client's choice, and have up to 32 KiB, of which each may take three here.
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from kavka.cluster.znodes.config import DEFAULT_ENTITY, node_name, text_of_node

UNLIMITED: Final = float(2**63 - 1)
"""Kafka's own number for no quota."""
LONGEST_NAME: Final = 255
"""Characters of a user or client id; one with more is known by so many of them and a digest of all."""


class Entity(NamedTuple):
    """Whom a quota is for: a user, a client id, or a user's client id. `<default>`: all that have none of their own."""

    user: str | None
    client: str | None


class Tags(NamedTuple):
    """Whose use counts together. An empty name: that of nobody in particular."""

    user: str
    client: str


def counted_name(text: str) -> str:
    """The name of a node for that user or client id, in short if it is very long: still nobody else's."""
    if len(text) <= LONGEST_NAME:
        return node_name(text)
    return f"{node_name(text[:LONGEST_NAME])}...{sha256(text.encode(errors='surrogatepass')).hexdigest()}"


def entity_of(entity_path: str) -> Entity | None:
    """The entity of `users/U`, `clients/C` or `users/U/clients/C`; None for another path."""
    match entity_path.split("/"):
        case ["users", user]:
            return Entity(_counted(user), None)
        case ["clients", client]:
            return Entity(None, _counted(client))
        case ["users", user, "clients", client]:
            return Entity(_counted(user), _counted(client))
    return None


def _counted(node: str) -> str:
    return node if len(node) <= LONGEST_NAME else counted_name(text_of_node(node))


class Limits:
    """The quotas of one kind (`DefaultQuotaCallback`). Threads: its owner keeps them apart."""

    __slots__ = ("_by_entity", "_levels")

    def __init__(self) -> None:
        self._by_entity: dict[Entity, float] = {}
        self._levels: Counter[tuple[bool, bool]] = Counter()
        """How many there are for users, for client ids, and for both."""

    def __len__(self) -> int:
        return len(self._by_entity)

    def update(self, entity: Entity, limit: float | None) -> bool:
        """Set a quota, or with None take it away; False if that changes nothing."""
        before = self._by_entity.get(entity)
        if before == limit:
            return False
        self._levels[_level(entity)] += (limit is not None) - (before is not None)
        if limit is None:
            del self._by_entity[entity]
        else:
            self._by_entity[entity] = limit
        return True

    def tags(self, user: str, client: str) -> Tags:
        """Whose use counts together with that of this user and client id.

        With quotas on one level alone everybody is told apart on that level, as in Kafka, also who has none.
        """
        levels = [level for level, count in self._levels.items() if count]
        if len(levels) > 1:
            levels = [_level(entity) for entity in _levels(user, client) if entity in self._by_entity]
        for by_user, by_client in levels:
            return Tags(user if by_user else "", client if by_client else "")
        return Tags("", client)

    def limit(self, tags: Tags) -> float:
        """The quota that holds for these, or UNLIMITED."""
        user, client = tags
        if user and client:
            wanted = [
                entity for entity in _levels(user, client) if entity.user is not None and entity.client is not None
            ]
        elif user:
            wanted = [Entity(user, None), Entity(DEFAULT_ENTITY, None)]
        elif client:
            wanted = [Entity(None, client), Entity(None, DEFAULT_ENTITY)]
        else:
            wanted = []
        return next((self._by_entity[entity] for entity in wanted if entity in self._by_entity), UNLIMITED)


def _level(entity: Entity) -> tuple[bool, bool]:
    return entity.user is not None, entity.client is not None


def _levels(user: str, client: str) -> Iterator[Entity]:
    """From the most to the least specific."""
    for each in (user, DEFAULT_ENTITY):
        yield Entity(each, client)
        yield Entity(each, DEFAULT_ENTITY)
        yield Entity(each, None)
    yield Entity(None, client)
    yield Entity(None, DEFAULT_ENTITY)
