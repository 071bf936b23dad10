"""What all decisions about consumer groups share: how they end, and how members are taken out."""

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kavka.coordinator.group.classic.records import group_record
from kavka.coordinator.group.consumer import migration
from kavka.coordinator.group.consumer.assignors.assignor import assignors_of
from kavka.coordinator.group.consumer.change import Change
from kavka.coordinator.group.consumer.deadlines import NEVER, Deadlines
from kavka.coordinator.group.consumer.group import ConsumerGroup, Watched
from kavka.coordinator.group.consumer.member import Member
from kavka.coordinator.group.consumer.topics import KnownTopics
from kavka.coordinator.group.history import REASON_CHARACTERS, Transition
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Reply, Result
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.coordinator.group.classic.groups import ClassicGroups
    from kavka.coordinator.group.consumer.state import LoggedState
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext

RETRY_MS: Final = 500
"""When a member that must go is tried again, after its records could not be appended."""
REBALANCES: Final = "kafka_server_group_coordinator_metrics_consumer_group_rebalance_count"

log = logging.getLogger(__name__)

Afterwards = Callable[[ConsumerGroup], Result | None]
"""What becomes of a group's unlogged state when a change stands."""


class Decisions:
    """One shard's; guarded by its lock. `known` and `assignors` are shared by whoever decides."""

    __slots__ = ("_timers", "assignors", "classic", "context", "known", "table")

    def __init__(self, context: "ShardContext", table: "GroupTable", classic: "ClassicGroups") -> None:
        self.context = context
        self.table = table
        self.classic = classic
        self.known: Final = KnownTopics(context.topics)
        self.assignors: Final = assignors_of(context.config.group_consumer_assignors)
        self._timers = context.timers

    def group(self, group_id: str) -> ConsumerGroup:
        """The consumer group of that id. Raises BrokerError (GROUP_ID_NOT_FOUND)."""
        group = self.table.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        missing = "not found" if group is None else "is not a consumer group"
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {missing}.")

    def check_room(self, logged: "LoggedState", member_id: str, instance_id: str | None) -> None:
        """Raise BrokerError (GROUP_MAX_SIZE_REACHED) for one more than the group takes.

        Who comes back, also a static member under another id (KAFKA-20601), is not one more.
        """
        max_size = self.context.config.group_consumer_max_size
        is_known = member_id in logged.members or (instance_id is not None and instance_id in logged.static_members)
        if len(logged.members) >= max_size and not is_known:
            raise BrokerError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {max_size} members.",
            )

    def change(self, logged: "LoggedState") -> Change:
        """Begin a change of a group."""
        return Change(logged, self.known, self.assignors)

    def decided(
        self,
        change: Change,
        replies: Sequence[tuple[Reply, Any]],
        reason: str,
        afterwards: Afterwards,
        *,
        first: Sequence[CoordinatorRecord] = (),
        failed: Callable[[BrokerError], Result | None] | None = None,
    ) -> Result:
        """The Result of a change, of which `first` are records of another group in whose place this one comes.

        Also without records it waits for what it has seen to be committed, as Kafka does.
        """
        group_id, version = change.after.group_id, change.topics_version
        if not change.records and not first:
            group = self.table.get(group_id)
            if isinstance(group, ConsumerGroup):
                if change.looked_at_topics:
                    group.known_topics_version = version
                followed = afterwards(group)
                assert followed is None, "what follows a change follows its records"
            return Result(replies=replies, reads_committed=True)

        former = self.table.get(group_id) if first else None

        def appended() -> Result | None:
            group = self.table.get(group_id)
            if not isinstance(group, ConsumerGroup):
                return None
            if change.looked_at_topics:
                group.known_topics_version = version
            if former is not None:
                group.history.follow(former.history)
            self.noted(group, reason)
            return afterwards(group)

        return Result([*first, *change.records], replies, appended=appended, failed=failed)

    def noted(self, group: ConsumerGroup, reason: str) -> None:
        """Write a change of state or epoch down: in the history, and in one line of the log."""
        seen, now = group.seen, Watched(group.state, group.logged.epoch)
        if now == seen:
            return
        reason = reason[:REASON_CHARACTERS]
        group.seen = now
        self.remember(group, seen, reason)
        if now.epoch > seen.epoch:
            self.context.count(REBALANCES)
        if log.isEnabledFor(logging.INFO):
            fields = {
                "group": group.group_id,
                "epoch": now.epoch,
                "members": len(group.logged.members),
                "reason": reason,
            }
            log.info("group goes from %s to %s", seen.state.value, now.state.value, extra={"fields": fields})

    def remember(self, group: ConsumerGroup, before: Watched, reason: str) -> None:
        """Note in the group's history how it came from there to where it is `seen` now."""
        seen = group.seen
        transition = Transition(
            self.context.now_ms(),
            before.state.value,
            seen.state.value,
            reason,
            epoch=seen.epoch,
            member_count=len(group.logged.members),
            begins_rebalance=seen.epoch > before.epoch,
        )
        group.history.note(transition)

    def take_out(
        self,
        group: ConsumerGroup,
        member_ids: Collection[str],
        reason: str,
        replies: Sequence[tuple[Reply, Any]] = (),
        *,
        failed: Callable[[BrokerError], Result | None] | None = None,
    ) -> Result:
        """Members are gone: the group gets a new epoch, or becomes a classic group if only classic members remain."""
        change = self.change(group.logged)
        change.remove_members(member_ids)
        if migration.may_downgrade(change.after.members.values(), self.context.config):
            return self.downgraded(change, replies, reason, failed=failed)
        change.look_at_topics(bump=True)

        def afterwards(group: ConsumerGroup) -> None:
            for member_id in member_ids:
                self.forget(group, member_id)

        return self.decided(change, replies, reason, afterwards, failed=failed)

    def downgraded(
        self,
        change: Change,
        replies: Sequence[tuple[Reply, Any]],
        reason: str,
        *,
        then: Callable[[], Result] = lambda: NOTHING,
        failed: Callable[[BrokerError], Result | None] | None = None,
    ) -> Result:
        """The group becomes a classic one, of the members that the change leaves, and rebalances. Then `then`."""
        classic = migration.downgraded(change.after, self.known, self.context)
        former = self.table.get(classic.group_id)
        reason = f"{reason}; only classic members remain"
        log.info("consumer group becomes a classic group", extra={"fields": {"group": classic.group_id}})

        def appended() -> Result:
            if former is not None:
                classic.history.follow(former.history)
            adopted = self.classic.adopt(classic, reason)
            following = then()
            assert not adopted.records, "members are there, so nothing is written"
            following_replies = [*adopted.replies, *following.replies]
            return Result(
                following.records,
                following_replies,
                replays=following.replays,
                appended=following.appended,
                failed=following.failed,
            )

        # Also what the change wrote before must go, or it would outlive the group: a replaced static member's records.
        written = [*change.records, *change.after.tombstones(), group_record(classic)]
        return Result(written, replies, appended=appended, failed=failed)

    # Deadlines and their timers.

    def renew(self, group: ConsumerGroup, member: Member) -> None:
        """The member is alive: its session begins anew."""
        deadlines = self.deadlines(group, member.member_id)
        classic = member.classic
        timeout_ms = (
            self.context.group_config(group.group_id).consumer_session_timeout_ms
            if classic is None
            else classic.session_timeout_ms
        )
        deadlines.session_ms = self.context.monotonic_ms() + timeout_ms
        if deadlines.session_ms < deadlines.armed_ms:
            self.arm(group.group_id, member.member_id, deadlines)

    def expect_revocation(self, group: ConsumerGroup, member: Member, *, expected: bool) -> None:
        """The member has its rebalance timeout from now on to give partitions up; or need not any more."""
        deadlines = self.deadlines(group, member.member_id)
        deadlines.revoke_ms = self.context.monotonic_ms() + member.rebalance_timeout_ms if expected else NEVER
        self.arm(group.group_id, member.member_id, deadlines)

    def deadlines(self, group: ConsumerGroup, member_id: str) -> Deadlines:
        """A member's deadlines."""
        deadlines = group.deadlines.get(member_id)
        if deadlines is None:
            deadlines = group.deadlines[member_id] = Deadlines()
        return deadlines

    def forget(self, group: ConsumerGroup, member_id: str) -> None:
        """The member is gone, and its deadlines with it."""
        group.viewers.forget(member_id)
        if group.deadlines.pop(member_id, None) is not None:
            self._timers.cancel(_key(group.group_id, member_id))

    def forget_gone(self, group: ConsumerGroup) -> None:
        """A static member has been replaced: its old id has no deadlines any more."""
        for member_id in [each for each in group.deadlines if each not in group.logged.members]:
            self.forget(group, member_id)

    def arm(self, group_id: str, member_id: str, deadlines: Deadlines) -> None:
        """Have the member's timer fire at its nearest deadline, unless it fires before."""
        nearest_ms = deadlines.nearest_ms()
        if nearest_ms < deadlines.armed_ms:
            deadlines.armed_ms = nearest_ms
            delay_ms = nearest_ms - self.context.monotonic_ms()
            self._timers.schedule(_key(group_id, member_id), delay_ms, partial(self._look, group_id, member_id))

    def _look(self, group_id: str, member_id: str) -> Result:
        group = self.table.get(group_id)
        if not isinstance(group, ConsumerGroup) or (deadlines := group.deadlines.get(member_id)) is None:
            return NOTHING
        deadlines.armed_ms = NEVER
        if member_id not in group.logged.members:
            del group.deadlines[member_id]
            return NOTHING
        missed = deadlines.missed(self.context.monotonic_ms())
        if missed is None:
            self.arm(group_id, member_id, deadlines)
            return NOTHING

        def failed(error: BrokerError) -> None:
            log.warning("cannot write that a member is gone: %s", error, extra={"fields": {"group": group_id}})
            deadlines.armed_ms = self.context.monotonic_ms() + RETRY_MS
            self._timers.schedule(_key(group_id, member_id), RETRY_MS, partial(self._look, group_id, member_id))

        return self.take_out(group, [member_id], f"member {member_id} is fenced: {missed}", failed=failed)


def _key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("consumer", group_id, member_id)
