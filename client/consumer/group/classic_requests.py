"""The requests of a member of a classic group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kavka.client.call import RequestBuilder
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.identity import Identity
from kavka.protocol.api import ApiKey
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PROTOCOL_TYPE: Final = "consumer"
_SEVERAL_LEAVE: Final = 3
"""LeaveGroup takes several members from here on (KIP-345)."""


class ClassicRequests:
    """Makes them. `reason` is why the member joins this time (KIP-800). Threads: the client's."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings: Final = settings
        self.reason = ""

    def join(self, identity: Identity, protocols: Sequence[tuple[str, bytes]]) -> JoinGroupRequest:
        """The subscription, once for each assignor."""
        settings = self._settings
        return JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
            reason=self.reason[:255] or None,
        )

    def sync(self, identity: Identity, protocol: str, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
        """With assignments from the leader; without it asks for this member's."""
        return SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=blob) for member, blob in assignments.items()
            ],
        )

    def heartbeat(self, identity: Identity) -> HeartbeatRequest:
        """Still here."""
        return HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
        )

    def leave(self, identity: Identity, reason: str) -> RequestBuilder:
        """Farewell; brokers before 2.4 take one member and no reason."""
        group_id = self._settings.group_id

        def build(version: int) -> LeaveGroupRequest:
            if version < _SEVERAL_LEAVE:
                return LeaveGroupRequest(group_id=group_id, member_id=identity.member_id, members=[])
            member = MemberIdentity(member_id=identity.member_id, group_instance_id=identity.instance_id, reason=reason)
            return LeaveGroupRequest(group_id=group_id, member_id="", members=[member])

        return RequestBuilder(ApiKey.LEAVE_GROUP, build)
