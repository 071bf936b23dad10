"""Which of several quotas holds for somebody: the most specific one, quota by quota.

Kafka's order (ClientQuotaManager): a user's before all users', those before a client's alone; within a user, one
client's before all clients', and those before the user's own.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kavka.client.admin import ClientQuotaEntity


class Resolved(NamedTuple):
    """A quota that holds, and whose it is."""

    name: str
    value: float
    entity: ClientQuotaEntity


def resolved(
    quotas: Mapping[ClientQuotaEntity, Mapping[str, float]], names: Mapping[str, str | None]
) -> list[Resolved]:
    """What holds for whoever has these names. A name that is None, or not there, has no quota of its own.

    `names` are `user` and `client-id`, or `ip`.
    """
    found: dict[str, Resolved] = {}
    for entity in _order(names):
        for name, value in quotas.get(entity, {}).items():
            found.setdefault(name, Resolved(name, value, entity))
    return [found[name] for name in sorted(found)]


def _order(names: Mapping[str, str | None]) -> Iterator[ClientQuotaEntity]:
    """From the most to the least specific; None in an entity stands for a default."""
    if "ip" in names:
        for ip in _own_and_default(names["ip"]):
            yield ClientQuotaEntity.of(ip=ip)
        return
    users, clients = _own_and_default(names.get("user")), _own_and_default(names.get("client-id"))
    for user in users:
        for client in clients:
            yield ClientQuotaEntity.of(user=user, client_id=client)
        yield ClientQuotaEntity.of(user=user)
    for client in clients:
        yield ClientQuotaEntity.of(client_id=client)


def _own_and_default(name: str | None) -> list[str | None]:
    return [None] if name is None else [name, None]
