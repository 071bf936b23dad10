"""Quotas of users, client ids and addresses (KIP-546)."""

import enum
from typing import NamedTuple, TypeAlias


class ClientQuotaEntity(NamedTuple):
    """Whom a quota is for: names by type; a name that is None stands for the default of its type.

    ClientQuotaEntity.of(user="alice", client_id=None)
    """

    names: frozenset[tuple[str, str | None]]

    @classmethod
    def of(cls, **names: str | None) -> "ClientQuotaEntity":
        """Types are `user`, `client_id` and `ip`."""
        return cls(frozenset((kind.replace("_", "-"), name) for kind, name in names.items()))

    def name(self, kind: str) -> str | None:
        """The name of a type, `user`, `client-id` or `ip`. Raises KeyError for one that the entity has not."""
        return dict(self.names)[kind]


class QuotaMatch(enum.IntEnum):
    """What a filter looks for besides names.

    for entity, quotas in admin.describe_client_quotas({"user": QuotaMatch.ANY}).items():
        print(entity.name("user"), quotas)
    """

    DEFAULT = 1
    """The type's default."""
    ANY = 2
    """Whatever has that type."""


QuotaFilter: TypeAlias = str | QuotaMatch
"""A name, or one of the others."""
