"""Groups: list, describe, delete, remove members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, each_of, merged, settled
from kavka.client.admin.areas.later import Later
from kavka.client.admin.operation import Outcome
from kavka.client.api_errors import KafkaError
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.client.admin.operations import group_offsets, newer_groups
    from kavka.client.admin.operations import groups as operations
    from kavka.client.admin.types.groups import (
        ClassicGroupDescription,
        ConsumerGroupDescription,
        GroupListing,
        GroupState,
        GroupType,
        MemberToRemove,
        ShareGroupDescription,
        StreamsGroupDescription,
    )
else:
    group_offsets = Later("kavka.client.admin.operations.group_offsets")
    newer_groups = Later("kavka.client.admin.operations.newer_groups")
    operations = Later("kavka.client.admin.operations.groups")

REASON = "removed by an administrator"
_CLASSIC_PERHAPS = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""How brokers say that a group is none of KIP-848, or that they have none."""


class GroupsArea(Area):
    """Threads: any."""

    def list_groups(
        self,
        *,
        states: Iterable[GroupState] = (),
        types: Iterable[GroupType] = (),
        protocol_types: Iterable[str] = (),
        timeout_ms: float | None = None,
    ) -> list[GroupListing]:
        """All groups, or those of these states (KIP-518), types (KIP-848) and protocol types, such as "consumer".

        All brokers are asked. Raises ItemErrors by broker, with what the others said, if some did not answer.
        """
        deadline_ms = self._deadline(timeout_ms)
        wanted = frozenset(protocol_types)
        operation = operations.list_groups(self._broker_ids(deadline_ms), each_of(states), each_of(types))
        listed: list[GroupListing] = merged(operation.name, self._outcomes(operation, deadline_ms))
        return [group for group in listed if not wanted or group.protocol_type in wanted]

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        include_history: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, ConsumerGroupDescription]:
        """Groups of consumers, with their members and what these are assigned.

        Each is asked of its coordinator: by KIP-848's description first, and by the classic one where it has none.
        `include_history`: also why and when they rebalanced lately, which Kavka's coordinators tell.
        Raises GroupIdNotFoundError, GroupAuthorizationError, ...
        """
        deadline_ms = self._deadline(timeout_ms)
        asked = each_of(group_ids)
        operation = operations.describe_consumer_groups(asked, include_authorized_operations, include_history)
        results, errors = self._outcomes(operation, deadline_ms)
        classic = [group_id for group_id, error in errors.items() if error.code in _CLASSIC_PERHAPS]
        if classic:
            described = self._outcomes(
                operations.describe_classic_groups(classic, include_authorized_operations, include_history), deadline_ms
            )
            errors = {**errors, **described.errors}
            for group_id, group in described.results.items():
                found: Outcome[ConsumerGroupDescription] = operations.consumers_of(group)
                if isinstance(found, KafkaError):
                    errors[group_id] = found
                else:
                    del errors[group_id]
                    results[group_id] = found
        return settled(operation.name, results, errors)

    def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        include_history: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, ClassicGroupDescription]:
        """Classic groups of any kind, Kafka Connect's workers too, with what their members say as bytes.

        `include_history`: also why and when they rebalanced lately, which Kavka's coordinators tell.
        """
        operation = operations.describe_classic_groups(
            each_of(group_ids), include_authorized_operations, include_history
        )
        return self._run(operation, self._deadline(timeout_ms))

    def describe_share_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, ShareGroupDescription]:
        """Share groups (KIP-932), of brokers of Kafka 4.1 and later. Raises UnsupportedVersionError for others."""
        operation = newer_groups.describe_share_groups(each_of(group_ids), include_authorized_operations)
        return self._run(operation, self._deadline(timeout_ms))

    def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, StreamsGroupDescription]:
        """Groups of Kafka Streams (KIP-1071), of brokers of Kafka 4.1 and later. UnsupportedVersionError for others."""
        operation = newer_groups.describe_streams_groups(each_of(group_ids), include_authorized_operations)
        return self._run(operation, self._deadline(timeout_ms))

    def delete_groups(self, group_ids: Iterable[str], *, timeout_ms: float | None = None) -> dict[str, None]:
        """Delete groups of any type that have no members, with what they have committed.

        Raises NonEmptyGroupError, GroupIdNotFoundError, ...
        """
        return self._run(group_offsets.delete_groups(each_of(group_ids)), self._deadline(timeout_ms))

    def remove_group_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | None = None,
        *,
        reason: str = REASON,
        timeout_ms: float | None = None,
    ) -> dict[MemberToRemove, None]:
        """Have members leave their classic group (KIP-345), all it has now by default.

        Raises UnknownMemberIdError, ...; UnsupportedVersionError for brokers before 2.4.
        """
        from kavka.client.admin.types.groups import MemberToRemove

        deadline_ms = self._deadline(timeout_ms)
        if members is not None:
            leaving = each_of(members)
        else:
            group = self._one(
                operations.describe_classic_groups([group_id], with_operations=False, with_history=False), deadline_ms
            )
            leaving = [
                MemberToRemove(group_instance_id=member.group_instance_id)
                if member.group_instance_id is not None
                else MemberToRemove(member_id=member.member_id)
                for member in group.members
            ]
        return self._run(group_offsets.remove_members(group_id, leaving, reason), deadline_ms)
