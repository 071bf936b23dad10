"""What a member of the classic protocol sends."""

from __future__ import annotations

from collections.abc import Sequence

from kavka.coordinator.group.group import Client
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.consumer_stage import GROUP, REBALANCE_TIMEOUT_MS, ConsumerStage
from tests.support.coordinator_stage import Asked

SESSION_TIMEOUT_MS = 10_000


def classic_join(
    stage: ConsumerStage,
    member_id: str,
    metadata: bytes,
    *,
    protocols: Sequence[str] = ("cooperative-sticky", "range"),
    protocol_type: str = "consumer",
    instance_id: str | None = None,
    version: int = 9,
) -> Asked:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
    )
    client = Client("classic", "/127.0.0.1", version)
    return stage.ask(lambda shard, reply: shard.join(request, client, reply))


def classic_sync(
    stage: ConsumerStage,
    member_id: str,
    generation: int,
    assignments: list[SyncGroupRequestAssignment],
    *,
    instance_id: str | None = None,
    protocol_name: str = "cooperative-sticky",
) -> Asked:
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocol_name=protocol_name,
        assignments=assignments,
    )
    client = Client("classic", "/127.0.0.1", 5)
    return stage.ask(lambda shard, reply: shard.sync(request, client, reply))


def classic_beat(stage: ConsumerStage, member_id: str, generation: int, *, instance_id: str | None = None) -> Asked:
    request = HeartbeatRequest(
        group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )
    client = Client("classic", "/127.0.0.1", 4)
    return stage.ask(lambda shard, reply: shard.heartbeat(request, client, reply))


def classic_leave(stage: ConsumerStage, member_id: str, *, instance_id: str | None = None) -> Asked:
    identity = MemberIdentity(member_id=member_id, group_instance_id=instance_id)
    request = LeaveGroupRequest(group_id=GROUP, member_id="", members=[identity])
    client = Client("classic", "/127.0.0.1", 5)
    return stage.ask(lambda shard, reply: shard.leave(request, client, reply))
