"""The authorizer that `authorizer.class.name` asks for by AclAuthorizer's name."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kavka.broker.security.acl import Operation, ResourceType
from kavka.broker.security.authorizer.audit import Audit
from kavka.broker.security.authorizer.bindings import AclBinding, AclFilter
from kavka.broker.security.authorizer.deciding import Decide, Names, always
from kavka.broker.security.authorizer.names import ANYBODY, TYPE_NAMES
from kavka.broker.security.authorizer.rights import ClientRights
from kavka.broker.security.authorizer.snapshot import AclSnapshot, Group, fitting
from kavka.cluster.acls import Acls
from kavka.cluster.znodes.acl import ResourcePattern

MOST_COMPILED_NAMES: Final = 500_000
"""Names that all compiled decisions keep together; with more they are begun anew."""
OF_A_DECISION: Final = 16
"""What a decision is counted as beside its names."""


class _Compiled:
    """A decision, and what it was made of: it holds for as long as these are the same objects."""

    __slots__ = ("decide", "mentioned", "of_all", "own")

    def __init__(self, own: Group, of_all: Group, mentioned: Names | None, decide: Decide) -> None:
        self.own: Final = own
        self.of_all: Final = of_all
        self.mentioned: Final = mentioned
        self.decide: Final = decide


class AclAuthorizer:
    """See `acl.Authorizer`. Threads: any; `snapshot` is swapped whole by the thread of `AclChanges`.

    What is compiled grows by single assignments, any two of which are as good, and is begun anew whole.
    """

    def __init__(
        self, super_users: Collection[str], on_changed: Callable[[], None], *, allows_unmentioned: bool = False
    ) -> None:
        """`super_users`: principals, as `User:NAME`. `on_changed()` once other ACLs count.

        `allows_unmentioned`: `allow.everyone.if.no.acl.found`.
        """
        self.audit: Final = Audit()
        self._super_users: Final = frozenset(super_users)
        self._on_changed: Final = on_changed
        self.allows_unmentioned: Final = allows_unmentioned
        self._snapshot = AclSnapshot({})
        self._compiled: dict[tuple[str, str, Operation, ResourceType], _Compiled] = {}
        self._compiled_names = 0

    @property
    def snapshot(self) -> AclSnapshot:
        """What counts now."""
        return self._snapshot

    @property
    def audits_everything(self) -> bool:
        """See `acl.Authorizer`."""
        return self.audit.is_detailed

    def swap(self, acls: Mapping[ResourcePattern, Acls]) -> None:
        """These count from now on. Called by one thread at a time."""
        self._snapshot = AclSnapshot(acls, self._snapshot)
        self._on_changed()

    def rights(self, principal: str, host: str) -> ClientRights:
        """See `acl.Authorizer`."""
        return ClientRights(self, principal, host)

    def decider(
        self, snapshot: AclSnapshot, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> Decide:
        """The decision by name, compiled when it is asked for first."""
        if principal in self._super_users:
            return always
        type_name = TYPE_NAMES[resource_type]
        own, of_all = snapshot.group(type_name, principal), snapshot.group(type_name, ANYBODY)
        mentioned = snapshot.mentioned(type_name) if self.allows_unmentioned else None
        # Who is not named shares what was compiled for others who are not.
        key = (
            principal if own.acls else ANYBODY,
            host if host in own.hosts or host in of_all.hosts else "",
            operation,
            resource_type,
        )
        compiled = self._compiled.get(key)
        if (
            compiled is None
            or compiled.own is not own
            or compiled.of_all is not of_all
            or compiled.mentioned is not mentioned
        ):
            groups = (own,) if own is of_all else (own, of_all)
            decide, size = fitting(host, *groups).decider(operation, mentioned)
            compiled = _Compiled(own, of_all, mentioned, decide)
            self._keep(key, compiled, size)
        return compiled.decide

    def allows_some(self, principal: str, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there may be a resource of the type on which that is allowed (KIP-679)."""
        if principal in self._super_users:
            return True
        snapshot, type_name = self._snapshot, TYPE_NAMES[resource_type]
        found = fitting(host, *(snapshot.group(type_name, each) for each in (principal, ANYBODY)))
        return found.allows_some(operation, allows_unmentioned=self.allows_unmentioned)

    def acls(self, wanted: AclFilter) -> list[AclBinding]:
        """The ACLs that are meant, in order."""
        return sorted(
            [
                AclBinding(pattern, entry)
                for pattern, entries in self._snapshot.acls.items()
                if wanted.fits_pattern(pattern)
                for entry in entries
                if wanted.fits_entry(entry)
            ]
        )

    def _keep(self, key: tuple[str, str, Operation, ResourceType], compiled: _Compiled, size: int) -> None:
        self._compiled_names += size + OF_A_DECISION
        if self._compiled_names > MOST_COMPILED_NAMES:
            self._compiled = {}
            self._compiled_names = size + OF_A_DECISION
        self._compiled[key] = compiled
