"""JoinGroup: who may come in, who is told an id first, who comes back, and what that does to the group."""

from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from kavka.coordinator.group.classic import answers as respond
from kavka.coordinator.group.classic.answers import Answers
from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember, Protocols, protocols_of
from kavka.coordinator.group.classic.records import group_record
from kavka.coordinator.group.classic.states import CAN_REBALANCE, ClassicState
from kavka.coordinator.group.classic.subscriptions import subscribed_topics
from kavka.coordinator.runtime.result import Result
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.coordinator.group.classic.rebalance import Emptied, Rebalances
    from kavka.coordinator.group.classic.sessions import Sessions
    from kavka.coordinator.group.group import Client, Group
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext
    from kavka.coordinator.runtime.result import Reply
    from kavka.protocol.messages.join_group import JoinGroupRequest

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long a first JoinGroup may wait: its member can't send heartbeats yet, and may be gone (KAFKA-7610)."""
MEMBER_ID_REQUIRED_SINCE: Final = 4
SKIP_ASSIGNMENT_SINCE: Final = 9
REASON_CHARACTERS: Final = 255
NAME_CHARACTERS: Final = 8_000
"""Of a client id in a member id: they would otherwise be longer than a string of the protocol may be."""


class Join(NamedTuple):
    """A JoinGroup that is being decided on."""

    request: "JoinGroupRequest"
    client: "Client"
    reply: "Reply"
    protocols: Protocols
    rebalance_timeout_ms: int
    answers: Answers

    @property
    def client_reason(self) -> str:
        """Why the client says it joins (KIP-800)."""
        return (self.request.reason or "not provided")[:REASON_CHARACTERS]

    def refuse(self, code: ErrorCode, member_id: str = respond.UNKNOWN_MEMBER) -> None:
        self.answers.append((self.reply, respond.join_refused(code, member_id)))


