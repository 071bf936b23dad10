"""Classic groups on a stage of their own: a shard of nothing else, and requests in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.groups import ClassicGroups
from kavka.coordinator.group.group import Client
from kavka.coordinator.group.table import GroupTable
from kavka.coordinator.ports import ShardContext
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Producer, Result
from kavka.protocol.internal.group_records import GroupMetadataKey
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.coordinator_stage import Asked, Stage

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE = (("range", b"r"),)
LATEST_JOIN = 9


class ClassicShard:
    """A shard that has classic groups only."""

    def __init__(self, context: ShardContext) -> None:
        self.table = GroupTable()
        self.classic = ClassicGroups(context, self.table)
        self.join, self.sync = self.classic.join, self.classic.sync
        self.heartbeat, self.leave = self.classic.heartbeat, self.classic.leave

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        key: Any = record.key
        assert type(key) is GroupMetadataKey
        self.classic.replay(key, record.value)  # type: ignore[arg-type]  # the key says what the value is

    def replay_end_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        raise AssertionError("no transactions here")

    def loaded(self) -> Result:
        return self.classic.loaded()

    def unloaded(self) -> Result:
        return self.classic.unloaded()

    def topics_changed(self) -> Result:
        return NOTHING


class ClassicStage(Stage[ClassicShard]):
    """`join`, `sync`, ... put requests to the group `g`; what a test does not care about has defaults."""

    def __init__(self, **settings: str) -> None:
        super().__init__(ClassicShard, {name.replace("_", "."): value for name, value in settings.items()})

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.shard.table.get(group_id)
        assert isinstance(group, ClassicGroup)
        return group

    @property
    def state(self) -> str:
        return self.group().state_name

    def join(
        self,
        member_id: str = "",
        *,
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        instance_id: str | None = None,
        version: int = LATEST_JOIN,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        reason: str | None = None,
        group_id: str = GROUP,
        client_id: str = "c",
    ) -> Asked:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
            reason=reason,
        )
        client = Client(client_id, "/127.0.0.1", version)
        return self.ask(lambda shard, reply: shard.classic.join(request, client, reply))

    def new(self, **given: Any) -> tuple[str, Asked]:
        """A dynamic member that is new: it is told its id, and joins with that."""
        member_id: str = self.join(**given).answer.member_id
        return member_id, self.join(member_id, **given)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
        group_id: str = GROUP,
    ) -> Asked:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=given)
                for each, given in (assignments or {}).items()
            ],
        )
        return self.ask(lambda shard, reply: shard.classic.sync(request, Client("c", "/127.0.0.1", 5), reply))

    def heartbeat(
        self, member_id: str, generation: int, *, instance_id: str | None = None, group_id: str = GROUP
    ) -> int:
        """The error code of the answer, which is there at once."""
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        asked = self.ask(lambda shard, reply: shard.classic.heartbeat(request, Client("c", "/127.0.0.1", 4), reply))
        return int(asked.answer.error_code)

    def leave(
        self, *members: str | tuple[str, str], version: int = 5, reason: str | None = None, group_id: str = GROUP
    ) -> Asked:
        """Members leave, named by their ids, or by (member id, instance id)."""
        pairs = [(each, None) if isinstance(each, str) else each for each in members]
        request = LeaveGroupRequest(group_id=group_id)
        if version >= 3:
            request.members = [
                MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason)
                for member_id, instance_id in pairs
            ]
        else:
            request.member_id = pairs[0][0]
        return self.ask(lambda shard, reply: shard.classic.leave(request, Client("c", "/127.0.0.1", version), reply))

    def stable(self, count: int = 2, **given: Any) -> list[str]:
        """A Stable group of that many dynamic members; the leader comes first. Each is assigned its own id."""
        joins = [self.new(**given) for _ in range(count)]
        self.advance(3_000 * (1 + count))
        assert not any(joined.waits for _, joined in joins)
        return self.sync_all([member_id for member_id, _ in joins])

    def stable_static(self, *instances: str, **given: Any) -> list[str]:
        """A Stable group of static members."""
        joins = [self.join(instance_id=instance, **given) for instance in instances]
        self.advance(3_000 * (1 + len(instances)))
        return self.sync_all([joined.answer.member_id for joined in joins])

    def sync_all(self, member_ids: Sequence[str]) -> list[str]:
        """Everybody syncs, the leader last; gives the ids, the leader first."""
        group = self.group()
        leader = group.leader_id
        assert leader is not None
        ordered = [leader, *(each for each in member_ids if each != leader)]
        assignments = {each: each.encode() for each in ordered}
        asked = {
            each: self.sync(each, group.generation, assignments if each == leader else None, protocol_name=None)
            for each in reversed(ordered)
        }
        for member_id, each in asked.items():
            assert each.answer.error_code == 0
            assert each.answer.assignment == member_id.encode()
        assert self.state == "Stable"
        return ordered


def logged_state(group: ClassicGroup | None) -> Any:
    """What the log has to know of a group that is Stable or Empty."""
    if group is None:
        return None
    return (
        group.state_name,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        [
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(group.protocol_name),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )
