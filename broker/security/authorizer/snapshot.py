"""All ACLs at one moment, grouped by whom they are for."""

from collections.abc import Mapping
from typing import Final

from kavka.broker.security.authorizer.deciding import Fitting, Names, names_of
from kavka.broker.security.authorizer.names import ANY_HOST
from kavka.cluster.acls import Acls
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern

AllAcls = Mapping[ResourcePattern, Acls]
NO_ENTRIES: Final[frozenset[AclEntry]] = frozenset()


class Group:
    """One principal's entries on one type of resources; immutable, so that what was made of it is known by identity."""

    __slots__ = ("acls", "hosts")

    def __init__(self, acls: AllAcls) -> None:
        self.acls: Final = acls
        self.hosts: Final = frozenset([each.host for entries in acls.values() for each in entries])

    def fitting(self, host: str) -> list[tuple[ResourcePattern, AclEntry]]:
        hosts = (host, ANY_HOST)
        return [(pattern, each) for pattern, entries in self.acls.items() for each in entries if each.host in hosts]


EMPTY: Final = Group({})


class AclSnapshot:
    """Immutable, but for what is worked out of it when it is asked for first. Threads: any."""

    __slots__ = ("_groups", "_mentioned", "acls", "mark")

    def __init__(self, acls: AllAcls, before: "AclSnapshot | None" = None) -> None:
        """`before`: groups that are as they were there are shared with it."""
        self.acls: Final = acls
        self.mark: Final = object()
        """Stands for this snapshot where it is not to be kept."""
        self._groups: Final = _grouped(acls, before)
        self._mentioned: dict[str, Names] = {}

    def group(self, type_name: str, principal: str) -> Group:
        """The principal's entries on resources of that type."""
        return self._groups.get((type_name, principal), EMPTY)

    def mentioned(self, type_name: str) -> Names:
        """The names of resources of that type that any ACL is about; the same object each time."""
        names = self._mentioned.get(type_name)
        if names is None:
            # The first of two threads counts.
            found = names_of([each for each in self.acls if each.type_name == type_name])
            names = self._mentioned.setdefault(type_name, found)
        return names


def fitting(host: str, *groups: Group) -> Fitting:
    """What counts for a client at that host."""
    return Fitting(tuple([each for group in groups for each in group.fitting(host)]))


def _grouped(acls: AllAcls, before: AclSnapshot | None) -> dict[tuple[str, str], Group]:
    old: AllAcls = {} if before is None else before.acls
    groups = {} if before is None else dict(before._groups)
    changed = [each for each in acls if old.get(each) is not acls[each]]
    changed += [each for each in old if each not in acls]
    touched: dict[tuple[str, str], dict[ResourcePattern, Acls]] = {}
    for pattern in changed:
        now = acls.get(pattern, NO_ENTRIES)
        for principal in {each.principal for each in now | old.get(pattern, NO_ENTRIES)}:
            key = (pattern.type_name, principal)
            mine = touched.get(key)
            if mine is None:
                mine = touched[key] = dict(groups.get(key, EMPTY).acls)
            entries = frozenset([each for each in now if each.principal == principal])
            if entries:
                mine[pattern] = entries
            else:
                mine.pop(pattern, None)
    for key, mine in touched.items():
        if mine:
            groups[key] = Group(mine)
        else:
            groups.pop(key, None)
    return groups
