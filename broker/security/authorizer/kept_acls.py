"""ACLs as administrators ask for them: written to the tree, and answered once they count on this broker."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.metrics.log_lines import AUDIT, escaped
from kavka.broker.security.authorizer.bindings import AclBinding, AclFilter
from kavka.broker.security.authorizer.names import ALLOW
from kavka.cluster.promise import Promise
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern
from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
    from kavka.cluster.acl_changes import AclChanges, Outcome
    from kavka.cluster.acls import Acls, AclUpdate

Deletion = tuple[AclBinding, BrokerError | None]
"""An ACL that a filter has matched, and why it still stands, if it does."""

audit = logging.getLogger(AUDIT)


class KeptAcls:
    """What the APIs 29 to 31 ask. Threads: any; answers come on the thread of `AclChanges`."""

    def __init__(self, authorizer: "AclAuthorizer", changes: "AclChanges") -> None:
        self._authorizer: Final = authorizer
        self._changes: Final = changes

    def find(self, wanted: AclFilter) -> list[AclBinding]:
        """Those that are meant, of all that count here, in order."""
        return self._authorizer.acls(wanted)

    def takes_away(self, bindings: Sequence[AclBinding]) -> bool:
        """Whether to create these may leave somebody with less than he had.

        To delete may always: an ACL that is gone already may have been taken away by a change that is not answered yet.
        """
        return self._authorizer.allows_unmentioned or any([each.entry.permission != ALLOW for each in bindings])

    def create(self, bindings: Sequence[AclBinding], asker: str) -> Promise[list[BrokerError | None]]:
        """A promise of what became of each; one that is there already is as good as made. `asker`: for the audit."""
        added: dict[ResourcePattern, set[AclEntry]] = {}
        for pattern, entry in bindings:
            added.setdefault(pattern, set()).add(entry)
        updates = {pattern: _adding(frozenset(entries)) for pattern, entries in added.items()}

        def outcomes(found: "Mapping[ResourcePattern, Outcome]") -> list[BrokerError | None]:
            for pattern, outcome in found.items():
                if not isinstance(outcome, BrokerError):
                    _log("created", asker, pattern, outcome[1] - outcome[0])
            return [_error_of(found[pattern]) for pattern, _ in bindings]

        return self._changes.change(lambda _: updates).then(outcomes)

    def delete(self, wanted: Sequence[AclFilter], asker: str) -> Promise[list[list[Deletion]]]:
        """A promise of what each filter has matched that none before it had. `asker`: for the audit."""
        asked_of: dict[ResourcePattern, Acls] = {}

        def choose(known: "Mapping[ResourcePattern, Acls]") -> "Mapping[ResourcePattern, AclUpdate]":
            definite = [pattern for each in wanted for pattern in each.definite_patterns()]
            for pattern in dict.fromkeys([*known, *definite]):
                if any([each.fits_pattern(pattern) for each in wanted]):
                    asked_of[pattern] = known.get(pattern, frozenset())
            return {pattern: _removing(_fitting(pattern, wanted)) for pattern in asked_of}

        def outcomes(found: "Mapping[ResourcePattern, Outcome]") -> list[list[Deletion]]:
            matched: list[list[Deletion]] = [[] for _ in wanted]
            for pattern, outcome in found.items():
                fits = _fitting(pattern, wanted)
                if isinstance(outcome, BrokerError):
                    gone = frozenset([each for each in asked_of[pattern] if fits(each) is not None])
                else:
                    gone = outcome[0] - outcome[1]
                    _log("deleted", asker, pattern, gone)
                for entry in sorted(gone):
                    place = fits(entry)
                    if place is not None:
                        matched[place].append((AclBinding(pattern, entry), _error_of(outcome)))
            return matched

        return self._changes.change(choose).then(outcomes)


def _fitting(pattern: ResourcePattern, wanted: Sequence[AclFilter]) -> Callable[[AclEntry], int | None]:
    """Of an entry of the pattern, the place of the first filter that means it."""
    here = [(place, each) for place, each in enumerate(wanted) if each.fits_pattern(pattern)]

    def place_of(entry: AclEntry) -> int | None:
        return next((place for place, each in here if each.fits_entry(entry)), None)

    return place_of


def _adding(new: "Acls") -> "AclUpdate":
    return lambda acls: acls | new


def _removing(place_of: Callable[[AclEntry], int | None]) -> "AclUpdate":
    return lambda acls: frozenset([each for each in acls if place_of(each) is None])


def _error_of(outcome: Any) -> BrokerError | None:
    return outcome if isinstance(outcome, BrokerError) else None


def _log(what: str, asker: str, pattern: ResourcePattern, entries: "Acls") -> None:
    for entry in sorted(entries):
        audit.info("%s", escaped(f"ACL {what} by {asker}: {AclBinding(pattern, entry)}"))
