"""Rebalances: how they begin, how long they wait, and how the join phase ends.

Whatever a decision answers is gathered in `answers`. The one thing of a rebalance that is written here is that nobody
is left: an `Emptied`, which `decided` makes a Result of. (Assignments are written by `syncing.py`.)
"""

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.coordinator.group.classic import answers as respond
from kavka.coordinator.group.classic.answers import Answers
from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.records import emptied_record
from kavka.coordinator.group.classic.states import CAN_REBALANCE, ClassicState
from kavka.coordinator.runtime.result import NOTHING, Result
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.coordinator.group.classic.sessions import Sessions
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext

REBALANCES: Final = "kafka_server_group_coordinator_metrics_group_rebalance_count"
COMPLETED_REBALANCES: Final = "kafka_server_group_coordinator_metrics_group_completed_rebalance_count"
RETRY_MS: Final = 1000
"""How long a group whose last member has gone waits before it tries to write that again."""
_NAMED_MEMBERS: Final = 8

log = logging.getLogger(__name__)


class Emptied(NamedTuple):
    """The join phase has ended with nobody there: to be written before it is so."""

    group: ClassicGroup
    timestamp_ms: int
    reason: str


class Rebalances:
    """Begins and ends the join phase of all classic groups of a shard. Guarded by the shard's lock."""

    __slots__ = ("_context", "_sessions", "_table", "_timers")

    def __init__(self, context: "ShardContext", table: "GroupTable", sessions: "Sessions") -> None:
        self._context = context
        self._timers = context.timers
        self._table = table
        self._sessions = sessions

    def prepare_or_complete(self, group: ClassicGroup, reason: str, answers: Answers) -> Emptied | None:
        """Begin a rebalance; if one is going on, end its join phase once everybody is there."""
        if group.state in CAN_REBALANCE:
            return self.prepare(group, reason, answers)
        return self.complete_if_all_joined(group, answers)

    def prepare(self, group: ClassicGroup, reason: str, answers: Answers) -> Emptied | None:
        """Begin a rebalance: the first one of a group without members waits for more to come."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.take_assignments_back(group, ErrorCode.REBALANCE_IN_PROGRESS, answers)
        self._stop_waiting_for_syncs(group)
        is_initial = group.state is ClassicState.EMPTY
        group.move_to(ClassicState.PREPARING_REBALANCE, reason)
        self._context.count(REBALANCES)
        if is_initial:
            delay_ms = self._context.config.group_initial_rebalance_delay_ms
            group.new_member_added = False
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            return self._wait_for_more(group, delay_ms, remaining_ms, answers)
        if group.has_all_joined:
            return self.complete_join(group, answers)
        self._wait_for_joins(group, group.rebalance_timeout_ms)
        return None

    def complete_if_all_joined(self, group: ClassicGroup, answers: Answers) -> Emptied | None:
        """End the join phase if everybody is there. A first rebalance lasts until its delay is over, though."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.has_all_joined
            and group.previous_state is not ClassicState.EMPTY
        ):
            return self.complete_join(group, answers)
        return None

    def complete_join(self, group: ClassicGroup, answers: Answers) -> Emptied | None:
        """End the join phase, without the dynamic members who are late, in one pass over the members."""
        self._timers.cancel(_join_key(group))
        joined_count = group.awaiting_join_count
        late: list[str] = []
        if joined_count != len(group.members):
            late = [member.member_id for member in group.members.values() if member.awaiting_join is None]
            for member_id in late:
                if not group.members[member_id].is_static:
                    self._sessions.stop(group, group.members[member_id])
                    group.remove(member_id)
        reason = f"{joined_count} joined" + (f"; late: {some_of(late)}" if late else "")
        if not group.elect_joined_leader():
            if group.members:
                group.note(f"nobody joined in time, and all who are late are static: {some_of(late)}")
                log.warning("nobody joined in time", extra={"fields": {"group": group.group_id, "late": some_of(late)}})
                self._wait_for_joins(group, group.rebalance_timeout_ms)
                return None
            reason = "nobody is left" + (f"; late: {some_of(late)}" if late else "")
            return Emptied(group, self._context.now_ms(), reason)
        group.next_generation(reason)
        self._tell_generation(group, answers)
        return None

    def take_assignments_back(self, group: ClassicGroup, code: ErrorCode, answers: Answers) -> None:
        """The generation comes to nothing: whoever waits for an assignment gets an error, and a full session."""
        for member in group.members.values():
            member.assignment = b""
            if respond.end_sync(member, answers, respond.sync_refused(code)):
                self._sessions.start(group, member)

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """A member has sent SyncGroup. Once all have, nobody waits for that any more (KAFKA-13435)."""
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._timers.cancel(_sync_key(group))

    def stop(self, group: ClassicGroup) -> None:
        """The group is gone: none of its timers runs any more."""
        self._timers.cancel(_join_key(group))
        self._timers.cancel(_sync_key(group))

    def decided(
        self,
        answers: Answers,
        emptied: Emptied | None = None,
        on_failure: Callable[[BrokerError], Answers] | None = None,
    ) -> Result:
        """The Result of a decision. `on_failure`: what to answer instead if it can't be written that nobody is left."""
        if emptied is None:
            return Result(replies=answers) if answers else NOTHING
        group, timestamp_ms, reason = emptied

        def appended() -> None:
            group.next_generation(reason)
            group.state_timestamp_ms = timestamp_ms

        def failed(error: BrokerError) -> Result:
            log.warning("cannot write that a group is empty: %s", error, extra={"fields": {"group": group.group_id}})
            if group.state is ClassicState.PREPARING_REBALANCE:
                self._wait_for_joins(group, RETRY_MS)
            return Result(replies=instead(error))

        def instead(error: BrokerError) -> Answers:
            return answers if on_failure is None else on_failure(error)

        record = emptied_record(group, timestamp_ms)
        return Result([record], answers, replays=False, appended=appended, failed=failed, uncommitted=instead)

    def _tell_generation(self, group: ClassicGroup, answers: Answers) -> None:
        listed = respond.listed_members(group)
        start = self._sessions.start
        for member in group.members.values():
            is_leader = member.member_id == group.leader_id
            group.end_join(member, answers, respond.joined(group, member, listed if is_leader else []))
            member.is_new = False
            start(group, member)
        group.pending_sync.update(group.members)
        generation = group.generation
        self._timers.schedule(
            _sync_key(group), group.rebalance_timeout_ms, partial(self._sync_is_over, group.group_id, generation)
        )

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, answers: Answers) -> Emptied | None:
        if delay_ms <= 0:
            return self.complete_join(group, answers)
        operation = partial(self._delay_is_over, group.group_id, delay_ms, remaining_ms)
        self._timers.schedule(_join_key(group), delay_ms, operation)
        return None

    def _wait_for_joins(self, group: ClassicGroup, timeout_ms: int) -> None:
        self._timers.schedule(_join_key(group), timeout_ms, partial(self._join_is_over, group.group_id))

    def _stop_waiting_for_syncs(self, group: ClassicGroup) -> None:
        group.pending_sync.clear()
        self._timers.cancel(_sync_key(group))

    def _delay_is_over(self, group_id: str, delay_ms: int, remaining_ms: int) -> Result:
        """The initial delay is over: once more, if somebody came meanwhile and the rebalance timeout allows it."""
        group = self._joining_group(group_id)
        if group is None:
            return NOTHING
        answers: Answers = []
        if group.new_member_added and remaining_ms > 0:
            group.new_member_added = False
            next_delay_ms = min(self._context.config.group_initial_rebalance_delay_ms, remaining_ms)
            emptied = self._wait_for_more(group, next_delay_ms, max(remaining_ms - delay_ms, 0), answers)
        else:
            emptied = self.complete_join(group, answers)
        return self.decided(answers, emptied)

    def _join_is_over(self, group_id: str) -> Result:
        group = self._joining_group(group_id)
        if group is None:
            return NOTHING
        answers: Answers = []
        return self.decided(answers, self.complete_join(group, answers))

    def _sync_is_over(self, group_id: str, generation: int) -> Result:
        group = self._table.get(group_id)
        if (
            not isinstance(group, ClassicGroup)
            or group.generation != generation
            or group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE)
            or not group.pending_sync
        ):
            return NOTHING
        late = list(group.pending_sync)
        for member_id in late:
            member = group.remove(member_id)
            if member is not None:
                self._sessions.stop(group, member)
        answers: Answers = []
        return self.decided(answers, self.prepare(group, f"no SyncGroup in time of: {some_of(late)}", answers))

    def _joining_group(self, group_id: str) -> ClassicGroup | None:
        group = self._table.get(group_id)
        if isinstance(group, ClassicGroup) and group.state is ClassicState.PREPARING_REBALANCE:
            return group
        return None


def some_of(member_ids: Collection[str] | Iterable[str]) -> str:
    """Members' names for a reason: the first ones, and how many more there are."""
    names = list(member_ids)
    shown = ", ".join(islice(names, _NAMED_MEMBERS))
    return shown if len(names) <= _NAMED_MEMBERS else f"{shown} and {len(names) - _NAMED_MEMBERS} more"


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return ("join", group.group_id)


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return ("sync", group.group_id)