class Joining:
    """Decides on JoinGroup requests. Guarded by the shard's lock."""

    __slots__ = ("_context", "_rebalances", "_rejoin", "_sessions", "_table")

    def __init__(
        self, context: "ShardContext", table: "GroupTable", sessions: "Sessions", rebalances: "Rebalances"
    ) -> None:
        self._context = context
        self._table = table
        self._sessions = sessions
        self._rebalances = rebalances
        self._rejoin = {
            ClassicState.EMPTY: self._rejoin_empty,
            ClassicState.PREPARING_REBALANCE: self._rejoin_preparing,
            ClassicState.COMPLETING_REBALANCE: self._rejoin_completing,
            ClassicState.STABLE: self._rejoin_stable,
        }

    def join(self, request: "JoinGroupRequest", client: "Client", reply: "Reply") -> Result:
        """Decide on one JoinGroup, whose group isn't a consumer group with members."""
        group = self._table.get(request.group_id)
        rebalance_timeout_ms = request.session_timeout_ms if client.api_version == 0 else request.rebalance_timeout_ms
        offered = protocols_of((each.name, each.metadata) for each in request.protocols)
        join = Join(request, client, reply, offered, rebalance_timeout_ms, [])
        if group is None:
            group = ClassicGroup(request.group_id, self._context)
            if request.member_id:
                join.refuse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
                return Result(replies=join.answers)
        elif not isinstance(group, ClassicGroup):
            return self._take_over(group, join)
        member_id = request.member_id
        if group.state is ClassicState.DEAD:
            join.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        elif not self._has_room(group, member_id, request.group_instance_id):
            return self._rebalances.decided(join.answers, self._turn_away(join, group))
        elif not group.supports(request.protocol_type, offered):
            join.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        elif not member_id:
            return self._join_new(join, group)
        elif member_id in group.pending and request.group_instance_id is None:
            return self._rebalances.decided(join.answers, self._add(join, group, member_id))
        else:
            return self._join_known(join, group)
        return Result(replies=join.answers)

    def _join_new(self, join: Join, group: ClassicGroup) -> Result:
        """Somebody without a member id: new, or a static member that was started again."""
        instance_id = join.request.group_instance_id
        name = join.client.client_id if instance_id is None else instance_id
        member_id = f"{name[:NAME_CHARACTERS]}-{uuid4()}"
        if instance_id is not None and instance_id in group.static_members:
            return self._replace(join, group, group.members[group.static_members[instance_id]], member_id)
        self._table.put(group)
        if instance_id is None and join.client.api_version >= MEMBER_ID_REQUIRED_SINCE:
            group.pending.add(member_id)
            self._sessions.start_pending(group, member_id, join.request.session_timeout_ms)
            join.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
            return Result(replies=join.answers)
        return self._rebalances.decided(join.answers, self._add(join, group, member_id))

    def _join_known(self, join: Join, group: ClassicGroup) -> Result:
        """Somebody with a member id: what happens depends on the group's state."""
        member_id = join.request.member_id
        try:
            member = group.validate_member(member_id, join.request.group_instance_id)
        except BrokerError as error:
            join.refuse(error.code, member_id)
            return Result(replies=join.answers)
        return self._rebalances.decided(join.answers, self._rejoin[group.state](join, group, member))

    def _rejoin_empty(self, join: Join, group: ClassicGroup, member: ClassicMember) -> "Emptied | None":
        join.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
        return None

    def _rejoin_preparing(self, join: Join, group: ClassicGroup, member: ClassicMember) -> "Emptied | None":
        return self._update(join, group, member, "joins")

    def _rejoin_completing(self, join: Join, group: ClassicGroup, member: ClassicMember) -> "Emptied | None":
        if member.protocols != join.protocols:
            return self._update(join, group, member, "comes with other metadata")
        # It may have missed the answer to its first JoinGroup.
        listed = respond.listed_members(group) if member.member_id == group.leader_id else []
        join.answers.append((join.reply, respond.joined(group, member, listed)))
        return None

    def _rejoin_stable(self, join: Join, group: ClassicGroup, member: ClassicMember) -> "Emptied | None":
        if member.member_id == group.leader_id:
            # That's how it has topics assigned that have changed, which no member's metadata shows.
            return self._update(join, group, member, "leads, and joins again")
        if member.protocols != join.protocols:
            return self._update(join, group, member, "comes with other metadata")
        join.answers.append((join.reply, respond.joined(group, member, [])))
        return None

    def _add(self, join: Join, group: ClassicGroup, member_id: str) -> "Emptied | None":
        request = join.request
        member = ClassicMember(
            member_id,
            instance_id=request.group_instance_id,
            client_id=join.client.client_id,
            client_host=join.client.host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=join.protocols,
        )
        member.is_new = True
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.new_member_added = True
        group.add(member)
        self._wait(join, group, member)
        self._sessions.start(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        who = f"member {member_id}" + (f" (instance {member.instance_id})" if member.is_static else "")
        return self._rebalances.prepare_or_complete(
            group, f"{who} is new; client reason: {join.client_reason}", join.answers
        )

    def _update(self, join: Join, group: ClassicGroup, member: ClassicMember, why: str) -> "Emptied | None":
        group.update(member, join.protocols, join.rebalance_timeout_ms, join.request.session_timeout_ms)
        self._wait(join, group, member)
        if group.state not in CAN_REBALANCE:
            return self._rebalances.complete_if_all_joined(group, join.answers)
        reason = f"member {member.member_id} {why}; client reason: {join.client_reason}"
        return self._rebalances.prepare(group, reason, join.answers)

    def _replace(self, join: Join, group: ClassicGroup, old: ClassicMember, member_id: str) -> Result:
        """A static member is back: a new id takes the place of the old one, which is fenced (KIP-345)."""
        new = old.copy(member_id)
        new.protocols = join.protocols
        new.rebalance_timeout_ms = join.rebalance_timeout_ms
        new.session_timeout_ms = join.request.session_timeout_ms
        changes = _change_to_others(group, old, new)
        if group.state is ClassicState.STABLE and not changes:
            return self._replace_quietly(join, group, old, new)
        self._put_in_place(group, old, new, join.answers)
        self._wait(join, group, new)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return self._rebalances.decided(join.answers, self._rebalances.complete_if_all_joined(group, join.answers))
        reason = (
            f"instance {new.instance_id} is back as member {member_id}"
            + changes
            + f"; client reason: {join.client_reason}"
        )
        return self._rebalances.decided(join.answers, self._rebalances.prepare(group, reason, join.answers))

    def _replace_quietly(self, join: Join, group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> Result:
        """Nothing changes for the others, so nobody has to join again; only the log has to know the new id."""
        former_leader_id = group.leader_id

        def appended() -> Result:
            fenced: Answers = []
            self._put_in_place(group, old, new, fenced)
            group.note(f"instance {new.instance_id} is back as member {new.member_id}, nothing else has changed")
            if join.client.api_version >= SKIP_ASSIGNMENT_SINCE:
                leads = group.leader_id == new.member_id
                listed = respond.listed_members(group) if leads else []
                response = respond.joined(group, new, listed, skip_assignment=leads)
            else:
                # One that took itself for the leader would compute an assignment, which nobody waits for.
                response = respond.joined(group, new, [], leader_id=former_leader_id)

            def uncommitted(error: BrokerError) -> Answers:
                return [*fenced, (join.reply, respond.join_refused(error.code))]

            return Result(replies=[*fenced, (join.reply, response)], reads_committed=True, uncommitted=uncommitted)

        def failed(error: BrokerError) -> Result:
            self._sessions.start(group, old)
            join.refuse(error.code)
            return Result(replies=join.answers)

        record = group_record(group, replacing=(old, new))
        return Result([record], replays=False, appended=appended, failed=failed)

    def _put_in_place(self, group: ClassicGroup, old: ClassicMember, new: ClassicMember, answers: Answers) -> None:
        group.end_join(old, answers, respond.join_refused(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        respond.end_sync(old, answers, respond.sync_refused(ErrorCode.FENCED_INSTANCE_ID))
        self._sessions.stop(group, old)
        group.replace(old, new)
        if group.state is ClassicState.STABLE:
            self._rebalances.synced(group, old.member_id)
        self._sessions.start(group, new)

    def _wait(self, join: Join, group: ClassicGroup, member: ClassicMember) -> None:
        earlier = group.await_join(member, join.reply)
        if earlier is not None:
            join.answers.append((earlier, respond.join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)))

    def _has_room(self, group: ClassicGroup, member_id: str, instance_id: str | None) -> bool:
        """Whether group.max.size lets it in. While members join, those count that have; so the last ones go.

        A static member that was started again is not one more (KAFKA-20601 says so of the consumer protocol).
        """
        limit = self._context.config.group_max_size
        if not member_id and instance_id is not None:
            member_id = group.static_members.get(instance_id, "")
        member = group.members.get(member_id)
        if group.state is ClassicState.EMPTY:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            return (member is not None and member.awaiting_join is not None) or group.awaiting_join_count < limit
        return member is not None or len(group.members) < limit

    def _turn_away(self, join: Join, group: ClassicGroup) -> "Emptied | None":
        member_id = join.request.member_id
        member = group.remove(member_id)
        if member is not None:
            self._sessions.stop(group, member)
            group.note(f"member {member_id} is one too many")
        else:
            self._sessions.stop_pending(group, member_id)
        join.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        return self._rebalances.complete_if_all_joined(group, join.answers)

    def _take_over(self, former: "Group", join: Join) -> Result:
        """An empty consumer group becomes a classic one: then the request is decided on."""
        request = join.request
        if request.member_id:
            join.refuse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return Result(replies=join.answers)
        empty = group_record(ClassicGroup(request.group_id, self._context))

        def appended() -> Result:
            group = self._table.get(request.group_id)
            if group is not None:
                group.history.follow(former.history)
            return self.join(request, join.client, join.reply)

        return Result([*former.tombstones(), empty], appended=appended)


def _change_to_others(group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> str:
    """What a static member's restart means to the others; empty if nothing: then nobody has to join again.

    Of a consumer's metadata its topics alone do: what it owns, and an assignor's own data, change with each start.
    Kafka never looks at them (KAFKA-12759), so that nobody is assigned the topics that are new.
    """
    if group.select_protocol((old, new)) != group.protocol_name:
        return " with other protocols"
    if group.uses_consumer_protocol:
        before, now = (subscribed_topics([each.metadata(group.protocol_name)]) for each in (old, new))
        if before is not None and now is not None and before != now:
            return " with another subscription"
    return ""
