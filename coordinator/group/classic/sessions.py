"""The members' sessions: deadlines, and the timers that look at them.

A heartbeat only moves the member's deadline; the timer that runs for the member looks at it when it is due, and goes on
for the rest. So a heartbeat costs an assignment, and each member one timer run a session timeout.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.runtime.result import NOTHING, Result

if TYPE_CHECKING:
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext


class Sessions:
    """Sessions of all classic groups of a shard. Guarded by the shard's lock.

    `expired(group, member_id)`: a member's session is over, or a given-out id was not used in time; removes it
    (`removal.py`).
    """

    __slots__ = ("_expired", "_monotonic_ms", "_table", "_timers")

    def __init__(
        self, context: "ShardContext", table: "GroupTable", expired: Callable[[ClassicGroup, str], Result]
    ) -> None:
        self._timers = context.timers
        self._monotonic_ms = context.monotonic_ms
        self._table = table
        self._expired = expired

    def start(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """A full session from now on (or one of `timeout_ms`)."""
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._monotonic_ms() + timeout_ms
        member.deadline_ms = deadline_ms
        if member.timer_due_ms is None or member.timer_due_ms > deadline_ms:
            self._schedule(group, member, timeout_ms)

    def renew(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member is alive."""
        member.deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        if member.timer_due_ms is None:
            self._schedule(group, member, member.session_timeout_ms)

    def stop(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member is gone."""
        member.timer_due_ms = None
        self._timers.cancel(_key(group, member.member_id))

    def start_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """An id was given out: it has to be used before its session is over."""
        key = _key(group, member_id)
        self._timers.schedule(key, timeout_ms, partial(self._look, group.group_id, member_id))

    def stop_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Nobody waits for that id any more."""
        self._timers.cancel(_key(group, member_id))

    def _schedule(self, group: ClassicGroup, member: ClassicMember, delay_ms: int) -> None:
        member.timer_due_ms = self._monotonic_ms() + delay_ms
        key = _key(group, member.member_id)
        self._timers.schedule(key, delay_ms, partial(self._look, group.group_id, member.member_id))

    def _look(self, group_id: str, member_id: str) -> Result:
        group = self._table.get(group_id)
        if not isinstance(group, ClassicGroup):
            return NOTHING
        member = group.members.get(member_id)
        if member is None:
            return self._expired(group, member_id) if member_id in group.pending else NOTHING
        member.timer_due_ms = None
        remaining_ms = member.deadline_ms - self._monotonic_ms()
        if member.is_excused:
            return NOTHING
        if remaining_ms > 0:
            self._schedule(group, member, remaining_ms)
            return NOTHING
        return self._expired(group, member_id)


def _key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return ("session", group.group_id, member_id)
