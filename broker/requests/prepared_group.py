"""Requests of a group's members that network threads may run while the group is small.

What one of them makes a coordinator do grows with the group: the last JoinGroup and the leader's SyncGroup answer all
members, a heartbeat may have partitions assigned anew. In a small group that is less than handing the request to
another thread, all the more as its members ask all at once.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.prepared import HEAD_SIZE_BYTES, Prepared
from kavka.protocol.headers import decode_request_header

if TYPE_CHECKING:
    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

MAX_FRONT_BYTES: Final = 1024
"""What a connection may have remembered is bounded by this."""
MAX_LENGTH_BYTES: Final = 3
"""Of the group id's length: an int16, or a varint."""


class OfGroup(Prepared):
    """Of a connection whose last request of the API was about that group."""

    __slots__ = ("_front", "_groups", "group_id", "size_bytes")

    def __init__(self, group_id: str, front: bytes, groups: "GroupCoordination", size_bytes: int) -> None:
        """`front`: the bytes between correlation id and the group's, and that: all these APIs name the group first.

        `size_bytes`: of the request.
        """
        self.group_id = group_id
        self._front = front
        self._groups = groups
        self.size_bytes = size_bytes

    def is_small(self, frame: memoryview) -> bool:
        return self.fits(frame) and self._groups.is_small(self.group_id)

    def fits(self, frame: memoryview) -> bool:
        """Whether a request is about that group, and by the same client id."""
        front = self._front
        return frame[HEAD_SIZE_BYTES : HEAD_SIZE_BYTES + len(front)] == front


def prepare_for_group(group_id: str, context: "Context", services: "Services") -> None:
    """Have requests like this one, about that group, run by network threads while it is small."""
    session, frame, key = context.session, context.frame, context.api_key
    known = session.prepared.get(key)
    if not frame or (isinstance(known, OfGroup) and known.fits(frame)):
        return
    front = front_of(frame, group_id)
    if front is not None:
        session.prepare(key, OfGroup(group_id, front, services.groups, frame.nbytes))


def front_of(frame: memoryview, group_id: str) -> bytes | None:
    """The bytes between a request's correlation id and the group's, and that; None if they are too many."""
    name = group_id.encode()
    body_offset = decode_request_header(frame).body_offset
    end = bytes(frame[: body_offset + MAX_LENGTH_BYTES + len(name)]).find(name, body_offset) + len(name)
    return bytes(frame[HEAD_SIZE_BYTES:end]) if len(name) <= end <= MAX_FRONT_BYTES else None
