"""Decisions compiled: what one principal may do from one host, by the name of a resource of one type.

The rules are AclAuthorizer's (authorisation by KIP-11, prefixes by KIP-290):

1. a Deny that fits refuses, whatever is allowed;
2. an Allow that fits, of the operation, of all, or of one that implies it, allows;
3. where no ACL at all names the resource, `allow.everyone.if.no.acl.found` says.

What fits: the principal or `User:*`, the host or `*`, the operation or All; the name, `*`, or a prefix of it. A Deny
implies nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kavka.broker.security.acl import Operation
from kavka.broker.security.authorizer.names import ALL, ALLOW, ANY_NAME, DENY, OPERATION_NAMES
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern

Decide = Callable[[str], bool]
"""By a resource's name."""

_IMPLYING: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""What is allowed with the others, too."""
_DENYING: Final = {operation: frozenset((ALL, name)) for operation, name in OPERATION_NAMES.items()}
_ALLOWING: Final = {
    operation: names | {OPERATION_NAMES[each] for each in _IMPLYING.get(operation, ())}
    for operation, names in _DENYING.items()
}


class Names(NamedTuple):
    """Which names are meant."""

    literal: frozenset[str]
    prefixes: tuple[str, ...]
    """In order, and none begins another: so that at most one begins a name, the last that is not behind it."""

    @property
    def size(self) -> int:
        return len(self.literal) + len(self.prefixes)

    def decider(self) -> Decide:
        """Whether a name is among them."""
        literal, prefixes = self.literal, self.prefixes
        if ANY_NAME in literal:
            return always
        if not prefixes:
            return literal.__contains__

        def is_among(name: str) -> bool:
            if name in literal:
                return True
            place = bisect_right(prefixes, name)
            return place > 0 and name.startswith(prefixes[place - 1])

        return is_among


def names_of(patterns: Iterable[ResourcePattern]) -> Names:
    """The names that these patterns mean."""
    literal: set[str] = set()
    prefixes: list[str] = []
    for pattern in patterns:
        if pattern.is_prefixed:
            prefixes.append(pattern.name)
        else:
            literal.add(pattern.name)
    shortest: list[str] = []
    for prefix in sorted(prefixes):
        if not shortest or not prefix.startswith(shortest[-1]):
            shortest.append(prefix)
    return Names(frozenset(literal), tuple(shortest))


class Fitting(NamedTuple):
    """The entries that fit a principal and a host, with their patterns."""

    entries: tuple[tuple[ResourcePattern, AclEntry], ...]

    def denied(self, operation: Operation) -> Names:
        names = _DENYING[operation]
        return names_of([at for at, each in self.entries if each.permission == DENY and each.operation in names])

    def allowed(self, operation: Operation) -> Names:
        """With what implies it."""
        names = _ALLOWING[operation]
        return names_of([at for at, each in self.entries if each.permission == ALLOW and each.operation in names])

    def decider(self, operation: Operation, mentioned: Names | None) -> tuple[Decide, int]:
        """The decision by name, and how many names it keeps.

        `mentioned`: the names that any ACL is about, whoever it is for; others are allowed. None: they are not.
        """
        denied, allowed = self.denied(operation), self.allowed(operation)
        size = denied.size + allowed.size
        is_denied, is_allowed = denied.decider(), allowed.decider()
        if is_denied is always:
            return never, size
        if mentioned is not None:
            return _with_unmentioned(is_denied, is_allowed, mentioned.decider()), size
        if not denied.size:
            return is_allowed, size
        return (lambda name: not is_denied(name) and is_allowed(name)), size

    def allows_some(self, operation: Operation, *, allows_unmentioned: bool) -> bool:
        """Whether there may be a resource on which the operation is allowed (KIP-679): nothing implies it here."""
        names = _DENYING[operation]
        denied = self.denied(operation)
        if ANY_NAME in denied.literal:
            return False
        if allows_unmentioned:
            return True
        is_denied = denied.decider()
        begins_denied = Names(frozenset(), denied.prefixes).decider()
        for pattern, entry in self.entries:
            if entry.permission != ALLOW or entry.operation not in names:
                continue
            if pattern.is_prefixed:
                if not begins_denied(pattern.name):
                    return True
            elif pattern.name == ANY_NAME or not is_denied(pattern.name):
                return True
        return False


def always(_name: str) -> bool:
    """Whatever the name is."""
    return True


def never(_name: str) -> bool:
    """Whatever the name is."""
    return False


def _with_unmentioned(is_denied: Decide, is_allowed: Decide, is_mentioned: Decide) -> Decide:
    def decide(name: str) -> bool:
        return not is_mentioned(name) or (not is_denied(name) and is_allowed(name))

    return decide
