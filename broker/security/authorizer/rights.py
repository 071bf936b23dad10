"""What one client may do, kept by its connection: its latest decisions, and the compiled ones that they come from."""

from collections.abc import Callable
from typing import Final, Protocol

from kavka.broker.security.acl import Operation, Resource, ResourceType
from kavka.broker.security.authorizer.audit import Asked, Audit, any_of, named
from kavka.broker.security.authorizer.deciding import Decide
from kavka.broker.security.authorizer.snapshot import AclSnapshot

MOST_REMEMBERED: Final = 512
"""Decisions of one connection; with more they are begun anew."""
LONGEST_REMEMBERED: Final = 255
"""Characters of a resource's name; a topic's has 249 at most, a group's as many as a request."""


class Deciding(Protocol):
    """The authorizer, as rights know it."""

    @property
    def audit(self) -> Audit: ...

    @property
    def snapshot(self) -> AclSnapshot: ...

    def decider(
        self, snapshot: AclSnapshot, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decide: ...

    def allows_some(self, principal: str, host: str, operation: Operation, resource_type: ResourceType) -> bool: ...


class _Known:
    """What was decided by one snapshot; any thread adds to it, and the last one counts.

    The snapshot itself is not kept: clients come and go, or wait, and each would keep all ACLs of another moment.
    """

    __slots__ = ("deciders", "decisions", "mark")

    def __init__(self, mark: object) -> None:
        """`mark`: the snapshot's."""
        self.mark: Final = mark
        self.deciders: dict[tuple[Operation, ResourceType], Decide] = {}
        self.decisions: dict[tuple[Operation, Resource], bool] = {}


class ClientRights:
    """See `acl.Rights`. Threads: any; `_known` is replaced whole."""

    __slots__ = ("_authorizer", "_known", "host", "principal")

    def __init__(self, authorizer: Deciding, principal: str, host: str) -> None:
        self._authorizer = authorizer
        self.principal: Final = principal
        self.host: Final = host
        self._known = _Known(authorizer.snapshot.mark)

    def allows(self, operation: Operation, resource: Resource, api_key: int, *, quiet: bool = False) -> bool:
        """See `acl.Rights`."""
        known = self._current()
        allowed = known.decisions.get((operation, resource))
        if allowed is None:
            allowed = self._decider(known, operation, resource.type)(resource.name)
            if len(resource.name) <= LONGEST_REMEMBERED:
                if len(known.decisions) >= MOST_REMEMBERED:
                    known.decisions.clear()
                known.decisions[operation, resource] = allowed
        audit = self._authorizer.audit
        if not allowed:
            if not quiet:
                audit.refused(Asked(self.principal, self.host, operation, named(resource), api_key))
        elif audit.is_detailed:
            audit.allowed(Asked(self.principal, self.host, operation, named(resource), api_key))
        return allowed

    def allows_on_any(
        self, operation: Operation, resource_type: ResourceType, api_key: int, *, quiet: bool = False
    ) -> bool:
        """See `acl.Rights`."""
        authorizer = self._authorizer
        allowed = authorizer.allows_some(self.principal, self.host, operation, resource_type)
        if not allowed:
            if not quiet:
                authorizer.audit.refused(Asked(self.principal, self.host, operation, any_of(resource_type), api_key))
        elif authorizer.audit.is_detailed:
            authorizer.audit.allowed(Asked(self.principal, self.host, operation, any_of(resource_type), api_key))
        return allowed

    def unaudited(self, operation: Operation, resource_type: ResourceType) -> Callable[[str], bool]:
        """See `acl.Rights`."""
        return self._decider(self._current(), operation, resource_type)

    def _current(self) -> _Known:
        known = self._known
        mark = self._authorizer.snapshot.mark
        if known.mark is not mark:
            known = self._known = _Known(mark)
        return known

    def _decider(self, known: _Known, operation: Operation, resource_type: ResourceType) -> Decide:
        key = (operation, resource_type)
        decide = known.deciders.get(key)
        if decide is None:
            authorizer = self._authorizer
            # It may be a later one than that of what is known, which nobody asks any more then.
            decide = known.deciders[key] = authorizer.decider(
                authorizer.snapshot, self.principal, self.host, operation, resource_type
            )
        return decide
