"""The consumer groups of one shard: requests, replay, loading.

| module | what |
|-|-|
| group, state, member, assignment | one group; what the log says of it; its members; their partitions |
| requests, heartbeats | what a heartbeat must look like; what is decided on it |
| change, reconciliation, assignors/ | how a decision is put together: records, targets, a member's next step |
| decisions, deadlines | how decisions end; sessions and timeouts |
| regex, resolutions, topics | subscriptions: regular expressions, the topics there are |
| classic_members, migration | members of the classic protocol in a consumer group; the way here and back |
| records, describe | what is written, and shown |
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kavka.coordinator.group.consumer.classic_members import ClassicMembers
from kavka.coordinator.group.consumer.decisions import Decisions
from kavka.coordinator.group.consumer.describe import described
from kavka.coordinator.group.consumer.group import ConsumerGroup, Watched
from kavka.coordinator.group.consumer.heartbeats import Heartbeats
from kavka.coordinator.group.consumer.member import MemberState
from kavka.coordinator.group.consumer.resolutions import Resolutions
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Reply, Result
from kavka.protocol.errors import BrokerError
from kavka.protocol.internal.group_records import ConsumerGroupMetadataKey
from kavka.protocol.messages.consumer_group_describe import DescribedGroup

if TYPE_CHECKING:
    from kavka.coordinator.group.classic.groups import ClassicGroups
    from kavka.coordinator.group.group import Client
    from kavka.coordinator.group.table import GroupTable
    from kavka.coordinator.ports import ShardContext
    from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from kavka.protocol.messages.heartbeat import HeartbeatRequest
    from kavka.protocol.messages.join_group import JoinGroupRequest
    from kavka.protocol.messages.leave_group import LeaveGroupRequest
    from kavka.protocol.messages.sync_group import SyncGroupRequest


class ConsumerGroups:
    """All consumer groups of a shard, kept in its table. All methods are called under the shard's lock.

    Requests that are refused raise BrokerError, with Kafka's message.
    """

    __slots__ = ("_classic_members", "_decisions", "_heartbeats", "_table")

    def __init__(self, context: "ShardContext", table: "GroupTable", classic: "ClassicGroups") -> None:
        self._table = table
        self._decisions = Decisions(context, table, classic)
        self._heartbeats = Heartbeats(self._decisions, Resolutions(self._decisions))
        self._classic_members = ClassicMembers(self._decisions)

    def heartbeat(self, request: "ConsumerGroupHeartbeatRequest", client: "Client", reply: Reply) -> Result:
        """ConsumerGroupHeartbeat."""
        return self._heartbeats.heartbeat(request, client, reply)

    def describe(self, group_ids: Sequence[str], reply: Reply, *, include_history: bool = False) -> Result:
        """The groups of ConsumerGroupDescribe, as `list[DescribedGroup]`; GROUP_ID_NOT_FOUND in those that are not."""
        found = [self._describe(each, include_history) for each in group_ids]
        return Result(replies=((reply, found),), reads_committed=True)

    def classic_join(self, request: "JoinGroupRequest", client: "Client", reply: Reply) -> Result:
        """JoinGroup to a consumer group; one without members becomes a classic group."""
        return self._classic_members.join(request, client, reply)

    def classic_sync(self, request: "SyncGroupRequest", client: "Client", reply: Reply) -> Result:
        """SyncGroup to a consumer group."""
        return self._classic_members.sync(request, reply)

    def classic_heartbeat(self, request: "HeartbeatRequest", client: "Client", reply: Reply) -> Result:
        """Heartbeat to a consumer group."""
        return self._classic_members.heartbeat(request, reply)

    def classic_leave(self, request: "LeaveGroupRequest", client: "Client", reply: Reply) -> Result:
        """LeaveGroup to a consumer group, also by an administrator."""
        return self._classic_members.leave(request, client, reply)

    def replay(self, record: CoordinatorRecord) -> None:
        """A record of type 3 to 8 or 16. One that says something makes the group, if there is none of this kind."""
        key: Any = record.key
        group = self._table.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            group = ConsumerGroup(key.group_id)
            self._table.put(group)
        group.logged.apply(key, record.value)
        if record.value is None and type(key) is ConsumerGroupMetadataKey:
            group.is_dead = True
            for member_id in list(group.deadlines):
                self._decisions.forget(group, member_id)
            self._table.remove(key.group_id)

    def loaded(self) -> Result:
        """Every member has a full session from now on, and a full rebalance timeout if it has to give something up."""
        decisions = self._decisions
        for group in self._table.all():
            if not isinstance(group, ConsumerGroup):
                continue
            group.logged.count_anew()
            for member in group.logged.members.values():
                decisions.renew(group, member)
                if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
                    decisions.expect_revocation(group, member, expected=True)
            group.seen = Watched(group.state, group.logged.epoch)
            decisions.remember(group, group.seen, "read from the log")
        return NOTHING

    def unloaded(self) -> Result:
        """Nobody waits here: each request is answered at once."""
        return NOTHING

    def topics_changed(self) -> Result:
        """Nothing now: the next heartbeat of a group compares the versions, and looks at its own topics."""
        return NOTHING

    def _describe(self, group_id: str, include_history: bool) -> DescribedGroup:
        try:
            group = self._decisions.group(group_id)
        except BrokerError as error:
            return DescribedGroup(
                error_code=error.code,
                error_message=error.message,
                group_id=group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                assignor_name="",
                members=[],
            )
        answer = described(group, self._decisions.known, self._decisions.assignors)
        if include_history:
            answer.history = group.history.described()
        return answer
