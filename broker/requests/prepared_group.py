"""Requests of a group's members that network threads may run while the group is small.

What one of them makes a coordinator do grows with the group: the last JoinGroup and the leader's SyncGroup answer all
members, a heartbeat may have partitions assigned anew. In a small group that is less than handing the request to
another thread, all the more as its members ask all at once.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.prepared import Prepared

if TYPE_CHECKING:
    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

JOIN_GROUP_KEY: Final = 11
SYNC_GROUP_KEY: Final = 14
CONSUMER_GROUP_HEARTBEAT_KEY: Final = 68
MAX_ID_CHARACTERS: Final = 256
"""What a connection may have remembered is bounded by this."""


class OfGroup(Prepared):
    """Of a connection whose last request of the API was about that group, and the next will be."""

    __slots__ = ("_groups", "group_id")

    def __init__(self, group_id: str, groups: "GroupCoordination") -> None:
        self.group_id = group_id
        self._groups = groups

    def is_small(self, frame: memoryview) -> bool:
        return self._groups.is_small(self.group_id)


def prepare_for_group(api_key: int, group_id: str, context: "Context", services: "Services") -> None:
    """Have requests like this one, about that group, run by network threads while it is small."""
    if len(group_id) > MAX_ID_CHARACTERS:
        return
    session = context.session
    known = session.prepared.get(api_key)
    if not isinstance(known, OfGroup) or known.group_id != group_id:
        session.prepare(api_key, OfGroup(group_id, services.groups))
