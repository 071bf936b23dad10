"""What groups have committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, each_of, settled, split
from kavka.client.admin.areas.later import Later
from kavka.client.api_errors import KafkaError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.operations import group_offsets as operations
    from kavka.client.admin.operations import newer_groups
    from kavka.client.admin.types.groups import SharePartitionOffsetInfo
    from kavka.client.consumer.group.port import OffsetAndMetadata
else:
    operations = Later("kavka.client.admin.operations.group_offsets")
    newer_groups = Later("kavka.client.admin.operations.newer_groups")


class GroupOffsetsArea(Area):
    """Threads: any."""

    def list_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        """What groups have committed: for these partitions (None where it is nothing), or for all with None.

            admin.list_group_offsets({"billing": None})["billing"]

        Groups of one coordinator are asked for at once where it can (KIP-709). `require_stable` waits for transactions
        that commit offsets now (KIP-447).
        """
        wanted = {group_id: None if each is None else each_of(each) for group_id, each in groups.items()}
        return self._run(operations.list_offsets(wanted, require_stable), self._deadline(timeout_ms))

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, None]:
        """Commit for a group that has no members, for its next ones to begin there.

            admin.alter_group_offsets("billing", {TopicPartition("orders", 0): 0})

        Raises UnknownMemberIdError when the group has members, GroupIdNotFoundError, ...
        """
        from kavka.client.consumer.group.port import OffsetAndMetadata

        wanted = {
            partition: offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
            for partition, offset in offsets.items()
        }
        return self._run(operations.alter_offsets(group_id, wanted), self._deadline(timeout_ms))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, None]:
        """Have a group forget what it has committed for partitions of topics that it does not read now (KIP-496).

        Raises GroupSubscribedToTopicError, GroupIdNotFoundError, ...
        """
        return self._run(operations.delete_offsets(group_id, each_of(partitions)), self._deadline(timeout_ms))

    def list_share_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout_ms: float | None = None,
    ) -> dict[str, dict[TopicPartition, SharePartitionOffsetInfo]]:
        """Where share groups' records in flight begin (KIP-932): for these partitions, or for all with None.

        A group fails with the first error of its partitions.
        """
        wanted = {group_id: None if each is None else each_of(each) for group_id, each in groups.items()}
        operation = newer_groups.list_share_offsets(wanted)
        found = self._outcomes(operation, self._deadline(timeout_ms))
        results: dict[str, dict[TopicPartition, SharePartitionOffsetInfo]] = {}
        errors = dict(found.errors)
        for group_id, outcomes in found.results.items():
            try:
                results[group_id] = split(f"{operation.name} of {group_id}", outcomes)
            except KafkaError as error:
                errors[group_id] = error
        return settled(operation.name, results, errors)

    def alter_share_group_offsets(
        self, group_id: str, start_offsets: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, None]:
        """Set where a share group without members goes on. Raises NonEmptyGroupError, ..."""
        return self._run(newer_groups.alter_share_offsets(group_id, start_offsets), self._deadline(timeout_ms))

    def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, None]:
        """Have a share group without members forget topics. Raises NonEmptyGroupError, ..."""
        return self._run(newer_groups.delete_share_offsets(group_id, each_of(topics)), self._deadline(timeout_ms))
