"""The classic groups of one shard: requests, timers, replay, and the way to and from the consumer protocol (KIP-848).

| module | what |
|-|-|
| states | the states, what follows what, what each request does there |
| group, member | one group and its members, their counts and votes |
| joining, syncing, leaving | what is decided on a request |
| rebalance | the join phase: its beginning, its waits, its end |
| sessions | deadlines and timers of members |
| records, subscriptions, answers | what is written, read out of the members' metadata, answered |

A generation is in the log once its leader's assignment is; a rebalance before that lives in memory only, and is begun
anew by the members if the coordinator is lost. So records are not replayed live: the members' other protocols, waits
and sessions, which the log doesn't have, must stay.
"""

from typing import TYPE_CHECKING

from kavka.coordinator.group.classic import answers as respond
from kavka.coordinator.group.classic.answers import Answers
from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.joining import Joining
from kavka.coordinator.group.classic.rebalance import Rebalances
from kavka.coordinator.group.classic.records import restored_group
from kavka.coordinator.group.classic.removal import Removal
from kavka.coordinator.group.classic.sessions import Sessions
from kavka.coordinator.group.classic.states import ClassicState
from kavka.coordinator.group.classic.syncing import Syncing
from kavka.coordinator.runtime.result import Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from kavka.protocol.messages.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from kavka.coordinator.group.group import Client
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext
    from kavka.coordinator.runtime.result import Reply
    from kavka.protocol.internal.group_records import GroupMetadataKey, GroupMetadataValue
    from kavka.protocol.messages.heartbeat import HeartbeatRequest
    from kavka.protocol.messages.join_group import JoinGroupRequest
    from kavka.protocol.messages.leave_group import LeaveGroupRequest
    from kavka.protocol.messages.sync_group import SyncGroupRequest


class ClassicGroups:
    """All classic groups of a shard, kept in its table. All methods are called under the shard's lock."""

    __slots__ = ("_context", "_is_loaded", "_joining", "_rebalances", "_removal", "_sessions", "_syncing", "_table")

    def __init__(self, context: "ShardContext", table: "GroupTable") -> None:
        self._context = context
        self._table = table
        self._is_loaded = False
        self._sessions = Sessions(context, table, self._expired)
        self._rebalances = Rebalances(context, table, self._sessions)
        self._joining = Joining(context, table, self._sessions, self._rebalances)
        self._syncing = Syncing(context, table, self._sessions, self._rebalances)
        self._removal = Removal(table, self._sessions, self._rebalances)

    def join(self, request: "JoinGroupRequest", client: "Client", reply: "Reply") -> Result:
        """JoinGroup; also takes an empty consumer group's place. The group id and the session timeout are checked."""
        return self._joining.join(request, client, reply)

    def sync(self, request: "SyncGroupRequest", client: "Client", reply: "Reply") -> Result:
        """SyncGroup."""
        return self._syncing.sync(request, reply)

    def heartbeat(self, request: "HeartbeatRequest", client: "Client", reply: "Reply") -> Result:
        """Heartbeat."""
        return Result(replies=((reply, HeartbeatResponse(error_code=self.alive(request))),))

    def alive(self, request: "HeartbeatRequest") -> ErrorCode:
        """What a heartbeat is answered."""
        group = self._table.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.state is ClassicState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        try:
            member = group.validate_member(request.member_id, request.group_instance_id)
        except BrokerError as error:
            return error.code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._sessions.renew(group, member)
        preparing = group.state is ClassicState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE

    def leave(self, request: "LeaveGroupRequest", client: "Client", reply: "Reply") -> Result:
        """LeaveGroup."""
        return self._removal.leave(request, client.api_version, reply)

    def replay(self, key: "GroupMetadataKey", value: "GroupMetadataValue | None") -> None:
        """A record: the group as it says, or no such classic group any more."""
        known = self._table.get(key.group)
        if isinstance(known, ClassicGroup):
            if self._is_loaded:
                self._forget(known, "deleted" if value is None else "written anew")
            if value is None:
                self._table.remove(key.group)
        if value is not None:
            self._table.put(restored_group(key.group, value, self._context))

    def loaded(self) -> Result:
        """Everybody has a full session from now on; a group that is too large now rebalances."""
        self._is_loaded = True
        answers: Answers = []
        limit = self._context.config.group_max_size
        for group in self._table.all():
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self._sessions.start(group, member)
            group.note("read from the log")
            if len(group.members) > limit:
                # They have members who have not joined, so they wait; nothing is written.
                self._rebalances.prepare(group, f"{len(group.members)} members are more than {limit}", answers)
        return Result(replies=answers)

    def unloaded(self) -> Result:
        """The coordinator is another broker now: so it is told to everybody who waits."""
        answers: Answers = []
        for group in self._table.all():
            if isinstance(group, ClassicGroup):
                self._end_waits(group, ErrorCode.NOT_COORDINATOR, answers)
                self._forget(group, "its coordinator moves")
        return Result(replies=answers)

    def describe(self, group: ClassicGroup) -> DescribedGroup:
        """What DescribeGroups shows; metadata and assignments of a Stable group only."""
        is_stable = group.state is ClassicState.STABLE
        return DescribedGroup(
            error_code=ErrorCode.NONE,
            group_id=group.group_id,
            group_state=group.state_name,
            protocol_type=group.protocol_type,
            protocol_data=(group.protocol_name or "") if is_stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                    member_assignment=member.assignment if is_stable else b"",
                )
                for member in group.members.values()
            ],
        )

    # For others who have to do with classic groups.

    def give_up(self, group: ClassicGroup) -> Answers:
        """The group becomes a consumer group: its timers end, and who waits is told to join again.

        The table stays as it is. To be called when the records of the new group stand.
        """
        answers: Answers = []
        self._end_waits(group, ErrorCode.REBALANCE_IN_PROGRESS, answers)
        self._forget(group, "becomes a consumer group")
        return answers

    def adopt(self, group: ClassicGroup, reason: str) -> Result:
        """A consumer group has become this classic one: everybody has a full session, and a rebalance begins.

        To be made by `ClassicGroup.of_members`, written by `records.group_record`; then called with replays=False.
        """
        answers: Answers = []
        self._table.put(group)
        for member in group.members.values():
            self._sessions.start(group, member)
        return self._rebalances.decided(answers, self._rebalances.prepare(group, reason, answers))

    def _expired(self, group: ClassicGroup, member_id: str) -> Result:
        return self._removal.expired(group, member_id)

    def _end_waits(self, group: ClassicGroup, code: ErrorCode, answers: Answers) -> None:
        for member in group.members.values():
            group.end_join(member, answers, respond.join_refused(code, member.member_id))
            respond.end_sync(member, answers, respond.sync_refused(code))

    def _forget(self, group: ClassicGroup, reason: str) -> None:
        for member in group.members.values():
            self._sessions.stop(group, member)
        for member_id in group.pending:
            self._sessions.stop_pending(group, member_id)
        self._rebalances.stop(group)
        group.move_to(ClassicState.DEAD, reason)
