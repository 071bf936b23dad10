"""SyncGroup: members wait for their assignments, which the leader brings; nobody has one before it is written."""

import logging
from typing import TYPE_CHECKING

from kavka.coordinator.group.classic import answers as respond
from kavka.coordinator.group.classic.answers import Answers
from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.group.classic.rebalance import COMPLETED_REBALANCES
from kavka.coordinator.group.classic.records import group_record
from kavka.coordinator.group.classic.states import ClassicState
from kavka.coordinator.runtime.result import NOTHING, Result
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.coordinator.group.classic.rebalance import Rebalances
    from kavka.coordinator.group.classic.sessions import Sessions
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext
    from kavka.coordinator.runtime.result import Reply
    from kavka.protocol.messages.sync_group import SyncGroupRequest

log = logging.getLogger(__name__)


class Syncing:
    """Decides on SyncGroup requests. Guarded by the shard's lock."""

    __slots__ = ("_by_state", "_context", "_rebalances", "_sessions", "_table")

    def __init__(
        self, context: "ShardContext", table: "GroupTable", sessions: "Sessions", rebalances: "Rebalances"
    ) -> None:
        self._context = context
        self._table = table
        self._sessions = sessions
        self._rebalances = rebalances
        self._by_state = {
            ClassicState.PREPARING_REBALANCE: self._sync_preparing,
            ClassicState.COMPLETING_REBALANCE: self._sync_completing,
            ClassicState.STABLE: self._sync_stable,
        }

    def sync(self, request: "SyncGroupRequest", reply: "Reply") -> Result:
        """Decide on one SyncGroup, whose group isn't a consumer group."""
        group = self._table.get(request.group_id)
        try:
            if not isinstance(group, ClassicGroup) or group.is_empty:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
            member = _validate(group, request)
            return self._by_state[group.state](group, member, request, reply)
        except BrokerError as error:
            return Result(replies=[(reply, respond.sync_refused(error.code))])

    def _sync_preparing(
        self, group: ClassicGroup, member: ClassicMember, request: "SyncGroupRequest", reply: "Reply"
    ) -> Result:
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)

    def _sync_completing(
        self, group: ClassicGroup, member: ClassicMember, request: "SyncGroupRequest", reply: "Reply"
    ) -> Result:
        answers: Answers = []
        respond.end_sync(member, answers, respond.sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = reply
        self._rebalances.synced(group, member.member_id)
        if member.member_id != group.leader_id:
            return Result(replies=answers) if answers else NOTHING
        return self._assign(group, request, answers)

    def _sync_stable(
        self, group: ClassicGroup, member: ClassicMember, request: "SyncGroupRequest", reply: "Reply"
    ) -> Result:
        self._rebalances.synced(group, member.member_id)
        # The leader's record may still be on its way to the replicas.
        return Result(replies=[(reply, respond.synced(group, member.assignment))], reads_committed=True)

    def _assign(self, group: ClassicGroup, request: "SyncGroupRequest", answers: Answers) -> Result:
        """The leader has assigned: write it, then tell everybody who waits."""
        assignments = {each.member_id: each.assignment for each in request.assignments}
        without = sum(member_id not in assignments for member_id in group.members)
        if without:
            fields = {"group": group.group_id, "generation": group.generation, "members": without}
            log.warning("the leader has assigned nothing to some members", extra={"fields": fields})

        def appended() -> Result:
            told: Answers = []
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
                if member.awaiting_sync is not None:
                    respond.end_sync(member, told, respond.synced(group, member.assignment))
                    self._sessions.start(group, member)
            group.move_to(ClassicState.STABLE, f"leader {group.leader_id} has assigned")
            self._context.count(COMPLETED_REBALANCES)

            def uncommitted(error: BrokerError) -> Answers:
                return [(reply, respond.sync_refused(error.code)) for reply, _ in told]

            return Result(replies=told, reads_committed=True, uncommitted=uncommitted)

        def failed(error: BrokerError) -> Result:
            # Before a rebalance begins, which would tell them REBALANCE_IN_PROGRESS.
            self._rebalances.take_assignments_back(group, error.code, answers)
            reason = f"the assignment cannot be written: {error.code.name}"
            return self._rebalances.decided(answers, self._rebalances.prepare(group, reason, answers))

        return Result(
            [group_record(group, assignments)],
            answers,
            replays=False,
            appended=appended,
            failed=failed,
            uncommitted=lambda _: answers,
        )


def _validate(group: ClassicGroup, request: "SyncGroupRequest") -> ClassicMember:
    if group.state is ClassicState.DEAD:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
    for said, known in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
        if said is not None and known and said != known:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return member
